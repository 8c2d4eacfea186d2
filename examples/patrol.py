"""A guard on patrol: from waypoint to waypoint, until somebody suspicious turns up.

    python -m examples.patrol

What it shows: a child workflow. Where a threat is reported, the patrol does `await spawn(combat, ...)` and stands still
in the middle of its loop until the fight is over; then the guard walks home and the round goes on. The fight is the
workflow of `examples.combat`, unchanged: what a workflow is does not depend on who started it.

The lines that matter are in the `case ThreatDetected`. Look at the `for` loop, too: which waypoint is next is a loop's
business, and it survives a restart because the loop does. On the way the guard is where the clock says (`Walk` in
`examples.world`), so nothing has to be written between two waypoints.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, ReducerError, u64
from workflow_module import (
    Signal,
    Struct,
    Timer,
    WorkflowContext,
    install,
    select,
    sleep,
    spawn,
    timer,
    workflow,
)

from .combat import Attack, CombatInit, Outcome, combat
from .stage import Stage
from .world import Character, Point, announce, character, halt, heal, name_of, set_out, world

STEP = timedelta(seconds=1)
"""How long a guard takes for one step."""
LOOK_AROUND = timedelta(seconds=3)

module = Module("patrol")
module.include(world)


class PatrolTimer(Timer):
    ARRIVAL = "arrival"


class ThreatDetected(Signal):
    enemy: int


class StandDown(Signal): ...


class PatrolInit(Struct):
    guard: int
    home: Point
    waypoints: list[Point]
    pace: timedelta = STEP


class PatrolResult(Struct):
    fights: int


@workflow
async def patrol(ctx: WorkflowContext, init: PatrolInit) -> PatrolResult:
    fights = 0
    while init.waypoints:
        for waypoint in init.waypoints:
            arrival = set_out(ctx, init.guard, waypoint, init.pace)
            match await select(timer(PatrolTimer.ARRIVAL, at=arrival), ThreatDetected, StandDown):
                case PatrolTimer.ARRIVAL:
                    halt(ctx, init.guard)
                    await sleep(LOOK_AROUND)
                case ThreatDetected(enemy):
                    fights += 1
                    halt(ctx, init.guard)
                    announce(ctx, f"{name_of(ctx, init.guard)}: stop, {name_of(ctx, enemy)}!")
                    fight = CombatInit(attacker=init.guard, defender=enemy)
                    result = await spawn(combat, fight, entity_id=init.guard)
                    if result.outcome is Outcome.DEFEAT:
                        return PatrolResult(fights=fights)
                    await sleep(set_out(ctx, init.guard, init.home, init.pace) - ctx.now)
                    halt(ctx, init.guard)
                    heal(ctx, init.guard)
                    announce(ctx, f"{name_of(ctx, init.guard)} is home, and well again.")
                case StandDown():
                    await sleep(set_out(ctx, init.guard, init.home, init.pace) - ctx.now)
                    halt(ctx, init.guard)
                    return PatrolResult(fights=fights)
    return PatrolResult(fights=fights)


engine = install(module, [patrol, combat], testing=True)


@module.reducer
def post_guard(ctx: ReducerContext, guard: u64, waypoints: list[Point]) -> int:
    """Send a guard on patrol. Home is where it stands."""
    if not waypoints:
        raise ReducerError("a patrol needs waypoints")
    init = PatrolInit(guard=guard, home=character(ctx, guard).at, waypoints=list(waypoints))
    return engine.start(ctx, patrol, init, entity_id=guard)


@module.reducer
def report_threat(ctx: ReducerContext, guard: u64, enemy: u64) -> None:
    """A trigger area, or a citizen, points somebody out to a guard."""
    if ctx.db[Character].get(enemy) is None:
        raise ReducerError(f"there is no character {enemy}")
    engine.signal_entity(ctx, guard, ThreatDetected(enemy=enemy))


@module.reducer
def stand_down(ctx: ReducerContext, guard: u64) -> None:
    """The patrol is over; the guard walks home."""
    engine.signal_entity(ctx, guard, StandDown())


@module.reducer
def order_attack(ctx: ReducerContext, guard: u64) -> None:
    """The guard's mind: strike. The signal goes to whatever of the guard's workflows knows it, here the fight."""
    if not engine.signal_entity(ctx, guard, Attack()):
        raise ReducerError(f"{name_of(ctx, guard)} is in no fight")


def main() -> None:
    """A round, a bandit, the way home, and on."""
    stage = Stage(module)
    stage.narrate()
    guard = stage.place("the guard", strength=25)
    bandit = stage.place("the bandit", hp=40, gold=12, at=Point(3, 0))
    stage.db.call(post_guard, guard, [Point(4, 0), Point(4, 4), Point(0, 4)])
    stage.wait(seconds=8)
    print(f"{'':12}the guard is at {stage.character(guard).at}")
    stage.db.call(report_threat, guard, bandit)
    while stage.character(bandit).hp:
        stage.db.call(order_attack, guard)
        stage.wait(seconds=1)
    stage.wait(seconds=4)
    stage.wait(seconds=11)
    print(f"{'':12}and on: the guard is at {stage.character(guard).at}")


if __name__ == "__main__":
    main()
