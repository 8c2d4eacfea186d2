"""What `make demo-crash` shows: what the file says before and after, and what became of each workflow."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from examples.arena import demo_crash
from examples.arena.demo_crash import Snapshot, comparison, look, lost_between, verdict
from examples.arena.module import module
from examples.stage import Stage


@pytest.fixture
def played(tmp_path: Path) -> tuple[Snapshot, Snapshot]:
    """An arena that is cut off after a minute, and another look at its file ten seconds later."""
    stage = Stage(module, tmp_path / "arena.db")
    stage.wait(minutes=1)
    stage.db.flush()
    before = look(tmp_path, stage.clock.now)
    stage.db.close()
    stage.clock.advance(timedelta(seconds=10))
    stage.open(tmp_path / "arena.db")
    stage.db.run_due()
    stage.db.flush()
    after = look(tmp_path, stage.clock.now)
    stage.db.close()
    return before, after


def test_it_sees_every_kind_of_workflow_with_its_next_deadline(played: tuple[Snapshot, Snapshot]) -> None:
    before, _ = played
    assert {run.kind for run in before.runs.values()} >= {
        "auction",
        "boss_fight",
        "buff",
        "day_night",
        "lair",
        "patrol",
    }
    fight = next(run for run in before.runs.values() if run.kind == "boss_fight")
    assert (fight.about, fight.state) == ("the dragon", "phase 1")
    assert fight.due is not None
    assert before.at < fight.due


def test_nothing_is_lost_and_the_table_says_so(played: tuple[Snapshot, Snapshot]) -> None:
    before, after = played
    lost = lost_between(before, after)
    assert not lost
    out = Console(file=StringIO(), width=140)
    out.print(comparison(before, after))
    out.print(verdict(before, after, lost))
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "goes on" in text
    assert "boss fight" in text
    assert "Nothing was lost" in text


def test_what_is_missing_is_shown_as_lost(played: tuple[Snapshot, Snapshot]) -> None:
    before, after = played
    auctions = [run for run in before.runs.values() if run.kind == "auction"]
    later = Snapshot(after.at, {n: run for n, run in after.runs.items() if run.kind != "auction"}, frozenset())
    out = Console(file=StringIO(), width=140)
    out.print(comparison(before, later))
    lost = lost_between(before, later)
    assert {run.workflow_id for run in auctions} <= {run.workflow_id for run in lost}
    assert out.file.getvalue().count("lost") == len(lost)  # type: ignore[attr-defined]
    assert "were lost" in verdict(before, later, lost)


def test_what_it_says_in_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """How long each pause is, as nothing is seen of it there, and how long the start took without the pauses."""
    for name, seconds in (("PLAY_SECONDS", 0.5), ("DOWN_SECONDS", 0.2), ("CATCH_UP_SECONDS", 0.1)):
        monkeypatch.setattr(demo_crash, name, seconds)
    with pytest.raises(SystemExit) as ended:
        demo_crash.main()
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "It plays for 0.5 s." in text
    assert re.search(r"up again\. It was down for 0\.2 s on purpose, and answered \d+\.\d s after its start\.", text)
    assert "Nothing was lost" in text
