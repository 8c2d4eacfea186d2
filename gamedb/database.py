"""`Database`: a module that runs. Everything that a game or a server does with its data goes through here.

What it is made of does not know each other: `transactions` runs one transaction at a time, `readable` shows what is
committed, `scheduler` fires what is due, `durability` keeps it.
"""

from __future__ import annotations

import os
import warnings
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, overload

from gamedb import lifecycle, procedures, unclosed
from gamedb.caller import Caller
from gamedb.clock import Clock, SystemClock
from gamedb.columns import from_micros
from gamedb.drivers import SchedulerThread, drive
from gamedb.durability import Durability
from gamedb.errors import GamedbError, TransactionError
from gamedb.functions import Function
from gamedb.module import Module
from gamedb.readable import Readable
from gamedb.scheduler import FIRINGS_MAX, Scheduler
from gamedb.schema import Row
from gamedb.types import ConnectionId, Identity

if TYPE_CHECKING:
    from gamedb.server.limits import Limits
    from gamedb.server.serve import Serving

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Row)

SLOW_REDUCER: Final = timedelta(milliseconds=100)
"""From how long on a reducer is logged as slow."""


class Database(Readable):
    """A module's tables in memory, and on disk when `path` is given.

    - `path`: a file (made when it is not there), or an SQLAlchemy URL; `None` keeps nothing.
    - `clock`: `SystemClock()` by default, `ManualClock()` in tests.
    - `seed`: makes `ctx.random` repeatable.
    - `slow_reducer`: from how long on a reducer is logged with its name, time and stack.
    - `quiet`: no progress on stderr while a large file is loaded.

    Raises `SchemaError` for a module that cannot work, and `StorageError`s for a file that cannot be used. Transactions
    run one after the other; any thread may call. Use it in a `with`, or call `close`.

    ```python
    module = Module("counter")

    @module.table
    class Count(Row):
        id: PrimaryKey[u32]
        n: u32 = 0

    @module.reducer
    def add(ctx: ReducerContext, n: u32) -> None:
        count = ctx.db[Count].get(1) or Count(id=1)
        ctx.db[Count].upsert(count.replace(n=count.n + n))

    with Database(module, "counter.db") as db:
        db.call(add, n=5)
        print(db.read(Count).get(1))  # Count(id=1, n=5)
    ```
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
        if not isinstance(module, Module):
            raise TypeError(f"a database is made of a Module, such as Module('arena'), not of {module!r}")
        super().__init__(module.resolve(), clock if clock is not None else SystemClock(), seed, slow_reducer)
        self.path = None if path is None else os.fspath(path)
        """As given; `None` when nothing is stored."""
        self._thread: SchedulerThread | None = None
        self._scheduler = Scheduler(self, self.module.functions)
        unclosed.databases.add(self)
        self._durability = self._open_durability(quiet)
        if self._durability is not None:
            self._writer = self._durability.writer
            self.last_tx_id = self._writer.durable_tx_id
        try:
            self._scheduler.rebuild()
            self._scheduler.begin_lost_phases()
            lifecycle.initialise(self)
            for opening in self.module.openings:
                self.execute("open", opening, ())
            lifecycle.end_lost(self)
        except BaseException:
            self.close()
            raise

    def _open_durability(self, quiet: bool) -> Durability | None:
        return None if self.path is None else Durability(self.path, self.module, self.store, quiet=quiet)

    # --- calling

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a reducer (the function, or its name) in a transaction, as the database itself; gives what it returns.

        Raises what the reducer raised, after rolling back; `UnknownName` and `ArgumentError` before it began.
        """
        function = self.callables.reducer(reducer)
        return self.execute(function.name, function.invoke, function.arguments_from(args, kwargs))

    def call_json(
        self,
        reducer: str,
        arguments: bytes | str | list[Any] | dict[str, Any],
        *,
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a reducer with arguments from JSON: an array in order, or an object by name.

        `arguments` is JSON text or what it stands for. With a `sender`, as that caller: `NotAllowed` for what is
        private. Else as `call`.
        """
        function = self.callables.find(reducer, "reducer")
        self.callables.allow(function, sender)
        return self.execute(
            function.name, function.invoke, function.arguments_from_json(arguments), sender, connection_id
        )

    def caller(self, sender: Identity, connection_id: ConnectionId | None = None) -> Caller:
        """The database as somebody else sees it: `db.caller(alice).call(damage, ...)`."""
        return Caller(self, sender, connection_id)

    # --- procedures

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a procedure to its end, in this thread; gives what it returns.

        Raises what it raises; what its transactions have committed by then stays. Inside asyncio use
        `call_procedure_async`.
        """
        function = self.callables.find(procedure, "procedure")
        return self.run_procedure(function, function.arguments_from(args, kwargs))

    async def call_procedure_async(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """`call_procedure` without blocking the loop: an async procedure runs on it, a sync one in a thread."""
        function = self.callables.find(procedure, "procedure")
        return await self.run_procedure_async(function, function.arguments_from(args, kwargs))

    async def run_procedure_async(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a procedure with canonical arguments without blocking the loop."""
        return await procedures.run_async(self, function, arguments, sender, connection_id)

    def run_procedure(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a procedure with canonical arguments to its end. What `call_procedure` is made of."""
        return procedures.run(self, function, arguments, sender, connection_id)

    # --- clients

    def connect(self, identity: Identity, connection_id: ConnectionId) -> None:
        """A client comes: runs `client_connected`; if that raises, the client is refused and nothing has changed."""
        lifecycle.connect(self, identity, connection_id)

    def disconnect(self, connection_id: ConnectionId) -> None:
        """A client has gone: runs `client_disconnected` once; if that raises, the client is gone all the same."""
        lifecycle.disconnect(self, connection_id)

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
        proxies: Iterable[str] = (),
        ready: Callable[[Serving], None] | None = None,
    ) -> None:
        """Serve clients from the running asyncio loop until cancelled (or `Serving.stop`), and drive schedules there.

        - `listen`: HOST:PORT, where port 0 takes any that is free.
        - `name`: how clients call the database; by default as its module.
        - `keys`: the directory of the keys that sign tokens; by default beside the file of the database, or with the
          process when there is none.
        - `operators`: who may call and read what is private.
        - `static`: a directory of files for browsers.
        - `limits`: what a client may use up.
        - `proxies`: addresses or networks whose `X-Forwarded-For` says where clients are.
        - `ready` gets the `Serving` once clients can come.
        """
        from gamedb.server.embedded import serve_database  # its room is slow to import

        await serve_database(
            self,
            listen,
            name=name,
            keys=keys,
            operators=operators,
            static=static,
            limits=limits,
            proxies=proxies,
            ready=ready,
        )

    @property
    def drives_schedules(self) -> bool:
        """Whether `run` does."""
        return self._thread is not None

    # --- durability and the end

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
        unclosed.databases.discard(self)

    def __del__(self) -> None:
        durability: Durability | None = self.__dict__.get("_durability")
        if durability is None or self._closed:
            return
        warnings.warn(f"{self!r} was not closed; use `with` or close()", ResourceWarning, stacklevel=2, source=self)
        unclosed.abandoned.add(durability)
        with suppress(RuntimeError):  # at the end of the interpreter `unclosed` does it
            start_new_thread(unclosed.close_abandoned, (durability,))  # not here: any thread may collect, a writer, too

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gamedb database {self.module.name}: transaction {self.last_tx_id}>"
