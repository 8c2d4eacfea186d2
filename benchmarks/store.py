"""The store by itself: insert, get, where, between, update of an indexed column, rollback, loading, memory.

`sqlite3-memory` does the same with prepared statements on `:memory:`; `dict` is a bare dict of frozen Structs, where
one can do it. Operations run inside one transaction each (of 1,000), so the figures are of the tables, not of `call`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import Measure, isolated, options, report, report_ratios, rss_mb, scratch, timed
from gamedb import AutoInc, Database, Index, Module, PrimaryKey, ReducerContext, Row, Table, Unique, f32, u32, u64

PER_TRANSACTION = 1_000
ZONES = 1_000

module = Module("store")


@module.table(public=True)
class Thing(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    zone: Index[u32]
    hp: u32
    x: f32
    y: f32


@module.table(public=True)
class Plain(Row):
    """Eight columns without an index, for the memory of a row."""

    id: PrimaryKey[AutoInc[u64]] = 0
    a: u32
    b: u32
    c: u32
    d: u32
    e: str
    f: str
    g: bool


class Bare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    id: int
    name: str
    zone: int
    hp: int
    x: float
    y: float


def thing(number: int) -> Thing:
    return Thing(name=f"thing {number}", zone=number % ZONES, hp=number % 100, x=0.5, y=1.5)


def filled(rows: int) -> Database:
    db = Database(module)

    def fill(ctx: ReducerContext) -> None:
        for number in range(rows):
            ctx.db[Thing].insert(thing(number))

    db.execute("fill", fill, ())
    db.log.disabled = True
    return db


def run_gamedb(workload: str, rows: int) -> Measure:
    db = filled(0 if workload == "insert" else rows)

    def insert(things: Table[Thing], start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            things.insert(thing(number))

    def get(things: Table[Thing], start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            things.get((number * 7919) % rows + 1)

    def where(things: Table[Thing], start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            things.where(zone=number % ZONES)

    def between(things: Table[Thing], start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            low = (number * 7919) % rows
            things.between("id", low, low + 9)

    def update(things: Table[Thing], start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            row = things.get((number * 7919) % rows + 1)
            if row is not None:
                things.update(row.replace(zone=(row.zone + 1) % ZONES))

    operations: dict[str, Callable[[Table[Thing], int], None]] = {
        "insert": insert, "get": get, "where": where, "between": between, "update-indexed": update,
    }  # fmt: skip
    operation = operations[workload]

    def body(ctx: ReducerContext, start: int) -> None:
        operation(ctx.db[Thing], start)

    count = max(1, rows // PER_TRANSACTION // (20 if workload == "where" else 1))
    return per_row(timed(lambda i: db.execute("", body, (i * PER_TRANSACTION,)), count))


def per_row(measure: Measure) -> Measure:
    """From transactions of 1,000 to single operations."""
    measure["per_second"] *= PER_TRANSACTION
    measure["p50_ms"] /= PER_TRANSACTION
    measure["p99_ms"] /= PER_TRANSACTION
    return measure


def run_sqlite(workload: str, rows: int) -> Measure:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT UNIQUE, zone INT, hp INT, x REAL, y REAL)")
    db.execute("CREATE INDEX zone ON thing (zone)")
    sql = "INSERT INTO thing (name, zone, hp, x, y) VALUES (?, ?, ?, ?, ?)"
    if workload != "insert":
        db.execute("BEGIN")
        db.executemany(sql, ((f"thing {n}", n % ZONES, n % 100, 0.5, 1.5) for n in range(rows)))
        db.execute("COMMIT")
    statements: dict[str, Callable[[int], Any]] = {
        "insert": lambda n: db.execute(sql, (f"thing {n}", n % ZONES, n % 100, 0.5, 1.5)),
        "get": lambda n: db.execute("SELECT * FROM thing WHERE id = ?", ((n * 7919) % rows + 1,)).fetchone(),
        "where": lambda n: db.execute("SELECT * FROM thing WHERE zone = ?", (n % ZONES,)).fetchall(),
        "between": lambda n: db.execute(
            "SELECT * FROM thing WHERE id BETWEEN ? AND ? ORDER BY id", ((n * 7919) % rows, (n * 7919) % rows + 9)
        ).fetchall(),
        "update-indexed": lambda n: db.execute(
            "UPDATE thing SET zone = (zone + 1) % 1000 WHERE id = ?", ((n * 7919) % rows + 1,)
        ),
    }
    operation = statements[workload]

    def transaction(i: int) -> None:
        db.execute("BEGIN")
        for number in range(i * PER_TRANSACTION, (i + 1) * PER_TRANSACTION):
            operation(number)
        db.execute("COMMIT")

    count = max(1, rows // PER_TRANSACTION // (20 if workload == "where" else 1))
    return per_row(timed(transaction, count))


def run_dict(workload: str, rows: int) -> Measure:
    things = {n + 1: Bare(id=n + 1, name=f"thing {n}", zone=n % ZONES, hp=n % 100, x=0.5, y=1.5) for n in range(rows)}
    replace = msgspec.structs.replace

    def insert(number: int) -> None:
        key = number + 1
        things[key] = Bare(id=key, name=f"thing {number}", zone=number % ZONES, hp=number % 100, x=0.5, y=1.5)

    def update(number: int) -> None:
        row = things[(number * 7919) % rows + 1]
        things[row.id] = replace(row, zone=(row.zone + 1) % ZONES)

    operation = {"insert": insert, "get": lambda n: things.get((n * 7919) % rows + 1), "update-indexed": update}[
        workload
    ]

    def transaction(i: int) -> None:
        for number in range(i * PER_TRANSACTION, (i + 1) * PER_TRANSACTION):
            operation(number)

    return per_row(timed(transaction, max(1, rows // PER_TRANSACTION)))


def run_rollback(rows: int) -> Measure:
    db = filled(rows)

    def body(ctx: ReducerContext, start: int) -> None:
        things = ctx.db[Thing]
        for number in range(start, start + PER_TRANSACTION):
            row = things.get(number % rows + 1)
            if row is not None:
                things.update(row.replace(zone=0))
        raise KeyError

    def attempt(i: int) -> None:
        try:
            db.execute("", body, (i * PER_TRANSACTION,))
        except KeyError:
            return

    return timed(attempt, max(1, rows // PER_TRANSACTION))


def run_memory(indexed: bool, rows: int) -> Measure:
    db = Database(module)
    db.log.disabled = True
    before = rss_mb()

    def fill(ctx: ReducerContext, start: int) -> None:
        for number in range(start, start + PER_TRANSACTION):
            if indexed:
                ctx.db[Thing].insert(thing(number))
            else:
                ctx.db[Plain].insert(Plain(a=number, b=1, c=2, d=3, e="same", f="too", g=True))

    for start in range(0, rows, PER_TRANSACTION):
        db.execute("", fill, (start,))
    return {"bytes_a_row": round((rss_mb() - before) * 1024 * 1024 / rows)}


def run_write(path: str, rows: int) -> Measure:
    with Database(module, path, quiet=True) as db:
        db.log.disabled = True

        def fill(ctx: ReducerContext, start: int) -> None:
            for number in range(start, start + PER_TRANSACTION):
                ctx.db[Thing].insert(thing(number))

        started = time.perf_counter()
        for start in range(0, rows, PER_TRANSACTION):
            db.execute("", fill, (start,))
        db.flush()
        return {"per_second": round(rows / (time.perf_counter() - started))}


def run_load(path: str, rows: int) -> Measure:
    started = time.perf_counter()
    with Database(module, path, quiet=True) as db:
        seconds = time.perf_counter() - started
        assert db.read(Thing).count() == rows
    return {"per_second": round(rows / seconds), "seconds": round(seconds, 2)}


def run_sqlite_load(path: str, rows: int) -> Measure:
    started = time.perf_counter()
    connection = sqlite3.connect(path)
    things = {row[0]: row for row in connection.execute("SELECT * FROM thing")}
    seconds = time.perf_counter() - started
    connection.close()
    assert len(things) == rows
    return {"per_second": round(rows / seconds), "seconds": round(seconds, 2)}


def main() -> None:
    """Measure, and print the lines."""
    args = options(__doc__ or "")
    rows = 20_000 if args.quick else 200_000
    large = 100_000 if args.quick else 1_000_000
    ratios: dict[str, float] = {}
    for workload in ("insert", "get", "where", "between", "update-indexed"):
        speeds = {}
        for system, function in (("gamedb", run_gamedb), ("sqlite3-memory", run_sqlite), ("dict", run_dict)):
            if system == "dict" and workload in ("where", "between"):
                continue
            measure = isolated(function, workload=workload, rows=rows)
            report(f"store-{workload}", system, {"rows": rows}, measure)
            speeds[system] = measure["per_second"]
        for system in list(speeds)[1:]:
            ratios[f"{workload}: gamedb/{system}"] = speeds["gamedb"] / speeds[system]
    measure = isolated(run_rollback, rows=rows)
    report("store-rollback", "gamedb", {"rows": rows, "writes": PER_TRANSACTION}, measure)
    for name, indexed in (("store-memory-8-columns", False), ("store-memory-unique-and-index", True)):
        report(name, "gamedb", {"rows": rows}, isolated(run_memory, indexed=indexed, rows=rows))
    with scratch() as directory:
        path = str(Path(directory, "store.db"))
        report("store-write", "gamedb", {"rows": large}, isolated(run_write, path=path, rows=large))
        load = isolated(run_load, path=path, rows=large)
        report("store-load", "gamedb", {"rows": large}, load)
        plain = isolated(run_sqlite_load, path=path, rows=large)
        report("store-load", "sqlite3-tuples", {"rows": large}, plain)
        ratios["load: gamedb/sqlite3-tuples"] = load["per_second"] / plain["per_second"]
    report_ratios(ratios)


if __name__ == "__main__":
    main()
