"""The people who are always there: they fight, bid, sell, drink and chat, so that there is something to see.

They do what players do, by the same functions and under the same rules. One scheduled reducer is the heartbeat of all
that is not a workflow. Chance is `ctx.random`: a seed repeats a game.
"""

from __future__ import annotations

import math
import random
from datetime import timedelta

from gamedb import AutoInc, Module, PrimaryKey, ReducerContext, ReducerError, Row, ScheduleAt, u64

from .. import auction
from ..auction import Lot
from ..boss_fight import Encounter
from ..world import Character, Effect, Item, Point, character, distance, move_item, whereabouts
from . import upkeep, wilds
from .deeds import REACH, live, quaff, strike
from .heroes import speak
from .market import put_up
from .realm import (
    Lair,
    Role,
    bank,
    everybody,
    figure,
    free_things,
    is_walking,
    near_to,
    settle,
    stroll,
    the_boss,
    the_place,
)
from .spells import cast_something
from .talk import something_to_say

FIGHTERS = ("Brakka", "Torvin", "Ysolde", "Kett", "Rurik")
TRADERS = ("Marisol", "Odo", "Pell", "Sunniva")
LOTS = 4
"""How many lots there are at least."""
PRICES = {
    "horn": 12, "cloak": 15, "lute": 20, "bow": 25, "helm": 30, "shield": 35,
    "ring": 45, "amulet": 50, "sword": 60, "tome": 70, "crown": 90, "gem": 100,
}  # fmt: skip
"""What things are worth to bots."""

IN_THE_VAULT = 5
"""How many of each thing the bank has at first: for newcomers, and for the dragon's hoard."""

bots = Module("bots")


@bots.table(scheduled="heartbeat")
class Heartbeat(Row):
    """Fires every second."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@bots.reducer
def heartbeat(ctx: ReducerContext, beat: Heartbeat) -> None:
    """A second in the arena."""
    wilds.roam(ctx)
    for row in everybody(ctx, Role.Hero):
        if row.bot:
            attempt(ctx, row.character_id)
    trade(ctx)
    chatter(ctx)
    cast_something(ctx)
    upkeep.sweep(ctx)


def begin(ctx: ReducerContext) -> None:
    """Put the bots on the map and start the heartbeat, once."""
    things = [kind for kind in PRICES for _ in range(3)]
    for n, name in enumerate((*FIGHTERS, *TRADERS)):
        home = the_place("fountain" if name in FIGHTERS else "market")
        row = Character(name=name, gold=150, hp=120, hp_max=120, at=near_to(ctx, home, 80))
        bot = ctx.db[Character].insert(row)
        settle(ctx, bot, Role.Hero)
        for kind in things[n :: len(FIGHTERS) + len(TRADERS)]:
            ctx.db[Item].insert(Item(kind=kind, owner_id=bot.id))
    for _ in range(IN_THE_VAULT):
        for kind in PRICES:
            ctx.db[Item].insert(Item(kind=kind, owner_id=bank(ctx)))
    ctx.db[Heartbeat].insert(Heartbeat(scheduled_at=timedelta(seconds=1)))


def attempt(ctx: ReducerContext, who: int) -> None:
    """Let a bot do something. What the rules refuse, it does not do."""
    bot = character(ctx, who)
    if bot.hp == 0:
        return
    try:
        with ctx.savepoint():
            if bot.name in FIGHTERS:
                fight(ctx, bot)
            elif not is_walking(ctx, who) and ctx.random.random() < 0.1:
                stroll(ctx, who, near_to(ctx, the_place(ctx.random.choice(("market", "market", "fountain"))), 90))
    except ReducerError as refusal:
        ctx.log.debug("%s: %s", bot.name, refusal)


def fight(ctx: ReducerContext, bot: Character) -> None:
    """Against the dragon when it is awake, else against what lives in the wilds."""
    mine = {effect.kind for effect in ctx.db[Effect].where(character_id=bot.id)}
    if bot.hp < 60 and ctx.random.random() < 0.3:
        quaff(ctx, bot, "healing")
        return
    boss = the_boss(ctx)
    target = raid_target(ctx, boss) if boss is not None else None
    if boss is not None and target is not None and is_brave(ctx, bot) and live(ctx, bot.id, "combat") is None:
        if "strength" not in mine and ctx.random.random() < 0.04:
            quaff(ctx, bot, "strength")
        else:
            go_and_strike(ctx, bot, target, stand=in_front_of(ctx, boss.at))
        return
    if (foe := wilds.hunt(ctx, bot.id)) is not None and bot.name in ("Kett", "Rurik"):
        go_and_strike(ctx, bot, foe, stand=near_to(ctx, whereabouts(ctx, foe), 40))
    elif not is_walking(ctx, bot.id) and ctx.random.random() < 0.12:
        if "swiftness" not in mine and ctx.random.random() < 0.2:
            quaff(ctx, bot, "swiftness")
            bot = character(ctx, bot.id)
        place = ctx.random.choice(("fountain", "tower", "market", "lair" if about_to_wake(ctx) else "mill"))
        stroll(ctx, bot.id, near_to(ctx, the_place(place), 100))


def is_brave(ctx: ReducerContext, bot: Character) -> bool:
    """Whether a bot is in for this fight. Not always all are, so that the dragon wins at times."""
    fights = sum(row.fights for row in ctx.db[Lair])
    return random.Random(f"{fights} {bot.name}").random() < 0.8


def raid_target(ctx: ReducerContext, boss: Character) -> int | None:
    """Whom the raid hits now: the minions first, the dragon when it can be hurt."""
    if ctx.db[Encounter].get(boss.id) is None or boss.hp == 0:
        return None
    minions = sorted(row.id for row in ctx.db[Character] if row.name.endswith(" minion") and row.hp > 0)
    if minions:
        return ctx.random.choice(minions)
    return boss.id


def about_to_wake(ctx: ReducerContext) -> bool:
    """Whether the dragon stirs."""
    return any(r.wakes_at is not None and r.wakes_at - ctx.now < timedelta(seconds=12) for r in ctx.db[Lair])


def in_front_of(ctx: ReducerContext, lair: Point) -> Point:
    """A spot on the half circle before the lair."""
    angle = ctx.random.uniform(0.1, 0.9) * math.pi
    return Point(x=lair.x + round(85 * math.cos(angle)), y=lair.y + round(85 * math.sin(angle)))


def go_and_strike(ctx: ReducerContext, bot: Character, target: int, *, stand: Point) -> None:
    """Walk there, or strike when near enough."""
    if distance(whereabouts(ctx, bot.id), whereabouts(ctx, target)) > REACH - 15:
        if not is_walking(ctx, bot.id):
            stroll(ctx, bot.id, stand)
    elif not is_walking(ctx, bot.id) and ctx.random.random() < 0.08:
        stroll(ctx, bot.id, stand)
    elif figure(ctx, bot.id).ready_at <= ctx.now and ctx.random.random() < 0.6:
        strike(ctx, bot, target)


# --- trading


def trade(ctx: ReducerContext) -> None:
    """Keep the auction house busy."""
    lots = sorted(ctx.db[Lot], key=lambda lot: lot.auction_id)
    traders = [row.character_id for row in everybody(ctx, Role.Hero) if row.bot]
    if len(lots) < LOTS and ctx.random.random() < 0.4:
        offer_something(ctx, [*traders, bank(ctx)])
    if lots and ctx.random.random() < 0.3:
        bid_something(ctx, ctx.random.choice(traders), ctx.random.choice(lots))
    if ctx.random.random() < 0.02:
        donate(ctx, ctx.random.choice(traders))


def offer_something(ctx: ReducerContext, sellers: list[int]) -> None:
    """Somebody puts a thing up, at a third of its worth."""
    seller = ctx.random.choice(sellers)
    things = [item for item in free_things(ctx, seller) if item.kind in PRICES]
    if things:
        item = ctx.random.choice(things)
        price = PRICES[item.kind]
        buyout = price * 2 if ctx.random.random() < 0.5 else None
        put_up(ctx, item, seller, max(1, price // 3), buyout, ctx.random.randint(45, 90))


def bid_something(ctx: ReducerContext, bidder: int, lot: Lot) -> None:
    """Somebody bids, up to about what the thing is worth."""
    item = ctx.db[Item].get(lot.item_id)
    amount = lot.asking + ctx.random.randint(0, 5)
    if item is not None and amount <= PRICES.get(item.kind, 10) * ctx.random.uniform(0.7, 1.5):
        try:
            with ctx.savepoint():
                auction.bid(ctx, character(ctx, bidder), lot.auction_id, amount)
        except ReducerError as refusal:
            ctx.log.debug("bid: %s", refusal)


def donate(ctx: ReducerContext, giver: int) -> None:
    """Who has plenty gives something to the bank, for the dragon's hoard."""
    things = [item for item in free_things(ctx, giver) if item.kind in PRICES]
    if len(things) > 2:
        move_item(ctx, things[0].id, giver, bank(ctx))


def chatter(ctx: ReducerContext) -> None:
    """Now and then somebody says something."""
    if ctx.random.random() < 0.08:
        speaker = ctx.random.choice([row.character_id for row in everybody(ctx, Role.Hero) if row.bot])
        speak(ctx, character(ctx, speaker), something_to_say(ctx))
