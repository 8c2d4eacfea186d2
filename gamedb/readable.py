"""A database as it is looked at from outside of transactions: read, asked, subscribed to and observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gamedb.callables import Callables
from gamedb.clock import Clock
from gamedb.commit import Commit
from gamedb.committed import CommittedTable
from gamedb.resolved import Resolved
from gamedb.schema import Row
from gamedb.store import ReadTable
from gamedb.subscriptions import Subscription, Subscriptions, ViewChange
from gamedb.transactions import Transactions
from gamedb.types import Identity

if TYPE_CHECKING:
    from gamedb.storage.adhoc import AdHocLimits, SqlAnswer

R = TypeVar("R", bound=Row)


class Readable(Transactions):
    """What can be seen, between transactions and of commits."""

    def __init__(self, module: Resolved, clock: Clock, seed: int | str | None, slow_reducer: timedelta) -> None:
        super().__init__(module, clock, seed, slow_reducer)
        self.operators: set[Identity] = {self.identity}
        """Who may call private and scheduled functions."""
        self.callables = Callables(module, self.operators)
        self._committed: dict[type[Row], CommittedTable[Any]] = {}
        self._subscriptions = Subscriptions(self)

    def read(self, row: type[R], /) -> ReadTable[R]:
        """The committed rows of a table, from any thread, outside transactions. `UnknownName` for another's table."""
        table = self._committed.get(row)
        if table is None:
            table = self._committed[row] = CommittedTable(self, self.tables[row].data)
        return table

    def view(self, view: Callable[..., Any] | str, /, *args: Any, sender: Identity | None = None) -> Any:
        """The result of a view (the function, or its name) now, as `sender` sees it; by default the database itself."""
        function = self.callables.find(view, "view")
        with self.lock:
            self._assert_readable()
            return self._subscriptions.evaluate(function, function.arguments_from(args, {}), sender or self.identity)

    @overload
    def subscribe(self, what: type[Row] | Iterable[type[Row]], callback: Callable[[Commit], None]) -> Subscription: ...
    @overload
    def subscribe(
        self,
        what: Callable[..., Any] | str,
        callback: Callable[[ViewChange], None],
        *args: Any,
        sender: Identity | None = ...,
        on_error: Callable[[Exception], None] | None = ...,
    ) -> Subscription: ...
    def subscribe(
        self,
        what: Any,
        callback: Callable[[Any], None],
        *args: Any,
        sender: Identity | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Subscription:
        """Call back for each later commit that touches a table (or one of several), or that changes a view's result.

        `what` is one Row class or several, with a callback that gets the `Commit`; or a view with its arguments, with a
        callback that gets a `ViewChange`. Gives what ends it.

        Callbacks run in the committing thread, after the commit, in commit order; what they raise is logged. A view
        that raises while it is evaluated again sends the error to `on_error`, and never harms the commit.
        """
        if isinstance(what, type | Iterable) and not isinstance(what, str):
            rows = [what] if isinstance(what, type) else list(what)
            return self._subscriptions.add_tables([self.tables[row].data.schema.name for row in rows], callback)
        function = self.callables.find(what, "view")
        with self.lock:
            self._assert_readable()
            return self._subscriptions.add_view(
                function, function.arguments_from(args, {}), sender or self.identity, callback, on_error
            )

    def sql(self, query: str, *, limits: AdHocLimits | None = None) -> SqlAnswer:
        """The answer of the storage engine to a query in its own SQL, over all that is committed; it can only read.

        For operators and tools: it may scan, and shows private tables. `QueryError` says what is wrong with the query.
        """
        if self._durability is not None:
            self.flush()
            return self._durability.ask(query, limits)
        from gamedb.storage.adhoc import ask_rows

        def rows(names: list[str]) -> dict[str, dict[Any, Row]]:
            with self.lock:
                self._assert_readable()
                return {name: dict(self.store.tables[name].rows) for name in names}

        return ask_rows({name: data.schema for name, data in self.store.tables.items()}, rows, query, limits=limits)

    def observe(self, observer: Callable[[Commit], None]) -> Callable[[], None]:
        """Show every commit to `observer` before anybody else can see or change what it did: for servers.

        It runs under the database's lock, in the committing thread, in commit order, and must neither wait nor call
        the database; what it raises is logged. Gives the function that ends it.
        """
        with self.lock:
            return self._subscriptions.add_observer(observer)
