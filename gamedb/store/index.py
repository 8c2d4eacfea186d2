"""The pieces of a table in memory: equality indexes with an order on demand, and auto-increment sequences.

Plain containers; the generated code of `gamedb.store.codegen` keeps them in step with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from sortedcontainers import SortedList

from gamedb.errors import ConstraintError


class Bucket(dict[Hashable, None]):
    """The keys of the rows that share an indexed value, in order of arrival; a lone key stands without one."""

    __slots__ = ()


class Order:
    """The distinct values of an index, sorted. Built by the first `between` that needs it, then kept.

    `None` and nan are left out: no range holds them.
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values: Any = SortedList(v for v in values if _has_place(v))

    def add(self, value: Any) -> None:
        """A value came into the index."""
        if _has_place(value):
            self.values.add(value)

    def discard(self, value: Any) -> None:
        """A value left the index."""
        if _has_place(value):
            self.values.discard(value)

    def between(self, low: Any, high: Any) -> Iterator[Any]:
        """The values from `low` to `high`, both included; `None` leaves that end open."""
        found: Iterator[Any] = self.values.irange(low, high)
        return found


def _has_place(value: Any) -> bool:
    """Whether a value stands in an order: `None` and nan do not, nor do tuples with one."""
    if type(value) is tuple:
        return all(part is not None and part == part for part in value)
    return value is not None and bool(value == value)


def has_none(value: Any) -> bool:
    """Whether a value of an index is, or holds, `None`."""
    return value is None or (type(value) is tuple and None in value)


class EqualityIndex:
    """value (a tuple for several columns) to the key of its row, or to a `Bucket` of keys.

    `optional`: some column may be `None`. Rows where one is are not held: `None` mostly stands in many rows, and is
    seldom looked for.
    """

    __slots__ = ("columns", "keys", "optional", "order")

    def __init__(self, columns: tuple[str, ...], optional: bool = False) -> None:
        self.columns = columns
        self.optional = optional
        self.keys: dict[Any, Any] = {}
        self.order: Order | None = None

    def add(self, value: Any, key: Hashable) -> None:
        """A row with this value and key came."""
        if self.optional and has_none(value):
            return
        found = self.keys.get(value)
        if found is None:
            self.keys[value] = key
            if self.order is not None:
                self.order.add(value)
        elif type(found) is Bucket:
            found[key] = None
        else:
            self.keys[value] = Bucket({found: None, key: None})

    def remove(self, value: Any, key: Hashable) -> None:
        """The row with this value and key left."""
        if self.optional and has_none(value):
            return
        found = self.keys[value]
        if type(found) is Bucket:
            del found[key]
            if found:
                return
        del self.keys[value]
        if self.order is not None:
            self.order.discard(value)


class UniqueIndex:
    """value to the key of the only row that has it. `None` is not held: many rows may have it."""

    __slots__ = ("column", "keys", "order")

    def __init__(self, column: str) -> None:
        self.column = column
        self.keys: dict[Any, Hashable] = {}
        self.order: Order | None = None

    def add(self, value: Any, key: Hashable) -> None:
        """A row with this value and key came."""
        if value is not None:
            self.keys[value] = key
            if self.order is not None:
                self.order.add(value)

    def remove(self, value: Any, key: Hashable) -> None:
        """The row with this value and key left."""
        if value is not None:
            del self.keys[value]
            if self.order is not None:
                self.order.discard(value)


class Sequence:
    """The auto-increment numbers of one table.

    `next` is what the next row gets. Numbers below `limit` may be handed out; at the limit `extend` is asked for
    more (a database with storage first makes the new limit durable, so that no crash hands a number out twice).
    """

    __slots__ = ("column", "extend", "handed", "high", "limit", "next", "table")

    def __init__(self, table: str, column: str, high: int) -> None:
        self.table = table
        self.column = column
        self.high = high
        self.next = 1
        self.handed = 1  # one more than the highest number that was handed out by itself
        self.limit = high + 1
        self.extend: Callable[[Sequence], None] | None = None

    def take(self) -> int:
        """Hand out the next number; `ConstraintError` when the type has no more."""
        number = self.next
        if number >= self.limit:
            if number > self.high:
                raise ConstraintError(
                    self.table,
                    self.column,
                    number,
                    f"{self.table}.{self.column}: the auto-increment numbers of this type are used up "
                    f"(the highest is {self.high}); use a wider type",
                )
            if self.extend is not None:
                self.extend(self)
        self.next = self.handed = number + 1
        return number

    def skip(self, number: int) -> None:
        """A row came with a number of its own, at or past `next`."""
        self.next = number + 1
        if number >= self.limit and self.extend is not None:
            self.extend(self)

    def undo(self, saved: int) -> None:
        """Go back to an earlier `next`, without handing out a number again."""
        self.next = max(saved, self.handed)
