"""How a client stands: its tables, subscriptions and callbacks, the calls that wait, and whether it is connected.

`Link` tells it what happens, and it tells the user.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from gamedb.client.addresses import Address, fetch_definition
from gamedb.client.cache import Change
from gamedb.client.core import Core
from gamedb.client.events import Applied, Ended, Event, Opened, QuerySet, Settled, State
from gamedb.client.remote import Remote
from gamedb.client.subscription import Subscription
from gamedb.client.tables import ClientTable, run
from gamedb.errors import ConnectionLost, GamedbError, NotAllowed, SchemaError
from gamedb.module import Module
from gamedb.schema import Row
from gamedb.types import ConnectionId, Identity

_log: Final = logging.getLogger("gamedb.client")


class Standing:
    """What a client has."""

    def __init__(self, where: Address, *, token: str | None, module: Module | None, reconnects: bool) -> None:
        self._where = where
        self._module = module
        self._reconnects = reconnects
        self.token = token
        self.identity: Identity | None = None
        self.connection_id: ConnectionId | None = None
        self.connected = asyncio.Event()
        self.subscriptions: dict[QuerySet, Subscription] = {}
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.on_connect: list[Callable[[], object]] = []
        self.on_disconnect: list[Callable[[GamedbError], object]] = []
        self._core: Core | None = None
        self._tables: dict[str, ClientTable[Any]] = {}
        self._over = asyncio.Event()
        self._error: GamedbError | None = None
        """Why it is over; `None` when the user closed it."""

    def __str__(self) -> str:
        return f"{self._where.database!r} at {self._where.base}"

    # --- for the client

    @property
    def core(self) -> Core:
        """What the server says, taken in; `ConnectionLost` before the first connection."""
        if self._core is None:
            raise ConnectionLost("this client is not connected yet; use async with connect(...) as client")
        return self._core

    def alive(self) -> Core:
        """The core, to ask something of the server; the error of the end after it."""
        core = self.core
        if self._over.is_set():
            raise self._failure()
        return core

    async def wait_connected(self) -> None:
        """Return when there is a connection; raise when there will be none."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.connected, self._over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._over.is_set():
            raise self._failure()

    def _failure(self) -> GamedbError:
        return self._error or ConnectionLost("this client was closed; make a new one with connect(...)")

    def table(self, table: type[Row] | Callable[..., Any] | str) -> ClientTable[Any]:
        """The one object for a table."""
        name = self.core.remote.table(table).name
        if name not in self._tables:
            made = self._tables[name] = ClientTable(self.core, name)
            if self._over.is_set():
                made.finish(self._error)
        return self._tables[name]

    # --- for the link

    async def describe(self) -> Core:
        """Ask what the server has. At a new connection it must have all that it had, since rows are read by it."""
        remote = Remote(await fetch_definition(self._where, self.token), self._module)
        if self._core is None:
            self._core = Core(remote)
        elif differences := self._core.remote.differences(remote):
            raise SchemaError(f"the server changed its {', '.join(differences)}; connect with a new client")
        return self._core

    def tries_again(self, error: GamedbError) -> bool:
        """Not after a first attempt that failed, nor when the server will have nothing of this client any more."""
        is_first = self.identity is None
        return self._reconnects and not is_first and not isinstance(error, NotAllowed | SchemaError)

    def deliver(self, events: list[Event]) -> None:
        """Turn what the core says into callbacks and answers."""
        for event in events:
            match event:
                case Change():
                    if event.table in self._tables:
                        self._tables[event.table].deliver(event)
                case Settled():
                    self._settle(event)
                case Applied():
                    self.subscriptions[event.query_set].begin()
                case Ended():
                    self.subscriptions.pop(event.query_set).finish(event.error)
                case Opened():
                    self._opened(event)

    def _opened(self, event: Opened) -> None:
        if self.identity not in (None, event.identity):
            _log.warning("%s: the server takes this client for another one than before", self)
        self.identity, self.connection_id = event.identity, event.connection_id
        self.token = self.token or event.token
        self.connected.set()
        for callback in list(self.on_connect):
            run(callback)

    def _settle(self, event: Settled) -> None:
        answer = self.answers.get(event.request_id)
        if answer is None or answer.done():
            return
        if event.error is None:
            answer.set_result(event.value)
        else:
            answer.set_exception(event.error)

    def lost(self, error: GamedbError) -> None:
        """An attempt to connect failed, or a connection ended."""
        if self._core is not None:
            self.deliver(self._core.lost())
        if self.connected.is_set():
            self.connected.clear()
            for callback in list(self.on_disconnect):
                run(callback, error)

    def finish(self, error: GamedbError | None) -> None:
        """The end: `error` is why there will be no connection any more; `None` when the user closed the client."""
        if self._over.is_set():
            return
        self._error = error
        self._over.set()
        self.connected.clear()
        if self._core is not None:
            self.deliver(self._core.lost())
        for subscription in self.subscriptions.values():
            subscription.query_set.state = State.ENDED
            subscription.finish(self._failure())
        self.subscriptions.clear()
        for table in self._tables.values():
            table.finish(error)
