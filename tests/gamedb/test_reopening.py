"""A database with a file, closed or left as a crash leaves it, and opened again: whole games, not parts."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    ConnectionId,
    Database,
    DatabaseLocked,
    ForeignFile,
    Identity,
    ManualClock,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    SchemaChangeRefused,
    SchemaError,
    Unique,
    ViewContext,
    WriteFailed,
    u32,
    u64,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ANN = Identity.from_int(1)


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]


class Ring(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    what: str = ""


class Heard(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    what: str
    seconds: u32


def make_module(left: Callable[[ReducerContext], None] = lambda ctx: None) -> Module:
    module = Module("game")
    module.table(Player)
    module.table(Heard)
    module.table(scheduled="ring")(Ring)

    @module.init
    def init(ctx: ReducerContext) -> None:
        hear(ctx, "init")

    @module.reducer
    def join(ctx: ReducerContext, name: str) -> u64:
        return ctx.db[Player].insert(Player(name=name)).id

    @module.reducer
    def leave_again(ctx: ReducerContext, name: str) -> None:
        join(ctx, name)
        raise ValueError("on second thoughts")

    @module.reducer
    def ring(ctx: ReducerContext, timer: Ring) -> None:
        hear(ctx, timer.what)

    @module.client_disconnected
    def gone(ctx: ReducerContext) -> None:
        hear(ctx, f"{ctx.sender.to_int()} left {ctx.connection_id.to_int() if ctx.connection_id else None}")
        left(ctx)

    @module.view
    def rings(ctx: ViewContext) -> list[Ring]:
        return list(ctx.db[Ring])

    return module


def hear(ctx: ReducerContext, what: str) -> None:
    ctx.db[Heard].insert(Heard(what=what, seconds=int((ctx.now - START).total_seconds())))


def heard(db: Database) -> list[tuple[str, int]]:
    return [(row.what, row.seconds) for row in db.read(Heard).between("id", None, None)]


def add(db: Database, *rows: Any) -> list[Any]:
    with db.transaction() as ctx:
        return [ctx.db[type(row)].insert(row) for row in rows]


class Files:
    """The ways from one opening to the next; each call ends the old database and gives the new one."""

    def __init__(self, directory: Path, clock: ManualClock, how: str) -> None:
        self.clock = clock
        self.how = how
        self.directory = directory
        self.path = directory / "game.db"
        self.opened: list[Database] = []

    def open(self, module: Module | None = None) -> Database:
        self.opened.append(Database(module or make_module(), self.path, clock=self.clock, quiet=True))
        return self.opened[-1]

    def again(self, module: Module | None = None) -> Database:
        if self.how == "closed":
            self.opened[-1].close()
        else:  # a crash: what was flushed is all that the next process finds
            self.opened[-1].flush()
            self.path = self.directory / f"{len(self.opened)}.db"
            for end in ("", "-wal"):
                shutil.copy(f"{self.opened[-1]._durability._storage._backend.path}{end}", f"{self.path}{end}")  # type: ignore[union-attr, attr-defined]
        return self.open(module)


@pytest.fixture(params=["closed", "crashed"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    files = Files(tmp_path, ManualClock(START), request.param)
    yield files
    for db in files.opened:
        db.close()


# --- rows and numbers


def test_what_was_committed_is_there_and_init_does_not_run_again(files: Files) -> None:
    db = files.open()
    db.call("join", "ann")
    last = db.last_tx_id
    db = files.again()
    assert [row.name for row in db.read(Player)] == ["ann"]
    assert heard(db) == [("init", 0)]
    assert db.last_tx_id == db.durable_tx_id == last


def test_no_number_is_handed_out_again_over_reopenings_rollbacks_and_new_columns(files: Files) -> None:
    db = files.open()
    seen = [db.call("join", "ann"), db.call("join", "bob")]
    with db.transaction() as ctx:
        ctx.db[Player].delete(seen[-1])
    with pytest.raises(ValueError, match="second thoughts"):
        db.call("leave_again", "cleo")
    db = files.again()
    seen.append(db.call("join", "dora"))
    db = files.again()
    seen.append(db.call("join", "emil"))

    class Player2(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        name: Unique[str]
        hp: u32 = 100

    later = Module("game")
    later.table(name="player")(Player2)
    later.table(Heard)
    later.table(scheduled="ring")(Ring)

    @later.reducer
    def ring(ctx: ReducerContext, timer: Ring) -> None: ...

    db = files.again(later)
    (row,) = add(db, Player2(name="finn"))
    seen.append(row.id)
    assert seen == sorted(set(seen))


# --- schedules


def test_an_interval_keeps_its_phase_over_a_restart_and_is_late_once(files: Files) -> None:
    db = files.open()
    add(db, Ring(at=10 * SECOND, what="tick"))
    files.clock.advance(13)
    db.run_due()
    db = files.again()
    assert db.next_due == START + 20 * SECOND
    files.clock.advance(31)  # 20, 30 and 40 pass while nobody drives it
    db = files.again()
    assert db.run_due() == 1
    assert db.next_due == START + 50 * SECOND
    assert heard(db)[1:] == [("tick", 13), ("tick", 44)]


def test_one_firing_is_pending_for_a_row_however_often_it_was_rewritten_or_reloaded(files: Files) -> None:
    db = files.open()
    once, tick = add(db, Ring(at=START + 5 * SECOND, what="once"), Ring(at=7 * SECOND, what="tick"))
    for _ in range(3):
        with db.transaction() as ctx:
            ctx.db[Ring].update(once)
            ctx.db[Ring].update(tick)
            ctx.db[Ring].delete(once)
            ctx.db[Ring].insert(once)
        with pytest.raises(ZeroDivisionError), db.transaction() as ctx:
            ctx.db[Ring].update(once.replace(at=START + SECOND))
            ctx.db[Ring].insert(Ring(at=SECOND))
            _ = 1 // 0
        db = files.again()
    files.clock.advance(10)
    assert db.run_due() == 2
    assert heard(db)[1:] == [("once", 10), ("tick", 10)]


def test_rows_that_fired_or_were_deleted_before_a_restart_do_not_fire_after_it(files: Files) -> None:
    db = files.open()
    add(db, Ring(at=START + SECOND, what="fired"))
    _, deleted, _ = add(
        db, Ring(at=START + 3 * SECOND, what="a"), Ring(at=START + 2 * SECOND), Ring(at=START + 3 * SECOND, what="b")
    )
    files.clock.advance(1)
    db.run_due()
    with db.transaction() as ctx:
        ctx.db[Ring].delete(deleted)
    db = files.again()
    files.clock.advance(60)
    db.run_due()
    assert heard(db)[1:] == [("fired", 1), ("a", 61), ("b", 61)]
    assert db.read(Ring).count() == 0


def test_a_view_of_a_scheduled_table_is_told_of_the_row_that_fired(files: Files) -> None:
    db = files.open()
    (timer,) = add(db, Ring(at=START, what="now"))
    changes: list[Any] = []
    db.subscribe("rings", changes.append)
    db.run_due()
    ((change,), both) = (changes, set(changes[0].commit.changes))
    assert (change.deleted, change.inserted) == ([timer], [])
    assert both == {"ring", "heard"}


def test_a_schedule_whose_reducer_is_gone_does_not_start_and_is_kept(files: Files) -> None:
    db = files.open()
    add(db, Ring(at=SECOND, what="tick"))
    lost = Module("game")
    lost.table(Player)
    lost.table(Heard)
    without = Module("game")
    without.include(lost)
    lost.table(scheduled="ring")(Ring)
    with pytest.raises(SchemaError, match="ring"):
        files.again(lost)
    files.opened[-1].close()
    whole = Module("game")
    whole.table(Player)
    whole.table(Heard)
    with pytest.raises(SchemaChangeRefused, match=r"table 'ring'.*row"):
        files.open(whole)
    db = files.open()
    files.clock.advance(1)
    assert db.run_due() == 1


# --- clients


def test_connections_that_a_crash_cut_off_are_ended_once_before_anything_else(files: Files) -> None:
    db = files.open()
    db.connect(ANN, ConnectionId.from_int(7))
    db.connect(ANN, ConnectionId.from_int(8))
    db.disconnect(ConnectionId.from_int(7))
    db = files.again()
    assert heard(db) == [("init", 0), ("1 left 7", 0), ("1 left 8", 0)]
    db = files.again()
    assert heard(db) == [("init", 0), ("1 left 7", 0), ("1 left 8", 0)]


def test_a_hook_that_raises_for_a_lost_connection_still_ends_it(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    def left(ctx: ReducerContext) -> None:
        raise RuntimeError("the hook is broken")

    db = files.open()
    db.connect(ANN, ConnectionId.from_int(7))
    db = files.again(make_module(left))
    assert "client_disconnected failed" in caplog.text
    assert heard(db) == [("init", 0)]
    db = files.again()
    assert heard(db) == [("init", 0)]


# --- refusals


def test_a_damaged_file_names_the_repair_and_leaves_other_databases_alone(files: Files, tmp_path: Path) -> None:
    db = files.open()
    db.call("join", "ann")
    db.close()
    bad = tmp_path / "bad.db"
    content = bytearray(files.path.read_bytes())
    content[4096:] = b"\xff" * len(content[4096:])
    bad.write_bytes(content)
    db = files.open()
    with pytest.raises(ForeignFile, match=r"(?s)bad.db is damaged: Page.*Restore a backup.*\.recover"):
        Database(make_module(), bad, quiet=True)
    assert bad.read_bytes() == content
    db.call("join", "bob")
    db.flush()


def test_a_refused_change_leaves_a_database_that_the_old_code_opens(files: Files) -> None:
    class Renamed(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        title: Unique[str]
        hp: u32 = 100

    db = files.open()
    db.call("join", "ann")
    db.close()
    later = Module("game")
    later.table(name="player", indexes=["hp"])(Renamed)
    before = files.path.read_bytes()
    with pytest.raises(SchemaChangeRefused) as refused:
        files.open(later)
    assert len(refused.value.differences) >= 2
    assert files.path.read_bytes() == before
    db = files.open()
    assert db.call("join", "bob") > 1


def test_a_second_opener_is_refused_and_the_first_goes_on(files: Files) -> None:
    db = files.open()
    with pytest.raises(DatabaseLocked, match="close it there first"):
        Database(make_module(), files.path, quiet=True)
    db.call("join", "ann")
    db.flush()


# --- a disk that fails


class Broken:
    """A connection to a disk that is full."""

    def begin(self) -> Any:
        raise OSError("No space left on device")


def test_after_a_failed_write_the_database_says_so_everywhere_and_keeps_what_was_confirmed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    clock = ManualClock(START)
    db = Database(make_module(), tmp_path / "game.db", clock=clock, quiet=True)
    db.call("join", "ann")
    add(db, Ring(at=SECOND, what="tick"))
    db.flush()
    confirmed = db.durable_tx_id
    db.run()
    storage: Any = db._durability._storage  # type: ignore[union-attr]
    storage._connection = Broken()
    db.call("join", "bob")
    with pytest.raises(WriteFailed, match=r"game.db: writing failed \(No space left on device\)"):
        db.flush()
    for _ in range(3):
        with pytest.raises(WriteFailed) as refused:
            db.call("join", "cleo")
    assert len(refused.traceback) < 10, "each refusal has a traceback of its own"
    assert db.durable_tx_id == confirmed
    assert [row.name for row in db.read(Player)] == ["ann", "bob"]
    assert db._thread is not None
    clock.advance(1)  # the thread that drives schedules meets the same refusal, says so and ends
    db._thread._thread.join(10)
    assert not db._thread._thread.is_alive()
    assert "schedules stopped" in caplog.text
    with pytest.raises(WriteFailed):
        db.close()
    with Database(make_module(), tmp_path / "game.db", clock=clock, quiet=True) as db:
        assert [row.name for row in db.read(Player)] == ["ann"]
        assert db.run_due() == 1
