"""How one transaction at a time begins, commits, is rolled back and stops the database: what a `Database` is built on.

Order of a commit: storage, scheduler, subscriptions. An observer never vetoes. It knows nothing of how functions are
called, read from outside or served.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from threading import get_ident
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from gamedb.clock import Clock
from gamedb.context import ReducerContext
from gamedb.errors import DatabaseClosed, TransactionError
from gamedb.identity import identity_of_database
from gamedb.resolved import Resolved
from gamedb.store import INTERRUPTS, ReadTables, Store, Tables
from gamedb.system import SYSTEM_TABLES
from gamedb.types import ConnectionId, Identity
from gamedb.watchdog import watch

if TYPE_CHECKING:
    from gamedb.durability import Durability, Writing
    from gamedb.scheduler import Scheduler
    from gamedb.subscriptions import Subscriptions

T = TypeVar("T")


class Transactions:
    """The tables, the lock on them, and who is told of a commit."""

    _scheduler: Scheduler
    _subscriptions: Subscriptions

    def __init__(self, module: Resolved, clock: Clock, seed: int | str | None, slow_reducer: timedelta) -> None:
        self.module = module
        self.clock = clock
        self.log = logging.getLogger(f"gamedb.{module.name}")
        self.identity = identity_of_database(module.name)
        """Who the database itself is: the sender of in-process calls, schedules and lifecycle reducers."""
        self.lock = threading.RLock()
        self.last_tx_id = 0
        """The number of the last transaction that changed anything; 0 when none has."""
        """The number of the last commit."""
        self._seed = os.urandom(16).hex() if seed is None else seed
        self._random_uses = 0
        self.running: tuple[str, float, int] | None = None
        self.slow_seconds = slow_reducer.total_seconds()
        self.on_timing: Callable[[str, float], None] | None = None
        """For servers: is told the name and the seconds of each transaction, in its thread; must be quick."""
        self.extensions: dict[Any, Any] = {}
        """What libraries keep in memory for this database, each under a key of its own."""
        self._closed = False
        self._refusal: DatabaseClosed | None = None
        self._process = os.getpid()
        self._durability: Durability | None = None
        self._writer: Writing | None = None
        watch(self)

        owned: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]  # as in `_has_lock`
        self.store = Store({**module.tables, **SYSTEM_TABLES}, owned)
        system = [self.store.tables[name] for name in SYSTEM_TABLES]
        self._system = Tables("gamedb", system)
        self._committed_system = ReadTables("gamedb", system)
        self.game_tables = [self.store.tables[name] for name in module.tables]
        self.tables = Tables(module.name, self.game_tables)

    def execute(
        self,
        name: str,
        body: Callable[..., T],
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> T:
        """Run `body(ctx, *arguments)` as one transaction under this name. What `call` is made of."""
        if self._writer is not None and self._writer.blocked:
            self._writer.admit()
        with self.lock:
            self._refuse(name)
            try:
                ctx = self._begin(name, sender, connection_id)
                result = body(ctx, *arguments)
                self._commit(ctx, name)
            except BaseException as error:
                self._rollback(error)
                raise
            finally:
                running, self.running = self.running, None  # here, as a call could be interrupted before it is done
                self._end(running)
            return result

    def transaction(
        self, *, sender: Identity | None = None, connection_id: ConnectionId | None = None, name: str = ""
    ) -> Transaction:
        """A transaction without a reducer: `with db.transaction() as ctx: ctx.db[Player].insert(...)`."""
        return Transaction(self, name, sender, connection_id)

    # The parts of a transaction, for `execute` and `Transaction` only.

    def _admit(self) -> None:
        """Wait while the writer is behind; raise when it has failed."""
        if self._writer is not None and self._writer.blocked:
            self._writer.admit()

    def _refuse(self, name: str) -> None:
        """Under the lock: raise unless a transaction may begin."""
        if self.running is not None:
            raise TransactionError(
                f"{name or 'a transaction'!r} was started inside a running transaction, which cannot wait for it; "
                "call the function itself and pass it your ctx: other_reducer(ctx, ...)"
            )
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if self.store.active:  # an interrupt came before the rollback could begin
            self.store.rollback(rebuild=True)

    def _begin(self, name: str, sender: Identity | None, connection_id: ConnectionId | None) -> ReducerContext:
        """Start it."""
        ctx = ReducerContext(self, sender or self.identity, connection_id)
        thread = self.store.active = get_ident()
        self.running = (name, perf_counter(), thread)
        return ctx

    def _end(self, running: tuple[str, float, int] | None) -> None:
        """After it, whatever came of it: warn if it was slow, tell subscribers."""
        if running is None:  # it was interrupted before it began
            return
        seconds = perf_counter() - running[1]
        if self.on_timing is not None:
            self.on_timing(running[0], seconds)
        if seconds > self.slow_seconds:
            name = running[0] or "a transaction"
            self.log.warning("%s took %.3f s (warned of from %g s on)", name, seconds, self.slow_seconds)
        if self._subscriptions.any:
            self._subscriptions.deliver()

    def _commit(self, ctx: ReducerContext, name: str) -> None:
        """Keep its changes and hand them to the observers."""
        store, scheduler = self.store, self._scheduler
        changes = store.changes()
        scheduled = not scheduler.tables.isdisjoint(store.touched)
        if scheduled and scheduler.before_commit(changes, ctx):
            changes = store.changes()
        try:
            store.end()
            if not changes:
                return
            self.last_tx_id += 1
            if self._durability is not None:
                self._durability.submit(self.last_tx_id, changes)
            if scheduled:
                scheduler.after_commit()
            if self._subscriptions.any:
                self._subscriptions.enqueue(self.last_tx_id, ctx.micros, ctx.sender, name, changes)
        except BaseException as error:  # neither rolled back nor told to everybody: nothing may build on it
            self._stop(error)
            raise

    def _rollback(self, error: BaseException) -> None:
        """Leave nothing of it."""
        if self.store.active and self._refusal is None:
            try:
                self.store.rollback(rebuild=isinstance(error, INTERRUPTS))
            except BaseException as first:
                try:
                    self.store.rollback(rebuild=True)
                except BaseException as second:
                    self._stop(second)
                    raise
                if isinstance(first, INTERRUPTS):
                    raise

    def _stop(self, error: BaseException) -> None:
        """Accept nothing more, as what is in memory may be half of a transaction; what is on its way to disk is not."""
        self._refusal = DatabaseClosed(
            f"database {self.module.name!r} was stopped by {type(error).__name__} in the middle of a commit or "
            "rollback; close it and open it again"
        )
        self.log.error("%s", self._refusal, exc_info=error)

    def random_for_transaction(self) -> random.Random:
        """A generator for the running transaction, from the seed, the last commit and the number of generators yet."""
        self._random_uses += 1
        return random.Random(f"{self._seed}/{self.last_tx_id}/{self._random_uses}")

    def _is_inside(self) -> bool:
        """Whether this thread is in the running transaction."""
        running = self.running
        return running is not None and running[2] == get_ident()

    def _has_lock(self) -> bool:
        """Whether this thread is in a transaction or in a callback."""
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]  # what `threading.Condition` asks, too

    def _assert_readable(self) -> None:
        """Under the lock: raise unless this is a moment between transactions."""
        if self.running is not None:
            raise TransactionError("inside a transaction use ctx.db[...]: it also shows what is not committed yet")
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if self.store.active:  # an interrupt came before the rollback could begin
            self.store.rollback(rebuild=True)

    def report_failure(self, name: str, error: BaseException) -> None:
        """Log an exception that nobody else will see."""
        text = "%s failed and was rolled back: %r"
        self.log.error(text, name, error, exc_info=error, extra={"gamedb_function": name})

    # --- durability

    def flush(self, timeout: timedelta | None = None) -> None:
        """Return when everything that is committed by now is on disk. `WriteFailed` when it cannot be."""
        if self._process != os.getpid():
            raise self._closed_error()
        if self._durability is not None:
            self._durability.flush(timeout)

    def when_durable(self, callback: Callable[[Exception | None], None]) -> None:
        """Call back once when all that is committed by now is on disk: with None, or with why it never will be.

        The call may come from another thread, and must be short.
        """
        if self._writer is None:
            callback(None)
        else:
            self._writer.when_durable(self.last_tx_id, callback)

    @property
    def durable_tx_id(self) -> int:
        """The last transaction that is on disk; without storage, the last one."""
        return self.last_tx_id if self._writer is None else self._writer.durable_tx_id

    def _closed_error(self) -> DatabaseClosed:
        if self._process != os.getpid():
            return DatabaseClosed(
                f"database {self.module.name!r} was opened by process {self._process}, of which this one is a fork; "
                "open it after forking"
            )
        return DatabaseClosed(f"database {self.module.name!r} was closed")


class Transaction:
    """What `db.transaction()` gives: it commits at the end of the `with`, and rolls back when that raises."""

    def __init__(
        self, db: Transactions, name: str, sender: Identity | None, connection_id: ConnectionId | None
    ) -> None:
        self._db = db
        self._name = name
        self._who = (sender, connection_id)

    def __enter__(self) -> ReducerContext:
        db = self._db
        db._admit()
        if db._is_inside():
            db._refuse(self._name)
        lock: Any = db.lock
        try:
            lock.acquire()
            db._refuse(self._name)
            self._ctx = db._begin(self._name, *self._who)
        except BaseException as error:
            if lock._is_owned():  # an interrupt can come between the acquiring and anything that would note it
                self._leave(error)
            raise
        return self._ctx

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        db = self._db
        try:
            if error is None:
                db._commit(self._ctx, self._name)
            else:
                db._rollback(error)
        except BaseException as again:
            db._rollback(again)
            raise
        finally:
            running, db.running = db.running, None
            try:
                db._end(running)
            finally:
                db.lock.release()
