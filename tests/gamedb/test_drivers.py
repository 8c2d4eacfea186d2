"""Schedules driven by a thread and by an asyncio loop; time is moved by hand, waiting is for events."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Database,
    ManualClock,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    Row,
    ScheduleAt,
    SystemClock,
    u64,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT = 20


class Ring(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    what: str = "ring"


class Job(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt


class Game:
    """A database whose scheduled functions tell a queue what they were called for."""

    def __init__(self, clock: Any) -> None:
        self.fired: queue.Queue[str] = queue.Queue()
        self.gate = threading.Event()
        self.gate.set()
        self.clock = clock
        module = Module("driven")
        module.table(scheduled="ring")(Ring)
        module.table(scheduled="work")(Job)

        @module.reducer
        def ring(ctx: ReducerContext, timer: Ring) -> None:
            self.fired.put(timer.what)
            if timer.what == "bad":
                raise LookupError("mine")
            if timer.what == "cancelled":
                raise asyncio.CancelledError
            if timer.what == "exit":
                raise SystemExit(3)

        @module.procedure
        def work(ctx: ProcedureContext, job: Job) -> None:
            self.fired.put("work")
            assert self.gate.wait(TIMEOUT)

        self.db = Database(module, clock=clock)

    def add(self, *rows: Any) -> None:
        with self.db.transaction() as ctx:
            for row in rows:
                ctx.db[type(row)].insert(row)

    def next(self) -> str:
        return self.fired.get(timeout=TIMEOUT)


@pytest.fixture
def game(clock: ManualClock) -> Iterator[Game]:
    game = Game(clock)
    with game.db:
        yield game


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_the_thread_fires_what_becomes_due_by_a_commit_or_by_time(game: Game) -> None:
    game.db.run()
    game.add(Ring(at=at(0), what="at once"))
    assert game.next() == "at once"
    game.add(Ring(at=at(10), what="later"), Ring(at=timedelta(seconds=4), what="tick"))
    game.clock.advance(4)
    assert game.next() == "tick"
    game.clock.advance(6)
    assert [game.next(), game.next()] == ["tick", "later"]


def test_the_thread_goes_on_after_a_raising_reducer(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    game.db.run()
    game.add(Ring(at=at(0), what="bad"), Ring(at=at(0), what="good"))
    assert [game.next(), game.next()] == ["bad", "good"]
    assert "ring failed" in caplog.text


def test_the_thread_goes_on_after_what_is_no_exception_of_the_usual_kind(
    game: Game, caplog: pytest.LogCaptureFixture
) -> None:
    game.db.run()
    game.add(Ring(at=at(0), what="cancelled"), Ring(at=at(0), what="good"))
    assert [game.next(), game.next()] == ["cancelled", "good"]
    assert "ring failed and was rolled back: CancelledError" in caplog.text


def test_a_reducer_that_exits_fails_and_the_thread_goes_on(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    game.db.run()
    game.add(Ring(at=at(0), what="exit"), Ring(at=at(0), what="good"))
    assert [game.next(), game.next()] == ["exit", "good"]
    assert "ring failed and was rolled back: SystemExit(3)" in caplog.text


def test_the_thread_ends_with_the_database(clock: ManualClock) -> None:
    game = Game(clock)
    before = set(threading.enumerate())
    game.db.run()
    [thread] = set(threading.enumerate()) - before
    assert "driven" in thread.name
    game.add(Ring(at=at(1)))
    game.db.close()
    assert not thread.is_alive()
    clock.advance(10)
    assert game.fired.empty()


def test_a_callback_in_the_thread_may_close_the_database(game: Game) -> None:
    closed = threading.Event()

    def close(commit: Any) -> None:
        game.db.close()
        closed.set()

    game.db.run()
    game.add(Ring(at=at(1)))
    game.db.subscribe(Ring, close)
    game.clock.advance(1)
    assert closed.wait(TIMEOUT)


def test_a_blocking_procedure_does_not_stop_the_ticks(game: Game) -> None:
    game.gate.clear()
    game.db.run()
    game.add(Job(at=at(0)))
    assert game.next() == "work"
    for n in range(3):
        game.add(Ring(at=at(0), what=str(n)))
        assert game.next() == str(n)
    assert game.db.read(Job).count() == 1
    game.gate.set()


def test_an_interval_procedure_never_runs_twice_at_once_and_is_late_once(game: Game) -> None:
    game.gate.clear()
    game.db.run()
    game.add(Job(at=timedelta(seconds=1)))
    game.clock.advance(1)
    assert game.next() == "work"
    for _ in range(5):
        game.clock.advance(1)
    game.add(Ring(at=at(0)))
    assert game.next() == "ring"
    assert game.fired.empty()
    game.gate.set()
    assert game.next() == "work"
    game.add(Ring(at=at(0)))
    assert game.next() == "ring"


def test_many_async_procedures_wait_at_once(clock: ManualClock) -> None:
    module = Module("waiting")
    count, started, ended = 100, queue.Queue[int](), queue.Queue[int]()
    module.table(scheduled="work")(Job)

    @module.procedure
    async def work(ctx: ProcedureContext, job: Job) -> None:
        started.put(job.scheduled_id)
        while started.qsize() < count:  # nobody ends before all have begun
            await asyncio.sleep(0.001)
        ended.put(job.scheduled_id)

    with Database(module, clock=clock) as db:
        with db.transaction() as ctx:
            for _ in range(count):
                ctx.db[Job].insert(Job(at=ctx.now))
        db.run()
        assert sorted(ended.get(timeout=TIMEOUT) for _ in range(count)) == list(range(1, count + 1))


def test_closing_waits_for_running_procedures(clock: ManualClock) -> None:
    game = Game(clock)
    game.gate.clear()
    game.db.run()
    game.add(Job(at=at(0)))
    assert game.next() == "work"
    closer = threading.Thread(target=game.db.close)
    closer.start()
    closer.join(0.02)
    assert closer.is_alive()
    game.gate.set()
    closer.join(TIMEOUT)
    assert not closer.is_alive()
    assert game.db.store.tables["job"].rows == {}


def test_the_system_clock_wakes_the_thread() -> None:
    game = Game(SystemClock())
    with game.db:
        game.db.run()
        game.add(Ring(at=datetime.now(UTC) + timedelta(seconds=0.01)))
        assert game.next() == "ring"


def test_the_loop_fires_what_becomes_due_and_ends_when_cancelled(game: Game) -> None:
    async def main() -> list[str]:
        driver = asyncio.create_task(game.db.run_async())
        game.add(Ring(at=at(0), what="at once"))
        first = await asyncio.to_thread(game.next)
        game.add(Ring(at=at(5), what="later"), Job(at=at(5)))
        await asyncio.to_thread(game.clock.advance, 5)
        rest = {await asyncio.to_thread(game.next) for _ in range(2)}
        assert not driver.done()
        driver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await driver
        return [first, *sorted(rest)]

    assert asyncio.run(main()) == ["at once", "later", "work"]
    game.clock.advance(1)  # nobody listens any more
    game.add(Ring(at=at(0)))
    assert game.fired.empty()


async def settle(turns: int) -> None:
    """Let the loop go on for so many turns."""
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.parametrize("turns", range(8))
def test_the_loop_ends_when_it_is_cancelled_just_as_something_wakes_it(turns: int) -> None:
    async def main() -> bool:
        driver = asyncio.create_task(game.db.run_async())
        await settle(10)
        game.add(Ring(at=timedelta(days=2)))
        await settle(10)  # it waits for two days
        game.add(Ring(at=timedelta(days=1)))
        await settle(turns)
        driver.cancel()
        await asyncio.wait({driver}, timeout=1)
        return driver.cancelled()

    game = Game(SystemClock())
    with game.db:
        assert asyncio.run(main())


def test_the_loop_gives_way_while_much_is_due(game: Game) -> None:
    async def main() -> int:
        game.add(*[Ring(at=at(0)) for _ in range(1000)])
        driver = asyncio.create_task(game.db.run_async())
        turns = 0
        while game.db.read(Ring).count():
            await asyncio.sleep(0)
            turns += 1
        driver.cancel()
        return turns

    assert asyncio.run(main()) >= 5


def test_a_commit_does_not_care_for_a_loop_that_was_closed_under_its_task(game: Game) -> None:
    loop = asyncio.new_event_loop()
    driver = loop.create_task(game.db.run_async())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    game.add(Ring(at=at(5)))
    assert game.db.next_due == at(5)
    assert not driver.done()
    with contextlib.suppress(RuntimeError):
        driver.get_coro().close()  # type: ignore[union-attr]
