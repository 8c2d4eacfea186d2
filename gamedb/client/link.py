"""Keeps a client connected: opens connections, reads and writes them, and tries again after each loss.

It moves bytes between `Connection` and `Core` and knows the time; what the events of the core mean is its owner's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol

from gamedb.client.addresses import Address
from gamedb.client.backoff import Backoff
from gamedb.client.connection import Connection
from gamedb.client.core import Core
from gamedb.client.events import Event, Opened
from gamedb.errors import ConnectionLost, GamedbError

_log: Final = logging.getLogger("gamedb.client")


class Owner(Protocol):
    """What a link asks of the client that it is of."""

    token: str | None
    """What says who the client is."""

    async def describe(self) -> Core:
        """The core, after a look at what the server has now; the error is that of the attempt to connect."""

    def deliver(self, events: list[Event]) -> None:
        """What came of one message."""

    def lost(self, error: GamedbError) -> None:
        """An attempt to connect failed, or a connection ended."""

    def tries_again(self, error: GamedbError) -> bool:
        """Whether there shall be another attempt."""


class Link:
    """The connections of a client, one after the other."""

    def __init__(
        self,
        owner: Owner,
        where: Address,
        *,
        confirmed: bool | None,
        heartbeat_seconds: float,
        backoff: Backoff,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._owner = owner
        self._where = where
        self._confirmed = confirmed
        self._heartbeat_seconds = heartbeat_seconds
        self._backoff = backoff
        self._sleep = sleep
        self._connection: Connection | None = None
        self._output = asyncio.Event()
        self._hurry = asyncio.Event()

    def wake(self) -> None:
        """There is something to send."""
        self._output.set()

    def reconnect(self) -> None:
        """Drop the connection, and make a new one without waiting."""
        self._hurry.set()
        if self._connection is not None:
            self._connection.abort()

    async def run(self) -> GamedbError:
        """Connect, and connect again, until the owner wants no more; gives the last error."""
        while True:
            try:
                error = await self._attempt()
            except Exception as failure:
                _log.exception("%s: the client failed", self._owner)
                error = ConnectionLost(f"the client failed: {failure!r}")
            self._owner.lost(error)
            if not self._owner.tries_again(error):
                return error
            await self._wait()

    async def _attempt(self) -> GamedbError:
        """One connection, from its opening to its loss; gives the reason of that."""
        connection: Connection | None = None
        try:
            core = await self._owner.describe()
            connection = self._connection = await Connection.open(
                self._where, self._owner.token, confirmed=self._confirmed, heartbeat_seconds=self._heartbeat_seconds
            )
            core.single = connection.single
            async with self._writing(core, connection):
                await self._read(core, connection)
        except asyncio.CancelledError:
            if connection is not None:
                await connection.close()
            raise
        except GamedbError as error:
            _log.info("%s: %s", self._owner, error)
            if connection is not None and not isinstance(error, ConnectionLost):
                await connection.close(1002, "bad message")
            return error
        finally:
            self._connection = None
            if connection is not None:
                connection.abort()  # if it is still open, something went wrong here
        raise AssertionError("reading ends with an error")

    async def _read(self, core: Core, connection: Connection) -> None:
        while True:
            payload = await connection.receive()
            for events in core.receive(payload):
                if any(isinstance(event, Opened) for event in events):
                    self._hurry.clear()
                    self._backoff.reset()
                self._owner.deliver(events)
            if core.output:
                self._output.set()

    @contextlib.asynccontextmanager
    async def _writing(self, core: Core, connection: Connection) -> AsyncIterator[None]:
        task = asyncio.create_task(self._write(core, connection))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

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
            self._hurry.clear()
