"""One PostgreSQL schema as a database: found by URL and name, locked by an advisory lock.

The lock is held by the very connection that writes, so that whoever lost the lock cannot write any more.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gamedb.errors import DatabaseLocked, ForeignFile, QueryError, StorageError
from gamedb.storage import meta

try:
    import psycopg
except ImportError:
    raise StorageError('PostgreSQL needs the package psycopg; pip install "gamedb[postgres]"') from None

_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
_TRIAL_LOCK_TIMEOUT: Final = "3s"


class PostgresBackend:
    """An open schema of a PostgreSQL database, locked against other openers (others may read it)."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: URL, name: str) -> None:
        schema = _schema_name(name)
        self.label = _label(url, schema)
        self._schema = schema
        self.connection = _connect(url, schema, self.label)
        try:
            with self.connection.begin():
                self._take_lock()
                self.is_new = not meta.exists(self.connection)
                if self.is_new:
                    self._check_empty()
        except BaseException:
            self.close()
            raise

    def start_creation(self) -> None:
        """Make the schema; the tables follow in the same transaction."""
        self.connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))

    def finish_creation(self) -> None:
        """Nothing: the server made schema and tables visible and durable as one transaction."""

    def check_in_place(self) -> None:
        """Nothing: the server looks after its files."""

    def read_cursor(self) -> AbstractContextManager[Any]:
        """A cursor whose result stays on the server until it is fetched."""
        driver = self.connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        return driver.cursor(name="gamedb_load")

    def close(self) -> None:
        """Give the lock back and close the connection.

        The server would release the lock by itself, but only some time after the connection was closed.
        """
        with suppress(SQLAlchemyError, psycopg.Error):
            self.connection.execute(text("SELECT pg_advisory_unlock_all()"))
        with suppress(SQLAlchemyError, psycopg.Error):
            self.connection.close()
        self.connection.engine.dispose()

    def _take_lock(self) -> None:
        key = int.from_bytes(hashlib.sha256(f"gamedb/{self._schema}".encode()).digest()[:8], "big", signed=True)
        if self.connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar_one():
            return
        holder = self.connection.execute(
            text(
                "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
                "WHERE l.locktype = 'advisory' AND l.granted AND l.database = a.datid "
                "AND a.datname = current_database() AND (l.classid::bigint << 32) | l.objid::bigint = :key"
            ),
            {"key": key},
        ).scalar()
        raise DatabaseLocked(f"{self.label} is open in {holder or 'another process'}; close it there first")

    def _check_empty(self) -> None:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = :schema LIMIT 1"
        foreign = self.connection.execute(text(query), {"schema": self._schema}).scalar()
        if foreign is not None:
            raise ForeignFile(
                f"{self.label} holds tables of another program ({foreign}); it was not touched; use a schema of its own"
            )


@contextmanager
def trial(url: URL, name: str) -> Iterator[Connection]:
    """A connection whose transaction is rolled back, and which gives up soon where others hold locks."""
    schema = _schema_name(name)
    connection = _connect(url, schema, _label(url, schema))
    engine = connection.engine
    try:
        with connection, connection.begin() as transaction:
            connection.execute(text(f"SET LOCAL lock_timeout = '{_TRIAL_LOCK_TIMEOUT}'"))
            try:
                yield connection
            finally:
                transaction.rollback()
    finally:
        engine.dispose()


def _schema_name(name: str) -> str:
    """The schema of a database of this name; module names may have dashes, which would need quotes everywhere."""
    return name.replace("-", "_")


def _label(url: URL, schema: str) -> str:
    return f"schema {schema!r} of {url.render_as_string(hide_password=True)}"


def _engine(url: URL, schema: str) -> Engine:
    settings = {"search_path": schema, "timezone": "UTC", "synchronous_commit": "on"}
    return create_engine(
        url,
        poolclass=NullPool,
        paramstyle="format",
        connect_args={
            "application_name": f"gamedb, process {os.getpid()} on {socket.gethostname()}"[:63],
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        },
    )


def _connect(url: URL, schema: str, label: str) -> Connection:
    if not _SCHEMA_NAME.match(schema):
        raise StorageError(f"schema name {schema!r}: use lower-case letters, digits and underscores")
    try:
        return _engine(url, schema).connect()
    except DBAPIError as error:
        raise StorageError(f"{label} cannot be opened: {error.orig}") from None


class ReadCursor:
    """The rows of one query, fetched piece by piece."""

    def __init__(self, cursor: psycopg.Cursor[Any], schema: str) -> None:
        self._cursor = cursor
        self._schema = schema
        self.names: list[str] = []
        """Of the columns, after the first `fetch`."""
        self.origins: list[tuple[str, str]] = []
        """For each column the table and column that it is, both empty where it is computed."""

    def fetch(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most so many; none at the end."""
        self._cursor.execute(f"FETCH FORWARD {count} FROM gamedb_answer".encode())
        result = self._cursor.pgresult
        rows = self._cursor.fetchall()
        if result is not None and not self.names:
            columns = range(result.nfields)
            self.names = [(result.fname(i) or b"").decode() for i in columns]
            numbers = [(result.ftable(i), result.ftablecol(i)) for i in columns]
            self.origins = self._found(numbers)
        return rows

    def _found(self, numbers: list[tuple[int, int]]) -> list[tuple[str, str]]:
        self._cursor.execute(
            "SELECT c.oid, a.attnum, c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = to_regnamespace(quote_ident(%s)) AND c.oid = ANY(%s)",
            (self._schema, [table for table, _ in numbers if table]),
        )
        names = {(oid, number): (table, column) for oid, number, table, column in self._cursor.fetchall()}
        return [names.get(number, ("", "")) for number in numbers]


@contextmanager
def read_only_cursor(url: URL, name: str, sql: str, milliseconds: int, read_only: str) -> Iterator[ReadCursor]:
    """A query in a read-only transaction of its own with a time limit; `QueryError` says what is wrong with it.

    It is declared as a cursor by the protocol that takes one statement only, so that it cannot be anything else.
    """
    schema = _schema_name(name)
    engine = _engine(url, schema)
    try:
        with closing(engine.raw_connection()) as raw:
            driver = raw.driver_connection
            assert isinstance(driver, psycopg.Connection)
            with driver.cursor() as cursor:
                cursor.execute("START TRANSACTION READ ONLY")
                cursor.execute(f"SET LOCAL statement_timeout = {milliseconds}".encode())
                declared = driver.pgconn.exec_params(
                    f"DECLARE gamedb_answer NO SCROLL CURSOR FOR {sql.strip().rstrip(';')}".encode(), []
                )
                if declared.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                    raise QueryError(_problem(declared, read_only))
                yield ReadCursor(cursor, schema)
    except DBAPIError as error:
        raise StorageError(f"{_label(url, schema)} cannot be read: {error.orig}") from None
    except psycopg.errors.QueryCanceled:
        raise QueryError(
            f"the query took longer than {milliseconds / 1000:g} s and was stopped; ask for less, or use an index"
        ) from None
    except psycopg.Error as error:
        text = (error.diag.message_primary or str(error)).strip()
        raise QueryError(read_only if "read-only transaction" in text else text) from None
    finally:
        engine.dispose()


def _problem(result: psycopg.pq.abc.PGresult, read_only: str) -> str:
    state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
    text = (result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
    if "multiple commands" in text:
        return "one statement at a time; send the rest by itself"
    if state == "25006" or ("syntax error" in text and _is_change(result)):
        return read_only
    return text


def _is_change(result: psycopg.pq.abc.PGresult) -> bool:
    text = (result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode().lower()
    verbs = ("insert", "update", "delete", "merge", "create", "drop", "alter", "truncate", "copy", "call", "do", "set")
    return any(f'at or near "{verb}"' in text for verb in verbs)
