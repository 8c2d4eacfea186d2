"""In-process subscriptions: callbacks for the commits that touch a table, or that change the result of a view.

What a commit means to each is settled under the database's lock right after the transaction and delivered in order,
so a callback may call reducers. Nothing that goes wrong here reaches a transaction.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from gamedb.bags import without
from gamedb.columns import exact_function
from gamedb.commit import Commit
from gamedb.functions import Function
from gamedb.schema import Row
from gamedb.store import ReadTables, RowChange, Store, TableData
from gamedb.types import Identity
from gamedb.viewing import Reads, run_view


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
    """The commit that changed it."""
    deleted: list[Row]
    """The rows that are no longer in the result."""
    inserted: list[Row]
    """The rows that are new in the result; a changed row is in both lists."""


Delivery = Callable[[], None]
"""A callback with the commit or change that it gets."""


class Subscription:
    """A running subscription; `close()` (or the end of a `with`) stops it."""

    def __init__(self, owner: Subscriptions, tables: set[str], prepare: Callable[[Commit], Delivery | None]) -> None:
        self.tables = tables
        self.prepare = prepare
        """Called right after a commit that touches the tables: what there is to deliver of it."""
        self.closed = False
        """Whether `close` was called."""
        self._owner = owner

    def close(self) -> None:
        """No callbacks any more. Twice is once."""
        self.closed = True
        self._owner.remove(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Subscriptions:
    """All subscriptions of a database, and what they have not been told yet."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tables = ReadTables("", host.game_tables)
        self._subscriptions: list[Subscription] = []
        self._changes = threading.Lock()  # guards the list against others who subscribe and close
        self._unsettled: deque[tuple[Subscription, Commit]] = deque()
        self._queue: deque[tuple[Subscription, Delivery]] = deque()
        self._delivering = False
        self._observers: list[Callable[[Commit], None]] = []
        self.any = False
        """Whether there is anybody to tell."""

    def add_observer(self, observer: Callable[[Commit], None]) -> Callable[[], None]:
        """Show every commit to `observer`, as a part of committing; gives the function that ends it."""
        with self._changes:
            self._observers = [*self._observers, observer]
            self.any = True

        def stop() -> None:
            with self._changes:
                self._observers = [o for o in self._observers if o is not observer]
                self.any = bool(self._subscriptions or self._observers)

        return stop

    def add_tables(self, names: Sequence[str], callback: Callable[[Commit], None]) -> Subscription:
        """Follow the tables with these names."""
        return self._add(Subscription(self, set(names), lambda commit: partial(callback, commit)))

    def add_view(
        self,
        view: Function,
        arguments: tuple[Any, ...],
        sender: Identity,
        callback: Callable[[ViewChange], None],
        on_error: Callable[[Exception], None] | None,
    ) -> Subscription:
        """Follow a view's result, from what it is now on; raises what the view raises now."""
        reads = Reads()
        current = run_view(self._tables, view, arguments, sender, reads)
        exact = None if view.returns is None else exact_function(view.returns)

        def prepare(commit: Commit) -> Delivery | None:
            nonlocal current
            seen = Reads()
            try:
                after = run_view(self._tables, view, arguments, sender, seen)
            except Exception as error:
                subscription.tables |= seen.tables  # a change of either may mend it
                self._host.report_failure(f"view {view.name}", error)
                return None if on_error is None else partial(on_error, error)
            subscription.tables = seen.tables
            before, current = current, after
            deleted, inserted = without(before, after, exact), without(after, before, exact)
            return partial(callback, ViewChange(commit, deleted, inserted)) if deleted or inserted else None

        subscription = Subscription(self, reads.tables, prepare)
        return self._add(subscription)

    def _add(self, subscription: Subscription) -> Subscription:
        with self._changes:
            self._subscriptions = [*self._subscriptions, subscription]
            self.any = True
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        with self._changes:
            self._subscriptions = [s for s in self._subscriptions if s is not subscription]
            self.any = bool(self._subscriptions or self._observers)

    def evaluate(self, view: Function, arguments: tuple[Any, ...], sender: Identity) -> Any:
        """Run a view: its row or `None`, or its list of rows."""
        rows = run_view(self._tables, view, arguments, sender, Reads())
        return rows if view.many else rows[0] if rows else None

    def enqueue(
        self, tx_id: int, micros: int, caller: Identity, name: str, changes: list[tuple[TableData, list[RowChange]]]
    ) -> None:
        """Take a commit in; `deliver` follows when its transaction is over."""
        commit = Commit(tx_id, micros, caller, name, changes)
        for observer in self._observers:
            try:
                observer(commit)
            except Exception as error:
                self._host.report_failure("an observer of commits", error)
        if self._subscriptions:
            self._unsettled.extend(
                [(s, commit) for s in self._subscriptions if not s.tables.isdisjoint(commit.changes)]
            )

    def deliver(self) -> None:
        """Tell everybody about the commit that was taken in.

        Who is told what is settled at once, so a view is seen as it is after this very commit, and who subscribes in
        a callback hears of later commits only. A callback that commits lengthens the queue. What ends the program
        (a SystemExit, a Ctrl-C) costs only the subscriber whom it hits the commit; the others get it next time.
        """
        if not self._unsettled and not self._queue:
            return
        while self._unsettled:
            subscription, commit = self._unsettled.popleft()
            delivery = subscription.prepare(commit)
            if delivery is not None:
                self._queue.append((subscription, delivery))
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._queue:
                self._notify(*self._queue.popleft())
        finally:
            self._delivering = False

    def _notify(self, subscription: Subscription, delivery: Delivery) -> None:
        if subscription.closed:
            return
        try:
            delivery()
        except Exception as error:
            self._host.report_failure(f"a subscriber of {', '.join(sorted(subscription.tables))}", error)
