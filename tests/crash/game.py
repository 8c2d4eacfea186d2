"""The game that gets killed: every transaction leaves a trail from which the whole state can be computed again."""

from __future__ import annotations

import contextlib
import os
import random
from datetime import timedelta

from gamedb import AutoInc, Database, Index, Module, PrimaryKey, ReducerContext, Row, ScheduleAt, i64, u32, u64

ACCOUNTS = 50
START_BALANCE = 1_000
TICK = timedelta(milliseconds=7)
TIMER_EVERY = 5

module = Module("crash")


@module.table
class Account(Row):
    id: PrimaryKey[u32]
    balance: i64


@module.table
class Transfer(Row):
    """One for each committed `step`: `number` counts them without a gap."""

    id: PrimaryKey[AutoInc[u64]] = 0
    number: Index[u64]
    source: u32
    target: u32
    amount: u32


@module.table(scheduled="fire")
class Timer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    number: u64


@module.table
class Fired(Row):
    """A set: no primary key."""

    number: u64
    timer: u64


@module.table(scheduled="tick")
class Ticker(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@module.table
class Tick(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    at_micros: i64


@module.init
def init(ctx: ReducerContext) -> None:
    for number in range(ACCOUNTS):
        ctx.db[Account].insert(Account(id=number, balance=START_BALANCE))
    ctx.db[Ticker].insert(Ticker(scheduled_at=TICK))


@module.reducer
def step(ctx: ReducerContext, number: u64) -> u64:
    accounts = ctx.db[Account]
    source, target = ctx.random.sample(range(ACCOUNTS), 2)
    amount = ctx.random.randrange(100)
    for account, change in ((source, -amount), (target, amount)):
        row = accounts.get(account)
        assert row is not None
        accounts.update(row.replace(balance=row.balance + change))
    if number % TIMER_EVERY == 0:
        ctx.db[Timer].insert(
            Timer(scheduled_at=ctx.now + timedelta(milliseconds=ctx.random.randrange(20)), number=number)
        )
    row = ctx.db[Transfer].insert(Transfer(number=number, source=source, target=target, amount=amount))
    return row.id


@module.reducer
def abandoned(ctx: ReducerContext) -> None:
    """Takes numbers and changes rows, and leaves nothing."""
    for _ in range(3):
        ctx.db[Transfer].insert(Transfer(number=0, source=0, target=0, amount=0))
    ctx.db[Account].delete(0)
    raise RuntimeError("on purpose")


@module.reducer
def fire(ctx: ReducerContext, timer: Timer) -> None:
    ctx.db[Fired].insert(Fired(number=timer.number, timer=timer.scheduled_id))


@module.reducer
def tick(ctx: ReducerContext, ticker: Ticker) -> None:
    ctx.db[Tick].insert(Tick(at_micros=ctx.micros))


def play(path: str, seed: int, report: int) -> None:
    """Play until killed, and tell the file descriptor `report` in lines what happens.

    `id N`: an id of a committed transaction. `flushed N`: a step that was told to be on disk.
    """
    rng = random.Random(seed)

    def say(text: str) -> None:
        os.write(report, f"{text}\n".encode())

    db = Database(module, path, quiet=True)
    db.log.disabled = True
    db.run()
    number = max((row.number for row in db.read(Transfer)), default=0)
    say("open")
    while True:
        number += 1
        say(f"id {db.call(step, number)}")
        chance = rng.random()
        if chance < 0.05:
            db.flush()
            say(f"flushed {number}")
        elif chance < 0.10:
            with contextlib.suppress(RuntimeError):
                db.call(abandoned)
