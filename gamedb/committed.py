"""Tables as they are between transactions, for any thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from gamedb.schema import Row
from gamedb.store import ReadTable, TableData
from gamedb.transactions import Transactions

R = TypeVar("R", bound=Row)


class CommittedTable(ReadTable[R]):
    """A table outside of transactions: each question is answered between two of them."""

    __slots__ = ("_assert_readable", "_lock")

    def __init__(self, db: Transactions, data: TableData) -> None:
        super().__init__(data)
        self._lock = db.lock
        self._assert_readable = db._assert_readable

    def get(self, key: Any) -> R | None:
        with self._lock:
            self._assert_readable()
            return super().get(key)

    def find(self, /, **unique: Any) -> R | None:
        with self._lock:
            self._assert_readable()
            return super().find(**unique)

    def where(self, /, **equalities: Any) -> list[R]:
        with self._lock:
            self._assert_readable()
            return super().where(**equalities)

    def between(self, column: str | tuple[str, ...], low: Any, high: Any, *, limit: int | None = None) -> list[R]:
        with self._lock:
            self._assert_readable()
            return super().between(column, low, high, limit=limit)

    def count(self, **equalities: Any) -> int:
        with self._lock:
            self._assert_readable()
            return super().count(**equalities)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[R]:
        with self._lock:
            self._assert_readable()
            return super().__iter__()

    def __contains__(self, row: object) -> bool:
        with self._lock:
            self._assert_readable()
            return super().__contains__(row)
