"""All tables of a database and the one transaction that may be changing them.

Writes go straight into the tables; the journals remember what was there. `commit` turns the journals into the net
changes, `rollback` plays them back, savepoints do either for a part. Synchronous, without I/O, clock or locks: the
caller (`gamedb.database`) lets one transaction in at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from threading import get_ident

from gamedb.errors import TransactionError
from gamedb.schema import Row, TableSchema
from gamedb.store.table import Journal, TableData

RowChange = tuple[Hashable, Row | None, Row | None]
"""(key, row before, row after); `None` where there is none."""


class Frame:
    """What a savepoint sets aside: the journals of the enclosing level by table, with their `sequence_saved`."""

    __slots__ = ("journals",)

    def __init__(self, touched: list[TableData]) -> None:
        self.journals = {table: (table.journal or {}, table.sequence_saved) for table in touched}


class Store:
    """The tables by name, with `begin`, `commit`, `rollback` and nested savepoints.

    A KeyboardInterrupt may come at any moment, also inside of these. Each step therefore leaves what `rollback` and
    `end` can be called for again: nothing is forgotten before what replaces it is in place.
    """

    def __init__(self, schemas: Mapping[str, TableSchema]) -> None:
        self.active = 0
        """The thread of the running transaction (`threading.get_ident`), 0 when there is none."""
        self._touched: list[TableData] = []
        self._frames: list[Frame] = []
        self.tables = {name: TableData(schema, self._touch) for name, schema in schemas.items()}

    def _touch(self, table: TableData) -> Journal:
        if self.active != get_ident():
            where = "from a thread that is not in the running transaction" if self.active else "outside a transaction"
            raise TransactionError(
                f"table {table.schema.name!r} was written {where}; "
                "write in a reducer, or in `with db.transaction() as ctx:`"
            )
        journal: Journal = {}
        table.journal = journal
        self._touched.append(table)
        return journal

    @property
    def touched(self) -> Iterable[TableData]:
        """The tables that the running transaction wrote to at this level."""
        return self._touched

    def begin(self) -> None:
        """Start the transaction."""
        assert not self.active
        self.active = get_ident()

    def commit(self) -> list[tuple[TableData, list[RowChange]]]:
        """End the transaction and keep its changes, which it returns."""
        changes = self.changes()
        self.end()
        return changes

    def changes(self) -> list[tuple[TableData, list[RowChange]]]:
        """The net changes of each table that really changed, in the order of first writes.

        `TransactionError` when the transaction cannot be committed.
        """
        if self._frames:
            raise TransactionError("a savepoint is still open; write `with ctx.savepoint():`")
        result: list[tuple[TableData, list[RowChange]]] = []
        for table in self._touched:
            journal, rows, same = table.journal, table.rows, table.same
            assert journal is not None
            if table.damaged:
                raise TransactionError(
                    f"a write to table {table.schema.name!r} was cut short by an exception that was then ignored; "
                    "let it end the transaction, or a savepoint around the write"
                )
            changes: list[RowChange] = []
            for key, old in journal.items():
                new = rows.get(key)
                if new is old or (new is not None and old is not None and same(old, new)):
                    continue
                changes.append((key, old, new))
            if changes:
                result.append((table, changes))
        return result

    def end(self) -> None:
        """End the transaction and keep its changes."""
        for table in self._touched:
            table.journal = table.sequence_saved = None
            if table.schema.event:
                table.clear()
        self._touched = []
        self.active = 0

    def rollback(self) -> None:
        """End the transaction and leave nothing of it."""
        assert self.active
        while self._frames:
            self.rollback_to_savepoint()
        self._restore()
        self.active = 0

    def _restore(self) -> None:
        touched = self._touched
        while touched:
            table = touched[-1]
            table.restore(table.journal or {}, table.sequence_saved)
            table.journal = table.sequence_saved = None
            touched.pop()

    def savepoint(self) -> Frame:
        """Start a nested part; `release` or `rollback_to_savepoint` ends it."""
        if self.active != get_ident():
            raise TransactionError("a savepoint outside a transaction; the context is good until its reducer returns")
        frame = Frame(self._touched)
        self._frames.append(frame)
        self._touched = []
        for table in frame.journals:
            table.journal = table.sequence_saved = None
        return frame

    def release(self, frame: Frame | None = None) -> None:
        """End the innermost savepoint (which must be `frame`, if given) and keep its changes."""
        if frame is not None and frame not in self._frames:
            raise TransactionError("this savepoint is over: its transaction, or a savepoint around it, ended before it")
        if frame is not None and frame is not self._frames[-1]:
            raise TransactionError("savepoints end in the reverse order of their beginning: the inner one first")
        frame = self._frames[-1]
        for table in self._touched:
            journal, sequence_saved = table.journal or {}, table.sequence_saved
            if table in frame.journals:
                outer, outer_saved = frame.journals[table]
                for key, old in journal.items():
                    outer.setdefault(key, old)
                journal, sequence_saved = outer, sequence_saved if outer_saved is None else outer_saved
            frame.journals[table] = (journal, sequence_saved)
        self._resume(frame)

    def rollback_to_savepoint(self, frame: Frame | None = None) -> None:
        """End the innermost savepoint (or `frame`, with those inside of it) and undo its changes.

        Nothing happens when it is over already.
        """
        if frame is None:
            frame = self._frames[-1]
        while frame in self._frames:
            self._restore()
            self._resume(self._frames[-1])

    def _resume(self, frame: Frame) -> None:
        for table in self._touched:
            table.journal = table.sequence_saved = None
        for table, (journal, sequence_saved) in frame.journals.items():
            table.journal, table.sequence_saved = journal, sequence_saved
        self._touched = list(frame.journals)
        self._frames.pop()

    def rows(self) -> Iterator[tuple[TableData, Iterable[Row]]]:
        """Each table with its rows."""
        for table in self.tables.values():
            yield table, table.rows.values()
