"""All tables of a database and the one transaction that may be changing them.

Writes go straight into the tables; the journals remember what was there. `changes` turns the journals into the net
changes, `rollback` plays them back, savepoints do either for a part. Synchronous, without I/O, clock or locks: the
caller (`gamedb.database`) lets one transaction in at a time.

An interrupt (Ctrl-C, the end of the stack or of memory) may come in the middle of any of it. So what is needed to roll
back is kept until a step is done, and rolling back with `rebuild` trusts the rows and journals alone, never an index.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from threading import get_ident
from typing import Final

from gamedb.errors import TransactionError
from gamedb.schema import Row, TableSchema
from gamedb.store.table import Journal, TableData

RowChange = tuple[Hashable, Row | None, Row | None]
"""(key, row before, row after); `None` where there is none."""

INTERRUPTS: Final = (KeyboardInterrupt, SystemExit, RecursionError, MemoryError)
"""What may be raised in the middle of a change; a rollback after one of these has to be one with `rebuild`."""


Frame = tuple[object, list[TableData] | None, list[tuple[TableData, Journal | None, int | None]]]
"""A savepoint: whose it is, and what it sets aside of the enclosing level: the tables that were touched (`None`: there
were none), and their journals."""


class Store:
    """The tables by name, with `changes`, `end`, `rollback` and nested savepoints."""

    def __init__(self, schemas: Mapping[str, TableSchema], owned: Callable[[], bool] | None = None) -> None:
        self.active = 0
        """The thread of the running transaction (`threading.get_ident`), 0 when there is none."""
        self.owned: Callable[[], bool] = owned if owned is not None else lambda: self.active == get_ident()
        """Whether this thread has the lock on transactions, if there is one; see `Owner`."""
        self.touched: list[TableData] = []
        """The tables that the running transaction wrote to at this level."""
        self._frames: list[Frame] = []
        self.tables = {name: TableData(schema, self) for name, schema in schemas.items()}

    def touch(self, table: TableData) -> Journal:
        """See `Owner`. A table that is touched in each of its writes was none of this transaction's before."""
        if self.active != get_ident():
            raise self.refusal(table.schema.name, "written")
        self.touched.append(table)
        journal: Journal = {}
        table.journal = journal
        return journal

    def refusal(self, table: str, verb: str) -> TransactionError:
        """See `Owner`."""
        where = "from a thread that is not in the running transaction" if self.active else "outside a transaction"
        remedy = "write in a reducer, or in `with db.transaction() as ctx:`"
        if verb == "read":
            remedy = "ctx.db is good in its own transaction and thread alone; elsewhere use db.read(...)"
        return TransactionError(f"table {table!r} was {verb} {where}; {remedy}")

    def changes(self) -> list[tuple[TableData, list[RowChange]]]:
        """What `commit` gives; the transaction goes on until `end` or `rollback`."""
        if self._frames:
            raise TransactionError("a savepoint is still open; write `with ctx.savepoint():`")
        result: list[tuple[TableData, list[RowChange]]] = []
        for table in self.touched:
            if table.damaged:
                raise TransactionError(
                    f"a write to table {table.schema.name!r} was cut short by an exception that was then ignored; "
                    "let it end the transaction, or a savepoint around the write"
                )
            rows, same = table.rows, table.same
            changes: list[RowChange] = []
            for key, old in (table.journal or {}).items():
                new = rows.get(key)
                if new is not old and (new is None or old is None or not same(old, new)):
                    changes.append((key, old, new))
            if changes:
                result.append((table, changes))
        return result

    def end(self) -> None:
        """End the transaction and keep its changes."""
        self.active = 0
        touched = self.touched
        if touched:
            self.touched = []
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
        for table in reversed(self.touched):
            if table.journal is not None:
                table.restore(table.journal, table.sequence_saved, rebuild)
                table.journal = table.sequence_saved = None
        self.touched = []

    def savepoint(self, owner: object = None) -> None:
        """Start a nested part; `release` or `rollback_to_savepoint` by the same owner ends it."""
        if self.active != get_ident():
            raise TransactionError("a savepoint outside a transaction; the context is good until its reducer returns")
        touched = self.touched
        if not touched:
            self._frames.append((owner, None, []))
            return
        self._frames.append((owner, touched, [(t, t.journal, t.sequence_saved) for t in touched]))
        for table in touched:
            table.journal = table.sequence_saved = None
        self.touched = []

    def release(self, owner: object = None) -> None:
        """End the innermost savepoint and keep its changes; `TransactionError` when it is another owner's."""
        whose, touched, saved = self._frames[-1] if self._frames else (None, None, [])
        if whose is not owner or not self._frames:
            if not self._owns(owner):
                raise TransactionError(
                    "this savepoint is over: its transaction, or a savepoint around it, ended before it"
                )
            raise TransactionError("savepoints end in the reverse order of their beginning: the inner one first")
        if touched is None:  # nothing was written outside of it: its journals are those of the outer level
            self._frames.pop()
            return
        for table in self.touched:
            if table not in touched:  # they are few; its journal is that of the outer level from now on
                touched.append(table)
        for table, outer, sequence_saved in saved:
            if table.journal is not None and outer is not None:
                for key, old in table.journal.items():
                    outer.setdefault(key, old)
            table.journal = outer
            if sequence_saved is not None:
                table.sequence_saved = sequence_saved
        self.touched = touched
        self._frames.pop()

    def rollback_to_savepoint(self, owner: object = None, *, rebuild: bool = False) -> None:
        """End the innermost savepoint of this owner, with those inside of it, and undo their changes.

        Nothing happens when it is over already.
        """
        if self._owns(owner):
            while self._undo_savepoint(rebuild) is not owner:
                pass

    def _owns(self, owner: object) -> bool:
        for whose, _, _ in reversed(self._frames):  # noqa: SIM110  # an interrupt would not get out of a generator
            if whose is owner:
                return True
        return False

    def _undo_savepoint(self, rebuild: bool) -> object:
        owner, touched, saved = self._frames[-1]
        self._restore(rebuild)
        if touched is not None:
            self.touched = touched
            for table, journal, sequence_saved in saved:
                table.journal, table.sequence_saved = journal, sequence_saved
        self._frames.pop()
        return owner
