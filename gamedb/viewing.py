"""Runs views, and notes what they look at: what has to change before their result can.

It knows neither who follows a view nor when it runs again.
"""

from __future__ import annotations

from typing import Any, cast

from gamedb.columns import shown
from gamedb.context import ViewContext
from gamedb.errors import ColumnError
from gamedb.functions import Function
from gamedb.schema import Row
from gamedb.store import ReadTable, ReadTables
from gamedb.types import Identity


class Reads:
    """What a run of a view looked at."""

    __slots__ = ("sender", "tables")

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.sender = False
        """Whether it asked who looks. If not, everybody gets the same."""


class _Recorder:
    """`ctx.db` of a view: notes which tables it looks at."""

    def __init__(self, tables: ReadTables, reads: Reads) -> None:
        self._tables = tables
        self._reads = reads

    def __getitem__(self, row: type[Row]) -> ReadTable[Row]:
        table = self._tables[row]
        self._reads.tables.add(table.data.schema.name)
        return table


class _RecordedContext(ViewContext):
    """A `ViewContext` that notes it when somebody asks for the sender."""

    __slots__ = ("_reads", "_sender")

    def __init__(self, db: ReadTables, sender: Identity, reads: Reads) -> None:
        self.db = db
        self._sender = sender
        self._reads = reads

    @property
    def sender(self) -> Identity:  # type: ignore[override]  # an attribute that is noticed
        self._reads.sender = True
        return self._sender


def run_view(
    tables: ReadTables, view: Function, arguments: tuple[Any, ...], sender: Identity, reads: Reads
) -> list[Row]:
    """A view's result as canonical rows; what it looked at goes into `reads`, also when it raises."""
    recorder = cast("ReadTables", _Recorder(tables, reads))
    try:
        result = view.invoke(_RecordedContext(recorder, sender, reads), *arguments)
    except SystemExit as error:  # it would end whoever commits or looks
        raise RuntimeError(f"view {view.name!r} called sys.exit({error.code!r})") from error
    return _as_rows(view, result)


def _as_rows(view: Function, result: Any) -> list[Row]:
    """A view's result as a list of canonical rows; `TypeError` when it is something else."""
    assert view.returns is not None
    if not view.many:
        result = [] if result is None else [result]
    elif not isinstance(result, list | tuple):
        raise TypeError(f"view {view.name!r} declares a list and returned {shown(result)}")
    try:
        return [view.returns.coerce(row, "result") for row in result]
    except ColumnError as error:
        raise TypeError(f"view {view.name!r} returned something else than it declares: {error}") from None
