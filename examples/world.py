"""The small world that the examples share: characters, things, gold, effects and chat.

Tables, and functions that change them inside a transaction, whoever began it: a player's reducer or a workflow's
step. All of them refuse with a `ReducerError` rather than overdraw, so gold and things are moved and never made up.

**Escrow.** What an auction or a trade must be sure of later, it holds: `hold_gold` and `hold_item` put it out of its
owner's reach and note the holder (the workflow's id). The holder then either passes it on (`hand_over`) or gives it
back (`give_back`). A workflow that calls `give_back(ctx, ctx.workflow_id)` in a `finally` cannot lose
anybody's property, however it ends.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta

from gamedb import (
    AutoInc,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    ReducerError,
    Row,
    Struct,
    Unique,
    i32,
    u32,
    u64,
)

world = Module("world")


class Point(Struct):
    """A place on the map."""

    x: i32 = 0
    y: i32 = 0


@world.table(public=True)
class Character(Row):
    """Somebody: a player's character, or one that the game plays."""

    id: PrimaryKey[AutoInc[u64]] = 0
    name: Index[str]
    identity: Unique[Identity | None] = None
    """The player; None for those that the game plays."""
    gold: u64 = 0
    hp: u32 = 100
    hp_max: u32 = 100
    strength: u32 = 10
    at: Point = Point()


@world.table(public=True)
class Item(Row):
    """A thing. It lies on the ground, or somebody owns it."""

    id: PrimaryKey[AutoInc[u64]] = 0
    kind: Index[str]
    owner_id: Index[u64 | None] = None
    holder: Index[u64 | None] = None
    """The workflow that holds it in escrow for its owner."""
    at: Point = Point()
    """Where it lies, as long as nobody owns it."""


@world.table(public=True)
class HeldGold(Row):
    """Gold in escrow."""

    id: PrimaryKey[AutoInc[u64]] = 0
    holder: Index[u64]
    owner_id: Index[u64]
    amount: u64


@world.table(public=True)
class Effect(Row):
    """Something that is on a character for some time: a buff, a debuff."""

    id: PrimaryKey[AutoInc[u64]] = 0
    character_id: Index[u64]
    kind: str
    stacks: u32 = 1
    until: datetime


@world.table(public=True)
class Walk(Row):
    """Somebody on the way. Where they are meanwhile is a matter of the clock (`whereabouts`): no row has to change."""

    character_id: PrimaryKey[u64]
    start: Point
    to: Point
    began_at: datetime
    arrives_at: datetime


@world.table(public=True)
class Chat(Row):
    """A line that everybody reads."""

    id: PrimaryKey[AutoInc[u64]] = 0
    at: datetime
    text: str


@world.table(public=True)
class Notice(Row):
    """A line that one character reads: a table of its own, as who may see a row is said of a table."""

    id: PrimaryKey[AutoInc[u64]] = 0
    at: datetime
    to_id: Index[u64]
    text: str


world.client_visibility_filter(
    "SELECT notice.* FROM notice JOIN character ON notice.to_id = character.id WHERE character.identity = :sender"
)


# --- characters


def me(ctx: ReducerContext) -> Character:
    """The character of the player who called."""
    found = ctx.db[Character].find(identity=ctx.sender)
    if found is None:
        raise ReducerError("you have no character yet")
    return found


def character(ctx: ReducerContext, character_id: int) -> Character:
    """The character with this id."""
    found = ctx.db[Character].get(character_id)
    if found is None:
        raise ReducerError(f"there is no character {character_id}")
    return found


def name_of(ctx: ReducerContext, character_id: int) -> str:
    """What a character is called, also when it is gone."""
    found = ctx.db[Character].get(character_id)
    return found.name if found is not None else "somebody"


def move_to(ctx: ReducerContext, character_id: int, place: Point) -> None:
    """Set a character somewhere."""
    ctx.db[Walk].delete(character_id)
    ctx.db[Character].update(character(ctx, character_id).replace(at=place))


def whereabouts(ctx: ReducerContext, character_id: int) -> Point:
    """Where a character is at this moment, also when it is on the way."""
    walk = ctx.db[Walk].get(character_id)
    if walk is None:
        return character(ctx, character_id).at
    if ctx.now >= walk.arrives_at:
        return walk.to
    part = (ctx.now - walk.began_at) / (walk.arrives_at - walk.began_at)
    return Point(
        x=round(walk.start.x + (walk.to.x - walk.start.x) * part),
        y=round(walk.start.y + (walk.to.y - walk.start.y) * part),
    )


def distance(a: Point, b: Point) -> float:
    """As the crow flies."""
    return math.dist((a.x, a.y), (b.x, b.y))


def set_out(ctx: ReducerContext, character_id: int, to: Point, pace: timedelta) -> datetime:
    """Begin to walk from where one is, at so much time for a step; when one will be there."""
    halt(ctx, character_id)
    start = character(ctx, character_id).at
    arrives = ctx.now + pace * distance(start, to)
    if arrives > ctx.now:
        ctx.db[Walk].insert(Walk(character_id=character_id, start=start, to=to, began_at=ctx.now, arrives_at=arrives))
    return arrives


def halt(ctx: ReducerContext, character_id: int) -> Point:
    """Stop, wherever one has come to."""
    here = whereabouts(ctx, character_id)
    move_to(ctx, character_id, here)
    return here


def hurt(ctx: ReducerContext, character_id: int, amount: int) -> int:
    """Take hit points, down to none; how many are left."""
    victim = character(ctx, character_id)
    return ctx.db[Character].update(victim.replace(hp=max(0, victim.hp - amount))).hp


def heal(ctx: ReducerContext, character_id: int) -> None:
    """Give all hit points back."""
    patient = character(ctx, character_id)
    ctx.db[Character].update(patient.replace(hp=patient.hp_max))


# --- chat


def tell(ctx: ReducerContext, character_id: int, text: str) -> None:
    """A line for one character."""
    ctx.db[Notice].insert(Notice(at=ctx.now, to_id=character_id, text=text))


def announce(ctx: ReducerContext, text: str) -> None:
    """A line for everybody."""
    ctx.db[Chat].insert(Chat(at=ctx.now, text=text))


# --- effects


def set_effect(ctx: ReducerContext, character_id: int, kind: str, stacks: int, until: datetime) -> None:
    """Put an effect on a character, or change the one of this kind."""
    effects = ctx.db[Effect]
    old = next((e for e in effects.where(character_id=character_id) if e.kind == kind), None)
    if old is None:
        effects.insert(Effect(character_id=character_id, kind=kind, stacks=stacks, until=until))
    else:
        effects.update(old.replace(stacks=stacks, until=until))


def clear_effect(ctx: ReducerContext, character_id: int, kind: str) -> None:
    """Take an effect off a character."""
    ctx.db[Effect].delete_where(character_id=character_id, kind=kind)


# --- gold


def move_gold(ctx: ReducerContext, from_id: int, to_id: int, amount: int) -> None:
    """Gold from one character's purse to another's."""
    _take_gold(ctx, from_id, amount)
    _add_gold(ctx, to_id, amount)


def hold_gold(ctx: ReducerContext, holder: int, owner_id: int, amount: int) -> None:
    """Gold from a character's purse into escrow, on top of what is held of theirs already."""
    _take_gold(ctx, owner_id, amount)
    ctx.db[HeldGold].insert(HeldGold(holder=holder, owner_id=owner_id, amount=amount))


def _take_gold(ctx: ReducerContext, owner_id: int, amount: int) -> None:
    owner = character(ctx, owner_id)
    if amount < 0 or owner.gold < amount:
        raise ReducerError(f"{owner.name} has {owner.gold} gold, not {amount}")
    ctx.db[Character].update(owner.replace(gold=owner.gold - amount))


def _add_gold(ctx: ReducerContext, owner_id: int, amount: int) -> None:
    owner = character(ctx, owner_id)
    ctx.db[Character].update(owner.replace(gold=owner.gold + amount))


# --- things


def kind_of(ctx: ReducerContext, item_id: int) -> str:
    """What a thing is, also when it is gone."""
    item = ctx.db[Item].get(item_id)
    return item.kind if item is not None else "thing"


def owned_item(ctx: ReducerContext, item_id: int, owner_id: int) -> Item:
    """A thing that this character can give away: owned, and not in escrow."""
    item = ctx.db[Item].get(item_id)
    if item is None or item.owner_id != owner_id:
        raise ReducerError(f"{name_of(ctx, owner_id)} does not have item {item_id}")
    if item.holder is not None:
        raise ReducerError(f"the {item.kind} is promised elsewhere")
    return item


def move_item(ctx: ReducerContext, item_id: int, from_id: int, to_id: int) -> None:
    """A thing from one character to another."""
    ctx.db[Item].update(owned_item(ctx, item_id, from_id).replace(owner_id=to_id))


def hold_item(ctx: ReducerContext, holder: int, owner_id: int, item_id: int) -> None:
    """A character's thing into escrow."""
    ctx.db[Item].update(owned_item(ctx, item_id, owner_id).replace(holder=holder))


# --- what is held


def hand_over(ctx: ReducerContext, holder: int, from_id: int, to_id: int) -> None:
    """All that is held of one character, gold and things, goes to another."""
    for held in ctx.db[HeldGold].where(holder=holder, owner_id=from_id):
        ctx.db[HeldGold].delete(held)
        _add_gold(ctx, to_id, held.amount)
    for item in ctx.db[Item].where(holder=holder, owner_id=from_id):
        ctx.db[Item].update(item.replace(owner_id=to_id, holder=None))


def give_back(ctx: ReducerContext, holder: int, owner_id: int | None = None) -> None:
    """All that a holder still has goes back to whose it is; with `owner_id`, only what is theirs."""
    owners = {row.owner_id for row in ctx.db[HeldGold].where(holder=holder)}
    owners |= {item.owner_id for item in ctx.db[Item].where(holder=holder) if item.owner_id is not None}
    for owner in sorted(owners) if owner_id is None else [owner_id]:
        hand_over(ctx, holder, owner, owner)


# --- for tests and scenes


def total_gold(db: Database) -> int:
    """All the gold there is: in purses and in escrow. Only a reward printed by the game changes it."""
    return sum(row.gold for row in db.read(Character)) + sum(row.amount for row in db.read(HeldGold))


def item_counts(db: Database) -> Counter[str]:
    """How many things there are of each kind."""
    return Counter(item.kind for item in db.read(Item))
