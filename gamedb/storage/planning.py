"""`plan`: what opening a database with a module would do, for people who want to know before they deploy.

A database that somebody has open can be planned for as well, and nothing is kept of it. Migrations run on a copy of
an SQLite file; on PostgreSQL they run in a transaction that is rolled back, during which the tables that they alter
are locked (it gives up after seconds when it does not get the locks itself).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection

from gamedb.resolved import Migration
from gamedb.schema import TableSchema
from gamedb.storage import meta
from gamedb.storage.backend import parse
from gamedb.storage.compare import Plan
from gamedb.storage.evolve import Evolution, creation_plan
from gamedb.storage.sqlite import check_file, engine_for, is_absent, read_only


def plan(
    target: str | os.PathLike[str],
    tables: Mapping[str, TableSchema],
    migrations: Sequence[Migration] = (),
    *,
    name: str = "gamedb",
) -> Plan:
    """The steps that `open_storage` would take, or its refusals. Creates and changes nothing."""
    parsed = parse(target)
    label = os.path.basename(parsed) if isinstance(parsed, str) else parsed.render_as_string()
    with snapshot(parsed, [m.name for m in migrations], name) as connection:
        if connection is None or not meta.exists(connection):
            return creation_plan(tables)
        evolution = Evolution(connection, label, tables, migrations)
        steps = evolution.migrate()
        found = evolution.compare()
        return Plan([*steps, *found.steps], found.refusals)


@contextmanager
def snapshot(target: str | URL, migrations: list[str], name: str) -> Iterator[Connection | None]:
    """The database at one moment, to look at and to try these migrations on; `None` when there is none yet."""
    if isinstance(target, str):
        path = os.path.realpath(target)
        if is_absent(path):
            yield None
            return
        check_file(path)
        with _sqlite_snapshot(path, migrations) as connection:
            yield connection
    else:
        from gamedb.storage.postgres import trial

        with trial(target, name) as connection:
            yield connection


@contextmanager
def _sqlite_snapshot(path: str, migrations: list[str]) -> Iterator[Connection]:
    """The file itself, read only; or a copy of it when there are migrations to try."""
    with closing(read_only(path)) as driver, _transaction(driver) as connection:
        if not meta.exists(connection) or set(migrations) <= set(meta.read(connection).migrations):
            yield connection
            return
    with (
        tempfile.TemporaryDirectory(prefix="gamedb-plan-") as directory,
        closing(sqlite3.connect(Path(directory, "copy.db"), isolation_level=None)) as copy,
    ):
        with closing(read_only(path)) as source:
            source.backup(copy)
        with _transaction(copy) as connection:
            yield connection


@contextmanager
def _transaction(driver: sqlite3.Connection) -> Iterator[Connection]:
    """A transaction that keeps nothing; the driver's connection is closed with it."""
    engine = engine_for(driver, "BEGIN")
    try:
        with engine.connect() as connection, connection.begin() as transaction:
            try:
                yield connection
            finally:
                transaction.rollback()
    finally:
        engine.dispose()
