"""`Client`: a game database over the network, for programs that run asyncio. The shell around `core`.

One task keeps the connection: it reads, and after a loss it connects again and again until `close`. Everything that
the server says is taken in by `Core`; here its events become callbacks and results of awaits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, overload

from gamedb.client.addresses import Address, address, fetch_definition
from gamedb.client.backoff import Backoff
from gamedb.client.cache import Change
from gamedb.client.connection import Connection
from gamedb.client.core import Applied, Core, Ended, Event, Opened, Settled, State
from gamedb.client.remote import Remote
from gamedb.client.subscription import Subscription
from gamedb.client.tables import ClientTable, Undo, run
from gamedb.errors import ConnectionLost, GamedbError, NotAllowed, QueryError, SchemaError
from gamedb.module import Module
from gamedb.schema import Row
from gamedb.types import ConnectionId, Identity

P = ParamSpec("P")
R = TypeVar("R", bound=Row)
T = TypeVar("T")

_log: Final = logging.getLogger("gamedb.client")

HEARTBEAT_SECONDS: Final = 5.0
"""How often the server is asked for a sign of life; without one, it is taken for lost after the same time again."""


def connect(
    uri: str,
    database: str,
    *,
    token: str | None = None,
    module: Module | None = None,
    confirmed: bool | None = None,
    reconnect: bool = True,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    random: Random | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Client:
    """A client of the database with this name at `uri` (`ws://host:port`): `async with connect(...) as client`.

    `token` says who it is; without one it is somebody new, and stays so over all its connections. With the game's
    `module`, rows are its Row classes and reducers are called by their functions. `confirmed=False` takes results
    before they are on disk. `random` and `sleep` time the attempts to connect again after a loss.
    """
    return Client(
        address(uri, database),
        token=token,
        module=module,
        confirmed=confirmed,
        reconnect=reconnect,
        heartbeat_seconds=heartbeat_seconds,
        backoff=Backoff(random if random is not None else Random()),
        sleep=sleep,
    )


class Client:
    """A connected client. Made by `connect`."""

    def __init__(
        self,
        where: Address,
        *,
        token: str | None,
        module: Module | None,
        confirmed: bool | None,
        reconnect: bool,
        heartbeat_seconds: float,
        backoff: Backoff,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._where = where
        self.token = token
        """What says who this client is; given, or by the server at the first connection."""
        self.identity: Identity | None = None
        self.connection_id: ConnectionId | None = None
        """That of the connection now; another one after each loss."""
        self.connected = False
        """Whether there is a connection, and all subscriptions are up to date."""
        self._module = module
        self._confirmed = confirmed
        self._reconnects = reconnect
        self._heartbeat_seconds = heartbeat_seconds
        self._backoff = backoff
        self._sleep = sleep
        self._remote: Remote | None = None
        self._made_core: Core | None = None
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._failure: GamedbError | None = None
        self._ended_with: GamedbError | None = None
        self._tables: dict[str, ClientTable[Any]] = {}
        self._subscriptions: dict[Any, Subscription] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._on_connect: list[Callable[[], object]] = []
        self._on_disconnect: list[Callable[[GamedbError], object]] = []
        self._output = asyncio.Event()
        self._hurry = asyncio.Event()
        self._is_connected = asyncio.Event()

    def __repr__(self) -> str:
        return f"<client of {self._where.database!r} at {self._where.base}>"

    # --- life

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect for the first time; the error says why that failed. `async with` does it."""
        if self._task is not None:
            raise ConnectionLost("this client was opened already; make a new one with connect(...)")
        self._first = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(self._first))
        try:
            await self._first
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Say goodbye. Calls that wait for an answer get `ConnectionLost`. `async with` does it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._finish(None)

    async def wait_connected(self) -> None:
        """Return when there is a connection and all subscriptions are up to date; raise when there will be none."""
        await self._is_connected.wait()
        if self._failure is not None:
            raise self._failure

    def reconnect(self) -> None:
        """Drop the connection and make a new one at once, without waiting for the next attempt."""
        self._hurry.set()
        if self._connection is not None:
            self._connection.abort()

    def on_connect(self, callback: Callable[[], object]) -> Undo:
        """Call back at each new connection, when all is up to date; gives the function that ends it."""
        self._on_connect.append(callback)
        return lambda: self._on_connect.remove(callback)

    def on_disconnect(self, callback: Callable[[GamedbError], object]) -> Undo:
        """Call back once for each connection that was lost, with the reason; gives the function that ends it."""
        self._on_disconnect.append(callback)
        return lambda: self._on_disconnect.remove(callback)

    # --- tables and queries

    @overload
    def table(self, table: type[R]) -> ClientTable[R]: ...
    @overload
    def table(self, table: str) -> ClientTable[Any]: ...
    def table(self, table: Any) -> ClientTable[Any]:
        """The rows of a table (by its Row class or its name) or view (by name) that are subscribed to."""
        name = self._core.remote.table(table).name
        if name not in self._tables:
            self._tables[name] = ClientTable(self._core, name)
            if self._failure is not None:
                self._tables[name].finish(self._ended_with)
        return self._tables[name]

    async def subscribe(
        self, *queries: str | type[Row], on_error: Callable[[QueryError], object] | None = None
    ) -> Subscription:
        """Keep the rows of these queries up to date in the tables; returns when they are there.

        A Row class stands for all of its table. `QueryError` says what is wrong with a query; `on_error` is called
        if the server ends the subscription later.
        """
        core = self._alive()
        if not queries:
            raise QueryError("subscribe() needs a query, such as 'SELECT * FROM player'")
        texts = [q if isinstance(q, str) else f'SELECT * FROM "{core.remote.table(q).name}"' for q in queries]
        query_set = core.subscribe(texts)
        subscription = self._subscriptions[query_set] = Subscription(query_set, on_error, self._unsubscribe)
        self._output.set()
        try:
            await asyncio.shield(subscription.applied)
        except asyncio.CancelledError:
            self._deliver(core.unsubscribe(query_set))
            self._output.set()
            raise
        return subscription

    async def query(self, sql: str) -> list[Any]:
        """The rows of a query as they are now, once; `QueryError` says what is wrong with it."""
        rows: list[Any] = await self._answer(self._alive().query(sql))
        return rows

    async def _unsubscribe(self, subscription: Subscription) -> None:
        if self._failure is None and self._task is not None:
            self._deliver(self._core.unsubscribe(subscription.query_set))
            self._output.set()
        await asyncio.shield(subscription.over)

    # --- calls

    @overload
    async def call(self, reducer: Callable[Concatenate[Any, P], Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    async def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> None: ...
    async def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> None:
        """Call a reducer (the function, or its name); returns when its changes are in the tables here.

        `ReducerError` has the text with which it refused, `CallFailed` says that it could not be run, and
        `ConnectionLost` that nobody knows.
        """
        await self._call("reducer", reducer, args, kwargs)

    @overload
    async def procedure(
        self, procedure: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def procedure(
        self, procedure: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def procedure(self, procedure: str, /, *args: Any, **kwargs: Any) -> Any: ...
    async def procedure(self, procedure: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a procedure (the function, or its name); gives what it returns. Errors as those of `call`."""
        return await self._call("procedure", procedure, args, kwargs)

    async def _call(self, kind: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        core = self._alive()
        found = core.remote.function(function, kind)
        return await self._answer(core.call(found, found.arguments.encode(found.bind(args, kwargs))))

    async def _answer(self, request_id: int) -> Any:
        answer = self._answers[request_id] = asyncio.get_running_loop().create_future()
        self._output.set()
        try:
            return await answer
        finally:
            self._answers.pop(request_id, None)

    # --- the connection

    @property
    def _core(self) -> Core:
        if self._made_core is None:
            raise ConnectionLost("this client is not connected yet; use async with connect(...) as client")
        return self._made_core

    def _alive(self) -> Core:
        core = self._core
        if self._failure is not None:
            raise self._failure
        return core

    async def _run(self, first: asyncio.Future[None]) -> None:
        """Connect and serve the connection, again and again."""
        try:
            while True:
                error = await self._attempt()
                self._lost(error)
                is_final = isinstance(error, NotAllowed | SchemaError)
                if is_final or not first.done() or not self._reconnects:
                    break
                await self._wait()
        except Exception as failure:
            _log.exception("%r failed", self)
            error = ConnectionLost(f"the client failed: {failure!r}")
            self._lost(error)
        self._finish(error)
        if not first.done():
            first.set_exception(error)

    async def _attempt(self) -> GamedbError:
        """One connection, from its opening to its loss; gives the reason of that."""
        connection: Connection | None = None
        writer: asyncio.Task[None] | None = None
        self._hurry.clear()
        try:
            core = await self._describe()
            connection = self._connection = await Connection.open(
                self._where, self.token, confirmed=self._confirmed, heartbeat_seconds=self._heartbeat_seconds
            )
            core.single = connection.single
            writer = asyncio.create_task(self._write(core, connection))
            while True:
                payload = await connection.receive()
                for events in core.receive(payload):
                    self._deliver(events)
                if core.output:
                    self._output.set()
        except asyncio.CancelledError:
            if connection is not None:
                await connection.close()
            raise
        except GamedbError as error:
            _log.info("%r: %s", self, error)
            if connection is not None and not isinstance(error, ConnectionLost):
                await connection.close(1002, "bad message")
            return error
        finally:
            self._connection = None
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)

    async def _describe(self) -> Core:
        """Ask what the server has. At a new connection it must have all that it had, since rows are read by it."""
        remote = Remote(await fetch_definition(self._where, self.token), self._module)
        if self._made_core is None:
            self._made_core = Core(remote)
        elif differences := self._made_core.remote.differences(remote):
            raise SchemaError(f"the server changed its {', '.join(differences)}; connect with a new client")
        return self._made_core

    async def _write(self, core: Core, connection: Connection) -> None:
        """Send what there is to send: all that was asked for in one turn of the loop goes out together."""
        while True:
            await self._output.wait()
            self._output.clear()
            messages, core.output[:] = list(core.output), []
            await connection.send(messages)

    async def _wait(self) -> None:
        """Wait until the next attempt is due, or `reconnect` was called."""
        waits = [
            asyncio.ensure_future(self._sleep(self._backoff.seconds())),
            asyncio.ensure_future(self._hurry.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    # --- events

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Change():
                    if event.table in self._tables:
                        self._tables[event.table].deliver(event)
                case Settled():
                    self._settle(event)
                case Applied():
                    subscription = self._subscriptions[event.query_set]
                    if not subscription.applied.done():
                        subscription.applied.set_result(None)
                case Ended():
                    subscription = self._subscriptions.pop(event.query_set)
                    subscription.finish(event.error)
                case Opened():
                    self._opened(event)

    def _opened(self, event: Opened) -> None:
        if self.identity not in (None, event.identity):
            _log.warning("%r: the server takes this client for another one than before", self)
        self.identity, self.connection_id = event.identity, event.connection_id
        self.token = self.token or event.token
        self.connected = True
        self._is_connected.set()
        self._hurry.clear()
        self._backoff.reset()
        if self._first is not None and not self._first.done():
            self._first.set_result(None)
        for callback in list(self._on_connect):
            run(callback)

    def _lost(self, error: GamedbError) -> None:
        if self._made_core is not None:
            self._deliver(self._made_core.lost())
        if self.connected:
            self.connected = False
            self._is_connected.clear()
            for callback in list(self._on_disconnect):
                run(callback, error)

    def _settle(self, event: Settled) -> None:
        answer = self._answers.get(event.request_id)
        if answer is None or answer.done():
            return
        if event.error is None:
            answer.set_result(event.value)
        else:
            answer.set_exception(event.error)

    def _finish(self, error: GamedbError | None) -> None:
        """The end: `error` is why there will be no connection any more; `None` when the user closed the client."""
        if self._failure is not None:
            return
        self._ended_with = error
        failure = self._failure = error or ConnectionLost("this client was closed; make a new one with connect(...)")
        self.connected = False
        if self._made_core is not None:
            self._deliver(self._made_core.lost())
        for subscription in self._subscriptions.values():
            subscription.query_set.state = State.ENDED
            subscription.finish(failure)
        self._subscriptions.clear()
        for table in self._tables.values():
            table.finish(error)
        self._is_connected.set()
