"""Workflows that do a little of everything, as source text, for the test of what the engine keeps in memory."""

from __future__ import annotations

SOURCE = '''
from workflow_module.engine import engine_of
from workflow_module.refusals import *


class Shape(Struct):
    d: int = 1
    other: int = 0
    left: int = 2


class Loot(Signal):
    items: list[str]
    hops: int = 0


def far(ctx: Any, n: int) -> int: ...


def send(ctx: WorkflowContext, to: int, message: Signal) -> None:
    try:
        ctx.signal(to, message)
    except WorkflowError as error:
        mark(ctx, type(error).__name__)


@workflow
async def racer(ctx: WorkflowContext, init: Shape) -> int:
    bids, ends = 0, ctx.now + seconds(init.d)
    while True:
        match await select(Bid, timer(Clock.END, at=ends), Stop):
            case Bid(amount):
                bids += 1
                if amount % 3 == 0:
                    send(ctx, init.other, Bid(amount=amount + 1))
                if amount % 5 == 0:
                    ends = ctx.now + seconds(init.d)
                if amount % 7 == 0:
                    ctx.broadcast(Loot([str(ctx.workflow_id)]), init.d)
                mark(ctx, f"{ctx.workflow_id} bid {amount}")
                fragile()
            case Clock.END:
                return bids
            case Stop():
                return -bids


@workflow
async def looter(ctx: WorkflowContext, init: Shape) -> list[str]:
    subscribe(Loot, init.d)
    found: list[str] = []
    while len(found) < 6:
        loot = await signal(Loot, timeout=seconds(init.d + 2))
        if loot is None:
            unsubscribe(Loot, init.d)
            break
        loot.items.append(str(len(found)))
        found += loot.items
        if loot.hops < 2:
            ctx.broadcast(Loot(loot.items, loot.hops + 1), init.other)
        ctx.set_attribute("found", len(found))
        fragile()
    return found


@workflow
async def gatherer(ctx: WorkflowContext, init: Shape) -> int:
    total = 0
    for _ in range(init.left):
        a, b, _ = await gather(signal(Bid), signal(Bid, timeout=seconds(init.d)), sleep(seconds(init.d // 2)))
        total += a.amount + (0 if b is None else b.amount)
        fragile()
    return total


@workflow
async def waiter(ctx: WorkflowContext, init: Shape) -> int:
    total = 0
    for _ in range(init.left):
        bid, stop = await wait_all(Bid, Stop, timeout=seconds(init.d))
        total += (0 if bid is None else bid.amount) + (0 if stop is None else 100)
    fragile()
    return total


@workflow
async def child(ctx: WorkflowContext, init: Shape) -> int:
    if init.d == 0:
        return 0
    got = await select(Bid, sleep(seconds(init.d)), Go)
    fragile()
    return got.amount if isinstance(got, Bid) else init.d


@workflow
async def parent(ctx: WorkflowContext, init: Shape) -> list[int]:
    first = start(child, Shape(d=init.d), entity_id=1)
    second = start(child, Shape(d=init.other % 4), on_parent_end="abandon")
    found: list[int] = []
    try:
        match await select(gather(first, second, spawn(child, Shape(d=2))), timer(Clock.OTHER, after=seconds(5)), Stop):
            case [a, b, c]:
                found = [a, b, c]
            case Stop():
                found.append(await first)
            case _:
                found.append(-1)
        more = await gather(first, call(far, init.d, attempts=2, queue="far"), return_exceptions=True)
        found.append(len(more))
        fragile()
    except ChildError as error:
        mark(ctx, str(error))
    return found


@workflow
async def caller(ctx: WorkflowContext, init: Shape) -> int:
    total = 0
    for n in range(init.left):
        backoff = Backoff(seconds(1), 2.0, seconds(4))
        if n % 2:
            got = await select(call(far, n, attempts=2, backoff=backoff, queue="far"), sleep(seconds(4)), Stop)
            total += got if isinstance(got, int) else 100
        else:
            total += sum(await gather(call(far, 1, attempts=1, queue="far"), call(far, 2, queue="far")))
        fragile()
    return total


@workflow
async def again(ctx: WorkflowContext, init: Shape) -> int:
    subscribe(Loot, init.left)
    try:
        got = await select(timer(Clock.END, after=seconds(init.d)), Loot, Bid)
    finally:
        mark(ctx, f"{ctx.workflow_id} round {init.left}")
        fragile()
    if init.left > 0:
        continue_as_new(Shape(d=init.d, left=init.left - 1))
    return 0 if isinstance(got, Timer) else 1


@workflow
async def tidy(ctx: WorkflowContext, init: Shape) -> int:
    try:
        await select(Stop, sleep(seconds(init.d)))
    finally:
        await select(Bid, sleep(seconds(2)))
        ctx.broadcast(Loot(["tidy"]), init.d)
        fragile()
    return 1


@workflow
async def stubborn(ctx: WorkflowContext, init: Shape) -> int:
    ends, refused = ctx.now + seconds(init.d + 3), 0
    while True:
        try:
            match await select(timer(Clock.END, at=ends), Stop):
                case Stop():
                    ctx.signal(ctx.workflow_id, Bid(amount=1))
                    bid = await signal(Bid)
                    mark(ctx, bid.amount)
                case Clock.END:
                    return refused
        except Cancelled:
            refused += 1


@workflow
async def idler(ctx: WorkflowContext, init: Shape) -> int:
    for n in range(5):
        await select(Bid, timer(Clock.OTHER, after=seconds(init.d)), timer(Clock.END, after=seconds(init.d + 1)))
        fragile()
    return 5


@workflow
async def hasty(ctx: WorkflowContext, init: Shape) -> int:
    for n in range(init.left + 3):
        match n % 3:
            case 0:
                await sleep(seconds(0))
            case 1:
                await timer(Clock.END, at=ctx.now - seconds(init.d))
            case 2:
                await select(signal(Bid, timeout=seconds(0)), timer(Clock.END, at=ctx.now))
        fragile()
    return init.left


@workflow
async def doubtful(ctx: WorkflowContext, init: Shape) -> int:
    tried = 0
    while tried < 4:
        bid = await signal(Bid)
        tried += 1
        try:
            with ctx.savepoint():
                send(ctx, init.other, Bid(amount=bid.amount))
                send(ctx, ctx.workflow_id, Bid(amount=0))
                subscribe(Loot, 1)
                start(child, Shape(d=0))
                mark(ctx, "doubtful")
                if bid.amount % 2:
                    raise GameError("not so")
        except GameError:
            mark(ctx, "undone")
        fragile()
    await select(Loot, sleep(seconds(1)))
    return tried


@workflow
async def meddler(ctx: WorkflowContext, init: Shape) -> int:
    """Does to others, and to itself, what operators do."""
    ends = ctx.now + seconds(9)
    for n in range(6):
        got = await select(timer(Clock.END, at=ends), Go)
        if not isinstance(got, Go):
            break
        meddle(ctx, got.n % 7, init.other if got.n % 2 else ctx.workflow_id)
    return 1


def meddle(ctx: WorkflowContext, what: int, to: int) -> None:
    engine = engine_of(ctx.functions)
    try:
        if what == 0:
            engine.cancel(ctx, to)
        elif what == 1:
            engine.terminate(ctx, to)
        elif what == 2:
            engine.delete(ctx, to)
        elif what == 3:
            engine.fire_timer(ctx, to, "end")
        elif what == 4:
            engine.resume(ctx, to)
        elif what == 5:
            engine.signal_entity(ctx, 1, Bid(amount=what))
        else:
            row = ctx.db[Workflow].get(to)
            if row is not None:
                ctx.db[Workflow].update(row.replace(entity_id=1))
    except WorkflowError as error:
        mark(ctx, type(error).__name__)
'''

CHANGED = (
    SOURCE.replace("select(Bid, timer(Clock.END, at=ends), Stop)", "select(Bid, Stop, timer(Clock.END, at=ends))")
    .replace("total = 0", "total: float = 0")
    .replace("loot.hops < 2", "loot.hops < 1")
    .replace("for n in range(6)", "for n in range(7)")
)
"""A deploy: some go on with it, some are parked, and it means something else in places."""

NAMES = (
    "racer",
    "looter",
    "gatherer",
    "waiter",
    "child",
    "parent",
    "caller",
    "again",
    "tidy",
    "stubborn",
    "idler",
    "hasty",
    "doubtful",
    "meddler",
)
