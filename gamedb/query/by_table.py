"""`ByTable`: who reads which table, so that a commit finds those that it may concern, and nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class ByTable(Generic[T]):
    """Things (queries, groups of them, results) by the names of the tables that they read."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[str, dict[T, None]] = {}

    def add(self, reader: T, tables: Iterable[str]) -> None:
        """File it under these tables."""
        for table in tables:
            self._readers.setdefault(table, {})[reader] = None

    def remove(self, reader: T, tables: Iterable[str]) -> None:
        """Undo `add` for these tables; nothing of it stays."""
        for table in tables:
            readers = self._readers[table]
            del readers[reader]
            if not readers:
                del self._readers[table]

    def of(self, tables: Iterable[str]) -> dict[T, None]:
        """All that read one of these tables, each once, in the order in which they were filed."""
        found: dict[T, None] = {}
        for table in tables:
            found |= self._readers.get(table, {})
        return found
