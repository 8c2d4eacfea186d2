"""The game that is soaked: the arena with its bots, trades between players, and errands that need a worker.

The arena conserves gold and things. What is added here conserves them too, and leaves a trail: a player numbers its
gifts, and its ledger says up to which one they have happened. Its size does not grow with the number of gifts, so what
the server's memory does over the hours is the server's doing.

`SOAK_VERSION=2` is what the deploy in the middle of a soak brings: a column and a wait more.
"""

from __future__ import annotations

import asyncio
import os
import random
import zlib
from datetime import timedelta
from typing import Final

from examples import trade
from examples.arena import bots
from examples.arena.deeds import deeds
from examples.arena.heroes import enter, heroes
from examples.arena.market import market
from examples.arena.module import create
from examples.arena.module import engine as arena
from examples.arena.realm import free_things, realm
from examples.world import Character, give_back, hand_over, hold_gold, me, move_gold, move_item
from gamedb import Identity, Module, PrimaryKey, ReducerContext, ReducerError, Row, u32, u64
from workflow_module import (
    Signal,
    StepContext,
    Struct,
    Timer,
    Workflow,
    WorkflowContext,
    WorkflowStatus,
    call,
    gather,
    install,
    select,
    sleep,
    spawn,
    subroutine,
    timer,
    workflow,
)

VERSION: Final = int(os.environ.get("SOAK_VERSION", "1"))
QUEUE: Final = "paths"
ON_PURPOSE: Final = "fails on purpose"
"""What stands in the errors that the game raises by itself: they are no faults."""
FAILING: Final = 0.1
ERRANDS_MAX: Final = 2
"""How many errands a player may have under way."""
THING_EVERY: Final = 5
"""Each so manieth gift comes with a thing."""

module = Module("soak")
for part in (realm, heroes, deeds, market, bots.bots):
    module.include(part)
module.table(public=True)(trade.Table)
for reducer in (trade.open_trade, trade.offer, trade.accept, trade.cancel):
    module.reducer(reducer)
module.init(create)


@module.client_connected
def come(ctx: ReducerContext) -> None:
    """Whoever comes plays at once: those who call over HTTP as well."""
    enter(ctx)


# --- gifts: each is a transaction that its giver can look for afterwards


@module.table(public=True)
class Ledger(Row):
    """How many gifts somebody has made, and a digest of all of them in their order."""

    identity: PrimaryKey[Identity]
    number: u64 = 0
    digest: u64 = 0
    if VERSION > 1:
        thanks: u32 = 0


def digest_after(digest: int, number: int, to: int, gold: int) -> int:
    """The digest of a ledger after one more gift."""
    return zlib.crc32(f"{digest} {number} {to} {gold}".encode())


@module.reducer
def give(ctx: ReducerContext, number: u64, to: u64, gold: u64) -> None:
    """The gift with this number, of as much gold as one has of it; at times with a thing."""
    giver = me(ctx)
    ledger = ctx.db[Ledger].get(ctx.sender) or ctx.db[Ledger].insert(Ledger(identity=ctx.sender))
    if number != ledger.number + 1:
        raise ReducerError(f"gift {number} does not come after {ledger.number}")
    move_gold(ctx, giver.id, to, min(gold, giver.gold))
    things = free_things(ctx, giver.id) if number % THING_EVERY == 0 else []
    if things:
        move_item(ctx, things[0].id, giver.id, to)
    ctx.db[Ledger].update(ledger.replace(number=number, digest=digest_after(ledger.digest, number, to, gold)))


# --- errands: a worker, a procedure, a child, signals and timers, with gold in escrow


class ErrandTimer(Timer):
    ARRIVES = "arrives"


class Hurry(Signal): ...


class TurnBack(Signal): ...


class RestInit(Struct):
    time: timedelta


class ErrandInit(Struct):
    sender: int
    to: int
    gold: int


@module.procedure(queue=QUEUE)
async def find_path(ctx: StepContext, to: u64) -> float:
    """How many seconds the way takes. Runs in a worker, which may die of it."""
    await asyncio.sleep(random.random())
    ctx.heartbeat()
    if random.random() < FAILING:
        raise ConnectionError(ON_PURPOSE)
    return 1 + to % 5


def pay_toll(ctx: StepContext, gold: int) -> int:
    """Runs in a thread of the server."""
    if random.random() < FAILING:
        raise ConnectionError(ON_PURPOSE)
    return gold // 10


@workflow
async def rest(ctx: WorkflowContext, init: RestInit) -> None:
    await sleep(init.time)


if VERSION == 1:

    @subroutine
    async def walk(ctx: WorkflowContext, seconds: float) -> bool:
        match await select(timer(ErrandTimer.ARRIVES, after=timedelta(seconds=seconds)), Hurry, TurnBack):
            case TurnBack():
                return False
        return True

else:

    @subroutine
    async def walk(ctx: WorkflowContext, seconds: float) -> bool:
        await sleep(timedelta(seconds=0.5))
        match await select(timer(ErrandTimer.ARRIVES, after=timedelta(seconds=seconds)), Hurry, TurnBack):
            case TurnBack():
                return False
        return True


@workflow
async def errand(ctx: WorkflowContext, init: ErrandInit) -> bool:
    hold_gold(ctx, ctx.workflow_id, init.sender, init.gold)
    try:
        seconds, _, _ = await gather(
            call(find_path, init.to, attempts=1_000, backoff=timedelta(seconds=0.5), timeout=timedelta(seconds=20)),
            call(pay_toll, init.gold, attempts=1_000, backoff=timedelta(seconds=0.5)),
            spawn(rest, RestInit(time=timedelta(seconds=1)), entity_id=init.sender),
        )
        if not await walk(ctx, seconds):
            return False
        if ctx.random.random() < FAILING:
            raise RuntimeError(ON_PURPOSE)  # parked, until an operator resumes it
        if ctx.db[Character].get(init.to) is None:
            return False
        hand_over(ctx, ctx.workflow_id, init.sender, init.to)
        return True
    finally:
        give_back(ctx, ctx.workflow_id)


engine = install(module, [*arena.definitions.values(), trade.trade, rest, errand], retention=timedelta(minutes=1))


@module.reducer
def send_errand(ctx: ReducerContext, to: u64, gold: u64) -> None:
    """Send somebody with gold."""
    sender = me(ctx)
    if gold > sender.gold:
        raise ReducerError(f"you have {sender.gold} gold")
    if len(_errands(ctx, sender.id)) >= ERRANDS_MAX:
        raise ReducerError("they are all under way")
    engine.start(ctx, errand, ErrandInit(sender=sender.id, to=to, gold=gold), entity_id=sender.id)


@module.reducer
def tell_errands(ctx: ReducerContext, back: bool) -> None:
    """Let one's errands hurry, or turn back."""
    for row in _errands(ctx, me(ctx).id):
        engine.signal(ctx, row.id, TurnBack() if back else Hurry())


def _errands(ctx: ReducerContext, sender: int) -> list[Workflow]:
    rows = ctx.db[Workflow].where(entity_id=sender)
    return [row for row in rows if row.workflow_type == errand.name and row.status is WorkflowStatus.Suspended]


# --- shouts: much to read, for those who are slow


@module.table(public=True, event=True)
class Shout(Row):
    text: str


@module.reducer
def shout(ctx: ReducerContext, characters: u32) -> None:
    """Something long for everybody who listens."""
    if characters > 1 << 20:
        raise ReducerError("not so loud")
    ctx.db[Shout].insert(Shout(text="a" * characters))
