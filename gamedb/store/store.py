"""All tables of a database and the one transaction that may be changing them.

Writes go straight into the tables; the journals remember what was there. `changes` turns the journals into the net
changes, `rollback` plays them back, savepoints do either for a part. Synchronous, without I/O, clock or locks: the
caller (`gamedb.database`) lets one transaction in at a time.

An interrupt (Ctrl-C, the end of the stack or of memory) may come in the middle of any of it. So what is needed to roll
back is kept until a step is done, and rolling back with `rebuild` trusts the rows and journals alone, never an index.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from threading import get_ident
from typing import Final

from gamedb.errors import TransactionError
from gamedb.schema import Row, TableSchema
from gamedb.store.table import Journal, TableData

RowChange = tuple[Hashable, Row | None, Row | None]
"""(key, row before, row after); `None` where there is none."""

INTERRUPTS: Final = (KeyboardInterrupt, SystemExit, RecursionError, MemoryError)
"""What may be raised in the middle of a change; a rollback after one of these has to be one with `rebuild`."""


class Frame:
    """What a savepoint sets aside: the journals of the enclosing level, and which tables they belong to."""

    __slots__ = ("saved", "touched")

    def __init__(self, touched: list[TableData]) -> None:
        self.touched = touched
        self.saved = [(table.journal, table.sequence_saved) for table in touched]


class Store:
    """The tables by name, with `changes`, `end`, `rollback` and nested savepoints."""

    def __init__(self, schemas: Mapping[str, TableSchema]) -> None:
        self.active = 0
        """The thread of the running transaction (`threading.get_ident`), 0 when there is none."""
        self._touched: list[TableData] = []
        self._frames: list[tuple[object, Frame | None]] = []  # whose; None: nothing had been written when it began
        self.tables = {name: TableData(schema, self._touch) for name, schema in schemas.items()}

    def _touch(self, table: TableData) -> Journal:
        if self.active != get_ident():
            where = "from a thread that is not in the running transaction" if self.active else "outside a transaction"
            raise TransactionError(
                f"table {table.schema.name!r} was written {where}; "
                "write in a reducer, or in `with db.transaction() as ctx:`"
            )
        self._touched.append(table)
        journal: Journal = {}
        table.journal = journal
        return journal

    @property
    def touched(self) -> Iterable[TableData]:
        """The tables that the running transaction wrote to at this level."""
        return self._touched

    def changes(self) -> list[tuple[TableData, list[RowChange]]]:
        """What `commit` gives; the transaction goes on until `end` or `rollback`."""
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
        self.active = 0
        touched = self._touched
        if touched:
            self._touched = []
            for table in touched:
                table.journal = table.sequence_saved = None
                if table.schema.event:
                    table.clear()

    def rollback(self, *, rebuild: bool = False) -> None:
        """End the transaction and leave nothing of it. With `rebuild` it may follow a rollback that was interrupted."""
        assert self.active
        while self._frames:
            self._undo_savepoint(rebuild)
        self._restore(rebuild)
        self.active = 0

    def _restore(self, rebuild: bool) -> None:
        for table in reversed(self._touched):
            if table.journal is not None:
                table.restore(table.journal, table.sequence_saved, rebuild)
                table.journal = table.sequence_saved = None
        self._touched = []

    def savepoint(self, owner: object = None) -> None:
        """Start a nested part; `release` or `rollback_to_savepoint` by the same owner ends it."""
        if self.active != get_ident():
            raise TransactionError("a savepoint outside a transaction; the context is good until its reducer returns")
        if not self._touched:
            self._frames.append((owner, None))
            return
        self._frames.append((owner, Frame(self._touched)))
        for table in self._touched:
            table.journal = table.sequence_saved = None
        self._touched = []

    def release(self, owner: object = None) -> None:
        """End the innermost savepoint and keep its changes; `TransactionError` when it is another owner's."""
        whose, frame = self._frames[-1] if self._frames else (None, None)
        if whose is not owner or not self._frames:
            if not self._owns(owner):
                raise TransactionError(
                    "this savepoint is over: its transaction, or a savepoint around it, ended before it"
                )
            raise TransactionError("savepoints end in the reverse order of their beginning: the inner one first")
        if frame is None:  # nothing was written outside of it: its journals are those of the outer level
            self._frames.pop()
            return
        for table in self._touched:
            journal, sequence_saved = table.journal, table.sequence_saved
            if table not in frame.touched:  # they are few
                frame.saved.append((journal, sequence_saved))
                frame.touched.append(table)
                continue
            place = frame.touched.index(table)
            outer, outer_sequence_saved = frame.saved[place]
            assert outer is not None
            assert journal is not None
            for key, old in journal.items():
                outer.setdefault(key, old)
            if outer_sequence_saved is None:
                frame.saved[place] = (outer, sequence_saved)
        self._resume(frame)
        self._frames.pop()

    def rollback_to_savepoint(self, owner: object = None, *, rebuild: bool = False) -> None:
        """End the innermost savepoint of this owner, with those inside of it, and undo their changes.

        Nothing happens when it is over already.
        """
        if self._owns(owner):
            while self._undo_savepoint(rebuild) is not owner:
                pass

    def _owns(self, owner: object) -> bool:
        for whose, _ in reversed(self._frames):  # noqa: SIM110  # an interrupt would not get out of a generator
            if whose is owner:
                return True
        return False

    def _undo_savepoint(self, rebuild: bool) -> object:
        owner, frame = self._frames[-1]
        self._restore(rebuild)
        if frame is not None:
            self._resume(frame)
        self._frames.pop()
        return owner

    def _resume(self, frame: Frame) -> None:
        for table in self._touched:
            table.journal = table.sequence_saved = None
        self._touched = frame.touched
        for table, (journal, sequence_saved) in zip(frame.touched, frame.saved, strict=False):
            table.journal, table.sequence_saved = journal, sequence_saved
