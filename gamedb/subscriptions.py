"""In-process subscriptions: callbacks for the commits that touch a table, or that change the result of a view.

Commits are queued under the database's lock and delivered in order after the transaction, so a callback may call
reducers. Nothing that goes wrong here reaches a transaction.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import msgspec

from gamedb.commit import Commit, TableChanges
from gamedb.context import ViewContext
from gamedb.errors import ColumnError
from gamedb.functions import Function
from gamedb.schema import Row
from gamedb.store import ReadTable, ReadTables, RowChange, Store, TableData
from gamedb.types import Identity


class Host(Protocol):
    """What subscriptions need of their database."""

    store: Store

    @property
    def game_tables(self) -> list[TableData]:
        """The tables of the module."""

    def report_failure(self, name: str, error: BaseException) -> None:
        """Log an exception of a callback or view."""


class ViewChange(msgspec.Struct, frozen=True):
    """How the result of a view changed with a commit."""

    commit: Commit
    deleted: list[Row]
    inserted: list[Row]


class Subscription:
    """A running subscription; `close()` (or the end of a `with`) stops it."""

    def __init__(self, owner: Subscriptions, tables: set[str], notify: Callable[[Commit], None]) -> None:
        self.tables = tables
        self.notify = notify
        self._owner = owner

    def close(self) -> None:
        """No callbacks any more. Twice is once."""
        self._owner.remove(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Subscriptions:
    """All subscriptions of a database, and the commits that they have not seen yet."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tables = ReadTables("", host.game_tables)
        self._subscriptions: list[Subscription] = []
        self._queue: deque[Commit] = deque()
        self._delivering = False
        self.any = False
        """Whether there is anybody to tell."""

    def add_tables(self, names: Sequence[str], callback: Callable[[Commit], None]) -> Subscription:
        """Follow the tables with these names."""
        return self._add(Subscription(self, set(names), callback))

    def add_view(
        self,
        view: Function,
        arguments: tuple[Any, ...],
        sender: Identity,
        callback: Callable[[ViewChange], None],
        on_error: Callable[[Exception], None] | None,
    ) -> Subscription:
        """Follow a view's result, from what it is now on; raises what the view raises now."""
        result, tables = self.evaluate(view, arguments, sender)
        current = _rows(view, result)

        def notify(commit: Commit) -> None:
            nonlocal current
            try:
                result, subscription.tables = self.evaluate(view, arguments, sender)
                after = _rows(view, result)
            except Exception as error:
                self._host.report_failure(f"view {view.name}", error)
                if on_error is not None:
                    on_error(error)
                return
            before, current = current, after
            deleted, inserted = _difference(before, after)
            if deleted or inserted:
                callback(ViewChange(commit, deleted, inserted))

        subscription = Subscription(self, tables, notify)
        return self._add(subscription)

    def _add(self, subscription: Subscription) -> Subscription:
        self._subscriptions.append(subscription)
        self.any = True
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        if subscription in self._subscriptions:
            self._subscriptions = [s for s in self._subscriptions if s is not subscription]
            self.any = bool(self._subscriptions)

    def evaluate(self, view: Function, arguments: tuple[Any, ...], sender: Identity) -> tuple[Any, set[str]]:
        """Run a view; its result, and the names of the tables that it looked at."""
        seen: set[str] = set()
        context = ViewContext(cast("ReadTables", _Recorder(self._tables, seen)), sender)
        result = view.invoke(context, *arguments)
        _rows(view, result)
        return result, seen

    def enqueue(
        self, tx_id: int, micros: int, caller: Identity, name: str, changes: list[tuple[TableData, list[RowChange]]]
    ) -> None:
        """Take a commit in, to be delivered when its transaction is over."""
        tables = {t.schema.name: TableChanges[Row](t.schema, rows) for t, rows in changes}
        self._queue.append(Commit(tx_id, micros, caller, name, tables))

    def deliver(self) -> None:
        """Tell everybody about the queued commits, in order. A callback that commits lengthens the queue."""
        if self._delivering or not self._queue:
            return
        self._delivering = True
        try:
            while self._queue:
                commit = self._queue.popleft()
                for subscription in self._subscriptions:
                    if not subscription.tables.isdisjoint(commit.changes):
                        self._notify(subscription, commit)
        finally:
            self._delivering = False

    def _notify(self, subscription: Subscription, commit: Commit) -> None:
        try:
            subscription.notify(commit)
        except Exception as error:
            self._host.report_failure(f"a subscriber of {', '.join(sorted(subscription.tables))}", error)


class _Recorder:
    """`ctx.db` of a view: notes which tables it looks at."""

    def __init__(self, tables: ReadTables, seen: set[str]) -> None:
        self._tables = tables
        self._seen = seen

    def __getitem__(self, row: type[Row]) -> ReadTable[Row]:
        table = self._tables[row]
        self._seen.add(table.data.schema.name)
        return table


def _rows(view: Function, result: Any) -> list[Row]:
    """A view's result as a list of canonical rows; `TypeError` when it is something else."""
    assert view.returns is not None
    rows = list(result) if view.many and isinstance(result, list | tuple) else [] if result is None else [result]
    try:
        return [view.returns.coerce(row, "result") for row in rows]
    except ColumnError as error:
        raise TypeError(f"view {view.name!r} returned something else than it declares: {error}") from None


def _difference(before: list[Row], after: list[Row]) -> tuple[list[Row], list[Row]]:
    old, new = Counter(before), Counter(after)
    return list((old - new).elements()), list((new - old).elements())
