"""What the two who walk about cast on others: the priest blesses, the witch curses."""

from __future__ import annotations

from datetime import timedelta

from gamedb import ReducerContext

from ..world import Character, character
from .deeds import enchant
from .realm import Role, everybody, is_walking, near_to, proclaim, settle, stroll, the_place

CASTERS = {
    "Father Bede": ("swiftness", timedelta(seconds=30), "blesses"),
    "Old Hexa": ("weakness", timedelta(seconds=40), "curses"),
}
HAUNTS = ("fountain", "market", "oak", "mill", "tower")


def bring_in(ctx: ReducerContext) -> None:
    """Put them on the map, once."""
    for name in CASTERS:
        row = Character(name=name, hp=100, hp_max=100, gold=50, at=near_to(ctx, the_place("fountain"), 90))
        settle(ctx, ctx.db[Character].insert(row), Role.Folk)


def cast_something(ctx: ReducerContext) -> None:
    """Now and then each of them walks on, or casts on some hero who is there."""
    targets = [
        row.character_id for row in everybody(ctx, Role.Hero) if row.online and character(ctx, row.character_id).hp > 0
    ]
    for name, (kind, duration, does) in CASTERS.items():
        caster = ctx.db[Character].where(name=name)[0]
        if ctx.random.random() < 0.1 and not is_walking(ctx, caster.id):
            stroll(ctx, caster.id, near_to(ctx, the_place(ctx.random.choice(HAUNTS)), 80), slower=3)
        if targets and ctx.random.random() < 0.06:
            target = ctx.random.choice(targets)
            enchant(ctx, target, kind, duration)
            proclaim(ctx, f"{name} {does} {character(ctx, target).name} with {kind}.")
