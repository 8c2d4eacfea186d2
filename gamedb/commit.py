"""What a committed transaction changed, as its observers get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar, cast

from gamedb.columns import from_micros
from gamedb.schema import Row, TableSchema
from gamedb.store import RowChange, TableData
from gamedb.types import Identity

R = TypeVar("R", bound=Row)


class TableChanges(Generic[R]):
    """The net changes of one table. A row that came and went within the transaction is not among them."""

    __slots__ = ("changes", "schema")

    def __init__(self, schema: TableSchema, changes: Sequence[RowChange]) -> None:
        self.schema = schema
        self.changes = changes
        """(key, row before, row after); `None` where there is none."""

    @property
    def deleted(self) -> list[R]:
        """The rows that are gone, those before an update included."""
        return cast("list[R]", [old for _, old, _ in self.changes if old is not None])

    @property
    def inserted(self) -> list[R]:
        """The rows that are new, those after an update included; for an event table, its events."""
        return cast("list[R]", [new for _, _, new in self.changes if new is not None])

    @property
    def updated(self) -> list[tuple[R, R]]:
        """(before, after) of the rows that stayed under their key with other values."""
        pairs = [(old, new) for _, old, new in self.changes if old is not None and new is not None]
        return cast("list[tuple[R, R]]", pairs)

    def __repr__(self) -> str:
        return f"<{self.schema.name}: {len(self.deleted)} deleted, {len(self.inserted)} inserted>"


class Commit:
    """One committed transaction, as subscribers get it."""

    __slots__ = ("_changed", "_changes", "_micros", "caller", "reducer", "tx_id")

    def __init__(
        self,
        tx_id: int,
        micros: int,
        caller: Identity,
        reducer: str,
        changed: Sequence[tuple[TableData, Sequence[RowChange]]],
    ) -> None:
        self.tx_id = tx_id
        """Counts up by one from transaction to transaction that changes anything."""
        self._micros = micros
        self.caller = caller
        """`ctx.sender` of the transaction."""
        self.reducer = reducer
        """The name of the function that ran; empty for a bare `db.transaction()`."""
        self._changed = changed
        self._changes: dict[str, TableChanges[Row]] | None = None

    @property
    def changes(self) -> Mapping[str, TableChanges[Row]]:
        """The changed tables by name."""
        changes = self._changes
        if changes is None:  # not before somebody asks: many commits concern nobody
            changes = self._changes = {}
            for table, rows in self._changed:
                changes[table.schema.name] = TableChanges(table.schema, rows)
        return changes

    @property
    def micros(self) -> int:
        """`ctx.micros` of the transaction."""
        return self._micros

    @property
    def timestamp(self) -> datetime:
        """`ctx.now` of the transaction."""
        return from_micros(self._micros)

    def of(self, row: type[R]) -> TableChanges[R] | None:
        """The changes of the table with this Row class; `None` when it did not change."""
        for changes in self.changes.values():
            if changes.schema.row is row:
                return cast("TableChanges[R]", changes)
        return None

    def __repr__(self) -> str:
        return f"<commit {self.tx_id} by {self.reducer or 'a transaction'}: {list(self.changes.values())}>"
