"""A game with workflows for tests of simulations: a buff, a shop with procedures, a season of thirty days."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from gamedb import Module
from workflow_module import (
    ProcedureFailed,
    Signal,
    StepContext,
    Struct,
    Timer,
    WorkflowContext,
    call,
    gather,
    install,
    select,
    sleep,
    spawn,
    timer,
    workflow,
)


class BuffTimer(Timer):
    EXPIRE = "expire"


class Dispel(Signal): ...


class Stack(Signal):
    n: int


class BuffInit(Struct):
    duration: timedelta


class BuffResult(Struct):
    final_stacks: int


@workflow
async def buff(ctx: WorkflowContext, init: BuffInit) -> BuffResult:
    stacks: int = 1
    expires = ctx.now + init.duration
    while True:
        match await select(timer(BuffTimer.EXPIRE, at=expires), Dispel, Stack):
            case BuffTimer.EXPIRE | Dispel():
                break
            case Stack(n):
                stacks += n
    return BuffResult(final_stacks=stacks)


class Order(Struct):
    item: str
    price: int = 0


async def charge(ctx: StepContext, item: str, price: int) -> str:
    await asyncio.sleep(30)
    return f"paid {price} for {item}"


def stamp(ctx: StepContext, text: str) -> str:
    return f"[{text}]"


@workflow
async def shop(ctx: WorkflowContext, init: Order) -> str:
    try:
        paid = await call(charge, init.item, init.price, attempts=3, timeout=timedelta(minutes=1))
    except ProcedureFailed as error:
        return f"no sale after {error.attempts} attempts: {error.error}"
    return await call(stamp, paid)


@workflow
async def day(ctx: WorkflowContext, init: Order) -> int:
    for _ in range(24):
        await sleep(timedelta(hours=1))
    return init.price


@workflow
async def season(ctx: WorkflowContext, init: Order) -> int:
    total: int = 0
    for number in range(30):
        total += await spawn(day, Order(item="day", price=number))
    return total


@workflow
async def both(ctx: WorkflowContext, init: Order) -> list[str]:
    first, second = await gather(call(charge, "a", 1), call(stamp, "b"))
    return [first, second]


module = Module("flows")


@module.procedure(queue="painters")
async def paint(ctx: StepContext, what: str) -> str:
    raise NotImplementedError("painters work elsewhere")


@workflow
async def portrait(ctx: WorkflowContext, init: Order) -> str:
    return await call(paint, init.item)


install(module, [buff, shop, day, season, both, portrait], testing=True)
