"""One table in memory: its rows, its indexes, and the journal of what the running transaction changed.

`TableData` is the container; what a game sees of it are the views of `gamedb.store.views`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from gamedb.columns import FloatType, IntType, OptionType, ProductType, exact_function, has_float
from gamedb.errors import TransactionError
from gamedb.schema import Row, TableSchema
from gamedb.store.codegen import compile_table
from gamedb.store.index import EqualityIndex, Order, Sequence, UniqueIndex

Journal = dict[Hashable, Row | None]
"""key to the row that it had when the transaction (or savepoint) first touched it; `None`: there was none."""


class Owner(Protocol):
    """Who knows of the running transaction."""

    owned: Callable[[], bool]
    """Whether this thread may read and write; a C function, as it is asked each time."""

    def touch(self, table: TableData) -> Journal:
        """The journal for a table that is about to be written; `TransactionError` in any other thread."""

    def refusal(self, table: str, verb: str) -> TransactionError:
        """What a thread gets that is not in the running transaction."""


class TableData:
    """The rows of one table with everything that is derived from them.

    `insert`, `update`, `remove` and `check` are generated code (see `gamedb.store.codegen`): they check first and
    change last, so an error leaves the table as it was.
    """

    __slots__ = (
        "check",
        "damaged",
        "index",
        "indexes",
        "insert",
        "journal",
        "key_of",
        "order",
        "owner",
        "remove",
        "rows",
        "same",
        "schema",
        "sequence",
        "sequence_saved",
        "unindex",
        "unique",
        "update",
    )

    check: Callable[[Any], Row]
    insert: Callable[[Any], Row]
    update: Callable[[Any], Row]
    remove: Callable[[Hashable], bool]
    index: Callable[[Hashable, Row], None]
    unindex: Callable[[Hashable, Row], None]
    key_of: Callable[[Row], Hashable]
    same: Callable[[Row, Row], bool]

    def __init__(self, schema: TableSchema, owner: Owner) -> None:
        self.schema = schema
        self.owner = owner
        self.rows: dict[Hashable, Row] = {}
        self.unique = {name: UniqueIndex(name) for name in schema.unique_columns}
        optional = {c.name for c in schema.columns if isinstance(c.type, OptionType)}
        self.indexes = {columns: EqualityIndex(columns, not optional.isdisjoint(columns)) for columns in schema.indexes}
        self.order: Order | None = None
        self.journal: Journal | None = None
        self.sequence: Sequence | None = None
        self.sequence_saved: int | None = None
        self.damaged = False
        """Whether a write was cut short (by too deep a recursion, say), so that indexes may be wrong."""
        for column in schema.columns:
            if column.auto_inc and isinstance(column.type, IntType):
                self.sequence = Sequence(schema.name, column.name, column.type.high)
        exact = exact_function(ProductType(schema.row, {c.name: c.type for c in schema.columns}, set()))
        if schema.primary_key is not None:
            self.key_of = operator.attrgetter(schema.primary_key)
        else:
            self.key_of = _whole_row if exact is None else exact
        self.same = operator.eq if exact is None else _same_floats(schema, exact)
        self._compile()

    def _compile(self) -> None:
        names: dict[str, Any] = {
            "table": self,
            "rows": self.rows,
            "owned": self.owner.owned,
            "touch": self.owner.touch,
            "key_of": self.key_of,
            "same": self.same,
            "sequence": self.sequence,
            "skip_numbers": self._skip_numbers,
        }
        names |= {f"unique_{n}": index for n, index in enumerate(self.unique.values())}
        names |= {f"index_{n}": index for n, index in enumerate(self.indexes.values())}
        functions = compile_table(self.schema, names)
        self.check, self.insert, self.remove = functions["check"], functions["insert"], functions["remove"]
        self.index, self.unindex = functions["index"], functions["unindex"]
        self.update = functions["update"] if self.schema.primary_key is not None else self.insert

    def _skip_numbers(self, number: int) -> None:
        assert self.sequence is not None
        if self.sequence_saved is None:
            self.sequence_saved = self.sequence.next
        self.sequence.skip(number)

    def load(self, rows: Iterable[Row]) -> None:
        """Take rows that are known to be canonical and without conflict (from storage), outside a transaction."""
        key_of, index, table = self.key_of, self.index, self.rows
        plain = not self.unique and not self.indexes and self.order is None
        for row in rows:
            key = key_of(row)
            table[key] = row
            if not plain:
                index(key, row)

    def restore(self, journal: Journal, sequence_saved: int | None, rebuild: bool) -> None:
        """Undo a journal; all its keys leave the indexes first, as values may have moved between rows.

        `rebuild`: a change may have been left half done, so the indexes are made afresh from the rows; this can be
        done again when it was itself left half done.
        """
        if rebuild or self.damaged:
            self._rebuild(journal)
            self.damaged = False
        else:
            self._undo(journal)
        if sequence_saved is not None and self.sequence is not None:
            self.sequence.undo(sequence_saved)

    def _undo(self, journal: Journal) -> None:
        rows = self.rows
        for key, old in journal.items():
            row = rows.get(key)
            if row is not None:
                self.unindex(key, row)
                if old is None:
                    del rows[key]
        for key, old in journal.items():
            if old is not None:
                rows[key] = old
                self.index(key, old)

    def _rebuild(self, journal: Journal) -> None:
        rows = self.rows
        for key, old in journal.items():
            if old is None:
                rows.pop(key, None)
            else:
                rows[key] = old
        self._clear_indexes()
        for key, row in rows.items():
            self.index(key, row)

    def clear(self) -> None:
        """Forget all rows (the end of an event table's transaction)."""
        self.rows.clear()
        self._clear_indexes()

    def _clear_indexes(self) -> None:
        everything: list[EqualityIndex | UniqueIndex] = [*self.unique.values(), *self.indexes.values()]
        for index in everything:
            index.keys.clear()
            index.order = None
        self.order = None

    def ordered(self, columns: tuple[str, ...]) -> tuple[Order, dict[Any, Any]] | None:
        """The order over these columns and its map of value to keys, made if need be; `None` without an index."""
        if columns == (self.schema.primary_key,):
            if self.order is None:
                self.order = Order(self.rows)
            return self.order, {}
        index: EqualityIndex | UniqueIndex | None = self.indexes.get(columns)
        if index is None and len(columns) == 1:
            index = self.unique.get(columns[0])
        if index is None:
            return None
        if index.order is None:
            index.order = Order(index.keys)
        return index.order, index.keys


def _whole_row(row: Row) -> Hashable:
    return row


def _same_floats(schema: TableSchema, exact: Callable[[Any], Any]) -> Callable[[Row, Row], bool]:
    """Equality that tells -0.0 from 0.0 and takes nan for itself."""
    parts = []
    for column in schema.columns:
        if isinstance(column.type, FloatType):
            parts.append(f"row.{column.name} != row.{column.name}")
        elif has_float(column.type):
            parts.append("True")
    may_have_nan = eval(f"lambda row: {' or '.join(parts)}")  # made of checked identifiers

    def same(left: Row, right: Row) -> bool:
        if left != right and not may_have_nan(right):
            return False
        return bool(exact(left) == exact(right))

    return same
