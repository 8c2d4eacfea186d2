"""The land and who lives there: the arena's own tables, and rules that its other parts share.

Knows the world of the examples and nothing of players, bots or workflows.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from gamedb import AutoInc, Index, Module, PrimaryKey, ReducerContext, ReducerError, Row, u8, u32, u64

from ..auction import Lot
from ..boss_fight import Encounter, RaidMember
from ..day_night import WorldTime
from ..world import (
    Character,
    Effect,
    HeldGold,
    Item,
    Point,
    Walk,
    announce,
    character,
    distance,
    move_gold,
    set_out,
    whereabouts,
    world,
)

WIDTH, HEIGHT = 1000, 640
"""The map, in steps."""
STRIDE = timedelta(milliseconds=12)
"""How long a step takes."""

realm = Module("realm")
realm.include(world)
for table in (Lot, Encounter, RaidMember, WorldTime):  # of the examples whose workflows are installed here
    realm.table(public=True)(table)


class Role(enum.Enum):
    """What somebody is."""

    Hero = "hero"
    Guard = "guard"
    Foe = "foe"
    Folk = "folk"
    Boss = "boss"


@realm.table(public=True)
class Figure(Row):
    """What the arena knows of a character beyond what every character has."""

    character_id: PrimaryKey[u64]
    role: Index[Role]
    bot: bool = True
    """The game decides what it does."""
    online: bool = True
    home: Point = Point()
    ready_at: datetime
    """Until then it catches its breath after a blow."""
    fallen_at: datetime | None = None
    left_at: datetime | None = None
    opponent: u64 | None = None
    """Who fights this foe."""
    engaged_at: datetime | None = None


@realm.table(public=True)
class Place(Row):
    """Somewhere with a name."""

    id: PrimaryKey[AutoInc[u32]] = 0
    kind: str
    name: str
    at: Point


@realm.table(public=True)
class ChatLine(Row):
    """What somebody said."""

    id: PrimaryKey[AutoInc[u64]] = 0
    at: datetime
    author_id: u64
    author: str
    text: str


@realm.table(public=True)
class Lair(Row):
    """The dragon between two fights."""

    boss: PrimaryKey[u64]
    wakes_at: datetime | None = None
    """None while it fights."""
    fights: u32 = 0
    won: u32 = 0
    last_outcome: str = ""


@realm.table(public=True)
class Bank(Row):
    """One row: who keeps the gold and the things that nobody has. Nothing in this land is made or destroyed."""

    id: PrimaryKey[u8] = 0
    character_id: u64


PLACES = {
    "fountain": ("the fountain", Point(500, 345)),
    "market": ("the auction house", Point(705, 430)),
    "mill": ("the mill", Point(265, 500)),
    "oak": ("the old oak", Point(115, 165)),
    "tower": ("the watchtower", Point(450, 95)),
    "lair": ("the dragon's lair", Point(845, 150)),
    "camp": ("the bandit camp", Point(165, 330)),
    "den": ("the wolves' den", Point(560, 575)),
}


# --- who


def figure(ctx: ReducerContext, character_id: int) -> Figure:
    """What the arena knows of somebody."""
    found = ctx.db[Figure].get(character_id)
    if found is None:
        raise ReducerError(f"{character(ctx, character_id).name} is none of yours")
    return found


def is_a(ctx: ReducerContext, character_id: int, role: Role) -> bool:
    """Whether somebody is of this role."""
    found = ctx.db[Figure].get(character_id)
    return found is not None and found.role is role


def everybody(ctx: ReducerContext, role: Role) -> list[Figure]:
    """All of a role, in the order of their ids."""
    return sorted(ctx.db[Figure].where(role=role), key=lambda row: row.character_id)


def the_boss(ctx: ReducerContext) -> Character | None:
    """The dragon."""
    bosses = everybody(ctx, Role.Boss)
    return ctx.db[Character].get(bosses[0].character_id) if bosses else None


def settle(ctx: ReducerContext, who: Character, role: Role, *, bot: bool = True) -> Figure:
    """Make a character one of the arena's."""
    return ctx.db[Figure].insert(
        Figure(character_id=who.id, role=role, bot=bot, home=who.at, ready_at=ctx.now, online=True)
    )


# --- where


def the_place(kind: str) -> Point:
    """Where a landmark is."""
    return PLACES[kind][1]


def near_to(ctx: ReducerContext, place: Point, radius: int) -> Point:
    """Some spot around a place, on the map."""
    return Point(
        x=max(20, min(WIDTH - 20, place.x + ctx.random.randint(-radius, radius))),
        y=max(20, min(HEIGHT - 20, place.y + ctx.random.randint(-radius, radius))),
    )


def need_near(ctx: ReducerContext, who: Character, what: str, at: Point, reach: int) -> None:
    """Refuse what is too far away."""
    away = distance(whereabouts(ctx, who.id), at)
    if away > reach:
        raise ReducerError(f"{what} is {round(away)} steps away, and you reach {reach}: walk closer")


def stroll(ctx: ReducerContext, who: int, to: Point, *, slower: int = 1) -> datetime:
    """Walk there; swiftness helps."""
    swift = sum(e.stacks for e in ctx.db[Effect].where(character_id=who) if e.kind == "swiftness")
    return set_out(ctx, who, to, STRIDE * slower / (1 + 0.3 * swift))


def is_walking(ctx: ReducerContext, who: int) -> bool:
    """Whether somebody is on the way."""
    walk = ctx.db[Walk].get(who)
    return walk is not None and walk.arrives_at > ctx.now


# --- what


def bank(ctx: ReducerContext) -> int:
    """The character that is the bank."""
    row = ctx.db[Bank].get(0)
    assert row is not None, "the bank is there from the beginning"
    return row.character_id


def free_things(ctx: ReducerContext, owner: int) -> list[Item]:
    """What somebody has and has not promised elsewhere, in the order of the ids."""
    return sorted((i for i in ctx.db[Item].where(owner_id=owner) if i.holder is None), key=lambda i: i.id)


def worth(ctx: ReducerContext, who: int) -> int:
    """The gold of somebody, with what is held of it."""
    return character(ctx, who).gold + sum(row.amount for row in ctx.db[HeldGold].where(owner_id=who))


def pay_bank(ctx: ReducerContext, who: int, amount: int) -> None:
    """Gold to the bank."""
    move_gold(ctx, who, bank(ctx), amount)


def grant(ctx: ReducerContext, who: int, amount: int) -> None:
    """Gold from the bank, as much as it has."""
    given = min(amount, character(ctx, bank(ctx)).gold)
    if given:
        move_gold(ctx, bank(ctx), who, given)


def plant(ctx: ReducerContext, herb: Item) -> None:
    """A herb grows somewhere again."""
    meadow = the_place(ctx.random.choice(("oak", "mill", "fountain", "den")))
    ctx.db[Item].update(herb.replace(owner_id=None, holder=None, at=near_to(ctx, meadow, 110)))


def proclaim(ctx: ReducerContext, text: str) -> None:
    """A line for everybody."""
    announce(ctx, text)
