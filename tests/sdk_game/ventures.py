"""The game of the tests with `client_ts`: a workflow for each thing that a client can do with one."""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, PrimaryKey, ReducerContext, Row, u32, u64
from workflow_module import (
    Signal,
    Struct,
    Timer,
    WorkflowContext,
    install,
    select,
    signal,
    sleep,
    subscribe,
    timer,
    workflow,
)

module = Module("ventures")


@module.table(public=True)
class Switch(Row):
    """What the fragile workflow looks at."""

    id: PrimaryKey[u32]
    is_on: bool


@module.reducer
def set_switch(ctx: ReducerContext, is_on: bool) -> None:
    ctx.db[Switch].upsert(Switch(id=1, is_on=is_on))


class AuctionTimer(Timer):
    END = "end"


class Bid(Signal):
    bidder: str
    amount: int


class AuctionInit(Struct):
    item: str
    price: int


class AuctionResult(Struct):
    winner: str | None
    price: int


@workflow
async def auction(ctx: WorkflowContext, init: AuctionInit) -> AuctionResult:
    """The highest bid before the end wins."""
    winner: str | None = None
    price = init.price
    ends = ctx.now + timedelta(minutes=1)
    while True:
        match await select(timer(AuctionTimer.END, at=ends), Bid):
            case Bid(bidder, amount):
                if amount > price:
                    winner, price = bidder, amount
            case _:
                return AuctionResult(winner=winner, price=price)


class Add(Signal):
    amount: u64


class Close(Signal): ...


class VaultInit(Struct):
    amount: u64
    owner: str = "nobody"


@workflow
async def vault(ctx: WorkflowContext, init: VaultInit) -> u64:
    """Keeps amounts that JavaScript's numbers cannot hold."""
    amount: u64 = init.amount
    while True:
        match await select(Add, Close):
            case Add(more):
                amount += more
            case _:
                return amount


@workflow
async def fragile(ctx: WorkflowContext) -> str:
    """Fails at its signal unless the switch is on."""
    await signal(Close)
    switch = ctx.db[Switch].get(1)
    if switch is None or not switch.is_on:
        raise RuntimeError("the switch is off")
    return "done"


class Killed(Signal):
    how: str = "somehow"


class Hunt(Struct):
    prey: str


@workflow
async def hunter(ctx: WorkflowContext, init: Hunt) -> str:
    """Waits for its prey to be killed."""
    subscribe(Killed, init.prey)
    return (await signal(Killed)).how


@workflow
async def nap(ctx: WorkflowContext, init: timedelta) -> int:
    """Sleeps, in real time."""
    await sleep(init)
    return 1


install(module, [auction, vault, fragile, hunter, nap], testing=True, access="all")
