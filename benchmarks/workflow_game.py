"""The workflows that `benchmarks.workflows` measures, and a module to run them in."""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ProcedureContext
from workflow_module import (
    Signal,
    Struct,
    Timer,
    WorkflowContext,
    call,
    gather,
    install,
    select,
    signal,
    sleep,
    spawn,
    subscribe,
    timer,
    workflow,
)

TICK = timedelta(seconds=1)


class Clock(Timer):
    TICK = "tick"
    EXPIRE = "expire"


class Add(Signal):
    n: int


class Count(Struct):
    n: int


class Buff(Struct):
    duration: timedelta


@workflow
async def counter(ctx: WorkflowContext, init: Count) -> int:
    """Adds what signals bring until it has `n`."""
    total = 0
    while total < init.n:
        message = await signal(Add)
        total += message.n
    return total


@workflow
async def ticker(ctx: WorkflowContext, init: Count) -> int:
    """`n` timers, one after the other."""
    ticks = 0
    for _ in range(init.n):
        await timer(Clock.TICK, after=TICK)
        ticks += 1
    return ticks


def add_one(ctx: ProcedureContext, n: int) -> int:
    return n + 1


@workflow
async def ten_steps(ctx: WorkflowContext, init: Count) -> int:
    """Ten procedures, each with the result of the one before."""
    value = init.n
    for _ in range(10):
        value = await call(add_one, value)
    return value


@workflow
async def listener(ctx: WorkflowContext, init: Count) -> int:
    """Counts broadcasts."""
    subscribe(Add, "all")
    total = 0
    while total < init.n:
        message = await signal(Add)
        total += message.n
    return total


@workflow
async def child(ctx: WorkflowContext, init: Count) -> int:
    await sleep(TICK)
    return init.n


@workflow
async def parent(ctx: WorkflowContext, init: Count) -> int:
    """Starts `n` children at once and adds their results."""
    results = await gather(*[spawn(child, Count(n)) for n in range(init.n)])
    return sum(results)


@workflow
async def veteran(ctx: WorkflowContext, init: Count) -> int:
    """Has taken `n` steps when it comes to its signals."""
    steps = 0
    for _ in range(init.n):
        await sleep(timedelta(0))
        steps += 1
    while True:
        message = await signal(Add)
        steps += message.n


@workflow
async def buff(ctx: WorkflowContext, init: Buff) -> int:
    """One of a million: a deadline, and a signal that may come before it."""
    stacks = 1
    expires = ctx.now + init.duration
    while True:
        match await select(timer(Clock.EXPIRE, at=expires), Add):
            case Clock.EXPIRE:
                return stacks
            case Add(n):
                stacks += n


def build(journal: bool) -> Module:
    """A module with all of them."""
    module = Module("bench")
    install(module, [counter, ticker, ten_steps, listener, child, parent, veteran, buff], journal=journal)
    return module
