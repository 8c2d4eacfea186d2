"""Three games with one bug each, of the kinds that show only in an unlucky order of events; and each one corrected."""

from __future__ import annotations

from datetime import timedelta

from gamedb import AutoInc, Module, PrimaryKey, ReducerContext, Row, ScheduleAt, u64
from workflow_module import (
    Signal,
    StepContext,
    Struct,
    Timer,
    WorkflowContext,
    call,
    install,
    select,
    sleep,
    timer,
    workflow,
)


class Purse(Row):
    id: PrimaryKey[u64]
    gold: u64


class Amount(Struct):
    gold: int


def gold(ctx: ReducerContext) -> int:
    purse = ctx.db[Purse].get(1)
    assert purse is not None
    return purse.gold


def set_gold(ctx: ReducerContext, amount: int) -> None:
    ctx.db[Purse].update(Purse(id=1, gold=amount))


# --- a lost update across a wait: the balance was read before it, and is written after it


@workflow
async def careless_work(ctx: WorkflowContext, init: Amount) -> None:
    before = gold(ctx)
    await sleep(timedelta(seconds=2))
    set_gold(ctx, before + init.gold)


@workflow
async def careful_work(ctx: WorkflowContext, init: Amount) -> None:
    await sleep(timedelta(seconds=2))
    set_gold(ctx, gold(ctx) + init.gold)


# --- a timer that is not cancelled: a shield that is renewed falls when its first time is over


class Shield(Row):
    id: PrimaryKey[u64]
    up: bool
    until_seconds: float


class ShieldEnd(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


class Renew(Signal): ...


class Watch(Timer):
    OVER = "over"


def shield_falls(ctx: ReducerContext, end: ShieldEnd) -> None:
    shield = ctx.db[Shield].get(1)
    assert shield is not None
    ctx.db[Shield].update(shield.replace(up=False))


def raise_shield(ctx: ReducerContext, *, forget_old_end: bool) -> None:
    if forget_old_end:
        for end in list(ctx.db[ShieldEnd]):
            ctx.db[ShieldEnd].delete(end)
    until = ctx.now + timedelta(seconds=10)
    ctx.db[Shield].upsert(Shield(id=1, up=True, until_seconds=until.timestamp()))
    ctx.db[ShieldEnd].insert(ShieldEnd(scheduled_at=until))


@workflow
async def careless_shield(ctx: WorkflowContext, init: Amount) -> None:
    raise_shield(ctx, forget_old_end=False)
    while await select(timer(Watch.OVER, after=timedelta(seconds=10)), Renew) != Watch.OVER:
        raise_shield(ctx, forget_old_end=False)


@workflow
async def careful_shield(ctx: WorkflowContext, init: Amount) -> None:
    raise_shield(ctx, forget_old_end=True)
    while await select(timer(Watch.OVER, after=timedelta(seconds=10)), Renew) != Watch.OVER:
        raise_shield(ctx, forget_old_end=True)


# --- a procedure that is taken to run exactly once


class Paid(Row):
    key: PrimaryKey[str]


async def pay(ctx: StepContext, amount: int) -> None:
    with ctx.transaction() as tx:
        set_gold(tx, gold(tx) + amount)


async def pay_once(ctx: StepContext, amount: int) -> None:
    with ctx.transaction() as tx:
        if tx.db[Paid].get(ctx.step_key) is None:
            tx.db[Paid].insert(Paid(key=ctx.step_key))
            set_gold(tx, gold(tx) + amount)


@workflow
async def careless_wage(ctx: WorkflowContext, init: Amount) -> None:
    await call(pay, init.gold)


@workflow
async def careful_wage(ctx: WorkflowContext, init: Amount) -> None:
    await call(pay_once, init.gold)


module = Module("buggy")
for row in (Purse, Shield, Paid):
    module.table(row)
module.table(scheduled="shield_falls")(ShieldEnd)
module.reducer(shield_falls)
install(module, [careless_work, careful_work, careless_shield, careful_shield, careless_wage, careful_wage])
