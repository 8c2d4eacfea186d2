"""The sun: phases, days, and no drift."""

from __future__ import annotations

from datetime import timedelta

from examples.day_night import WorldTime, begin_the_world, module
from examples.stage import Stage


def time_of(stage: Stage) -> tuple[int, str]:
    (row,) = stage.db.read(WorldTime)
    return row.day, row.phase


def test_days_go_by_under_one_id() -> None:
    stage = Stage(module)
    sun = stage.db.call(begin_the_world)
    assert stage.db.call(begin_the_world) == sun
    seen = []
    for _ in range(3):
        for minutes in (2, 20, 2, 10):
            seen.append(time_of(stage))
            stage.wait(minutes=minutes)
    assert seen == [(day, phase) for day in (1, 2, 3) for phase in ("dawn", "day", "dusk", "night")]
    assert stage.flows.view(sun).init.number == 4


def test_a_server_that_was_down_does_not_have_longer_days() -> None:
    stage = Stage(module)
    stage.db.call(begin_the_world)
    stage.clock.advance(timedelta(minutes=34 * 10 + 5))  # nothing ran meanwhile
    stage.db.run_due()
    assert time_of(stage) == (11, "day")
    stage.wait(minutes=17)
    assert time_of(stage) == (11, "dusk")


def test_days_that_nobody_saw_are_counted_and_not_played() -> None:
    stage = Stage(module)
    stage.db.call(begin_the_world)
    stage.clock.advance(timedelta(days=365))
    stage.db.run_due()
    assert time_of(stage) == (1 + 365 * 24 * 60 // 34, "night")
    assert len(stage.announced) < 10
