"""The game that gets killed: every transaction leaves a trail from which the whole state can be computed again."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

from gamedb import AutoInc, Database, Index, Module, PrimaryKey, ReducerContext, Row, ScheduleAt, i64, u32, u64
from gamedb.columns import micros_of, to_micros
from gamedb.system import ScheduleState
from tests.crash.game import Game, Life, Told

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


class Transfers(Game):
    """Steps, timers and a ticker, all in one writer."""

    name = "transfers"
    module = module
    kills = 20

    def __init__(self) -> None:
        self._phases: dict[Path, int] = {}

    def live(self, life: Life) -> None:
        """Step after step, and the id of each is told."""
        db = life.db
        number = max((row.number for row in db.read(Transfer)), default=0)
        db.run()
        life.say("open")
        while True:
            number += 1
            life.say("id", db.call(step, number))
            chance = life.rng.random()
            if chance < 0.05:
                life.flush()
                life.say("step", number)
            elif chance < 0.10:
                with contextlib.suppress(RuntimeError):
                    db.call(abandoned)

    def look(self, db: Database, path: Path, told: Told, rng: random.Random) -> None:
        """Compute the whole state again from the trail, and take one more step."""
        transfers = sorted(db.read(Transfer), key=lambda row: row.number)
        steps = len(transfers)
        assert [row.number for row in transfers] == list(range(1, steps + 1)), "a step is missing"
        assert steps >= told.highest["step"], f"step {told.highest['step']} was on disk, the file ends at {steps}"

        balances = Counter(dict.fromkeys(range(ACCOUNTS), START_BALANCE))
        for row in transfers:
            balances[row.source] -= row.amount
            balances[row.target] += row.amount
        assert {row.id: row.balance for row in db.read(Account)} == dict(balances), "half of a transaction"

        due = {row.number for row in transfers if row.number % TIMER_EVERY == 0}
        pending = [row.number for row in db.read(Timer)]
        fired = [row.number for row in db.read(Fired)]
        assert sorted(pending + fired) == sorted(due), "a timer was lost or fired twice"

        (state,) = db._committed_system[ScheduleState]
        phase = to_micros(state.next_at) % micros_of(TICK)
        assert self._phases.setdefault(path, phase) == phase, "the ticker lost its phase"
        ticks = sorted(row.at_micros for row in db.read(Tick))
        slots = [(at - phase) // micros_of(TICK) for at in ticks]
        assert len(set(slots)) == len(slots), "two ticks in one interval"

        ids = [row.id for row in transfers]
        assert len(set(ids)) == len(ids)
        highest = max(told.highest["id"], *ids, 0)
        new = db.call(step, steps + 1)
        assert new > highest, f"id {new} was handed out again (the highest was {highest})"
        told.hear(f"id {new}")
        db.flush()
        told.hear(f"step {steps + 1}")
