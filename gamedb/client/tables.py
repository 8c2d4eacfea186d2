"""A table as users of the client see it: the rows that it holds now, and what happens to them."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from gamedb.client.cache import Change
from gamedb.client.core import Core
from gamedb.errors import ConnectionLost, GamedbError, TransactionError
from gamedb.schema import Row, unknown_column

R = TypeVar("R", bound=Row)

_log: Final = logging.getLogger("gamedb.client")

CHANGES_MAX: Final = 100_000
"""Changes that may wait for one `changes()` loop."""

Undo = Callable[[], None]


class ClientTable(Generic[R]):
    """The rows of one table or view that this client is subscribed to."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self.name = name
        """The name of the table or view."""
        self._schema = core.remote.table(name).schema
        self._on_insert: list[Callable[[R], object]] = []
        self._on_update: list[Callable[[R, R], object]] = []
        self._on_delete: list[Callable[[R], object]] = []
        self._readers: weakref.WeakSet[Changes[R]] = weakref.WeakSet()
        self._over: GamedbError | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<table {self.name} of a client, {len(self)} rows>"

    # --- rows

    def __iter__(self) -> Iterator[R]:
        """The rows that are here now, in no order."""
        return iter([held.row for held in self._core.tables[self.name].rows.values()])

    def __len__(self) -> int:
        """How many rows are here now."""
        return len(self._core.tables[self.name].rows)

    def count(self) -> int:
        """The number of rows."""
        return len(self)

    def get(self, key: Any) -> R | None:
        """The row with this primary key; `None` when it is not there."""
        name = self._schema.primary_key
        if name is None:
            raise TransactionError(f"table {self.name!r} has no primary key; use where(...)")
        held = self._core.tables[self.name].rows.get(self._schema.column(name).type.coerce(key, name))
        return None if held is None else held.row

    def find(self, **unique: Any) -> R | None:
        """The row with this value in a unique column: `find(name="ann")`; `None` when it is not there.

        It looks at all rows, unless the column is the primary key.
        """
        if len(unique) != 1:
            raise TransactionError(f"find takes one unique column, not {len(unique)}; use where(...) for several")
        [(name, value)] = unique.items()
        if name == self._schema.primary_key:
            return self.get(value)
        found = self.where(**unique)
        if not self._schema.column(name).unique:
            raise TransactionError(f"{self.name}.{name} is not unique; use where({name}=...)")
        return found[0] if found else None

    def where(self, **equal: Any) -> list[R]:
        """The rows whose columns have these values. It looks at all rows."""
        for name in equal:
            if all(column.name != name for column in self._schema.columns):
                raise TransactionError(unknown_column(self._schema, name))
        return [row for row in self if all(getattr(row, name) == value for name, value in equal.items())]

    # --- changes

    def on_insert(self, callback: Callable[[R], object]) -> Undo:
        """Call back with each row that comes; gives the function that ends it."""
        return add(self._on_insert, callback)

    def on_update(self, callback: Callable[[R, R], object]) -> Undo:
        """Call back with the old and the new row of each that changes; gives the function that ends it.

        Tables without a primary key have no updates: the old row goes, and the new one comes.
        """
        return add(self._on_update, callback)

    def on_delete(self, callback: Callable[[R], object]) -> Undo:
        """Call back with each row that goes; gives the function that ends it."""
        return add(self._on_delete, callback)

    def changes(self) -> Changes[R]:
        """What happens to the rows from now on: `async for change in table.changes()`.

        It ends when the client is closed. A loop that leaves more than `CHANGES_MAX` changes waiting gets an error.
        """
        reader: Changes[R] = Changes(self.name)
        if self._closed:
            reader.finish(self._over)
        self._readers.add(reader)
        return reader

    def deliver(self, change: Change[R]) -> None:
        """Tell of a change. For the client itself."""
        if change.old is None:
            calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = [(f, (change.new,)) for f in self._on_insert]
        elif change.new is None:
            calls = [(f, (change.old,)) for f in self._on_delete]
        else:
            calls = [(f, (change.old, change.new)) for f in self._on_update]
        for function, rows in calls:
            run(function, *rows)
        for reader in list(self._readers):
            reader.put(change)

    def finish(self, error: GamedbError | None) -> None:
        """Nothing comes any more. For the client itself."""
        self._closed, self._over = True, error
        for reader in list(self._readers):
            reader.finish(error)


class Changes(Generic[R]):
    """The changes of a table, one after the other."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._waiting: deque[Change[R]] = deque()
        self._news = asyncio.Event()
        self._finished = False
        self._error: GamedbError | None = None

    def __aiter__(self) -> Changes[R]:
        return self

    async def __anext__(self) -> Change[R]:
        while not self._waiting:
            if self._finished:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    def put(self, change: Change[R]) -> None:
        """One more. For the table itself."""
        if self._finished:
            return
        if len(self._waiting) >= CHANGES_MAX:
            self._waiting.clear()
            text = f"{CHANGES_MAX} changes of table {self._table!r} were waiting; read them faster, or use callbacks"
            self.finish(ConnectionLost(text))
            return
        self._waiting.append(change)
        self._news.set()

    def finish(self, error: GamedbError | None = None) -> None:
        """No more after those that are waiting."""
        if not self._finished:
            self._finished, self._error = True, error
            self._news.set()


F = TypeVar("F")


def add(callbacks: list[F], callback: F) -> Undo:
    """Call back from now on; gives the function that ends it."""
    callbacks.append(callback)

    def undo() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return undo


def run(callback: Callable[..., object], *arguments: Any) -> None:
    """Call a user's callback; what it raises is logged, and nothing else stops for it."""
    try:
        callback(*arguments)
    except Exception:
        _log.exception("a callback of the client failed: %r", callback)
