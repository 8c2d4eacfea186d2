"""A game of one workflow, whose reducers clients may call: what a page does with running workflows."""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow

module = Module("flows")


class Clock(Timer):
    END = "end"


class Bid(Signal):
    bidder: str
    amount: int


class LotInit(Struct):
    item: str
    price: int = 0
    runs: timedelta = timedelta(minutes=1)


class LotResult(Struct):
    winner: str | None
    price: int


@workflow
async def lot(ctx: WorkflowContext, init: LotInit) -> LotResult:
    """Sells to the highest bidder."""
    winner: str | None = None
    price: int = init.price
    ends = ctx.now + init.runs
    while True:
        match await select(timer(Clock.END, at=ends), Bid):
            case Bid(bidder, amount) if amount > price:
                winner, price = bidder, amount
            case Clock.END:
                return LotResult(winner=winner, price=price)


install(module, [lot], testing=True, access="all")
