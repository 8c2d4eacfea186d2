"""Scheduled tables, driven by hand with a manual clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Commit,
    Database,
    Identity,
    ManualClock,
    Module,
    NotAllowed,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    Row,
    ScheduleAt,
    TransactionError,
    u32,
    u64,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Ring(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    what: str = ""
    note: u32 = 0


class Other(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    what: str = ""


class Job(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    what: str = ""


class Done(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    what: str


class Game:
    """A database with two scheduled reducers and a scheduled procedure; `fired` lists (what, seconds since start)."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.fired: list[tuple[str, float]] = []
        self.senders: set[Identity] = set()
        self.act: Any = {}
        """What the functions do besides being noted, by the `what` of their row."""
        module = Module("game")
        module.table(Done)
        module.table(scheduled="ring")(Ring)
        module.table(scheduled="ring_other")(Other)
        module.table(scheduled="work")(Job)

        @module.reducer
        def ring(ctx: ReducerContext, timer: Ring) -> None:
            self.senders.add(ctx.sender)
            self.note(timer.what, ctx)
            ctx.db[Done].insert(Done(what=timer.what))
            self.act.get(timer.what, lambda *_: None)(ctx, timer)

        @module.reducer
        def ring_other(ctx: ReducerContext, timer: Other) -> None:
            self.note(timer.what, ctx)

        @module.procedure
        async def work(ctx: ProcedureContext, job: Job) -> None:
            await asyncio.sleep(0)
            with ctx.transaction() as tx:
                self.note(job.what, tx)
                tx.db[Done].insert(Done(what=job.what))
            self.act.get(job.what, lambda *_: None)(ctx, job)

        self.db = Database(module, clock=clock)

    def note(self, what: str, ctx: ReducerContext) -> None:
        self.fired.append((what, (ctx.now - START).total_seconds()))

    def add(self, row: Any) -> Any:
        with self.db.transaction() as ctx:
            return ctx.db[type(row)].insert(row)

    def after(self, seconds: float) -> int:
        self.clock.advance(seconds)
        return self.db.run_due()

    def take(self) -> list[tuple[str, float]]:
        taken, self.fired = self.fired, []
        return taken


@pytest.fixture
def game(clock: ManualClock) -> Iterator[Game]:
    game = Game(clock)
    with game.db:
        yield game


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


# --- one-shot rows


def test_a_one_shot_row_fires_once_at_its_time_and_not_before(game: Game) -> None:
    game.add(Ring(at=at(10), what="a"))
    assert game.db.next_due == at(10)
    assert game.after(9.999999) == 0
    assert game.after(0.000001) == 1
    assert game.fired == [("a", 10)]
    assert game.db.read(Ring).count() == 0
    assert game.db.next_due is None
    assert game.after(100) == 0


def test_the_row_has_gone_already_when_its_reducer_runs(game: Game) -> None:
    seen = []
    game.act["a"] = lambda ctx, timer: seen.append(ctx.db[Ring].get(timer.scheduled_id))
    game.add(Ring(at=at(1), what="a"))
    game.after(1)
    assert seen == [None]


def test_the_effects_and_the_deletion_are_one_commit(game: Game) -> None:
    commits: list[Commit] = []
    game.add(Ring(at=at(1), what="a"))
    game.db.subscribe([Ring, Done], commits.append)
    game.after(1)
    [commit] = commits
    assert set(commit.changes) == {"ring", "done"}
    assert commit.reducer == "ring"
    assert game.senders == {commit.caller} == {game.db.identity}


def test_rows_fire_in_the_order_of_time_and_id_also_across_tables(game: Game) -> None:
    game.add(Other(scheduled_id=3, at=at(2), what="other 3"))
    game.add(Ring(scheduled_id=9, at=at(1), what="ring 9"))
    game.add(Ring(scheduled_id=2, at=at(2), what="ring 2"))
    game.add(Ring(scheduled_id=4, at=at(2), what="ring 4"))
    game.add(Other(scheduled_id=1, at=at(2), what="other 1"))
    game.add(Ring(scheduled_id=1, at=at(3), what="ring 1"))
    assert game.after(5) == 6
    assert [what for what, _ in game.fired] == ["ring 9", "other 1", "ring 2", "other 3", "ring 4", "ring 1"]


def test_a_time_in_the_past_is_due_now(game: Game) -> None:
    game.add(Ring(at=at(-100), what="a"))
    assert game.after(0) == 1


def test_a_time_far_ahead_is_not_due_before(game: Game) -> None:
    game.add(Ring(at=START + timedelta(days=400), what="a"))
    game.add(Ring(at=datetime.max.replace(tzinfo=UTC), what="never"))
    game.clock.advance(timedelta(days=400) - SECOND)
    assert game.db.run_due() == 0
    assert game.after(1) == 1


def test_what_becomes_due_by_firing_fires_in_the_same_run(game: Game) -> None:
    def again(ctx: ReducerContext, timer: Ring) -> None:
        if timer.note < 3:
            ctx.db[Ring].insert(Ring(at=ctx.now, what="a", note=timer.note + 1))

    game.act["a"] = again
    game.add(Ring(at=at(1), what="a"))
    assert game.after(1) == 4


def test_a_reducer_may_put_its_own_row_back(game: Game) -> None:
    def later(ctx: ReducerContext, timer: Ring) -> None:
        if timer.note < 2:
            ctx.db[Ring].insert(timer.replace(at=ctx.now + SECOND, note=timer.note + 1))

    game.act["a"] = later
    row = game.add(Ring(at=at(1), what="a"))
    for _ in range(3):
        assert game.db.read(Ring).get(row.scheduled_id) is not None
        assert game.after(1) == 1
    assert game.fired == [("a", 1), ("a", 2), ("a", 3)]
    assert game.db.read(Ring).count() == 0


def test_a_raising_reducer_is_undone_dropped_and_logged_and_the_others_go_on(
    game: Game, caplog: pytest.LogCaptureFixture
) -> None:
    game.act["bad"] = lambda *_: 1 / 0
    game.add(Ring(at=at(1), what="bad"))
    game.add(Ring(at=at(1), what="good"))
    assert game.after(1) == 2
    assert [row.what for row in game.db.read(Done)] == ["good"]
    assert game.db.read(Ring).count() == 0
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "ring failed and was rolled back: ZeroDivisionError" in record.message
    assert record.exc_info is not None


def test_an_interrupt_leaves_the_row_pending(game: Game) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    game.act["a"] = interrupt
    game.add(Ring(at=at(1), what="a"))
    game.add(Job(at=at(2), what="a"))
    with pytest.raises(KeyboardInterrupt):
        game.after(1)
    game.act.clear()
    assert game.db.run_due() == 1
    game.act["a"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        game.after(1)
    game.act.clear()
    assert game.db.run_due() == 1


# --- interval rows


def test_an_interval_fires_first_after_one_interval_and_keeps_its_phase(game: Game) -> None:
    game.clock.advance(0.25)
    game.add(Ring(at=SECOND, what="a"))
    assert game.db.next_due == at(1.25)
    for _ in range(8):
        game.after(0.5)
    assert game.fired == [("a", 1.25), ("a", 2.25), ("a", 3.25), ("a", 4.25)]
    assert game.db.read(Ring).count() == 1


def test_a_late_call_does_not_shift_the_phase(game: Game) -> None:
    game.add(Ring(at=SECOND, what="a"))
    game.after(1.4)
    game.after(0.6)
    game.after(1.9)
    game.after(0.1)
    assert game.fired == [("a", 1.4), ("a", 2), ("a", 3.9), ("a", 4)]


def test_missed_ticks_are_skipped_with_one_late_call(game: Game) -> None:
    game.add(Ring(at=SECOND, what="a"))
    assert game.after(10.5) == 1
    assert game.after(0.4) == 0
    assert game.after(0.1) == 1
    assert game.fired == [("a", 10.5), ("a", 11)]


def test_a_reducer_that_takes_longer_than_its_interval_skips_ticks(game: Game) -> None:
    game.act["a"] = lambda ctx, timer: game.clock.advance(2.5)
    game.add(Ring(at=SECOND, what="a"))
    game.clock.advance(1)
    with pytest.raises(TransactionError, match="3 scheduled rows fired and more are due"):
        game.db.run_due(limit=3)
    assert [when for _, when in game.take()] == [1, 3.5, 6]


def test_a_raising_interval_reducer_is_called_again_next_time(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    game.act["a"] = lambda *_: 1 / 0
    game.add(Ring(at=SECOND, what="a"))
    game.after(1)
    game.act.clear()
    game.after(1)
    assert game.fired == [("a", 1), ("a", 2)]
    assert [row.what for row in game.db.read(Done)] == ["a"]
    assert len(caplog.records) == 1


def test_two_identical_interval_rows_both_fire(game: Game) -> None:
    game.add(Ring(at=SECOND, what="a"))
    game.add(Ring(at=SECOND, what="a"))
    assert game.after(1) == 2
    assert game.after(1) == 2


def test_the_clock_set_back_does_not_repeat_a_tick(game: Game) -> None:
    game.add(Ring(at=SECOND, what="a"))
    game.after(2)
    game.clock.set(at(0))
    assert game.after(1.5) == 0
    assert game.after(1.5) == 1
    assert game.fired == [("a", 2), ("a", 3)]


# --- changes of the rows


@pytest.mark.parametrize("when", [SECOND, at(1)], ids=["interval", "once"])
def test_an_equal_or_otherwise_rewritten_row_fires_as_before_and_once(game: Game, when: Any) -> None:
    row = game.add(Ring(at=when, what="a"))
    game.clock.advance(0.5)
    for n in range(5):
        with game.db.transaction() as ctx:
            row = ctx.db[Ring].update(row.replace(note=n // 2))
        with game.db.transaction() as ctx:
            ctx.db[Ring].delete(row)
            ctx.db[Ring].insert(row)
    assert game.after(0.5) == 1
    assert game.fired == [("a", 1)]


def test_changing_the_time_reschedules(game: Game) -> None:
    row = game.add(Ring(at=at(10), what="a"))
    with game.db.transaction() as ctx:
        ctx.db[Ring].update(row.replace(at=at(1)))
    assert game.after(1) == 1
    row = game.add(Ring(at=at(2), what="a"))
    with game.db.transaction() as ctx:
        ctx.db[Ring].update(row.replace(at=at(5)))
    assert game.after(3) == 0
    assert game.after(1) == 1


def test_changing_an_interval_begins_a_new_phase(game: Game) -> None:
    row = game.add(Ring(at=SECOND, what="a"))
    game.after(1.5)
    with game.db.transaction() as ctx:
        ctx.db[Ring].update(row.replace(at=2 * SECOND))
    for _ in range(8):
        game.after(0.5)
    assert game.fired == [("a", 1.5), ("a", 3.5), ("a", 5.5)]


def test_a_row_can_change_between_once_and_interval(game: Game) -> None:
    row = game.add(Ring(at=at(5), what="a"))
    with game.db.transaction() as ctx:
        row = ctx.db[Ring].update(row.replace(at=SECOND))
    assert game.after(1) == 1
    with game.db.transaction() as ctx:
        ctx.db[Ring].update(row.replace(at=at(4)))
    assert game.after(2) == 0
    assert game.after(1) == 1
    assert game.after(100) == 0
    assert game.db.read(Ring).count() == 0


@pytest.mark.parametrize("when", [SECOND, at(1)], ids=["interval", "once"])
def test_a_deleted_row_does_not_fire(game: Game, when: Any) -> None:
    row = game.add(Ring(at=when, what="a"))
    with game.db.transaction() as ctx:
        ctx.db[Ring].delete(row)
    assert game.after(10) == 0
    assert game.db.next_due is None


def test_a_row_deleted_by_an_earlier_one_at_the_same_time_does_not_fire(game: Game) -> None:
    game.act["a"] = lambda ctx, timer: ctx.db[Ring].delete_where(what="b")
    game.add(Ring(at=at(1), what="a"))
    game.add(Ring(at=at(1), what="b"))
    game.add(Ring(at=SECOND, what="b"))
    assert game.after(1) == 1
    assert game.fired == [("a", 1)]


def test_an_interval_reducer_may_end_or_change_its_own_row(game: Game) -> None:
    def change(ctx: ReducerContext, timer: Ring) -> None:
        if timer.note:
            ctx.db[Ring].delete(timer)
        else:
            ctx.db[Ring].update(timer.replace(at=3 * SECOND, note=1))

    game.act["a"] = change
    game.add(Ring(at=SECOND, what="a"))
    for _ in range(10):
        game.after(1)
    assert game.fired == [("a", 1), ("a", 4)]
    assert game.db.next_due is None
    assert game.db.store.tables["gamedb_schedule"].rows == {}


def test_rolling_back_undoes_every_change_of_a_schedule(game: Game) -> None:
    once, often = game.add(Ring(at=at(2), what="once")), game.add(Ring(at=SECOND, what="often"))
    with pytest.raises(ZeroDivisionError), game.db.transaction() as ctx:
        ctx.db[Ring].delete(once)
        ctx.db[Ring].update(often.replace(at=5 * SECOND))
        ctx.db[Ring].insert(Ring(at=at(1), what="new"))
        raise ZeroDivisionError
    with game.db.transaction() as ctx, pytest.raises(ZeroDivisionError), ctx.savepoint():
        ctx.db[Ring].update(once.replace(at=SECOND))
        ctx.db[Ring].delete(often)
        raise ZeroDivisionError
    game.after(1)
    game.after(1)
    assert game.fired == [("often", 1), ("once", 2), ("often", 2)]


def test_many_stale_entries_are_thrown_away_and_none_of_them_fires(game: Game) -> None:
    row = game.add(Ring(at=at(1), what="a"))
    for n in range(5000):
        with game.db.transaction() as ctx:
            row = ctx.db[Ring].update(row.replace(at=at(2 + n % 7 + n / 10_000)))
    assert len(game.db._scheduler._heap) < 2000
    assert game.db.next_due == row.at
    assert game.after(20) == 1


# --- procedures


def test_a_scheduled_procedure_runs_outside_transactions_and_its_row_goes_afterwards(game: Game) -> None:
    seen = []
    game.act["a"] = lambda ctx, job: seen.append(game.db.read(Job).get(job.scheduled_id))
    row = game.add(Job(at=at(1), what="a"))
    assert game.after(1) == 1
    assert seen == [row]
    assert game.db.read(Job).count() == 0
    assert game.fired == [("a", 1)]


def test_a_scheduled_interval_procedure_keeps_its_phase(game: Game) -> None:
    game.add(Job(at=SECOND, what="a"))
    for _ in range(4):
        game.after(0.75)
    assert game.fired == [("a", 1.5), ("a", 2.25), ("a", 3)]


@pytest.mark.parametrize("error", [ZeroDivisionError, asyncio.CancelledError])
def test_a_raising_procedure_is_logged_and_its_row_goes(
    game: Game, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def fail(*_: Any) -> None:
        raise error

    game.act["a"] = fail
    game.add(Job(at=at(1), what="a"))
    game.add(Job(at=2 * SECOND, what="a"))
    assert game.after(1) == 1
    assert game.db.read(Job).count() == 1
    assert game.after(1) == 1
    assert game.after(2) == 1
    assert len(caplog.records) == 3
    assert error.__name__ in caplog.text


def test_a_procedure_may_reschedule_or_delete_its_own_row(game: Game) -> None:
    def later(ctx: ProcedureContext, job: Job) -> None:
        with ctx.transaction() as tx:
            if tx.now < at(3):
                tx.db[Job].update(job.replace(at=tx.now + SECOND))
            else:
                tx.db[Job].delete(job)

    game.act["a"] = later
    game.add(Job(at=at(1), what="a"))
    for _ in range(5):
        game.after(1)
    assert [when for _, when in game.fired] == [1, 2, 3]
    assert game.db.read(Job).count() == 0


# --- run_due and who may call


def test_run_due_ends_with_an_error_when_a_reducer_schedules_itself_for_ever(game: Game) -> None:
    game.act["a"] = lambda ctx, timer: ctx.db[Ring].insert(Ring(at=ctx.now, what="a"))
    game.add(Ring(at=at(1), what="a"))
    game.clock.advance(1)
    with pytest.raises(TransactionError, match=r"100 scheduled rows fired and more are due; does a reducer"):
        game.db.run_due(limit=100)
    assert len(game.fired) == 100


def test_run_due_with_as_many_rows_as_its_limit_is_no_error(game: Game) -> None:
    for _ in range(3):
        game.add(Ring(at=at(1)))
    game.clock.advance(1)
    assert game.db.run_due(limit=3) == 3


def test_only_the_database_and_operators_may_call_a_scheduled_reducer(game: Game) -> None:
    stranger = game.db.caller(Identity.from_int(5))
    with pytest.raises(NotAllowed, match="'ring' is a private or scheduled reducer"):
        stranger.call("ring", Ring(at=at(1)))
    with pytest.raises(NotAllowed, match="'work'"):
        stranger.call_procedure("work", Job(at=at(1)))
    with pytest.raises(NotAllowed):
        game.db.call_json("ring", [{"at": 5}], sender=Identity.from_int(5))
    game.db.operators.add(Identity.from_int(5))
    stranger.call("ring", Ring(at=at(1), what="by hand"))
    game.db.call("ring", Ring(at=at(1), what="by the game"))
    assert [what for what, _ in game.fired] == ["by hand", "by the game"]


# --- rows that come back, and rows without a phase


def test_a_row_that_its_own_reducer_puts_back_unchanged_fires_again(game: Game) -> None:
    def put_back(ctx: ReducerContext, timer: Ring) -> None:
        if len(game.fired) < 3:
            ctx.db[Ring].insert(timer)

    game.act["again"] = put_back
    game.add(Ring(at=at(1), what="again"))
    assert game.after(1) == 3
    assert game.take() == [("again", 1)] * 3
    assert game.db.next_due is None


def _stored_game(name: str, scheduled: str | None, fired: list[u64], old_name: str = "") -> tuple[Module, type[Row]]:
    module = Module("stored")

    class Tick(Row):
        scheduled_id: PrimaryKey[AutoInc[u64]] = 0
        at: ScheduleAt

    @module.reducer
    def tick(_ctx: ReducerContext, timer: Tick) -> None:
        fired.append(timer.scheduled_id)

    if old_name:

        @module.migration
        def rename(ctx: Any) -> None:
            ctx.rename_table(old_name, name)

    module.table(name=name, scheduled=scheduled)(Tick)
    return module, Tick


def test_intervals_written_while_their_table_was_not_scheduled_begin_when_it_is(
    clock: ManualClock, tmp_path: Path
) -> None:
    fired: list[u64] = []
    module, tick = _stored_game("tick", None, fired)
    with Database(module, tmp_path / "game.db", clock=clock) as db, db.transaction() as ctx:
        ctx.db[tick].insert(tick(at=10 * SECOND))
    module, _ = _stored_game("tick", "tick", fired)
    with Database(module, tmp_path / "game.db", clock=clock) as db:
        assert db.next_due == at(10)
        clock.advance(10)
        assert db.run_due() == 1
    assert fired == [1]


def test_intervals_go_on_after_their_table_was_renamed(clock: ManualClock, tmp_path: Path) -> None:
    fired: list[u64] = []
    module, tick = _stored_game("tick", "tick", fired)
    with Database(module, tmp_path / "game.db", clock=clock) as db, db.transaction() as ctx:
        ctx.db[tick].insert(tick(at=10 * SECOND))
    clock.advance(4)
    module, _ = _stored_game("tock", "tick", fired, old_name="tick")
    with Database(module, tmp_path / "game.db", clock=clock) as db:
        assert db.next_due == at(14)
        assert [row.key for row in db.store.tables["gamedb_schedule"].rows.values()] == ["tock/1"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_ends_a_round_by_hand_and_keeps_the_row(game: Game, error: type[BaseException]) -> None:
    def stop(_ctx: ReducerContext, _timer: Ring) -> None:
        raise error

    game.act["stop"] = stop
    game.add(Ring(at=at(1), what="stop"))
    with pytest.raises(error):
        game.after(1)
    assert game.db.read(Ring).count() == 1
    game.act.clear()
    assert game.db.run_due() == 1
