"""`gamedb backup`: a data directory that is served is copied as it is at one moment, and goes on from there."""

from __future__ import annotations

import re
import signal
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.gamedb.test_cli_server import GAME, Process, Run, call, run, url_in

__all__ = ["run"]  # the fixture


def names(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as stored:
        return [name for (name,) in stored.execute("SELECT name FROM player ORDER BY id")]


def test_what_is_served_is_copied_while_players_join_and_the_copy_goes_on(tmp_path: Path, run: Run) -> None:
    server = Process("start", GAME, "--listen", "127.0.0.1:0", cwd=tmp_path)
    url = url_in(server.wait_for("/v1/database/arena"))
    server.wait_for("Serving")
    joined: list[str] = []
    enough, stop = threading.Event(), threading.Event()

    def play() -> None:
        while not stop.is_set():
            assert call(url, "join", f"player {len(joined)}") == 200  # it is on disk
            joined.append(f"player {len(joined)}")
            if len(joined) == 20:
                enough.set()

    player = threading.Thread(target=play)
    player.start()
    try:
        assert enough.wait(60)
        surely = list(joined)
        result = run("backup", "copies/one")
        assert (result.code, result.err) == (0, "")
    finally:
        stop.set()
        player.join()
    assert server.stop() == 0

    copy = tmp_path / "copies" / "one"
    assert re.search(r"arena\.db +[\d.]+ MB\n", result.out)
    assert result.out.endswith("copies/one is complete.\n")
    copied = names(copy / "arena.db")
    assert copied[: len(surely)] == surely
    assert copied == joined[: len(copied)]
    for path in (copy, *copy.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) in ((0o700,) if path.is_dir() else (0o600,)), path
    assert (copy / "owner.token").read_text() == (tmp_path / "data" / "owner.token").read_text()
    assert [path.name for path in copy.parent.iterdir()] == ["one"]

    restored = Process("start", GAME, "--listen", "127.0.0.1:0", "--data-dir", str(copy), cwd=tmp_path)
    url = url_in(restored.wait_for("/v1/database/arena"))
    restored.wait_for("Serving")
    assert call(url, "join", "eve") == 200
    assert run("token", "show", "--data-dir", str(copy)).code == 0  # the keys are there
    assert restored.stop() == 0
    assert names(copy / "arena.db") == [*copied, "eve"]


@pytest.fixture
def data(tmp_path: Path, run: Run) -> Path:
    """A data directory of before."""
    server = Process("start", GAME, "--listen", "127.0.0.1:0", cwd=tmp_path)
    server.wait_for("Serving")
    server.stop(signal.SIGKILL)  # so that there is a -wal file
    return tmp_path / "data"


def test_after_a_crash_what_is_in_the_wal_file_is_copied_too(data: Path, run: Run) -> None:
    assert (data / "arena.db-wal").stat().st_size
    assert run("backup", "copy").code == 0
    assert names(data.parent / "copy" / "arena.db") == []
    assert not list(data.parent.glob("copy/*-wal"))


def test_a_damaged_database_is_no_backup_and_the_ones_of_before_stay(data: Path, run: Run) -> None:
    assert run("backup", "copy").code == 0
    with closing(sqlite3.connect(data / "arena.db")) as stored:
        stored.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    content = bytearray((data / "arena.db").read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (data / "arena.db").write_bytes(content)
    result = run("backup", "copy2")
    assert result.code == 2
    assert "nothing was copied" in result.err
    assert "arena.db" in result.err
    assert sorted(path.name for path in data.parent.iterdir()) == ["copy", "data"]


def test_files_of_others_are_not_taken_for_databases(data: Path, run: Run) -> None:
    (data / "notes.db").write_text("mine")
    result = run("backup", "copy")
    assert result.code == 2
    assert "notes.db is not a database" in result.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["data"], "data is there already"),
        (["data/copy"], "lies in the data directory data"),
        (["copy", "--data-dir", "nowhere"], "there is no database in nowhere"),
        (["/dev/null/copy"], "nothing was copied. /dev/null"),
    ],
)
@pytest.mark.usefixtures("data")
def test_places_where_no_copy_can_be(run: Run, arguments: list[str], text: str) -> None:
    result = run("backup", *arguments)
    assert result.code == 2
    assert text in result.err
    assert "Traceback" not in result.err
