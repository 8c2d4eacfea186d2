"""`Database`: runs one transaction at a time and hands each commit to its observers.

Order of a commit: storage, scheduler, subscriptions. An observer never vetoes. Everything that a game or a server
does with its data goes through here; the parts (store, scheduler, storage, subscriptions) do not know each other.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import difflib
import logging
import os
import random
import threading
import warnings
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from threading import get_ident
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, overload

from gamedb.clock import Clock, SystemClock
from gamedb.columns import from_micros, shown
from gamedb.commit import Commit
from gamedb.context import ProcedureContext, ReducerContext
from gamedb.drivers import SchedulerThread, drive
from gamedb.durability import Durability
from gamedb.errors import ColumnError, DatabaseClosed, GamedbError, NotAllowed, TransactionError, UnknownName
from gamedb.functions import Function
from gamedb.identity import identity_of_database
from gamedb.module import Module
from gamedb.scheduler import FIRINGS_MAX, Scheduler
from gamedb.schema import Row
from gamedb.store import INTERRUPTS, ReadTable, Store, TableData, Tables
from gamedb.subscriptions import Subscription, Subscriptions, ViewChange
from gamedb.system import SYSTEM_TABLES, ClientConnection, Setting
from gamedb.types import ConnectionId, Identity
from gamedb.watchdog import watch

if TYPE_CHECKING:
    from gamedb.server.limits import Limits
    from gamedb.server.serve import Serving
    from gamedb.storage import Writer
    from gamedb.storage.adhoc import AdHocLimits, SqlAnswer

_log: Final = logging.getLogger("gamedb")

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Row)

SLOW_REDUCER: Final = timedelta(milliseconds=100)
"""From how long on a reducer is logged as slow."""
EXIT_SECONDS_MAX: Final = 5.0
"""How long the end of the interpreter waits for a transaction of a database that was not closed."""
NAME_COMPARED_MAX: Final = 100
"""How much of an unknown name is compared with the known ones, for a hint."""


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
        self.identity = identity_of_database(self.module.name)
        """Who the database itself is: the sender of in-process calls, schedules and lifecycle reducers."""
        self.operators: set[Identity] = {self.identity}
        """Who may call private and scheduled functions."""
        self.lock = threading.RLock()
        self.last_tx_id = 0
        """The number of the last commit."""
        self.path = None if path is None else os.fspath(path)
        self._seed = os.urandom(16).hex() if seed is None else seed
        self._random_uses = 0
        self.running: tuple[str, float, int] | None = None
        self.slow_seconds = slow_reducer.total_seconds()
        self.on_timing: Callable[[str, float], None] | None = None
        """For servers: is told the name and the seconds of each transaction, in its thread; must be quick."""
        self._closed = False
        self._refusal: DatabaseClosed | None = None
        self._process = os.getpid()
        self._thread: SchedulerThread | None = None
        self._durability: Durability | None = None
        self._writer: Writer | None = None
        watch(self)
        self._by_function = {f.function: f for f in self.module.functions.values()}

        self.store = Store({**self.module.tables, **SYSTEM_TABLES})
        self._system = Tables("gamedb", [self.store.tables[name] for name in SYSTEM_TABLES])
        self.game_tables = [self.store.tables[name] for name in self.module.tables]
        self.tables = Tables(self.module.name, self.game_tables)
        self._committed: dict[type[Row], _CommittedTable[Any]] = {}
        self._scheduler = Scheduler(self, self.module.functions)
        self._subscriptions = Subscriptions(self)
        _unclosed.add(self)
        if path is not None:
            self._durability = Durability(path, self.module, self.store, quiet=quiet)
            self._writer = self._durability.writer
            self.last_tx_id = self._writer.durable_tx_id
        try:
            self._scheduler.rebuild()
            self._scheduler.begin_lost_phases()
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
        if self._scheduler.enabled:
            for table in list(self.store.touched):
                if table.schema.scheduled is not None:
                    self._scheduler.before_commit(table, lambda: ctx.micros)
        changes = self.store.changes()
        try:
            self.store.end()
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

    def _find(self, name: Any, kind: str) -> Function:
        function = self.module.functions.get(name) if isinstance(name, str) else self._by_function.get(name)
        if function is not None and function.kind == kind:
            return function
        wanted = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
        known = [n for n, f in self.module.functions.items() if f.kind == kind]
        close = difflib.get_close_matches(wanted[:NAME_COMPARED_MAX], known, 1)
        if function is not None:
            hint = f"it is a {function.kind}"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = f"it has: {', '.join(known) or 'none'}"
        raise UnknownName(f"module {self.module.name!r} has no {kind} {shown(wanted)}; {hint}")

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
        if self._has_lock():
            raise TransactionError(
                f"procedure {function.name!r} is async and was called in a callback inside an asyncio loop, where it "
                "could never begin; start it after the callback: loop.call_soon(...)"
            )
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # a loop is running here: use another thread's
            return _result(function, pool.submit(asyncio.run, function.invoke(ctx, *arguments)).result())

    def _is_inside(self) -> bool:
        """Whether this thread is in the running transaction."""
        running = self.running
        return running is not None and running[2] == get_ident()

    def _has_lock(self) -> bool:
        """Whether this thread is in a transaction or in a callback."""
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]  # what `threading.Condition` asks, too

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

        Callbacks run in the committing thread, after the commit, in commit order; what they raise is logged. A view
        that raises while it is evaluated again sends the error to `on_error`, and never harms the commit.
        """
        if isinstance(what, type | Iterable) and not isinstance(what, str):
            rows = [what] if isinstance(what, type) else list(what)
            return self._subscriptions.add_tables([self.tables[row].data.schema.name for row in rows], callback)
        function = self._find(what, "view")
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

    def _assert_readable(self) -> None:
        """Under the lock: raise unless this is a moment between transactions."""
        if self.running is not None:
            raise TransactionError("inside a transaction use ctx.db[...]: it also shows what is not committed yet")
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if self.store.active:  # an interrupt came before the rollback could begin
            self.store.rollback(rebuild=True)

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
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if self._thread is None:
            self._thread = SchedulerThread(self._scheduler, self.clock, self.module.name)

    async def run_async(self) -> None:
        """Drive schedules from the running asyncio loop, until cancelled."""
        await drive(self._scheduler, self.clock)

    async def serve(
        self,
        listen: str = "127.0.0.1:3000",
        *,
        name: str | None = None,
        keys: str | os.PathLike[str] | None = None,
        operators: Iterable[Identity] = (),
        static: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        ready: Callable[[Serving], None] | None = None,
    ) -> None:
        """Serve clients from the running asyncio loop until cancelled (or `Serving.stop`), and drive schedules there.

        `listen`: HOST:PORT, where port 0 takes any that is free. `name`: how clients call the database; by default as
        its module. `keys`: the directory of the keys that sign tokens; by default beside the file of the database, or
        with the process when there is none. `operators`: who may call and read what is private. `static`: a directory
        of files for browsers. `limits`: what a client may use up. `ready` gets the `Serving` once clients can come.
        """
        from gamedb.server.embedded import serve_database  # its room is slow to import

        await serve_database(
            self, listen, name=name, keys=keys, operators=operators, static=static, limits=limits, ready=ready
        )

    @property
    def drives_schedules(self) -> bool:
        """Whether `run` does."""
        return self._thread is not None

    def report_failure(self, name: str, error: BaseException) -> None:
        """Log an exception that nobody else will see."""
        self.log.error("%s failed and was rolled back: %r", name, error, exc_info=error)

    # --- durability and the end

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
    def write_lag(self) -> timedelta:
        """For how long what is committed has been waiting for the disk; zero when all is on it."""
        return timedelta(seconds=0.0 if self._writer is None else self._writer.flush_lag)

    @property
    def failure(self) -> GamedbError | None:
        """Why nothing is accepted any more (a failed write, say); `None` when all is well."""
        if self._writer is not None and self._writer.error is not None:
            return self._writer.error
        return self._refusal

    @property
    def durable_tx_id(self) -> int:
        """The last transaction that is on disk; without storage, the last one."""
        return self.last_tx_id if self._writer is None else self._writer.durable_tx_id

    def close(self) -> None:
        """Stop schedules, write what is committed, release the file. Twice is once.

        It waits for the scheduled procedures that are running; only in a callback, where they would have to wait for
        it in turn, it does not, and they get a `DatabaseClosed` at their next transaction.
        """
        wait = not self._has_lock()
        if not wait and self.running is not None:
            raise TransactionError("close() inside a transaction; let it end first")
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(wait=wait)
        self._scheduler.close(wait=wait)
        with self.lock:
            self._closed = True
            self._refusal = self._closed_error()
        if self._durability is not None and self._process == os.getpid():
            self._durability.close()
        _unclosed.discard(self)

    def _closed_error(self) -> DatabaseClosed:
        if self._process != os.getpid():
            return DatabaseClosed(
                f"database {self.module.name!r} was opened by process {self._process}, of which this one is a fork; "
                "open it after forking"
            )
        return DatabaseClosed(f"database {self.module.name!r} was closed")

    def __del__(self) -> None:
        durability: Durability | None = self.__dict__.get("_durability")
        if durability is None or self._closed:
            return
        warnings.warn(f"{self!r} was not closed; use `with` or close()", ResourceWarning, stacklevel=2, source=self)
        _abandoned.add(durability)
        with suppress(RuntimeError):  # at the end of the interpreter `_close_all` does it
            start_new_thread(_close_abandoned, (durability,))  # not here: any thread may collect, a writer, too

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gamedb database {self.module.name}: transaction {self.last_tx_id}>"


class Transaction:
    """What `db.transaction()` gives: it commits at the end of the `with`, and rolls back when that raises."""

    def __init__(self, db: Database, name: str, sender: Identity | None, connection_id: ConnectionId | None) -> None:
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
        """As `Database.view`, seen by this identity. `NotAllowed` for views that are not public."""
        function = self._db._find(view, "view")
        if not function.public and self.sender not in self._db.operators:
            raise NotAllowed(f"view {function.name!r} is not public; only the database itself and operators may see it")
        return self._db.view(view, *args, sender=self.sender)


class _CommittedTable(ReadTable[R]):
    """A table outside of transactions: each question is answered between two of them."""

    __slots__ = ("_assert_readable", "_lock")

    def __init__(self, db: Database, data: TableData) -> None:
        super().__init__(data)
        self._lock = db.lock
        self._assert_readable = db._assert_readable

    def get(self, key: Any) -> R | None:
        with self._lock:
            self._assert_readable()
            return super().get(key)

    def find(self, /, **unique: Any) -> R | None:
        with self._lock:
            self._assert_readable()
            return super().find(**unique)

    def where(self, /, **equalities: Any) -> list[R]:
        with self._lock:
            self._assert_readable()
            return super().where(**equalities)

    def between(self, column: str | tuple[str, ...], low: Any, high: Any, *, limit: int | None = None) -> list[R]:
        with self._lock:
            self._assert_readable()
            return super().between(column, low, high, limit=limit)

    def count(self, **equalities: Any) -> int:
        with self._lock:
            self._assert_readable()
            return super().count(**equalities)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[R]:
        with self._lock:
            self._assert_readable()
            return super().__iter__()

    def __contains__(self, row: object) -> bool:
        with self._lock:
            self._assert_readable()
            return super().__contains__(row)


_unclosed: weakref.WeakSet[Database] = weakref.WeakSet()
_abandoned: set[Durability] = set()
"""Of databases that were collected without being closed: about to be closed."""


def _close_abandoned(durability: Durability) -> None:
    try:
        durability.close()
    except Exception as error:
        _log.error("a database that nobody closed lost what it had not written: %s", error)
    _abandoned.discard(durability)


@atexit.register
def _close_all() -> None:
    """At the end of the interpreter: write what is committed. Waits for no procedure, and for no reducer for long."""
    for db in list(_unclosed):
        if db._durability is None or db._closed:
            continue
        db._closed = True
        db._refusal = db._closed_error()
        db._scheduler.close(wait=False)
        if db.lock.acquire(timeout=EXIT_SECONDS_MAX):
            db.lock.release()
        _abandoned.add(db._durability)
    for durability in list(_abandoned):
        _close_abandoned(durability)


def _after_fork() -> None:
    """In a forked process: threads and file locks stayed behind, so databases with a file are closed here."""
    _abandoned.clear()
    for db in list(_unclosed):
        if db._durability is not None or db.running is not None:
            db._closed = True
            db._refusal = db._closed_error()
        db.lock = threading.RLock()
        db.running = None
        db._thread = None
        db._scheduler.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _result(function: Function, value: Any) -> Any:
    """A procedure's result in canonical form; `TypeError` naming the procedure when it is not what it declared."""
    if function.returns is None:
        return value
    try:
        return function.returns.coerce(value, "result")
    except ColumnError as error:
        raise TypeError(f"procedure {function.name!r} returned something else than it declares: {error}") from None
