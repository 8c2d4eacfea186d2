"""A creature that comes back some time after it was slain.

    python -m examples.respawn

What it shows: the smallest useful workflow, two lines. The creature is deleted when it dies; what it was lies in the
workflow's init until its time has come, and that time comes in the middle of next week's maintenance, too.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, u64
from workflow_module import Struct, WorkflowContext, install, sleep, workflow

from .stage import Stage
from .world import Character, Point, announce, character, hurt, me, move_gold, world

module = Module("respawn")
module.include(world)


class RespawnInit(Struct):
    name: str
    hp: int
    strength: int
    home: Point
    delay: timedelta


@workflow
async def respawn(ctx: WorkflowContext, init: RespawnInit) -> int:
    await sleep(init.delay)
    return appear(ctx, init)


def appear(ctx: ReducerContext, init: RespawnInit) -> int:
    """Put the creature on the map; its id."""
    announce(ctx, f"{init.name} is back.")
    row = Character(name=init.name, hp=init.hp, hp_max=init.hp, strength=init.strength, at=init.home)
    return ctx.db[Character].insert(row).id


engine = install(module, [respawn], testing=True)


@module.reducer
def strike(ctx: ReducerContext, target: u64) -> None:
    """Hit a creature. One that dies leaves its gold to who struck, and comes back a minute later."""
    hero, victim = me(ctx), character(ctx, target)
    if hurt(ctx, target, hero.strength) > 0:
        return
    announce(ctx, f"{victim.name} is slain.")
    move_gold(ctx, target, hero.id, victim.gold)
    ctx.db[Character].delete(target)
    template = RespawnInit(
        name=victim.name, hp=victim.hp_max, strength=victim.strength, home=victim.at, delay=timedelta(minutes=1)
    )
    engine.start(ctx, respawn, template)


def main() -> None:
    """A rat dies and comes back."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    ann.call(strike, stage.place("the rat", hp=5, gold=1, at=Point(3, 4)))
    stage.wait(seconds=59)
    print(f"{'':12}after 59 s: {[row.name for row in stage.db.read(Character)]}")
    stage.wait(seconds=1)
    print(f"{'':12}after 60 s: {[row.name for row in stage.db.read(Character)]}")


if __name__ == "__main__":
    main()
