"""The rows of one table that a client holds, and how often each was sent: once for each query set that has it.

The counts follow the protocol's rules exactly. What is told of them is net: a row that is the same after a message as
before it is no change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from gamedb.client.remote import RemoteTable
from gamedb.errors import WireError
from gamedb.schema import Row

R = TypeVar("R", bound=Row)

_log: Final = logging.getLogger("gamedb.client")


class Change(msgspec.Struct, Generic[R], frozen=True):
    """A row that came (`old` is `None`), changed, or went (`new` is `None`)."""

    table: str
    """The name of the table."""
    old: R | None
    """The row before; `None` when it came."""
    new: R | None
    """The row after; `None` when it went."""

    @property
    def kind(self) -> str:
        """`insert`, `update` or `delete`."""
        if self.old is None:
            return "insert"
        return "delete" if self.new is None else "update"


class Part(msgspec.Struct, frozen=True):
    """What one place in a message says of a table, as runs of encoded rows."""

    inserts: bytes = b""
    deletes: bytes = b""
    events: bytes = b""


class Held(msgspec.Struct, gc=False):
    """A row in the cache."""

    row: Any
    count: int


class TableCache:
    """The rows of one table or view."""

    def __init__(self, table: RemoteTable) -> None:
        self.table = table
        self.rows: dict[Any, Held] = {}
        """By primary key, or by the bytes of the row where there is none."""
        self._key = table.schema.primary_key

    def apply(self, parts: Iterable[Part]) -> list[Change[Any]]:
        """Take in all that one message says of this table; gives what changed by it."""
        if self.table.schema.event:
            rows = [row for part in parts for row, _ in self.read(part.inserts + part.events)]
            return [Change(self.table.name, None, row) for row in rows]
        return self._apply_keyed(parts) if self._key is not None else self._apply_bare(parts)

    def read(self, data: bytes) -> Iterator[tuple[Any, bytes]]:
        """The rows in a run of encoded ones, with their bytes."""
        decode, at = self.table.codec.decode, 0
        while at < len(data):
            row, end = decode(data, at)
            if end == at:
                raise WireError(f"rows of {self.table.name!r} take no bytes, so that they cannot be counted")
            yield row, data[at:end]
            at = end

    def _apply_keyed(self, parts: Iterable[Part]) -> list[Change[Any]]:
        key, name = self._key, self.table.name
        assert key is not None
        inserted: dict[Any, Held] = {}
        deleted: dict[Any, Held] = {}
        for part in parts:
            for into, data in ((inserted, part.inserts + part.events), (deleted, part.deletes)):
                for row, _ in self.read(data):
                    seen = into.setdefault(getattr(row, key), Held(row, 0))
                    seen.row = row
                    seen.count += 1
        changes = []
        for value in {**inserted, **deleted}:
            new, gone = inserted.get(value), deleted.get(value)
            held = self.rows.get(value)
            if held is None and gone is not None:
                _log.warning("%s: a row with %s = %r went that was not there", name, key, value)
            elif held is None:
                assert new is not None
                self.rows[value] = new
                changes.append(Change(name, None, new.row))
            else:
                old, count = held.row, held.count + (new.count if new else 0) - (gone.count if gone else 0)
                if count <= 0:
                    del self.rows[value]
                    changes.append(Change(name, gone.row if gone and not new else old, None))
                    continue
                held.count = count
                if new is not None and not self.same(old, new.row):
                    held.row = new.row
                    if gone is not None:
                        changes.append(Change(name, old, new.row))
        return changes

    def _apply_bare(self, parts: Iterable[Part]) -> list[Change[Any]]:
        before: dict[bytes, Any] = {}  # the rows that were touched, as they stood before
        for part in parts:
            for row, data in self.read(part.inserts + part.events):
                held = self.rows.get(data)
                before.setdefault(data, None if held is None else held.row)
                if held is None:
                    self.rows[data] = Held(row, 1)
                else:
                    held.count += 1
            for row, data in self.read(part.deletes):
                held = self.rows.get(data)
                if held is None:
                    _log.warning("%s: the row %r went that was not there", self.table.name, row)
                    continue
                before.setdefault(data, held.row)
                held.count -= 1
                if held.count <= 0:
                    del self.rows[data]
        changes = []
        for data, old in before.items():
            now = self.rows.get(data)
            if (old is None) != (now is None):
                changes.append(Change(self.table.name, old, None if now is None else now.row))
        return changes

    def same(self, old: Any, new: Any) -> bool:
        """Whether two rows are equal in every bit."""
        if self.table.schema.has_float:
            return self.table.codec.encode(old) == self.table.codec.encode(new)
        return bool(old == new)

    def replaced_by(self, other: TableCache) -> list[Change[Any]]:
        """What changes for those who see the rows of this cache and shall see those of the other one."""
        old = {key: held.row for key, held in self.rows.items()}
        for key, held in other.rows.items():
            if key in old and self.same(old[key], held.row):
                held.row = old.pop(key)  # the very object that is known already
        new = {key: held.row for key, held in other.rows.items() if key in old or key not in self.rows}
        return [Change(self.table.name, old.get(key), new.get(key)) for key in {**old, **new}]
