"""Dawn, day, dusk and night, for ever.

    python -m examples.day_night

What it shows: `continue_as_new`, for a workflow that never ends. Each day is a run of its own under the same id, with
the day's number as its init: no variable, timeline or counter grows over the years, and a deploy that changes how a day
goes takes effect at the next dawn at the latest.

It also keeps time. Each phase ends at a deadline computed from the day's beginning, not from when the process got
around to it, so a server that was down at noon does not have longer days afterwards. Whole days that nobody saw are
counted and not played.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gamedb import Module, PrimaryKey, ReducerContext, Row, u8, u32
from workflow_module import Struct, Timer, WorkflowContext, continue_as_new, install, timer, workflow

from .stage import Stage
from .world import announce, world

module = Module("day_night")
module.include(world)


LENGTHS = [("dawn", 2), ("day", 20), ("dusk", 2), ("night", 10)]
"""The phases of a day and how many minutes they take."""


@module.table(public=True)
class WorldTime(Row):
    """One row: what time it is in the world."""

    id: PrimaryKey[u8] = 0
    day: u32
    phase: str
    until: datetime
    """When the next phase begins."""


class CycleTimer(Timer):
    PHASE = "phase"


class Day(Struct):
    number: int
    begins: datetime
    minute: timedelta = timedelta(minutes=1)
    """How long a minute of this world takes."""


@workflow
async def day_night(ctx: WorkflowContext, init: Day) -> None:
    phase_ends = init.begins
    for phase, minutes in LENGTHS:
        phase_ends += minutes * init.minute
        set_world_time(ctx, init.number, phase, phase_ends)
        await timer(CycleTimer.PHASE, at=phase_ends)
    missed = (ctx.now - phase_ends) // (phase_ends - init.begins)
    begins = phase_ends + missed * (phase_ends - init.begins)
    continue_as_new(Day(number=init.number + 1 + missed, begins=begins, minute=init.minute))


def set_world_time(ctx: ReducerContext, day: int, phase: str, until: datetime) -> None:
    """Turn the lights on or off."""
    ctx.db[WorldTime].upsert(WorldTime(day=day, phase=phase, until=until))
    announce(ctx, f"Day {day}: {phase}.")


engine = install(module, [day_night], testing=True)


@module.reducer
def begin_the_world(ctx: ReducerContext) -> int:
    """Let there be light; a second call joins the first."""
    return engine.start(ctx, day_night, Day(number=1, begins=ctx.now), correlation_id="the sun")


def main() -> None:
    """Two days go by."""
    stage = Stage(module)
    stage.narrate()
    sun = stage.db.call(begin_the_world)
    stage.wait(minutes=2 * 34)
    print(f"{'':12}workflow {sun} is in day {stage.flows.view(sun).init.number}")


if __name__ == "__main__":
    main()
