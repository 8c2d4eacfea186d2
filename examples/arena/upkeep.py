"""What keeps the arena going for weeks: the fallen rise, wounds heal, the poor get a dole, and old rows go.

Every table is bounded: by the number of people and things, or by the limits here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeVar

from gamedb import ReducerContext, Row
from workflow_module import Workflow, WorkflowEvent, WorkflowStatus

from .. import buff, quest
from ..boss_fight import RaidMember
from ..quest import PlaceReached
from ..world import Character, Chat, Effect, Item, Notice, Walk, character, distance, halt, move_item, move_to, tell
from .realm import (
    PLACES,
    ChatLine,
    Figure,
    Role,
    bank,
    everybody,
    grant,
    is_a,
    near_to,
    pay_bank,
    plant,
    the_place,
    worth,
)

R = TypeVar("R", bound=Row)

CHAT_MAX: Final = 150
LINES_MAX: Final = 80
EVENTS_MAX: Final = 240
"""How much of the announcements, of the chat and of the workflows' timelines is kept."""
ABSENCE = timedelta(minutes=30)
"""After so long without a connection, a player's character leaves the land."""
ABSENT_MAX: Final = 40
NEARBY = 60
"""From how far one counts as having reached a place."""
DOWN = timedelta(seconds=8)
"""How long the fallen lie."""
POOR, DOLE, RICH = 20, 60, 600


def sweep(ctx: ReducerContext) -> None:
    """A second of upkeep."""
    arrive(ctx)
    recover(ctx)
    second = int(ctx.now.timestamp())
    if second % 5 == 0:
        level(ctx)
        keep_newest(ctx, Chat, CHAT_MAX)
        keep_newest(ctx, Notice, CHAT_MAX)
        keep_newest(ctx, ChatLine, LINES_MAX)
        keep_newest(ctx, WorkflowEvent, EVENTS_MAX)
    if second % 15 == 0:
        dismiss(ctx)


def arrive(ctx: ReducerContext) -> None:
    """Who has reached the end of their way stands there; quests hear of the places that heroes come to."""
    for walk in sorted(ctx.db[Walk], key=lambda row: row.character_id):
        if walk.arrives_at <= ctx.now:
            here = halt(ctx, walk.character_id)
            for _, place in PLACES.values():
                if is_a(ctx, walk.character_id, Role.Hero) and distance(here, place) <= NEARBY:
                    quest.engine.broadcast(ctx, PlaceReached(place), quest.key(walk.character_id, place))


def recover(ctx: ReducerContext) -> None:
    """Those who fell are carried to the fountain; others heal, slowly, or fast with healing."""
    for row in [*everybody(ctx, Role.Hero), *everybody(ctx, Role.Guard)]:
        who = character(ctx, row.character_id)
        if who.hp == 0:
            if row.fallen_at is None:
                ctx.db[Figure].update(row.replace(fallen_at=ctx.now))
                ctx.db[Walk].delete(who.id)
            elif ctx.now - row.fallen_at >= DOWN:
                rise(ctx, row, who)
        elif who.hp < who.hp_max:
            potion = sum(e.stacks for e in ctx.db[Effect].where(character_id=who.id) if e.kind == "healing")
            ctx.db[Character].update(who.replace(hp=min(who.hp_max, who.hp + 1 + 2 * potion)))


def rise(ctx: ReducerContext, row: Figure, who: Character) -> None:
    """Well again, at the fountain."""
    ctx.db[Character].update(who.replace(hp=who.hp_max))
    move_to(ctx, who.id, row.home if row.role is Role.Guard else near_to(ctx, the_place("fountain"), 50))
    ctx.db[Figure].update(row.replace(fallen_at=None))
    tell(ctx, who.id, "You wake up at the fountain.")


def level(ctx: ReducerContext) -> None:
    """The bank keeps everybody in the game: a dole for the poor, a tax for bots that hoard, gold for the miller."""
    for row in [*everybody(ctx, Role.Hero), *everybody(ctx, Role.Folk)]:
        who = row.character_id
        if who == bank(ctx):
            continue
        if worth(ctx, who) < POOR:
            grant(ctx, who, DOLE)
            tell(ctx, who, f"The bank gives you {DOLE} gold.")
        elif row.bot and character(ctx, who).gold > RICH:
            pay_bank(ctx, who, character(ctx, who).gold - RICH // 2)


def keep_newest(ctx: ReducerContext, table: type[R], number: int) -> None:
    """Let go of all but the newest rows."""
    rows = ctx.db[table]
    if len(rows) > number:
        for row in rows.between("id", None, None)[: len(rows) - number]:
            rows.delete(row)


def dismiss(ctx: ReducerContext) -> None:
    """Characters of players who do not come back leave, and what they have goes to the bank."""
    absent = [row for row in everybody(ctx, Role.Hero) if not row.online and row.left_at is not None]
    absent.sort(key=lambda row: row.left_at or ctx.now)
    for n, row in enumerate(absent):
        too_many = len(absent) - n > ABSENT_MAX
        if row.left_at is not None and (too_many or ctx.now - row.left_at > ABSENCE):
            part_with(ctx, row)


def part_with(ctx: ReducerContext, row: Figure) -> None:
    """Delete a character, unless it still has a part in something that others wait for."""
    who = character(ctx, row.character_id)
    things = ctx.db[Item].where(owner_id=who.id)
    for run in ctx.db[Workflow].where(entity_id=who.id):
        if run.workflow_type in ("buff", "combat", "quest") and run.status is WorkflowStatus.Suspended:
            buff.engine.cancel(ctx, run.id)
    promised = any(item.holder is not None for item in things) or worth(ctx, who.id) > character(ctx, who.id).gold
    if promised or ctx.db[RaidMember].find(hero=who.id) is not None:
        return
    pay_bank(ctx, who.id, character(ctx, who.id).gold)
    for item in things:
        if item.kind == "herb":
            plant(ctx, item)
        else:
            move_item(ctx, item.id, who.id, bank(ctx))
    for foe in everybody(ctx, Role.Foe):
        if foe.opponent == who.id:
            ctx.db[Figure].update(foe.replace(opponent=None, engaged_at=None))
    ctx.db[Walk].delete(who.id)
    ctx.db[Figure].delete(who.id)
    ctx.db[Character].delete(who.id)
