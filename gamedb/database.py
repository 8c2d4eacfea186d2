"""`Database`: runs one transaction at a time and hands each commit to its observers.

Order of a commit: storage, scheduler, subscriptions. An observer never vetoes. Everything that a game or a server
does with its data goes through here; the parts (store, scheduler, storage, subscriptions) do not know each other.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import difflib
import hashlib
import logging
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import get_ident
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, overload

from gamedb.clock import Clock, SystemClock
from gamedb.columns import from_micros
from gamedb.commit import Commit
from gamedb.context import ProcedureContext, ReducerContext
from gamedb.drivers import SchedulerThread, drive
from gamedb.durability import Durability
from gamedb.errors import ColumnError, DatabaseClosed, NotAllowed, TransactionError, UnknownName
from gamedb.functions import Function
from gamedb.module import Module
from gamedb.scheduler import FIRINGS_MAX, Scheduler
from gamedb.schema import Row
from gamedb.store import ReadTable, Store, TableData, Tables
from gamedb.subscriptions import Subscription, Subscriptions, ViewChange
from gamedb.system import SYSTEM_TABLES, ClientConnection, Setting
from gamedb.types import ConnectionId, Identity
from gamedb.watchdog import watch

if TYPE_CHECKING:
    from gamedb.storage import Writer

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Row)

SLOW_REDUCER: Final = timedelta(milliseconds=100)
"""From how long on a reducer is logged as slow."""


class Database:
    """A module's tables in memory, and on disk when `path` is given.

    `path`: a file (made when it is not there), or an SQLAlchemy URL; `None` keeps nothing.
    `clock`: `SystemClock()` by default, `ManualClock()` in tests. `seed`: makes `ctx.random` repeatable.
    `slow_reducer`: from how long on a reducer is logged with its name, time and stack. `quiet`: no progress on stderr
    while a large file is loaded.

    Raises `SchemaError` for a module that cannot work, and `StorageError`s for a file that cannot be used.
    """

    def __init__(
        self,
        module: Module,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        seed: int | str | None = None,
        slow_reducer: timedelta = SLOW_REDUCER,
        quiet: bool = False,
    ) -> None:
        self.module = module.resolve()
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.log = logging.getLogger(f"gamedb.{self.module.name}")
        self.identity = _identity_of(self.module.name)
        """Who the database itself is: the sender of in-process calls, schedules and lifecycle reducers."""
        self.operators: set[Identity] = {self.identity}
        """Who may call private and scheduled functions."""
        self.lock = threading.RLock()
        self.last_tx_id = 0
        """The number of the last commit."""
        self._seed = os.urandom(16).hex() if seed is None else seed
        self._random_uses = 0
        self.running: tuple[str, float, int] | None = None
        self.slow_seconds = slow_reducer.total_seconds()
        self._closed = False
        self._thread: SchedulerThread | None = None
        watch(self)
        self._by_function = {f.function: f for f in self.module.functions.values()}

        self.store = Store({**self.module.tables, **SYSTEM_TABLES})
        self._system = Tables("gamedb", [self.store.tables[name] for name in SYSTEM_TABLES])
        self.game_tables = [self.store.tables[name] for name in self.module.tables]
        self.tables = Tables(self.module.name, self.game_tables)
        self._committed: dict[type[Row], _CommittedTable[Any]] = {}
        self._scheduler = Scheduler(self, self.module.functions)
        self._subscriptions = Subscriptions(self)
        self._durability: Durability | None = None
        self._writer: Writer | None = None
        if path is not None:
            self._durability = Durability(path, self.module, self.store, quiet=quiet)
            self._writer = self._durability.writer
            self.last_tx_id = self._writer.durable_tx_id
        try:
            self._scheduler.rebuild()
            self._initialise()
            for opening in self.module.openings:
                self.execute("open", opening, ())
            self._end_lost_connections()
        except BaseException:
            self.close()
            raise

    # --- calling

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a reducer (the function, or its name) in a transaction, as the database itself; gives what it returns.

        Raises what the reducer raised, after rolling back; `UnknownName` and `ArgumentError` before it began.
        """
        function = self._by_function.get(reducer)
        if function is None or function.kind != "reducer":
            function = self._find(reducer, "reducer")
        return self.execute(function.name, function.invoke, function.arguments_from(args, kwargs))

    def call_json(
        self,
        reducer: str,
        arguments: bytes | str | list[Any] | dict[str, Any],
        *,
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a reducer with arguments from JSON: an array in order, or an object by name."""
        function = self._find(reducer, "reducer")
        self._allow(function, sender)
        return self.execute(
            function.name, function.invoke, function.arguments_from_json(arguments), sender, connection_id
        )

    def caller(self, sender: Identity, connection_id: ConnectionId | None = None) -> Caller:
        """The database as somebody else sees it: `db.caller(alice).call(damage, ...)`."""
        return Caller(self, sender, connection_id)

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
            ctx = self._begin(name, sender, connection_id)
            try:
                result = body(ctx, *arguments)
                self._commit(ctx, name)
            except BaseException:
                self._rollback()
                raise
            finally:
                self._end()
            return result

    @contextmanager
    def transaction(
        self, *, sender: Identity | None = None, connection_id: ConnectionId | None = None, name: str = ""
    ) -> Iterator[ReducerContext]:
        """A transaction without a reducer: `with db.transaction() as ctx: ctx.db[Player].insert(...)`."""
        if self._writer is not None and self._writer.blocked:
            self._writer.admit()
        with self.lock:
            ctx = self._begin(name, sender, connection_id)
            try:
                yield ctx
                self._commit(ctx, name)
            except BaseException:
                self._rollback()
                raise
            finally:
                self._end()

    def _begin(self, name: str, sender: Identity | None, connection_id: ConnectionId | None) -> ReducerContext:
        if self.running is not None:
            raise TransactionError(
                f"{name or 'a transaction'!r} was started inside a running transaction, which cannot wait for it; "
                "call the function itself and pass it your ctx: other_reducer(ctx, ...)"
            )
        if self._closed:
            raise DatabaseClosed(f"database {self.module.name!r} was closed")
        ctx = ReducerContext(self, sender or self.identity, connection_id)
        self.store.active = True
        self.running = (name, perf_counter(), get_ident())
        return ctx

    def _end(self) -> None:
        running, self.running = self.running, None
        assert running is not None
        seconds = perf_counter() - running[1]
        if seconds > self.slow_seconds:
            name = running[0] or "a transaction"
            self.log.warning("%s took %.3f s (warned of from %g s on)", name, seconds, self.slow_seconds)
        if self._subscriptions.any:
            self._subscriptions.deliver()

    def _commit(self, ctx: ReducerContext, name: str) -> None:
        if self._scheduler.enabled:
            for table in list(self.store.touched):
                if table.schema.scheduled is not None:
                    self._scheduler.before_commit(table, lambda: ctx.micros)
        changes = self.store.commit()
        if not changes:
            return
        self.last_tx_id += 1
        if self._durability is not None:
            self._durability.submit(self.last_tx_id, changes)
        if self._scheduler.enabled:
            for table, rows in changes:
                if table.schema.scheduled is not None or table.schema.name == "gamedb_schedule":
                    self._scheduler.after_commit(table, rows)
        if self._subscriptions.any:
            self._subscriptions.enqueue(self.last_tx_id, ctx.micros, ctx.sender, name, changes)

    def _rollback(self) -> None:
        if self.store.active:
            self.store.rollback()

    def random_for_transaction(self) -> random.Random:
        """A generator for the running transaction, from the seed, the last commit and the number of generators yet."""
        self._random_uses += 1
        return random.Random(f"{self._seed}/{self.last_tx_id}/{self._random_uses}")

    def _find(self, name: Any, kind: str) -> Function:
        function = self.module.functions.get(name) if isinstance(name, str) else self._by_function.get(name)
        if function is not None and function.kind == kind:
            return function
        wanted = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
        known = [n for n, f in self.module.functions.items() if f.kind == kind]
        close = difflib.get_close_matches(wanted, known, 1)
        if function is not None:
            hint = f"it is a {function.kind}"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = f"it has: {', '.join(known) or 'none'}"
        raise UnknownName(f"module {self.module.name!r} has no {kind} {wanted!r}; {hint}")

    def _allow(self, function: Function, sender: Identity | None) -> None:
        if function.private and sender is not None and sender not in self.operators:
            what = f"a lifecycle {function.kind}" if function.lifecycle else f"a private or scheduled {function.kind}"
            raise NotAllowed(f"{function.name!r} is {what}; only the database itself and operators may call it")

    # --- procedures

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a procedure to its end, in this thread; gives what it returns. Inside asyncio use the awaitable form."""
        function = self._find(procedure, "procedure")
        return self.run_procedure(function, function.arguments_from(args, kwargs))

    async def call_procedure_async(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a procedure without blocking the loop: an async one on it, a sync one in a thread."""
        function = self._find(procedure, "procedure")
        return await self.run_procedure_async(function, function.arguments_from(args, kwargs))

    async def run_procedure_async(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a procedure with canonical arguments without blocking the loop."""
        ctx = ProcedureContext(self, function.name, sender or self.identity, connection_id)
        if function.is_async:
            return _result(function, await function.invoke(ctx, *arguments))
        return _result(function, await asyncio.to_thread(function.invoke, ctx, *arguments))

    def run_procedure(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a procedure with canonical arguments to its end. What `call_procedure` is made of."""
        if self._is_inside():
            raise TransactionError(
                f"procedure {function.name!r} was called inside a transaction, which would have to wait for it"
            )
        ctx = ProcedureContext(self, function.name, sender or self.identity, connection_id)
        if not function.is_async:
            return _result(function, function.invoke(ctx, *arguments))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _result(function, asyncio.run(function.invoke(ctx, *arguments)))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # a loop is running here: use another thread's
            return _result(function, pool.submit(asyncio.run, function.invoke(ctx, *arguments)).result())

    def _is_inside(self) -> bool:
        """Whether this thread is in the running transaction."""
        running = self.running
        return running is not None and running[2] == get_ident()

    # --- reading and following

    def read(self, row: type[R], /) -> ReadTable[R]:
        """The committed rows of a table, from any thread, outside transactions."""
        table = self._committed.get(row)
        if table is None:
            table = self._committed[row] = _CommittedTable(self, self.tables[row].data)
        return table

    def view(self, view: Callable[..., Any] | str, /, *args: Any, sender: Identity | None = None) -> Any:
        """The result of a view now, as `sender` sees it."""
        function = self._find(view, "view")
        with self.reading():
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

        Callbacks run in the committing thread, after the commit, in commit order; what they raise is logged. A view
        that raises while it is evaluated again sends the error to `on_error`, and never harms the commit.
        """
        if isinstance(what, type | Iterable) and not isinstance(what, str):
            rows = [what] if isinstance(what, type) else list(what)
            return self._subscriptions.add_tables([self.tables[row].data.schema.name for row in rows], callback)
        function = self._find(what, "view")
        with self.reading():
            return self._subscriptions.add_view(
                function, function.arguments_from(args, {}), sender or self.identity, callback, on_error
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A moment between transactions: nothing changes until the `with` ends."""
        with self.lock:
            if self.running is not None:
                raise TransactionError("inside a transaction use ctx.db[...]: it also shows what is not committed yet")
            if self._closed:
                raise DatabaseClosed(f"database {self.module.name!r} was closed")
            yield

    # --- clients

    def connect(self, identity: Identity, connection_id: ConnectionId) -> None:
        """A client comes: runs `client_connected`; if that raises, the client is refused and nothing has changed."""

        def body(ctx: ReducerContext) -> None:
            self._system[ClientConnection].insert(
                ClientConnection(connection_id=connection_id, identity=identity, connected_at=ctx.now)
            )
            for function in self.module.lifecycle["client_connected"]:
                function.invoke(ctx)

        self.execute("client_connected", body, (), identity, connection_id)

    def disconnect(self, connection_id: ConnectionId) -> None:
        """A client has gone: runs `client_disconnected` once; if that raises, the client is gone all the same."""
        with self.lock:
            connection = self._system[ClientConnection].get(connection_id)
            if connection is None:
                raise UnknownName(f"connection {connection_id} is not open")

            def forget(_ctx: ReducerContext) -> None:
                self._system[ClientConnection].delete(connection_id)

            def body(ctx: ReducerContext) -> None:
                forget(ctx)
                for function in self.module.lifecycle["client_disconnected"]:
                    function.invoke(ctx)

            try:
                self.execute("client_disconnected", body, (), connection.identity, connection_id)
            except Exception as error:
                self.report_failure("client_disconnected", error)
                self.execute("client_disconnected", forget, (), connection.identity, connection_id)

    def _end_lost_connections(self) -> None:
        for connection in self._system[ClientConnection]:
            self.disconnect(connection.connection_id)

    def _initialise(self) -> None:
        if self._system[Setting].get("initialised") is not None:
            return

        def body(ctx: ReducerContext) -> None:
            self._system[Setting].insert(Setting(key="initialised", value=ctx.now.isoformat()))
            for function in self.module.lifecycle["init"]:
                function.invoke(ctx)

        self.execute("init", body, ())

    # --- time

    def run_due(self, *, limit: int = FIRINGS_MAX) -> int:
        """Fire everything that is due by now, in order; how many rows fired.

        For tests with a `ManualClock`, and for loops of your own. `TransactionError` when `limit` is reached.
        """
        fired = self._scheduler.run_due(limit=limit)
        due = self._scheduler.next_due() if fired == limit else None
        if due is not None and due <= self.clock.micros():
            raise TransactionError(
                f"{fired} scheduled rows fired and more are due; does a reducer schedule itself again at ctx.now?"
            )
        return fired

    @property
    def next_due(self) -> datetime | None:
        """When the next scheduled row fires; `None` when none is pending."""
        due = self._scheduler.next_due()
        return None if due is None else from_micros(due)

    def run(self) -> None:
        """Drive schedules in a thread from now on, until `close`. Twice is once."""
        if self._closed:
            raise DatabaseClosed(f"database {self.module.name!r} was closed")
        if self._thread is None:
            self._thread = SchedulerThread(self._scheduler, self.clock, self.module.name)

    async def run_async(self) -> None:
        """Drive schedules from the running asyncio loop, until cancelled."""
        await drive(self._scheduler, self.clock)

    def report_failure(self, name: str, error: BaseException) -> None:
        """Log an exception that nobody else will see."""
        self.log.error("%s failed and was rolled back: %r", name, error, exc_info=error)

    # --- durability and the end

    def flush(self, timeout: timedelta | None = None) -> None:
        """Return when everything that is committed by now is on disk. `WriteFailed` when it cannot be."""
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

    def close(self) -> None:
        """Stop schedules, write what is committed, release the file. Twice is once."""
        if self._is_inside():
            raise TransactionError("close() inside a transaction; let it end first")
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
        self._scheduler.close()
        with self.lock:
            if self._closed:
                return
            self._closed = True
        if self._durability is not None:
            self._durability.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gamedb database {self.module.name}: transaction {self.last_tx_id}>"


class Caller:
    """A database as one identity uses it: what is private is refused."""

    def __init__(self, db: Database, sender: Identity, connection_id: ConnectionId | None = None) -> None:
        self._db = db
        self.sender = sender
        self.connection_id = connection_id

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As `Database.call`, with this identity as `ctx.sender`. `NotAllowed` for private reducers."""
        function = self._db._find(reducer, "reducer")
        self._db._allow(function, self.sender)
        arguments = function.arguments_from(args, kwargs)
        return self._db.execute(function.name, function.invoke, arguments, self.sender, self.connection_id)

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """As `Database.call_procedure`, with this identity as `ctx.sender`."""
        function = self._db._find(procedure, "procedure")
        self._db._allow(function, self.sender)
        arguments = function.arguments_from(args, kwargs)
        return self._db.run_procedure(function, arguments, self.sender, self.connection_id)

    def view(self, view: Callable[..., Any] | str, /, *args: Any) -> Any:
        """As `Database.view`, seen by this identity."""
        return self._db.view(view, *args, sender=self.sender)


class _CommittedTable(ReadTable[R]):
    """A table outside of transactions: each question is answered between two of them."""

    __slots__ = ("_gate",)

    def __init__(self, db: Database, data: TableData) -> None:
        super().__init__(data)
        self._gate = db.reading

    def get(self, key: Any) -> R | None:
        with self._gate():
            return super().get(key)

    def find(self, /, **unique: Any) -> R | None:
        with self._gate():
            return super().find(**unique)

    def where(self, /, **equalities: Any) -> list[R]:
        with self._gate():
            return super().where(**equalities)

    def between(self, column: str | tuple[str, ...], low: Any, high: Any, *, limit: int | None = None) -> list[R]:
        with self._gate():
            return super().between(column, low, high, limit=limit)

    def count(self, **equalities: Any) -> int:
        with self._gate():
            return super().count(**equalities)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[R]:
        with self._gate():
            return super().__iter__()

    def __contains__(self, row: object) -> bool:
        with self._gate():
            return super().__contains__(row)


def _identity_of(module: str) -> Identity:
    return Identity(hashlib.blake2b(f"gamedb database|{module}".encode(), digest_size=32).digest())


def _result(function: Function, value: Any) -> Any:
    """A procedure's result in canonical form; `TypeError` naming the procedure when it is not what it declared."""
    if function.returns is None:
        return value
    try:
        return function.returns.coerce(value, "result")
    except ColumnError as error:
        raise TypeError(f"procedure {function.name!r} returned something else than it declares: {error}") from None
