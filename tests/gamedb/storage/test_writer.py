"""The writer: what is submitted reaches the disk in order and whole, and who waits for it is told the truth."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Place, rows_of, schemas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import Hit, Player, Tag

from gamedb.errors import WriteFailed
from gamedb.storage import Writer

TABLES = schemas(Player, Tag, Hit, hit={"event": True})
PATIENCE = 30.0
"""Seconds after which a test that waits for another thread gives up."""


class SlowStorage:
    """A storage that writes when it is let, and remembers what."""

    label = "slow"
    last_tx_id = 0

    def __init__(self) -> None:
        self.row_keys: dict[str, Callable[[Any], bytes]] = {}
        self.written: list[tuple[int, Mapping[str, Mapping[Any, Any]]]] = []
        self.started = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def write(self, tx_id: int, rows: Mapping[str, Mapping[Any, Any]]) -> None:
        self.started.release()
        assert self.let.acquire(timeout=PATIENCE)
        if self.failure is not None:
            raise self.failure
        self.written.append((tx_id, rows))


@pytest.fixture
def slow() -> SlowStorage:
    return SlowStorage()


@pytest.fixture
def writer(slow: SlowStorage) -> Iterator[Writer]:
    writer = Writer(slow, queued_rows_max=3)  # type: ignore[arg-type]
    yield writer
    slow.let.release(1000)
    with suppress(WriteFailed):
        writer.close()


def change(id: int, zone: int | None) -> Any:
    """A change of one player, whose row before does not matter."""
    return [("player", [(id, None, None if zone is None else Player(id=id, name="x", zone=zone))])]


def test_what_came_during_a_write_is_one_next_write_of_final_states(writer: Writer, slow: SlowStorage) -> None:
    writer.submit(1, change(1, 1))
    writer.when_durable(1, lambda error: None)
    slow.started.acquire()
    for tx_id, zone in ((2, 2), (3, 3), (4, None)):
        writer.submit(tx_id, change(1, zone))
    writer.submit(5, change(2, 5))
    assert writer.durable_tx_id == 0
    assert writer.pending_tx == 5
    assert writer.flush_lag > 0
    slow.let.release(2)
    writer.flush(timeout=PATIENCE)
    assert slow.written == [
        (1, {"player": {1: Player(id=1, name="x", zone=1)}}),
        (5, {"player": {1: None, 2: Player(id=2, name="x", zone=5)}}),
    ]
    assert writer.pending_tx == 0
    assert writer.durable_tx_id == 5


def test_flush_returns_when_its_transaction_is_on_disk_and_not_before(writer: Writer, slow: SlowStorage) -> None:
    writer.submit(1, change(1, 1))
    with pytest.raises(TimeoutError, match="transaction 1 is not on disk yet"):
        writer.flush(timeout=0.01)
    slow.let.release()
    writer.flush(timeout=PATIENCE)
    writer.submit(2, change(1, 2))
    writer.flush(1)  # long since there: nothing to wait for
    slow.let.release()


def test_callbacks_come_in_order_when_their_transaction_is_on_disk(writer: Writer, slow: SlowStorage) -> None:
    calls: list[tuple[int, object]] = []

    def note(tx_id: int) -> Callable[[object], None]:
        return lambda error: calls.append((tx_id, error))

    writer.submit(1, change(1, 1))
    writer.when_durable(1, note(1))
    slow.started.acquire()
    writer.submit(2, change(1, 2))
    writer.when_durable(2, note(2))
    assert calls == []
    slow.let.release()
    slow.started.acquire()
    assert calls == [(1, None)]
    slow.let.release()
    writer.flush(timeout=PATIENCE)
    writer.close()
    writer.when_durable(1, note(1))
    assert calls == [(1, None), (2, None), (1, None)]


def test_the_observer_hears_of_every_write(slow: SlowStorage) -> None:
    heard: list[int] = []
    slow.let.release(10)
    with closing(Writer(slow, heard.append)) as writer:  # type: ignore[arg-type]
        writer.submit(1, change(1, 1))
        writer.flush(timeout=PATIENCE)
        writer.submit(2, change(1, 1))
    assert heard == [1, 2]


def test_too_much_that_waits_blocks_until_it_is_written(writer: Writer, slow: SlowStorage) -> None:
    writer.submit(1, change(1, 1))
    writer.when_durable(1, lambda error: None)
    slow.started.acquire()
    assert not writer.blocked
    writer.submit(2, [("player", [(i, None, Player(id=i, name="x")) for i in range(3)])])
    assert writer.blocked
    with pytest.raises(TimeoutError, match="no room for another transaction"):
        writer.admit(timeout=0.01)
    slow.let.release(2)
    writer.admit(timeout=PATIENCE)
    writer.flush(timeout=PATIENCE)
    assert not writer.blocked


def test_after_a_failed_write_nothing_is_confirmed_or_written(writer: Writer, slow: SlowStorage) -> None:
    errors: list[object] = []
    writer.submit(1, change(1, 1))
    writer.when_durable(1, errors.append)
    slow.started.acquire()
    writer.submit(2, change(1, 2))
    writer.when_durable(2, errors.append)
    slow.failure = WriteFailed("the disk is full")
    slow.let.release()
    for wait in (writer.flush, writer.admit, writer.close, writer.flush, writer.close):
        with pytest.raises(WriteFailed, match="the disk is full"):
            wait()
    writer.when_durable(2, errors.append)
    assert errors == [slow.failure] * 3
    assert writer.error is slow.failure
    assert writer.blocked
    assert writer.durable_tx_id == 0
    assert slow.written == []
    writer.submit(3, change(1, 3))  # too late to be refused: it is told by the next flush
    with pytest.raises(WriteFailed):
        writer.flush()


def test_a_failed_write_is_logged_when_it_fails_and_once(
    writer: Writer, slow: SlowStorage, caplog: pytest.LogCaptureFixture
) -> None:
    slow.failure = WriteFailed("arena.db: writing failed (database or disk is full)")
    slow.let.release()
    writer.submit(1, change(1, 1))
    for _ in range(2):
        with pytest.raises(WriteFailed):
            writer.flush(timeout=PATIENCE)
    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
        ("gamedb.storage", "CRITICAL", "arena.db: writing failed (database or disk is full)")
    ]


def test_a_failure_of_another_write_of_the_storage_stays_when_this_one_succeeds(slow: SlowStorage) -> None:
    """As of numbers that could not be reserved."""
    written = threading.Event()
    writer = Writer(slow, lambda _: written.set())  # type: ignore[arg-type]
    writer.submit(1, change(1, 1))
    slow.started.acquire()
    writer.fail(WriteFailed("no number could be reserved"))
    slow.let.release()
    assert written.wait(PATIENCE)
    assert writer.durable_tx_id == 1
    assert writer.blocked
    for wait in (writer.admit, writer.flush, writer.close):
        with pytest.raises(WriteFailed, match="no number could be reserved"):
            wait()


def test_an_unexpected_error_is_a_failed_write_as_well(writer: Writer, slow: SlowStorage) -> None:
    slow.failure = MemoryError("none left")
    slow.let.release()
    writer.submit(1, change(1, 1))
    with pytest.raises(WriteFailed, match="none left") as caught:
        writer.flush(timeout=PATIENCE)
    assert caught.value.__cause__ is slow.failure


def test_closing_writes_everything_first(slow: SlowStorage) -> None:
    writer = Writer(slow)  # type: ignore[arg-type]
    slow.let.release(10)
    for tx_id in range(1, 101):
        writer.submit(tx_id, change(tx_id, 1))
    writer.close()
    writer.close()
    assert slow.written[-1][0] == 100
    assert sorted(key for _, rows in slow.written for key in rows["player"]) == list(range(1, 101))


def test_a_transaction_without_stored_rows_becomes_durable_too(place: Place) -> None:
    with closing(place.open(TABLES)) as storage, closing(Writer(storage)) as writer:
        writer.submit(1, [])
        writer.flush(timeout=PATIENCE)
        writer.submit(2, [("hit", [(Hit(player=1), None, Hit(player=1))])])
        writer.flush(timeout=PATIENCE)
        assert writer.durable_tx_id == storage.last_tx_id == 2


def test_rows_without_a_primary_key_are_written_and_deleted(place: Place) -> None:
    mage, elf = Tag(player=1, label="mage"), Tag(player=1, label="elf")
    with closing(place.open(TABLES)) as storage:
        with closing(Writer(storage)) as writer:
            writer.submit(1, [("tag", [(mage, None, mage), (elf, None, elf)])])
            writer.flush(timeout=PATIENCE)
            writer.submit(2, [("tag", [(elf, elf, None)])])
        assert rows_of(storage, "tag") == [mage]


CHANGES = st.lists(
    st.dictionaries(st.integers(1, 5), st.none() | st.integers(0, 9), max_size=4).flatmap(
        lambda rows: st.tuples(st.just(rows), st.booleans())
    ),
    max_size=30,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions=CHANGES)
def test_the_database_ends_as_the_transactions_say(sqlite_place: Place, transactions: list[Any]) -> None:
    expected: dict[int, Player] = {}
    with closing(sqlite_place.open(TABLES)) as storage:
        expected.update({row.id: row for row in rows_of(storage, "player")})
        first = storage.last_tx_id + 1
        with closing(Writer(storage)) as writer:
            for tx_id, (rows, flush) in enumerate(transactions, first):
                writer.submit(tx_id, [entry for id, zone in rows.items() for entry in change(id, zone)])
                for id, zone in rows.items():
                    expected.pop(id, None)
                    if zone is not None:
                        expected[id] = Player(id=id, name="x", zone=zone)
                if flush:
                    writer.flush(tx_id, timeout=PATIENCE)
                    assert {row.id: row for row in rows_of(storage, "player")} == expected
    with closing(sqlite_place.open(TABLES)) as storage:
        assert {row.id: row for row in rows_of(storage, "player")} == expected
        assert storage.last_tx_id == first + len(transactions) - 1


def test_two_hundred_thousand_updates_of_one_row_leave_small_files_that_open_fast(sqlite_place: Place) -> None:
    with closing(sqlite_place.open(TABLES)) as storage, closing(Writer(storage)) as writer:
        for tx_id in range(1, 200_001):
            writer.submit(tx_id, change(1, tx_id))
            if tx_id % 2_000 == 0:
                writer.flush(timeout=PATIENCE)
        sizes = [path.stat().st_size for path in Path(sqlite_place.target).parent.iterdir()]
        assert sum(sizes) < 8_000_000
    assert Path(sqlite_place.target).stat().st_size < 100_000
    with closing(sqlite_place.open(TABLES)) as storage:
        assert rows_of(storage, "player") == [Player(id=1, name="x", zone=200_000)]


def test_many_threads_may_wait_at_once(writer: Writer, slow: SlowStorage) -> None:
    writer.submit(1, change(1, 1))
    returned: list[int] = []

    def wait() -> None:
        writer.flush(1, timeout=PATIENCE)
        returned.append(1)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    slow.started.acquire()
    assert returned == []
    slow.let.release()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(returned) == 8
