"""Slow reducers: where they are is logged while they run, how long they took afterwards; none is stopped."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from datetime import timedelta

import pytest

from gamedb import Database, Module, ReducerContext, watchdog

TIMEOUT = 20


class Records(logging.Handler):
    """Collects log records and lets tests wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not message.startswith("init "):  # the beginning of a database, which is slow on a busy machine
            self.messages.append(message)
            self.came.set()


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("gamedb.slow")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_a_slow_reducer_is_logged_with_its_stack_while_it_runs_and_its_time_after(records: Records) -> None:
    module = Module("slow")

    @module.reducer
    def dawdle(ctx: ReducerContext) -> str:
        assert records.came.wait(TIMEOUT)
        return "done"

    with Database(module, slow_reducer=timedelta(milliseconds=1)) as db:
        assert db.call(dawdle) == "done"
    during, after = records.messages
    assert during.startswith("dawdle has been running for 0.")
    assert "in dawdle" in during
    assert "records.came.wait(TIMEOUT)" in during
    assert "test_a_slow_reducer_is_logged" not in during, "who called it is of no interest"
    assert after.startswith("dawdle took 0.")
    assert "warned of from 0.001 s on" in after


def test_a_fast_reducer_is_not_logged(records: Records) -> None:
    module = Module("slow")

    @module.reducer
    def hurry(ctx: ReducerContext) -> None: ...

    with Database(module, slow_reducer=timedelta(seconds=60)) as db:
        db.call(hurry)
    assert records.messages == []


def test_a_slow_reducer_that_raises_is_logged_too(records: Records) -> None:
    module = Module("slow")

    @module.reducer
    def fail(ctx: ReducerContext) -> None:
        assert records.came.wait(TIMEOUT)
        raise LookupError

    with Database(module, slow_reducer=timedelta(milliseconds=1)) as db, pytest.raises(LookupError):
        db.call(fail)
    assert [message.split(" ")[0] for message in records.messages] == ["fail", "fail"]


def test_the_watchdog_keeps_no_database_alive() -> None:
    db = Database(Module("slow"))
    db.close()
    alive = weakref.ref(db)
    assert watchdog._thread is not None
    del db
    for _ in range(200):
        gc.collect()
        if alive() is None:
            break
        threading.Event().wait(0.01)  # the thread may be looking at it this very moment
    assert alive() is None
