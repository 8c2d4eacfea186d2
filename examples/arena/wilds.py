"""Foes and guards: they roam, meet and fight, and what has fallen comes back.

Called by the heartbeat (`bots`). The patrols, the fights and the return of the fallen are workflows of the examples.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import ReducerContext

from .. import combat, patrol, quest, respawn
from ..combat import Attack
from ..patrol import PatrolInit
from ..quest import EnemyKilled
from ..respawn import RespawnInit
from ..world import Character, Point, Walk, character, distance, whereabouts
from .deeds import live
from .realm import (
    Figure,
    Role,
    everybody,
    is_walking,
    near_to,
    pay_bank,
    settle,
    stroll,
    the_place,
)

SIGHT = 130
"""From how far a guard sees a foe, in steps."""
PACE = timedelta(milliseconds=30)
"""How long a guard takes for a step."""
RESPAWN = timedelta(seconds=25)
ENGAGE = timedelta(seconds=8)
"""How long a foe that was reported waits for its guard."""

FOES = {"a wolf": (40, 6), "a bandit": (60, 8)}
"""Hit points and strength."""
PACKS = [("a wolf", "den", 3), ("a wolf", "oak", 2), ("a bandit", "camp", 3)]
GUARDS = {
    "Sir Aldo": [Point(285, 455), Point(215, 345), Point(150, 215), Point(330, 175), Point(470, 290)],
    "Dame Wren": [Point(690, 395), Point(660, 520), Point(545, 530), Point(410, 500), Point(530, 380)],
}


def populate(ctx: ReducerContext) -> None:
    """Put foes and guards on the map, once."""
    for name, place, number in PACKS:
        for _ in range(number):
            hp, strength = FOES[name]
            at = near_to(ctx, the_place(place), 60)
            foe = ctx.db[Character].insert(Character(name=name, hp=hp, hp_max=hp, strength=strength, at=at))
            settle(ctx, foe, Role.Foe)
    for name, route in GUARDS.items():
        guard = ctx.db[Character].insert(Character(name=name, hp=150, hp_max=150, strength=14, at=route[-1]))
        settle(ctx, guard, Role.Guard)


def roam(ctx: ReducerContext) -> None:
    """A second in the wilds."""
    adopt(ctx)
    for row in everybody(ctx, Role.Foe):
        foe = character(ctx, row.character_id)
        if foe.hp == 0:
            bury(ctx, row, foe)
        elif row.opponent is not None:
            release(ctx, row)
        elif ctx.random.random() < 0.12 and not is_walking(ctx, foe.id):
            stroll(ctx, foe.id, near_to(ctx, row.home, 70), slower=3)
    for row in everybody(ctx, Role.Guard):
        watch(ctx, row.character_id)


def adopt(ctx: ReducerContext) -> None:
    """Foes that have come back are foes again."""
    for name in FOES:
        for foe in ctx.db[Character].where(name=name):
            if ctx.db[Figure].get(foe.id) is None:
                settle(ctx, foe, Role.Foe)


def release(ctx: ReducerContext, row: Figure) -> None:
    """A foe whose opponent has left is free again."""
    fought = row.opponent is not None and live(ctx, row.opponent, "combat") is not None
    if not fought and row.engaged_at is not None and ctx.now - row.engaged_at > ENGAGE:
        ctx.db[Figure].update(row.replace(opponent=None, engaged_at=None))


def bury(ctx: ReducerContext, row: Figure, foe: Character) -> None:
    """A foe is gone, and will come back. Who felled it has a deed to tell of."""
    if row.opponent is not None:
        quest.engine.broadcast(ctx, EnemyKilled(foe.name), quest.key(row.opponent, foe.name))
    if foe.gold:
        pay_bank(ctx, foe.id, foe.gold)
    ctx.db[Walk].delete(foe.id)
    ctx.db[Character].delete(foe.id)
    ctx.db[Figure].delete(foe.id)
    init = RespawnInit(name=foe.name, hp=foe.hp_max, strength=foe.strength, home=row.home, delay=RESPAWN)
    respawn.engine.start(ctx, respawn.respawn, init)


def watch(ctx: ReducerContext, guard: int) -> None:
    """A guard strikes in a fight, else looks for foes; one without a patrol takes it up."""
    if character(ctx, guard).hp == 0:
        return
    if live(ctx, guard, "combat") is not None:
        if ctx.random.random() < 0.5:
            combat.engine.signal_entity(ctx, guard, Attack())
        return
    round_ = live(ctx, guard, "patrol")
    if round_ is None:
        patrol.engine.start(ctx, patrol.patrol, beat_of(ctx, guard), entity_id=guard)
    elif is_walking(ctx, guard):
        here = whereabouts(ctx, guard)
        for row in everybody(ctx, Role.Foe):
            foe = row.character_id
            seen = row.opponent is None and character(ctx, foe).hp > 0
            if seen and distance(here, whereabouts(ctx, foe)) <= SIGHT:
                ctx.db[Figure].update(row.replace(opponent=guard, engaged_at=ctx.now))
                stroll(ctx, foe, near_to(ctx, here, 20), slower=2)
                patrol.report_threat(ctx, guard, foe)
                return


def beat_of(ctx: ReducerContext, guard: int) -> PatrolInit:
    """The round of a guard."""
    route = GUARDS[character(ctx, guard).name]
    return PatrolInit(guard=guard, home=route[-1], waypoints=route, pace=PACE)


def hunt(ctx: ReducerContext, hero: int) -> int | None:
    """The nearest foe that nobody fights, or the one that this hero fights."""
    here = whereabouts(ctx, hero)
    free = [r.character_id for r in everybody(ctx, Role.Foe) if r.opponent in (None, hero)]
    standing = [foe for foe in free if character(ctx, foe).hp > 0]
    return min(standing, key=lambda foe: distance(here, whereabouts(ctx, foe)), default=None)
