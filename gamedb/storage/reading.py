"""Looking at stored rows without opening the database for good: nothing is locked, nothing is written.

The rows are those of the stored tables as they are, whatever the module says by now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gamedb.storage import meta
from gamedb.storage.backend import parse
from gamedb.storage.migration import MigrationContext, StoredTables
from gamedb.storage.planning import snapshot


class StoredRows:
    """The stored tables, to read."""

    def __init__(self, context: MigrationContext) -> None:
        self._context = context

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The stored tables and their columns."""
        return self._context.tables

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a stored table as dicts: enum members as their names, nested values as plain JSON."""
        return self._context.rows(table)


@contextmanager
def read_stored(target: str | os.PathLike[str], *, name: str = "gamedb") -> Iterator[StoredRows | None]:
    """The stored rows of a database at one moment; `None` when there is no database yet.

    Raises `ForeignFile` and other `StorageError`s as `open_storage` does.
    """
    with snapshot(parse(target), [], name) as connection:
        if connection is None or not meta.exists(connection):
            yield None
            return
        yield StoredRows(MigrationContext(StoredTables(connection, meta.read(connection).shapes), {}))
