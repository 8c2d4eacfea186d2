"""The arena, put together.

    gamedb start examples.arena.module:module

The workflows are those of the examples, unchanged; here they meet in one world, and one `install` runs them all.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext
from workflow_module import install

from ..auction import auction
from ..boss_fight import boss_add, boss_fight
from ..buff import buff
from ..combat import combat
from ..day_night import Day, day_night
from ..patrol import patrol
from ..quest import quest
from ..respawn import respawn
from ..world import Character, Item, Point
from . import bots, spells, wilds
from .deeds import MILLER, deeds
from .heroes import heroes
from .lair import DRAGON_STRENGTH, LairInit, lair
from .market import market
from .realm import PLACES, Bank, Place, Role, plant, realm, settle, the_place

GOLD = 50_000
"""All the gold there is at first."""
HERBS = 12
MINUTE = timedelta(seconds=3.5)
"""How long a minute takes in the arena: a day of it takes two of ours."""

module = Module("arena")
module.static("web/dist")
for part in (realm, heroes, deeds, market, bots.bots):
    module.include(part)

engine = install(
    module,
    [auction, boss_add, boss_fight, buff, combat, day_night, lair, patrol, quest, respawn],
    retention=timedelta(minutes=2),
)


@module.init
def create(ctx: ReducerContext) -> None:
    """The first day."""
    keeper = ctx.db[Character].insert(Character(name="the bank", gold=GOLD, at=the_place("market")))
    settle(ctx, keeper, Role.Folk)
    ctx.db[Bank].insert(Bank(character_id=keeper.id))
    for kind, (name, at) in PLACES.items():
        ctx.db[Place].insert(Place(kind=kind, name=name, at=at))
    mill = the_place("mill")
    miller = ctx.db[Character].insert(Character(name=MILLER, gold=200, at=Point(mill.x + 45, mill.y + 12)))
    settle(ctx, miller, Role.Folk)
    for _ in range(HERBS):
        plant(ctx, ctx.db[Item].insert(Item(kind="herb")))
    wilds.populate(ctx)
    spells.bring_in(ctx)
    bots.begin(ctx)
    dragon = ctx.db[Character].insert(
        Character(name="the dragon", hp=0, hp_max=1, strength=DRAGON_STRENGTH, at=the_place("lair"))
    )
    settle(ctx, dragon, Role.Boss)
    engine.start(ctx, day_night, Day(number=1, begins=ctx.now, minute=MINUTE), correlation_id="the sun")
    engine.start(ctx, lair, LairInit(boss=dragon.id), entity_id=dragon.id, correlation_id="the lair")
