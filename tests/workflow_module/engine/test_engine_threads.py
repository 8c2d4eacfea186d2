"""Threads for sync procedures: used again, never shared, and left alone when they do not come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from workflow_module import threads
from workflow_module.threads import Threads

SECONDS_MAX = 10.0
name: ContextVar[str] = ContextVar("name", default="nobody")


def result_of(pool: Threads, work: Callable[[], Any]) -> Any:
    """What `work()` gives in a thread of the pool, which is idle again after that."""
    found: list[Any] = []
    done = threading.Event()

    def target() -> None:
        found.append(work())
        done.set()

    pool.run(target)
    assert done.wait(SECONDS_MAX)
    until(lambda: bool(pool._idle))
    return found[0]


def until(condition: Callable[[], bool]) -> None:
    moment = threading.Event()
    for _ in range(1000):
        if condition():
            return
        moment.wait(0.01)
    raise AssertionError("it did not come to pass")


def test_a_thread_that_came_back_is_used_again() -> None:
    pool = Threads("pool")
    assert result_of(pool, threading.get_ident) == result_of(pool, threading.get_ident)


def test_work_that_never_ends_keeps_nobody_waiting() -> None:
    pool, gate = Threads("pool"), threading.Event()

    def stuck() -> None:
        gate.wait(SECONDS_MAX)

    pool.run(stuck)
    assert result_of(pool, lambda: "done") == "done"
    assert len(pool._idle) == 1
    gate.set()
    until(lambda: len(pool._idle) == 2)


def test_context_variables_do_not_outlive_the_work_that_set_them() -> None:
    pool = Threads("pool")
    result_of(pool, lambda: name.set("ann"))
    assert result_of(pool, name.get) == "nobody"


def test_an_idle_thread_ends_and_work_after_that_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS_MAX", 0.01)
    pool = Threads("pool")
    ended: list[threading.Thread] = []
    done = threading.Event()

    def target() -> None:
        ended.append(threading.current_thread())
        done.set()

    pool.run(target)
    assert done.wait(SECONDS_MAX)
    ended[0].join(SECONDS_MAX)
    assert not ended[0].is_alive()
    assert pool._idle == []
    ran = threading.Event()
    pool.run(ran.set)
    assert ran.wait(SECONDS_MAX)


def test_work_given_to_a_thread_that_was_about_to_end_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS_MAX", 0.0005)
    pool, done = Threads("pool"), threading.Semaphore(0)
    for _ in range(300):
        pool.run(lambda: done.release())
    for _ in range(300):
        assert done.acquire(timeout=SECONDS_MAX)
