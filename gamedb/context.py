"""What the functions of a game get as their first argument: `ReducerContext`, `ProcedureContext`, `ViewContext`.

Contexts are thin: they carry who calls and when, and lead to the tables. The database makes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from gamedb.clock import Clock
from gamedb.columns import from_micros
from gamedb.functions import Function
from gamedb.store import INTERRUPTS, ReadTables, Store, Tables
from gamedb.types import ConnectionId, Identity

if TYPE_CHECKING:
    from gamedb.resolved import Resolved


class Runtime(Protocol):
    """What a context needs of its database."""

    clock: Clock
    module: Resolved
    store: Store
    tables: Tables
    log: logging.Logger
    extensions: dict[Any, Any]

    def random_for_transaction(self) -> random.Random:
        """The seeded generator of the running transaction."""

    def transaction(
        self, *, sender: Identity | None = None, connection_id: ConnectionId | None = None, name: str = ""
    ) -> AbstractContextManager[ReducerContext]:
        """A transaction that commits at the end of the `with`, and rolls back when it raises."""

    def when_durable(self, callback: Callable[[Exception | None], None]) -> None:
        """Call back when all that is committed by now is on disk."""


class ReducerContext:
    """One transaction, as a reducer sees it. Good until the reducer returns."""

    __slots__ = ("_micros", "_now", "_random", "_runtime", "connection_id", "db", "sender")

    _micros: int | None
    _now: datetime | None
    _random: random.Random

    def __init__(self, runtime: Runtime, sender: Identity, connection_id: ConnectionId | None = None) -> None:
        self._runtime = runtime
        self._micros = self._now = None  # most transactions never ask, so the clock is read when one does
        self.db = runtime.tables
        """The tables: `ctx.db[Player]`."""
        self.sender = sender
        """Who called. The database's own identity for in-process calls, schedules and lifecycle reducers."""
        self.connection_id = connection_id
        """The connection that the call came over; `None` for in-process calls and schedules."""

    def share(self, other: ReducerContext) -> None:
        """Become another face of `other`: the same transaction, caller and time.

        For libraries whose own context is a subclass: `super().__init__` is not needed then.
        """
        self._runtime = other._runtime
        self._micros = other._micros if other._micros is not None else other.micros
        self._now = other._now
        self.db = other.db
        self.sender = other.sender
        self.connection_id = other.connection_id

    @property
    def functions(self) -> Mapping[str, Function]:
        """What the running module declares, by name: for libraries that look for their own part of it."""
        return self._runtime.module.functions

    @property
    def extensions(self) -> dict[Any, Any]:
        """What libraries keep in memory for this database, each under a key of its own: a class of theirs, say.

        Nothing of it is stored or rolled back, and another database of the same module has its own.
        """
        return self._runtime.extensions

    @property
    def micros(self) -> int:
        """The time of the transaction, in microseconds since the Unix epoch; the same however long it takes."""
        micros = self._micros
        if micros is None:
            micros = self._micros = self._runtime.clock.micros()
        return micros

    @property
    def now(self) -> datetime:
        """The time of the transaction, in UTC; the same however long it takes."""
        now = self._now
        if now is None:
            micros = self._micros
            now = self._now = from_micros(self.micros if micros is None else micros)
        return now

    @property
    def random(self) -> random.Random:
        """A random generator for this transaction, seeded by the database's seed: a seed reproduces a run."""
        try:
            return self._random
        except AttributeError:
            self._random = self._runtime.random_for_transaction()
            return self._random

    def new_uuid(self) -> UUID:
        """A random (version 4) UUID, from `random`."""
        return UUID(int=self.random.getrandbits(128), version=4)

    @property
    def log(self) -> logging.Logger:
        """The logger of the module."""
        return self._runtime.log

    def savepoint(self) -> AbstractContextManager[None]:
        """A part that can fail alone: `with ctx.savepoint(): ...` undoes its own changes when it raises.

        The exception goes on, so catch it outside: `try: with ctx.savepoint(): ... except ReducerError: ...`.
        Savepoints nest.
        """
        return Savepoint(self._runtime.store)


class Savepoint:
    """What `ctx.savepoint()` gives. Not a generator: an interrupted one would end later, in another transaction."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store.savepoint(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._store.release(self)
        else:
            self._store.rollback_to_savepoint(self, rebuild=isinstance(error, INTERRUPTS))


class ProcedureContext:
    """What a procedure gets: it runs outside of transactions, may wait and do I/O, and opens transactions itself.

    `with ctx.transaction() as tx:` runs one; `tx` is a `ReducerContext`. No `await` belongs inside the `with`:
    other transactions would have to wait for it.
    """

    __slots__ = ("_runtime", "connection_id", "name", "sender")

    def __init__(
        self, runtime: Runtime, name: str, sender: Identity, connection_id: ConnectionId | None = None
    ) -> None:
        self._runtime = runtime
        self.name = name
        """The name of the procedure; commits of its transactions have it as `Commit.reducer`."""
        self.sender = sender
        """Who called; the database's own identity for in-process calls and schedules."""
        self.connection_id = connection_id
        """The connection that the call came over; `None` for in-process calls and schedules."""

    def share(self, other: ProcedureContext, name: str) -> None:
        """Become another face of `other` under a name of its own.

        For libraries whose own context is a subclass: `super().__init__` is not needed then.
        """
        self._runtime = other._runtime
        self.name = name
        self.sender = other.sender
        self.connection_id = other.connection_id

    @property
    def functions(self) -> Mapping[str, Function]:
        """As `ReducerContext.functions`."""
        return self._runtime.module.functions

    @property
    def extensions(self) -> dict[Any, Any]:
        """As `ReducerContext.extensions`."""
        return self._runtime.extensions

    def transaction(self) -> AbstractContextManager[ReducerContext]:
        """A transaction in the caller's name: commits at the end of the `with`, rolls back when it raises."""
        return self._runtime.transaction(sender=self.sender, connection_id=self.connection_id, name=self.name)

    async def durable(self) -> None:
        """Return when all that is committed by now is on disk; `WriteFailed` when it never will be.

        For what must not be told to the world outside before a crash could no longer undo it.
        """
        loop = asyncio.get_running_loop()
        on_disk: asyncio.Future[None] = loop.create_future()

        def settle(error: Exception | None) -> None:
            if on_disk.done():
                return
            if error is None:
                on_disk.set_result(None)
            else:
                on_disk.set_exception(error)

        def tell(error: Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, error)

        self._runtime.when_durable(tell)
        await on_disk

    @property
    def log(self) -> logging.Logger:
        """The logger of the module."""
        return self._runtime.log


class ViewContext:
    """What a view gets: tables to read, and who looks."""

    __slots__ = ("db", "sender")

    def __init__(self, db: ReadTables, sender: Identity) -> None:
        self.db = db
        """The tables, to read: `ctx.db[Player]`."""
        self.sender = sender
        """Who looks."""
