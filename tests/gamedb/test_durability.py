"""A database and its file: what is confirmed, what happens when writing fails, which numbers are handed out."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from gamedb import (
    AutoInc,
    Database,
    ManualClock,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    WriteFailed,
    u8,
    u64,
)
from gamedb.durability import RESERVED_NUMBERS
from gamedb.storage.storage import Storage

module = Module("durable")


@module.table
class Thing(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: str


@module.table
class Small(Row):
    id: PrimaryKey[AutoInc[u8]] = 0


@module.table(scheduled="tick")
class Ticker(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@module.reducer
def add(ctx: ReducerContext, name: str) -> u64:
    return ctx.db[Thing].insert(Thing(name=name)).id


@module.reducer
def tick(ctx: ReducerContext, ticker: Ticker) -> None:
    ctx.db[Thing].insert(Thing(name="tick"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "durable.db"


def fail_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Storage, tx_id: int, rows: object) -> None:
        raise WriteFailed("no space left on device")

    monkeypatch.setattr(Storage, "write", refuse)


def test_after_a_failed_write_nothing_is_accepted_or_confirmed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(module, path, quiet=True)
    db.call(add, "kept")
    db.flush()
    confirmed = db.durable_tx_id
    fail_writes(monkeypatch)
    db.call(add, "lost")
    with pytest.raises(WriteFailed, match="no space left"):
        db.flush()
    with pytest.raises(WriteFailed, match="no space left"):
        db.call(add, "refused")
    assert db.durable_tx_id == confirmed
    assert [row.name for row in db.read(Thing)] == ["kept", "lost"]  # reading goes on
    with pytest.raises(WriteFailed):
        db.close()
    monkeypatch.undo()
    with Database(module, path, quiet=True) as again:
        assert [row.name for row in again.read(Thing)] == ["kept"]


def test_a_failed_write_stops_the_schedules_with_one_line_in_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    db = Database(module, path, clock=clock, quiet=True)
    with db.transaction() as ctx:
        ctx.db[Ticker].insert(Ticker(scheduled_at=timedelta(seconds=1)))
    db.flush()
    fail_writes(monkeypatch)
    db.run()
    (driver,) = [t for t in threading.enumerate() if t.name == "gamedb-scheduler-durable"]
    with caplog.at_level(logging.ERROR):
        db.call(add, "lost")
        with pytest.raises(WriteFailed):
            db.flush()
        clock.advance(1)
        driver.join(timeout=20)
    assert not driver.is_alive()
    assert sum("schedules stopped" in record.message for record in caplog.records) == 1
    with pytest.raises(WriteFailed):
        db.close()


FULL_DISK = """
import os, resource, sys
sys.path[:0] = sys.argv[2:]
from test_durability import Thing, add, module
from gamedb import Database, WriteFailed

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def files(path):
    return max(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))

for room in (0, 1, 4_000, 4_200, 9_000, 20_000, 33_000, 70_000, 150_000):
    path = os.path.join(sys.argv[1], f"{room}.db")
    db = Database(module, path, quiet=True)
    db.call(add, "first")
    db.flush()
    limit(files(path) + room)
    confirmed, refused = 1, None
    try:
        for number in range(2, 1000):
            with db.transaction() as ctx:  # two rows, or none
                ctx.db[Thing].insert(Thing(name=f"{number} " + "x" * 500))
                ctx.db[Thing].insert(Thing(name=f"{number} " + "y" * 500))
            db.flush()
            confirmed = number
    except WriteFailed as error:
        refused = error
    assert refused is not None and db.failure is not None, room
    try:
        db.close()
        raise AssertionError("the close said nothing")
    except WriteFailed:
        pass
    limit(resource.RLIM_INFINITY)
    with Database(module, path, quiet=True) as again:
        names = [row.name.split()[0] for row in again.read(Thing)]
        assert names[0] == "first" and len(names) % 2 == 1, room
        last = 1 + len(names) // 2
        assert confirmed <= last <= confirmed + 1, (room, confirmed, last)
        assert names[1:] == [str(n) for n in range(2, last + 1) for _ in "xy"], room
        again.call(add, "more")
        again.flush()
print("all well")
"""


def test_on_a_full_disk_all_that_was_confirmed_is_there_and_nothing_by_half(tmp_path: Path) -> None:
    here = Path(__file__).parent
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    done = subprocess.run(
        [sys.executable, "-c", ignore + FULL_DISK, str(tmp_path), str(here), str(here.parents[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "all well\n", done.stderr


def test_numbers_go_on_without_a_gap_after_a_clean_close(path: Path) -> None:
    for number in range(1, 4):
        with Database(module, path, quiet=True) as db:
            assert db.call(add, "thing") == number


def test_numbers_are_reserved_before_they_are_handed_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash loses at most what was reserved, and hands nothing out twice."""
    reserved: list[int] = []
    write_sequences = Storage.write_sequences

    def record(self: Storage, sequences: dict[str, int]) -> None:
        write_sequences(self, sequences)
        reserved.append(sequences.get("thing", 0))

    monkeypatch.setattr(Storage, "write_sequences", record)
    with Database(module, path, quiet=True) as db, db.transaction() as ctx:
        for _ in range(3 * RESERVED_NUMBERS):
            row = ctx.db[Thing].insert(Thing(name="thing"))
            assert row.id < max(reserved)


def test_numbers_that_cannot_be_reserved_stop_the_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamedb.durability.RESERVED_NUMBERS", 2)
    db = Database(module, path, quiet=True)
    db.call(add, "kept")
    db.flush()

    def refuse(self: Storage, sequences: object) -> None:
        raise WriteFailed("no space left on device")

    monkeypatch.setattr(Storage, "write_sequences", refuse)
    with pytest.raises(WriteFailed, match="no space left"):
        for name in ("a", "b", "c"):
            db.call(add, name)
            db.flush()
    assert isinstance(db.failure, WriteFailed), "nobody would know, until the next commit"
    with pytest.raises(WriteFailed):
        db.call(add, "refused")
    with pytest.raises(WriteFailed):
        db.close()
    monkeypatch.undo()
    with Database(module, path, quiet=True) as again:
        assert again.read(Thing).count() >= 1
        assert again.call(add, "more") > max(row.id for row in again.read(Thing) if row.name != "more")


def test_small_number_types_do_not_lose_their_numbers_to_reservations(path: Path) -> None:
    with Database(module, path, quiet=True) as db, db.transaction() as ctx:
        ids = [ctx.db[Small].insert(Small()).id for _ in range(255)]
    assert ids == list(range(1, 256))


def test_flush_returns_when_it_is_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = Storage.write

    def record(self: Storage, tx_id: int, rows: object) -> None:
        write(self, tx_id, rows)  # type: ignore[arg-type]
        written.append(tx_id)

    monkeypatch.setattr(Storage, "write", record)
    with Database(module, path, quiet=True) as db:
        for _ in range(10):
            db.call(add, "thing")
            db.flush()
            assert written[-1] == db.last_tx_id == db.durable_tx_id


def test_200_000_updates_of_one_row_leave_a_small_file_that_opens_fast(path: Path) -> None:
    with Database(module, path, quiet=True) as db:
        db.call(add, "thing")
        things = db.tables[Thing]

        def change(ctx: ReducerContext, first: int) -> None:
            for number in range(first, first + 1_000):
                things.update(Thing(id=1, name=f"thing {number}"))

        for first in range(0, 200_000, 1_000):
            db.execute("change", change, (first,))
        db.flush()
        size = sum(file.stat().st_size for file in path.parent.iterdir())
    assert size < 8_000_000
    with Database(module, path, quiet=True) as db:
        assert [row.name for row in db.read(Thing)] == ["thing 199999"]
