"""The dragon's days: it sleeps, it wakes, it fights, for ever. A parent workflow around the boss fight.

`continue_as_new` makes each round a run of its own; the fight is a child, so its end is simply the value of an await.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gamedb import ReducerContext
from workflow_module import (
    ChildError,
    Struct,
    Timer,
    WorkflowContext,
    continue_as_new,
    spawn,
    timer,
    workflow,
)

from .. import boss_fight
from ..boss_fight import BossFightInit, Encounter, RaidMember
from ..boss_fight import boss_fight as fight
from ..world import Character, Effect, character, move_item
from .realm import Lair, bank, free_things, grant, pay_bank, proclaim

REST = timedelta(seconds=25)
ENRAGE = timedelta(seconds=230)
DRAGON_HP = 4200
DRAGON_STRENGTH = 22
MINION_HP = 320
HOARD = 60
"""The gold that the winners share."""


class LairTimer(Timer):
    WAKE = "wake"


class LairInit(Struct):
    boss: int


@workflow
async def lair(ctx: WorkflowContext, init: LairInit) -> None:
    wakes = ctx.now + REST
    lie_down(ctx, init.boss, wakes)
    await timer(LairTimer.WAKE, at=wakes)
    wake_up(ctx, init.boss)
    try:
        result = await spawn(
            fight, BossFightInit(boss=init.boss, enrage=ENRAGE, minion_hp=MINION_HP), entity_id=init.boss
        )
        remember(ctx, init.boss, result.outcome.value)
    except ChildError as error:  # an operator cancelled it, or its code failed
        call_off(ctx, init.boss, error.workflow_id)
    continue_as_new(LairInit(boss=init.boss))


def lie_down(ctx: ReducerContext, boss: int, wakes: datetime) -> None:
    """The dragon rests; what nobody won of its hoard goes back to the bank."""
    row = character(ctx, boss)
    if row.gold:
        pay_bank(ctx, boss, row.gold)
    for item in free_things(ctx, boss):
        move_item(ctx, item.id, boss, bank(ctx))
    old = ctx.db[Lair].get(boss) or Lair(boss=boss)
    ctx.db[Lair].upsert(old.replace(wakes_at=wakes))


def wake_up(ctx: ReducerContext, boss: int) -> None:
    """Full of life again, with a hoard to win."""
    row = character(ctx, boss)
    ctx.db[Character].update(row.replace(hp=DRAGON_HP, hp_max=DRAGON_HP, strength=DRAGON_STRENGTH))
    grant(ctx, boss, HOARD)
    for item in free_things(ctx, bank(ctx))[:2]:
        move_item(ctx, item.id, bank(ctx), boss)
    state = ctx.db[Lair].get(boss)
    assert state is not None
    ctx.db[Lair].update(state.replace(wakes_at=None))


def remember(ctx: ReducerContext, boss: int, outcome: str) -> None:
    """Write down how it ended."""
    state = ctx.db[Lair].get(boss)
    assert state is not None
    won = state.won + (outcome == "victory")
    ctx.db[Lair].update(state.replace(fights=state.fights + 1, won=won, last_outcome=outcome))


def call_off(ctx: ReducerContext, boss: int, fight_id: int) -> None:
    """Clear away what a fight that did not end by itself has left."""
    boss_fight.engine.terminate(ctx, fight_id)
    ctx.db[RaidMember].delete_where(boss=boss)
    ctx.db[Encounter].delete(boss)
    ctx.db[Effect].delete_where(character_id=boss)
    remember(ctx, boss, "called off")
    proclaim(ctx, "The fight is called off.")
