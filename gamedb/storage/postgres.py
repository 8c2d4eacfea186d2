"""One PostgreSQL schema as a database: found by URL and name, locked by an advisory lock.

The lock is held by the very connection that writes, so that whoever lost the lock cannot write any more.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gamedb.errors import DatabaseLocked, ForeignFile, StorageError
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
