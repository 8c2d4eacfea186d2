"""The quickstart game: killed without warning, it goes on where it was."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def play(data: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "examples.quickstart", "--data-dir", str(data), "--seconds", str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def hit_points(lines: list[str]) -> list[int]:
    """Those that the game shows first."""
    line = next(line for line in lines if " hp" in line)
    return [int(text) for text in re.findall(r"(\d+) hp", line)]


def test_it_goes_on_after_a_kill(tmp_path: Path) -> None:
    first = play(tmp_path, seconds=60)
    assert first.stdout is not None
    lines = []
    for line in first.stdout:  # when the second bite is told, the first one has long been on disk
        lines.append(line)
        if sum("the wolf bites" in line for line in lines) == 2:
            break
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    assert lines[0].startswith("A new game in")
    assert hit_points(lines) == [100, 100, 100]

    second = play(tmp_path, seconds=2)
    output, _ = second.communicate(timeout=30)
    assert second.returncode == 0, output
    after = output.splitlines()
    assert re.match(r"The game in .* goes on after transaction \d+\.", after[0])
    assert sum(hit_points(after)) < 300
    assert any("the wolf bites" in line for line in after[2:]), "the wolf's timer goes on, too"
    assert "Traceback" not in output

    third = play(tmp_path, seconds=0)
    output, _ = third.communicate(timeout=30)
    assert third.returncode == 0, output
    transactions = [int(n) for text in (after[-1], output) for n in re.findall(r"after transaction (\d+)", text)]
    assert transactions == sorted(transactions), "nothing of a game that was stopped regularly is lost"
    assert sum(hit_points(output.splitlines())) < 300


def test_its_file_can_be_read_with_any_tool(tmp_path: Path) -> None:
    play(tmp_path, seconds=0).communicate(timeout=30)
    connection = sqlite3.connect(tmp_path / "quickstart.db")
    names = [name for (name,) in connection.execute("select name from player order by id")]
    connection.close()
    assert names == ["ann", "bob", "cleo"]


def test_what_it_cannot_play_with_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "quickstart.db").write_text("a diary")
    game = play(tmp_path, seconds=0)
    output, _ = game.communicate(timeout=30)
    assert game.returncode == 1
    assert output.startswith("error: ")
    assert "quickstart.db" in output
    assert "Traceback" not in output
