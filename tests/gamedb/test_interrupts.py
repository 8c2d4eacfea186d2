"""Ctrl-C may come at any moment. What is in memory and on disk is then whole transactions, or the database says no."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gamedb
from gamedb import (
    AutoInc,
    Database,
    DatabaseClosed,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    Unique,
    i64,
    u32,
    u64,
)

PLACES = (str(Path(gamedb.__file__).parent), "<gamedb table", contextlib.__file__)
TIMEOUT = timedelta(days=1)

module = Module("interrupts")


@module.table
class Account(Row):
    id: PrimaryKey[u32]
    balance: Index[i64]
    name: Unique[str]


@module.table
class Done(Row):
    number: Index[u64]


@module.table(scheduled="fire")
class Timer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt


@module.init
def init(ctx: ReducerContext) -> None:
    for number in (1, 2, 3):
        ctx.db[Account].insert(Account(id=number, balance=1000, name=f"a {number}"))


@module.reducer
def fire(ctx: ReducerContext, timer: Timer) -> None: ...


@module.reducer
def step(ctx: ReducerContext, number: u64) -> None:
    """Moves one coin, renames the third account and leaves a timer and a note."""
    accounts = ctx.db[Account]
    for key, change in ((1, -1), (2, 1)):
        row = accounts.get(key)
        assert row is not None
        accounts.update(row.replace(balance=row.balance + change, name=f"{key} {number}"))
    with ctx.savepoint():
        accounts.delete(3)
        ctx.db[Timer].insert(Timer(at=TIMEOUT))
        accounts.insert(Account(id=3, balance=1000 + number, name=f"c {number}"))
    ctx.db[Done].insert(Done(number=number))


def whole(db: Database) -> list[int]:
    """The numbers of the steps that the tables hold; each step whole, and each index in agreement with the rows."""
    numbers = sorted(row.number for row in db.read(Done))
    accounts, last = db.read(Account), numbers[-1]
    balances = {row.id: row.balance for row in accounts}
    assert balances == {1: 1000 - len(numbers), 2: 1000 + len(numbers), 3: 1000 + last}
    assert db.read(Timer).count() == len(numbers)
    for key, name in ((1, f"1 {last}"), (2, f"2 {last}"), (3, f"c {last}")):
        row = accounts.get(key)
        assert row is not None
        assert row == accounts.find(name=name)
        assert row in accounts.where(balance=row.balance)
    assert [row.id for row in accounts.between("id", None, None)] == [1, 2, 3]
    assert sorted(row.id for row in accounts.between("balance", None, None)) == [1, 2, 3]
    assert [row.number for row in db.read(Done).between("number", None, None)] == numbers
    return numbers


def interrupted(function: Callable[[], object], moment: int) -> bool:
    """Call it, with a Ctrl-C at the `moment`-th moment in gamedb; False when there are fewer.

    Python looks for signals when a function begins and when one that is written in C has returned.
    """
    count = 0

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PLACES):
            count += 1
            if count == moment:
                raise KeyboardInterrupt

    gc.disable()  # what is raised in the __del__ of something that is collected meanwhile goes nowhere
    sys.setprofile(look)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    return False


def test_an_interrupt_anywhere_in_a_transaction_leaves_whole_ones(caplog: pytest.LogCaptureFixture) -> None:
    moment, stopped, outcomes = 0, [], set()
    while True:
        moment += 1
        with Database(module, slow_reducer=TIMEOUT) as db:
            db.call(step, 1)
            whole(db)  # which makes the orders of the indexes
            if not interrupted(lambda db=db: db.call(step, 2), moment):  # type: ignore[misc]
                break
            try:
                outcomes.add(tuple(whole(db)))
            except DatabaseClosed:
                stopped.append(moment)
                with pytest.raises(DatabaseClosed, match="stopped by KeyboardInterrupt in the middle of a commit"):
                    db.call(step, 3)
            else:
                db.call(step, 3)
                assert whole(db)[-1] == 3, moment
    assert outcomes >= {(1,), (1, 2)}
    assert len(stopped) < moment / 4


def test_an_interrupt_during_the_rollback_does_not_stop_it() -> None:
    @module_with_failure.reducer
    def fail(ctx: ReducerContext) -> None:
        step(ctx, 2)
        raise ValueError

    moment = 0
    while True:
        moment += 1
        with Database(module_with_failure, slow_reducer=TIMEOUT) as db:
            db.call("step", 1)

            def call(db: Database = db) -> None:
                with pytest.raises(ValueError, match=r"^$"):
                    db.call(fail)

            if not interrupted(call, moment):
                break
            assert whole(db) == [1], moment
            db.call("step", 3)
            assert whole(db) == [1, 3], moment


module_with_failure = Module("failing")
module_with_failure.include(module)


def test_the_end_of_the_stack_is_undone_like_any_error() -> None:
    deep = Module("deep")
    deep.include(module)

    @deep.reducer
    def descend(ctx: ReducerContext, number: u64) -> None:
        ctx.db[Account].insert(Account(id=100 + number, balance=number, name=f"deep {number}"))
        ctx.db[Account].delete(3)
        descend(ctx, number + 1)

    for _ in range(20):
        with Database(deep, slow_reducer=TIMEOUT) as db:
            db.call("step", 1)
            with pytest.raises(RecursionError):
                db.call(descend, 1)
            assert whole(db) == [1]
            db.call("step", 2)
            assert whole(db) == [1, 2]


def interrupt_for_real(folder: Path) -> None:
    """What the next test runs in a process of its own: pytest and Hypothesis have callbacks that swallow interrupts."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for run in range(15):
        path = folder / f"{run}.db"
        number = 1
        with Database(module, path, quiet=True, slow_reducer=TIMEOUT) as db:
            db.call(step, 1)
            signal.setitimer(signal.ITIMER_REAL, 0.002 + run * 0.0013, 5)  # again: a callback may swallow the first
            try:
                while True:
                    number += 1
                    db.call(step, number)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
        with Database(module, path, quiet=True, slow_reducer=TIMEOUT) as db:
            numbers = whole(db)
            assert numbers in (list(range(1, number)), list(range(1, number + 1))), (number, numbers)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_what_is_on_disk_after_real_interrupts_is_whole(tmp_path: Path) -> None:
    here = Path(__file__).parent
    code = (
        f"from pathlib import Path; import test_interrupts; test_interrupts.interrupt_for_real(Path({str(tmp_path)!r}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here), str(here.parents[1])))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
