"""`Storage`: the database under a `Database`, opened, locked and of the module's schema.

It loads rows, and writes batches of final row states, each in one SQL transaction. When to write is the `Writer`'s
business; what a transaction is, the store's.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TextIO

from sqlalchemy import Integer, Text, func, select, type_coerce
from sqlalchemy.exc import DBAPIError

from gamedb.errors import ForeignFile, StorageError, WriteFailed
from gamedb.resolved import Migration
from gamedb.schema import Row, TableSchema
from gamedb.storage import meta
from gamedb.storage.backend import Backend, parse
from gamedb.storage.codecs import codec
from gamedb.storage.evolve import Evolution, create
from gamedb.storage.progress import Progress
from gamedb.storage.rows import StoredTable, UnreadableRow, stored_tables
from gamedb.storage.sqlite import SQLiteBackend
from gamedb.storage.statements import upsert

Changes = Mapping[str, Mapping[Any, Row | None]]
"""Per table name, by key: the final state of the row, None when it is gone."""


def open_storage(
    target: str | os.PathLike[str],
    tables: Mapping[str, TableSchema],
    migrations: Sequence[Migration] = (),
    *,
    name: str = "gamedb",
    progress: TextIO | None = sys.stderr,
) -> Storage:
    """Open (or create) the database at a file path or URL, and bring it to the schema of these tables.

    Raises `DatabaseLocked` when it is open elsewhere, `ForeignFile` when it is damaged or not ours,
    `SchemaChangeRefused` when its tables do not fit and no migration helps, `StorageError` for the rest; in all
    these cases nothing was changed. `name` is the schema on a PostgreSQL server; `progress` gets a line when
    loading takes longer than a second.
    """
    backend = open_backend(target, name)
    try:
        with backend.connection.begin():
            if backend.is_new:
                backend.start_creation()
                create(backend.connection, tables, migrations)
            else:
                Evolution(backend.connection, backend.label, tables, migrations).apply()
        if backend.is_new:
            backend.finish_creation()
        return Storage(backend, tables, progress)
    except Exception as error:
        backend.close()
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{backend.label} cannot be opened: {_cause(error)}") from error
    except BaseException:
        backend.close()
        raise


def _cause(error: Exception) -> object:
    """What the driver said, without what SQLAlchemy adds for programmers."""
    return error.orig if isinstance(error, DBAPIError) else error


def open_backend(target: str | os.PathLike[str], name: str) -> Backend:
    """The locked backend of a target."""
    parsed = parse(target)
    if isinstance(parsed, str):
        return SQLiteBackend(parsed)
    from gamedb.storage.postgres import PostgresBackend

    return PostgresBackend(parsed, name)


class Storage:
    """An open database. Load it first; from then on, writes may come from any thread."""

    def __init__(self, backend: Backend, tables: Mapping[str, TableSchema], progress: TextIO | None = None) -> None:
        self._backend = backend
        self._connection = backend.connection
        self._progress = progress
        self._lock = threading.Lock()
        self._closed = False
        self._failure: WriteFailed | None = None  # after it, the connection (and a server's lock) may be gone
        dialect = self._connection.dialect.name
        self._tables = stored_tables(tuple(tables.values()), dialect)
        self.row_keys: dict[str, Callable[[Row], bytes]] = {
            t.name: t.row_key for t in self._tables.values() if t.row_key is not None
        }
        """For each table without primary key, the function from a row to its hidden key."""
        self._event_tables = {name for name, schema in tables.items() if schema.event}
        self._meta_upsert = upsert(meta.TABLE, dialect)
        with self._connection.begin():
            stored = meta.read(self._connection)
            numbers = {name: stored.sequences.get(name, 0) for name in self._event_tables}
            numbers |= {t.name: self._next_number(t, stored.sequences) for t in self._tables.values()}
        self.is_new: bool = backend.is_new
        """Whether this open created the database."""
        self.last_tx_id: int = stored.last_tx_id
        """The last transaction on disk, 0 when there is none."""
        self.sequences: dict[str, int] = {name: number for name, number in numbers.items() if number}
        """For each table with an auto-increment column, a number from which on all are free."""

    @property
    def label(self) -> str:
        """How messages call the database."""
        return self._backend.label

    def load(self) -> Iterator[tuple[str, list[Row]]]:
        """All rows in chunks of one table each, in the order of their keys; values in canonical form.

        Raises `ForeignFile`, naming the table, for a row that does not fit its columns.
        """
        progress = Progress(self.label, self._progress)
        unreadable: tuple[type[Exception], ...] = (UnreadableRow, *self._backend.errors)
        with self._connection.begin(), self._backend.read_cursor() as cursor:
            for name, table in self._tables.items():
                try:
                    table.check_bounds(cursor)
                    for rows in table.read(cursor):
                        progress.add(name, len(rows))
                        yield name, rows
                except unreadable as error:
                    raise ForeignFile(
                        f"{self.label}: table {name!r} cannot be read: {error}; it was not touched"
                    ) from None
        progress.finish()

    def write(self, tx_id: int, rows: Changes) -> None:
        """Write the final state of each row and the last transaction, all or nothing.

        Returns when it is on disk. `WriteFailed` when it is not known to be: then it is there as a whole or not at
        all, as a disk that fails to sync may have it all the same.
        """
        self._transaction(rows, [meta.LAST_TX_ID, str(tx_id)])
        self.last_tx_id = tx_id

    def write_sequences(self, sequences: Mapping[str, int]) -> None:
        """Set the next auto-increment numbers of these tables, on disk when this returns. From any thread."""
        self._transaction({}, [text for name, n in sequences.items() for text in (meta.SEQUENCE + name, str(n))])
        self.sequences.update(sequences)

    def _transaction(self, rows: Changes, texts: list[str]) -> None:
        with self._lock:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            try:
                self._backend.check_in_place()
                self._write_rows(rows, texts)
                self._backend.check_in_place()  # before anybody is told that it is on disk
            except Exception as error:
                self._failure = WriteFailed(
                    f"{self.label}: writing failed ({_cause(error)}); nothing more is accepted, and what was not "
                    "confirmed may be lost"
                )
                raise self._failure from error

    def _write_rows(self, rows: Changes, texts: list[str]) -> None:
        with self._connection.begin(), closing(self._connection.connection.cursor()) as cursor:
            for name, changed in rows.items():
                if changed and name not in self._event_tables:
                    self._tables[name].write(cursor, changed)
            self._meta_upsert.run(cursor, texts)

    def close(self) -> None:
        """Bring everything into the main file and let others open the database. Twice is once."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._backend.close()

    def _next_number(self, table: StoredTable, stored: Mapping[str, int]) -> int:
        """A safe next number, also when another tool inserted rows; 0 for tables that do not count."""
        number = 0
        for column in table.schema.columns:
            if column.auto_inc:
                number = max(number, 1, stored.get(table.name, 1), self._largest(table, column.name) + 1)
        return number

    def _largest(self, table: StoredTable, name: str) -> int:
        column, kind = table.table.columns[name], table.schema.column(name).type
        native = codec(kind, self._connection.dialect.name).sql
        number = type_coerce(column, Integer())
        queries = [select(func.max(column))]
        if isinstance(native, Text):  # decimal text has no maximum in the database's sense
            return max(self._connection.execute(select(column)).scalars(), default=0)
        if kind.name == "u64" and isinstance(native, Integer):  # the upper half stands below zero
            queries = [select(func.max(column)).where(number < 0), select(func.max(column)).where(number >= 0)]
        for query in queries:
            largest: int | None = self._connection.execute(query).scalar_one()
            if largest is not None:
                return largest
        return 0
