"""Transactions that go wrong in odd ways: too deep a recursion, stray savepoints and threads, subscribers that exit."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Commit,
    Database,
    Index,
    ManualClock,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    Table,
    TransactionError,
    Unique,
    u64,
)
from gamedb.store import TableData
from gamedb.store.index import Bucket


class Piece(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    zone: Index[int] = 0
    name: Unique[str | None] = None


class Mark(Row):
    text: Index[str]


class Noise(Row):
    text: str


class Beat(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt


module = Module("interrupted")
module.table(indexes=[("zone", "name")])(Piece)
module.table(Mark)
module.table(event=True)(Noise)


@module.reducer
def beat(_ctx: ReducerContext, row: Beat) -> None:
    """Nothing."""


module.table(scheduled=beat)(Beat)


@module.reducer
def play(ctx: ReducerContext, turn: int) -> None:
    """Every kind of write, inside and outside of savepoints."""
    pieces, marks, beats = ctx.db[Piece], ctx.db[Mark], ctx.db[Beat]
    pieces.delete_where(zone=3)
    for piece in pieces.where(zone=1):
        pieces.update(piece.replace(zone=2, name=f"{piece.name}'"))
    for number in range(2):
        pieces.insert(Piece(zone=1, name=f"{turn}.{number}"))
    with ctx.savepoint():
        marks.insert(Mark(text=f"{turn}"))
        pieces.insert(Piece(zone=3))
        with ctx.savepoint():
            pieces.delete_where(zone=2)
    try:
        with ctx.savepoint():
            pieces.clear()
            marks.clear()
            raise LookupError
    except LookupError:
        ctx.db[Noise].insert(Noise(text="it was undone"))
    for mark in list(marks):
        if mark.text != f"{turn}":
            marks.delete(mark)
    beats.clear()
    beats.insert(Beat(at=timedelta(seconds=5)))
    beats.insert(Beat(at=ctx.now + timedelta(seconds=turn)))


def contents(db: Database) -> dict[str, set[Row]]:
    return {name: set(table.rows.values()) for name, table in db.store.tables.items() if name != "gamedb_setting"}


def check_table(table: TableData) -> None:
    """Indexes, orders and journals are what the rows say."""
    assert table.journal is None
    assert not table.damaged
    for columns, index in table.indexes.items():
        found = {(value, key) for value, keys in index.keys.items() for key in as_keys(keys)}
        values = {(tuple(getattr(row, c) for c in columns), key) for key, row in table.rows.items()}
        held = {(value, key) for value, key in values if None not in value}
        assert found == {(value[0] if len(columns) == 1 else value, key) for value, key in held}
    for column, unique in table.unique.items():
        expected = {getattr(row, column): key for key, row in table.rows.items() if getattr(row, column) is not None}
        assert unique.keys == expected


def as_keys(keys: Any) -> list[Any]:
    return list(keys) if type(keys) is Bucket else [keys]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(module, tmp_path / "game.db", clock=ManualClock()) as db:
        yield db


@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("offset", range(6))
def test_a_write_that_recursion_cut_short_is_rolled_back(db: Database, offset: int, caught: bool) -> None:
    db.call(play, 1)
    before = contents(db)

    def deeper(ctx: ReducerContext, number: int) -> None:
        ctx.db[Piece].insert(Piece(id=number, zone=number % 3, name=f"n{number}"))
        deeper(ctx, number + 1)

    def body(ctx: ReducerContext, depth: int) -> None:
        if depth:
            body(ctx, depth - 1)
        elif caught:
            with pytest.raises(RecursionError):
                deeper(ctx, 1000)
        else:
            deeper(ctx, 1000)

    with pytest.raises((RecursionError, TransactionError)):
        db.execute("body", body, (offset,))
        raise TransactionError  # without harm done, what was caught may be committed
    for table in db.store.tables.values():
        check_table(table)
    if not caught:
        assert contents(db) == before
    db.call(play, 2)


def test_a_damaged_table_is_mended_by_the_savepoint_around_the_write(db: Database, monkeypatch: Any) -> None:
    db.call(play, 1)

    with db.transaction() as ctx:
        table = db.store.tables["piece"]
        index = table.indexes["zone",]
        original = type(index).add
        monkeypatch.setattr(type(index), "add", lambda *_: (_ for _ in ()).throw(RecursionError))
        with pytest.raises(RecursionError), ctx.savepoint():
            try:
                ctx.db[Piece].insert(Piece(zone=1))
            finally:
                monkeypatch.setattr(type(index), "add", original)
        ctx.db[Piece].insert(Piece(zone=9))
    for table in db.store.tables.values():
        check_table(table)
    assert len(db.read(Piece).where(zone=9)) == 1


# --- savepoints that are misused


def open_savepoint(ctx: ReducerContext) -> Iterator[None]:
    with ctx.savepoint():
        ctx.db[Mark].insert(Mark(text="inside"))
        yield


def test_a_savepoint_that_is_still_open_at_the_end_fails_the_transaction(db: Database) -> None:
    with pytest.raises(TransactionError, match="still open"), db.transaction() as ctx:
        suspended = open_savepoint(ctx)
        next(suspended)
    assert db.read(Mark).count() == 0
    del suspended
    gc.collect()
    db.call(play, 1)


def test_a_savepoint_of_an_earlier_transaction_does_not_touch_a_later_one(db: Database) -> None:
    with pytest.raises(TransactionError, match="still open"), db.transaction() as ctx:
        suspended = open_savepoint(ctx)
        next(suspended)
    with db.transaction() as ctx, ctx.savepoint():
        ctx.db[Mark].insert(Mark(text="later"))
        with pytest.raises(TransactionError, match="is over"):
            next(suspended)
    assert [mark.text for mark in db.read(Mark)] == ["later"]
    with pytest.raises(TransactionError, match="still open"), db.transaction() as ctx:
        suspended = open_savepoint(ctx)
        next(suspended)
    with db.transaction() as ctx, ctx.savepoint():
        ctx.db[Mark].insert(Mark(text="last"))
        suspended.close()  # type: ignore[attr-defined]
    assert sorted(mark.text for mark in db.read(Mark)) == ["last", "later"]


def test_savepoints_that_end_in_another_order_fail_the_transaction(db: Database) -> None:
    with pytest.raises(TransactionError, match="reverse order"), db.transaction() as ctx:
        outer = open_savepoint(ctx)
        next(outer)
        with ctx.savepoint():
            ctx.db[Mark].insert(Mark(text="inner"))
            next(outer, None)
    assert db.read(Mark).count() == 0


# --- other threads


WAYS: dict[str, Callable[[Table[Piece], Piece], object]] = {
    "insert": lambda pieces, row: pieces.insert(Piece(name="stray")),
    "update": lambda pieces, row: pieces.update(row.replace(name="stray")),
    "upsert": lambda pieces, row: pieces.upsert(row.replace(name="stray")),
    "delete": lambda pieces, row: pieces.delete(row),
    "delete by key": lambda pieces, row: pieces.delete(row.id),
    "delete_where": lambda pieces, row: pieces.delete_where(zone=row.zone),
    "clear": lambda pieces, row: pieces.clear(),
    "get": lambda pieces, row: pieces.get(row.id),
    "find": lambda pieces, row: pieces.find(name=row.name),
    "where": lambda pieces, row: pieces.where(zone=row.zone),
    "where all": lambda pieces, row: pieces.where(),
    "between": lambda pieces, row: pieces.between("id", 0, 9),
    "count": lambda pieces, row: pieces.count(),
    "count some": lambda pieces, row: pieces.count(zone=row.zone),
    "len": lambda pieces, row: len(pieces),
    "iteration": lambda pieces, row: list(pieces),
    "in": lambda pieces, row: row in pieces,
}


def in_another_thread(act: Callable[[], object]) -> object:
    """What it gives or raises there."""
    found: list[object] = []

    def target() -> None:
        try:
            found.append(act())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_thread_that_a_reducer_started_cannot_use_its_tables(db: Database, way: str, touched: bool) -> None:
    with db.transaction() as ctx:
        row = ctx.db[Piece].insert(Piece(name="before"))
    with db.transaction() as ctx:
        pieces = ctx.db[Piece]
        if touched:
            pieces.insert(Piece(name="mine"))
        for table in (pieces, ctx.db[Piece]):
            error = in_another_thread(partial(WAYS[way], table, row))
            assert isinstance(error, TransactionError)
            assert "table 'piece' was" in str(error)
            assert "from a thread that is not in the running transaction" in str(error)
    assert [piece.name for piece in db.read(Piece)] == ["before", "mine"][: 1 + touched]


@pytest.mark.parametrize("way", WAYS)
def test_a_context_is_of_no_use_after_its_transaction(db: Database, way: str) -> None:
    with db.transaction() as ctx:
        row = ctx.db[Piece].insert(Piece(name="before"))
    with pytest.raises(TransactionError, match=r"table 'piece' was (read|written) outside a transaction"):
        WAYS[way](ctx.db[Piece], row)
    assert isinstance(in_another_thread(lambda: WAYS[way](ctx.db[Piece], row)), TransactionError)
    with db.transaction() as other:
        other.db[Piece].insert(Piece(name="another's"))
        assert isinstance(in_another_thread(lambda: WAYS[way](ctx.db[Piece], row)), TransactionError)
    assert [piece.name for piece in db.read(Piece)] == ["before", "another's"]


def test_a_thread_that_a_reducer_started_cannot_begin_a_savepoint_there(db: Database) -> None:
    with db.transaction() as ctx:
        error = in_another_thread(lambda: ctx.savepoint().__enter__())
    assert isinstance(error, TransactionError)


def test_a_subscriber_that_exits_does_not_cost_the_others_a_commit(db: Database) -> None:
    told: list[Commit] = []

    def exits(_commit: Commit) -> None:
        raise SystemExit

    db.subscribe(Mark, exits)
    db.subscribe(Mark, told.append)
    with pytest.raises(SystemExit), db.transaction() as ctx:
        ctx.db[Mark].insert(Mark(text="a"))
    with pytest.raises(SystemExit), db.transaction() as ctx:
        ctx.db[Mark].insert(Mark(text="b"))
    with pytest.raises(SystemExit), db.transaction() as ctx:
        ctx.db[Mark].insert(Mark(text="c"))
    assert [commit.tx_id for commit in told] == [2, 3]  # the rest comes with the next delivery
