"""What the storage needs of a kind of database: one locked connection on which DDL is transactional."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from gamedb.errors import StorageError


class Backend(Protocol):
    """One open database: nobody else can open it until `close`."""

    label: str
    """How messages call the database: the file name, or the server and schema."""
    connection: Connection
    is_new: bool
    """Whether the database did not exist, or exists without any of our tables, before this open."""

    errors: tuple[type[Exception], ...]
    """What the driver raises."""

    def check_in_place(self) -> None:
        """`StorageError` when what is written could not be found again, as the files were taken away."""

    def read_cursor(self) -> AbstractContextManager[Any]:
        """A driver cursor that fetches a large result piece by piece."""

    def start_creation(self) -> None:
        """Prepare a new database for its tables, in the transaction that makes them."""

    def finish_creation(self) -> None:
        """Make a new database, whose tables have been written, visible and durable as a whole."""

    def close(self) -> None:
        """Release the connection and the lock."""


def is_url(target: str | os.PathLike[str]) -> bool:
    """Whether a target is a database URL and not a file path."""
    return isinstance(target, str) and "://" in target


def parse(target: str | os.PathLike[str]) -> str | URL:
    """A file path, or the URL of a PostgreSQL database; `StorageError` for anything else."""
    if not is_url(target):
        return os.fspath(target)
    try:
        url = make_url(str(target))
    except ArgumentError:
        raise StorageError(f"{target!r} is not a database URL; use sqlite:///file.db or {_POSTGRES}") from None
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            return url.database
        case "sqlite":
            raise StorageError("an SQLite database in memory stores nothing; give path=None for that")
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
    raise StorageError(f"{url.get_backend_name()!r} is not supported; use sqlite:///file.db or {_POSTGRES}")


_POSTGRES = "postgresql+psycopg://user@host/database"
