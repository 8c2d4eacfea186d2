"""The game of workflows that gets killed: gold moves in steps, and every effect leaves a trail."""

from __future__ import annotations

import contextlib
import os
import random
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from gamedb import AutoInc, Database, Index, Module, PrimaryKey, ReducerContext, Row, i64, u32, u64
from workflow_module import (
    Backoff,
    Signal,
    Struct,
    Workflow,
    WorkflowContext,
    WorkflowError,
    Workflows,
    call,
    gather,
    install,
    select,
    sleep,
    spawn,
    start,
    workflow,
)

ACCOUNTS = 20
START_GOLD = 1_000
UNFINISHED_MAX = 100

module = Module("flows")


@module.table
class Account(Row):
    id: PrimaryKey[u32]
    gold: i64


@module.table
class Held(Row):
    """Gold that a workflow has taken and not yet given."""

    nonce: PrimaryKey[str]
    gold: i64


@module.table
class Done(Row):
    """An effect of a timer or signal: at most one row for each step of each workflow."""

    id: PrimaryKey[AutoInc[u64]] = 0
    nonce: Index[str]
    step: u32


@module.init
def init(ctx: ReducerContext) -> None:
    for number in range(ACCOUNTS):
        ctx.db[Account].insert(Account(id=number, gold=START_GOLD))


def change(ctx: ReducerContext, account: int, gold: int) -> None:
    row = ctx.db[Account].get(account)
    assert row is not None
    ctx.db[Account].update(row.replace(gold=row.gold + gold))


def done(ctx: ReducerContext, nonce: str, step: int) -> None:
    ctx.db[Done].insert(Done(nonce=nonce, step=step))


class Loan(Struct):
    nonce: str
    source: int
    target: int
    gold: int
    rounds: int


class Hurry(Signal):
    pass


class Outside:
    """The file that stands for the world outside: it is there when the process is not."""

    path = ""


def tell_outside(ctx: Any, nonce: str) -> None:
    descriptor = os.open(Outside.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{nonce} {ctx.step_key} {ctx.attempt_key}\n".encode())
    os.close(descriptor)
    if random.random() < 0.3:
        raise ConnectionError("try again")


async def pay(ctx: Any, nonce: str) -> int:
    tell_outside(ctx, nonce)
    return len(nonce)


def pay_sync(ctx: Any, nonce: str) -> int:
    tell_outside(ctx, nonce)
    return len(nonce)


PATIENT = Backoff(timedelta(milliseconds=2), 1.5, timedelta(milliseconds=20))


@workflow
async def errand(ctx: WorkflowContext, init: Loan) -> int:
    await sleep(timedelta(milliseconds=init.rounds))
    done(ctx, init.nonce, 100)
    change(ctx, init.source, -init.gold)
    ctx.db[Held].insert(Held(nonce=init.nonce, gold=init.gold))
    await sleep(timedelta(milliseconds=1))
    ctx.db[Held].delete(init.nonce)
    change(ctx, init.target, init.gold)
    return init.gold


@workflow
async def loan(ctx: WorkflowContext, init: Loan) -> int:
    change(ctx, init.source, -init.gold)
    ctx.db[Held].insert(Held(nonce=init.nonce, gold=init.gold))
    helper = start(errand, Loan(f"{init.nonce}/h", init.target, init.source, 3, init.rounds))
    for step in range(init.rounds):
        await select(sleep(timedelta(milliseconds=3 * step)), Hurry)
        done(ctx, init.nonce, step)
    await call(pay, init.nonce, attempts=1000, backoff=PATIENT)
    one, two, three = await gather(
        spawn(errand, Loan(f"{init.nonce}/1", init.source, init.target, 1, 2)),
        spawn(errand, Loan(f"{init.nonce}/2", init.target, init.source, 2, 5)),
        call(pay_sync, f"{init.nonce}/s", attempts=1000, backoff=PATIENT),
    )
    ctx.db[Held].delete(init.nonce)
    change(ctx, init.target, init.gold)
    return one + two + three + await helper


install(module, [loan, errand], retention=None)


def play(path: str, seed: int, report: int) -> None:
    """Play until killed, and tell the file descriptor `report` in lines what happens.

    `flushed N`: so many workflows that were begun are on disk, and stay.
    """
    rng = random.Random(seed)
    Outside.path = str(Path(path).with_suffix(".outside"))

    def say(text: str) -> None:
        os.write(report, f"{text}\n".encode())

    db = Database(module, path, quiet=True)
    db.log.disabled = True
    flows = Workflows(db)
    begun = [row.id for row in db.read(Workflow) if row.workflow_type == "loan"]
    db.run()
    say("open")
    while True:
        if sum(flows.get(flow).result is None for flow in begun[-UNFINISHED_MAX:]) < UNFINISHED_MAX:
            source, target = rng.sample(range(ACCOUNTS), 2)
            gold, rounds = rng.randrange(50), rng.randrange(1, 5)
            nonce = str(uuid.uuid4())
            begun.append(flows.start(loan, Loan(nonce, source, target, gold, rounds), correlation_id=nonce))
        if rng.random() < 0.5:
            with contextlib.suppress(WorkflowError):
                flows.signal(rng.choice(begun), Hurry())
        if rng.random() < 0.05:
            db.flush()
            say(f"flushed {len(begun)}")
