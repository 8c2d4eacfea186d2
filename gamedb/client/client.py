"""`Client`: a game database over the network, for programs that run asyncio.

What users call. `Link` keeps the connection, `Core` takes in what the server says, and `Standing` turns that into
callbacks and answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, overload

from gamedb.client.addresses import address
from gamedb.client.backoff import Backoff
from gamedb.client.core import Core
from gamedb.client.link import Link
from gamedb.client.standing import Standing
from gamedb.client.subscription import Subscription
from gamedb.client.tables import ClientTable, Undo, add
from gamedb.errors import ConnectionLost, GamedbError, QueryError
from gamedb.module import Module
from gamedb.schema import Row
from gamedb.types import ConnectionId, Identity

P = ParamSpec("P")
R = TypeVar("R", bound=Row)
T = TypeVar("T")

HEARTBEAT_SECONDS: Final = 5.0
"""How often the server is asked for a sign of life; without one, it is taken for lost after the same time again."""

CALLS_MAX: Final = 4096
"""Calls and queries of a client that wait for an answer at the same time; more wait until they are sent."""


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
    where = address(uri, database)
    standing = Standing(where, token=token, module=module, reconnects=reconnect)
    backoff = Backoff(random if random is not None else Random())
    link = Link(standing, where, confirmed=confirmed, heartbeat_seconds=heartbeat_seconds, backoff=backoff, sleep=sleep)
    return Client(standing, link)


class Client:
    """A connected client. Made by `connect(...)`."""

    def __init__(self, standing: Standing, link: Link) -> None:
        self._standing = standing
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._in_flight = asyncio.Semaphore(CALLS_MAX)

    def __repr__(self) -> str:
        return f"<client of {self._standing}>"

    @property
    def identity(self) -> Identity | None:
        """Who this client is; `None` before the first connection."""
        return self._standing.identity

    @property
    def connection_id(self) -> ConnectionId | None:
        """The connection now, or the last one; another one after each loss."""
        return self._standing.connection_id

    @property
    def token(self) -> str | None:
        """What says who this client is: as given, or else from the server. Keep it to be the same one next time."""
        return self._standing.token

    @property
    def connected(self) -> bool:
        """Whether there is a connection, and all subscriptions are up to date."""
        return self._standing.connected.is_set()

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
        self._task = asyncio.create_task(self._run())
        try:
            await self._standing.wait_connected()
        except BaseException:
            await self.close()
            raise

    async def _run(self) -> None:
        self._standing.finish(await self._link.run())

    async def close(self) -> None:
        """Say goodbye. Calls that wait for an answer get `ConnectionLost`. `async with` does it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._standing.finish(None)

    async def wait_connected(self) -> None:
        """Return when there is a connection and all subscriptions are up to date; raise when there will be none."""
        await self._standing.wait_connected()

    def reconnect(self) -> None:
        """Drop the connection and make a new one at once, without waiting for the next attempt."""
        self._link.reconnect()

    def on_connect(self, callback: Callable[[], object]) -> Undo:
        """Call back at each new connection, when all is up to date; gives the function that ends it."""
        return add(self._standing.on_connect, callback)

    def on_disconnect(self, callback: Callable[[GamedbError], object]) -> Undo:
        """Call back once for each connection that was lost, with the reason; gives the function that ends it."""
        return add(self._standing.on_disconnect, callback)

    # --- tables and queries

    @overload
    def table(self, table: type[R]) -> ClientTable[R]: ...
    @overload
    def table(self, table: str | Callable[..., Any]) -> ClientTable[Any]: ...
    def table(self, table: Any) -> ClientTable[Any]:
        """The rows of a table (by its Row class or its name) or view (its function or name) that are subscribed to."""
        return self._standing.table(table)

    async def subscribe(
        self, *queries: str | type[Row] | Callable[..., Any], on_error: Callable[[QueryError], object] | None = None
    ) -> Subscription:
        """Keep the rows of these queries up to date in the tables; returns when they are there.

        A Row class stands for all of its table, the function of a view for the view. `QueryError` says what is wrong
        with a query; `on_error` is called if the server ends the subscription later.
        """
        core = self._standing.alive()
        if not queries:
            raise QueryError("subscribe() needs a query, such as 'SELECT * FROM player'")
        texts = [q if isinstance(q, str) else f'SELECT * FROM "{core.remote.table(q).name}"' for q in queries]
        query_set = core.subscribe(texts)
        subscription = Subscription(query_set, on_error, self._unsubscribe)
        self._standing.subscriptions[query_set] = subscription
        self._link.wake()
        try:
            await asyncio.shield(subscription.applied)
        except asyncio.CancelledError:
            self._end(subscription)
            raise
        return subscription

    async def query(self, sql: str) -> list[Any]:
        """The rows of a query as they are now, once; `QueryError` says what is wrong with it."""
        rows: list[Any] = await self._answer(lambda core: core.query(sql))
        return rows

    async def _unsubscribe(self, subscription: Subscription) -> None:
        self._end(subscription)
        await asyncio.shield(subscription.over)

    def _end(self, subscription: Subscription) -> None:
        if subscription.query_set in self._standing.subscriptions:  # otherwise it is over
            self._standing.deliver(self._standing.core.unsubscribe(subscription.query_set))
            self._link.wake()

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
        found = self._standing.alive().remote.function(function, kind)
        arguments = found.arguments.encode(found.bind(args, kwargs))
        return await self._answer(lambda core: core.call(found, arguments))

    async def _answer(self, ask: Callable[[Core], int]) -> Any:
        async with self._in_flight:  # the server closes connections that send faster than it can work
            request_id = ask(self._standing.alive())
            answer = self._standing.answers[request_id] = asyncio.get_running_loop().create_future()
            self._link.wake()
            try:
                return await answer
            finally:
                self._standing.answers.pop(request_id, None)
