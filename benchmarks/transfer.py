"""Transfers: read two balances, write two. In process, with and without storage, beside SQLite and a bare dict.

`gamedb` is durable with group commit: the time includes the last flush. `sqlite3-commit-each` commits each transfer
(WAL, synchronous=FULL). `dict` keeps frozen Structs in a dict and does nothing else: the ceiling for Python.
"""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import Measure, isolated, options, report, report_ratios, scratch, timed
from gamedb import Database, Module, PrimaryKey, ReducerContext, ReducerError, Row, i64, u64

module = Module("bank")


@module.table(public=True)
class Account(Row):
    id: PrimaryKey[u64]
    owner: str
    balance: i64


@module.reducer
def open_accounts(ctx: ReducerContext, count: u64) -> None:
    accounts = ctx.db[Account]
    for number in range(count):
        accounts.insert(Account(id=number, owner=f"player {number}", balance=1_000))


@module.reducer
def transfer(ctx: ReducerContext, source: u64, target: u64, amount: i64) -> None:
    accounts = ctx.db[Account]
    payer, payee = accounts.get(source), accounts.get(target)
    if payer is None or payee is None:
        raise ReducerError("no such account")
    accounts.update(payer.replace(balance=payer.balance - amount))
    accounts.update(payee.replace(balance=payee.balance + amount))


def pairs(accounts: int) -> list[tuple[int, int]]:
    """Random different accounts, the same for every system."""
    rng = random.Random(1)
    return [tuple(rng.sample(range(accounts), 2)) for _ in range(100_000)]  # type: ignore[misc]


def run_gamedb(path: str | None, accounts: int, count: int) -> Measure:
    chosen = pairs(accounts)
    with Database(module, path) as db:
        db.call(open_accounts, accounts)
        db.flush()
        call = db.call
        return timed(lambda i: call(transfer, *chosen[i % 100_000], 1), count, db.flush)


def run_sqlite(path: str, accounts: int, count: int) -> Measure:
    chosen = pairs(accounts)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, balance INTEGER NOT NULL)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO account VALUES (?, ?, 1000)", [(n, f"player {n}") for n in range(accounts)])
    connection.execute("COMMIT")
    execute = connection.execute

    def operation(i: int) -> None:
        source, target = chosen[i % 100_000]
        execute("BEGIN")
        payer = execute("SELECT balance FROM account WHERE id = ?", (source,)).fetchone()
        payee = execute("SELECT balance FROM account WHERE id = ?", (target,)).fetchone()
        execute("UPDATE account SET balance = ? WHERE id = ?", (payer[0] - 1, source))
        execute("UPDATE account SET balance = ? WHERE id = ?", (payee[0] + 1, target))
        execute("COMMIT")

    measure = timed(operation, count)
    connection.close()
    return measure


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    owner: str
    balance: int


def run_dict(accounts: int, count: int) -> Measure:
    chosen = pairs(accounts)
    rows = {n: Balance(id=n, owner=f"player {n}", balance=1_000) for n in range(accounts)}
    replace = msgspec.structs.replace

    def operation(i: int) -> None:
        source, target = chosen[i % 100_000]
        payer, payee = rows[source], rows[target]
        rows[source] = replace(payer, balance=payer.balance - 1)
        rows[target] = replace(payee, balance=payee.balance + 1)

    return timed(operation, count)


def main() -> None:
    """Measure all systems, and print their lines."""
    args = options(__doc__ or "")
    accounts = 10_000
    count = 100_000 if args.quick else 500_000
    with scratch() as directory:
        systems: dict[str, tuple[Any, dict[str, Any]]] = {
            "gamedb": (run_gamedb, {"path": str(Path(directory, "bank.db")), "count": count}),
            "gamedb-memory": (run_gamedb, {"path": None, "count": count}),
            "sqlite3-commit-each": (run_sqlite, {"path": str(Path(directory, "each.db")), "count": count // 50}),
            "sqlite3-memory": (run_sqlite, {"path": ":memory:", "count": count // 5}),
            "dict": (run_dict, {"count": count * 2}),
        }
        speeds = {}
        for system, (function, arguments) in systems.items():
            if args.system and system not in args.system:
                continue
            measure = isolated(function, accounts=accounts, **arguments)
            report("transfer", system, {"accounts": accounts, "transfers": arguments["count"]}, measure)
            speeds[system] = measure["per_second"]
    if "gamedb" in speeds:
        report_ratios(
            {f"gamedb/{name}": speeds["gamedb"] / speed for name, speed in speeds.items() if name != "gamedb"}
        )


if __name__ == "__main__":
    main()
