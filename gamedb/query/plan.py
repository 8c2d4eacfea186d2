"""`Query`: one query as it is answered, typed and canonical. Made by the `Catalog`; knows no store."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec

from gamedb.functions import Function
from gamedb.query.conditions import Condition, Exists, asks_sender, key_of, leaves
from gamedb.schema import TableSchema


class Join(msgspec.Struct, frozen=True):
    """The table that the rows are joined with, and the columns that must be equal."""

    table: TableSchema
    column: str
    """Of the rows that the query returns."""
    other: str


NOT_INDEXED: Final = 2


def prefer_indexed(schema: TableSchema) -> Callable[[str], int]:
    """Rates the columns of a table, best first: 0 for a key or unique column, 1 for an indexed one, 2 for others."""

    def prefer(column: str) -> int:
        if column == schema.primary_key or column in schema.unique_columns:
            return 0
        return 1 if (column,) in schema.indexes else NOT_INDEXED

    return prefer


class Query:
    """A query. Equal to every other that asks for the same, however it was written."""

    __slots__ = (
        "_hash",
        "condition",
        "depends_on_sender",
        "has_exists",
        "join",
        "key",
        "reads",
        "table",
        "view",
        "view_asks_sender",
    )

    def __init__(
        self,
        table: TableSchema,
        condition: Condition,
        join: Join | None = None,
        view: Function | None = None,
        reads_sender: bool = False,
    ) -> None:
        self.table = table
        """The table whose rows it returns; for a view, its name and the columns of its rows."""
        self.condition = condition
        self.join = join
        self.view = view
        """The view that it asks; `None` for a table."""
        self.view_asks_sender = reads_sender
        """Whether the code of the view asks who looks."""
        self.depends_on_sender = reads_sender or asks_sender(condition)
        """Whether who asks makes a difference (for a view, as far as its code tells)."""
        exists = [leaf for leaf in leaves(condition) if isinstance(leaf, Exists)]
        self.has_exists = bool(exists)
        """Whether client visibility filters with a JOIN are in it."""
        names = {leaf.table for leaf in exists}
        if view is None:
            names.add(table.name)
        if join is not None:
            names.add(join.table.name)
        self.reads = frozenset(names)
        """The tables on which the answer depends; what a view reads comes on top."""
        joined = None if join is None else (join.table.name, join.column, join.other)
        self.key: Hashable = (table.name, joined, key_of(condition))
        """The same for queries that ask for the same; it goes together with the sender if `depends_on_sender`."""
        self._hash = hash(self.key)

    @property
    def name(self) -> str:
        """What the table or view is called on the wire."""
        return self.table.name

    @property
    def is_event(self) -> bool:
        """Whether it follows an event table: no rows to begin with, then the events of each commit."""
        return self.table.event

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Query) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<query {self.name} {self.condition}>"
