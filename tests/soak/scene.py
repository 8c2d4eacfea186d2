"""What everybody on the scene shares, and a client as all of them use it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

import httpx

from gamedb import ConnectionLost, SchemaError
from gamedb.client import Client, connect
from tests.soak.office import Office
from tests.soak.processes import DATABASE, Server, Worker
from tests.soak.report import Report

PAUSE_SECONDS_MAX: Final = 0.5
RECONNECT_SECONDS_MAX: Final = 1.0
"""Clients wait less long than they would by default, as the server is away so often."""


@dataclass
class Totals:
    """What is the same for ever: all the gold, and the things of each kind."""

    gold: int = 0
    things: dict[str, int] = field(default_factory=dict)


@dataclass
class Scene:
    """One soak."""

    report: Report
    server: Server
    worker: Worker
    office: Office
    rng: Random
    totals: Totals = field(default_factory=Totals)
    confirmed_before: int = 0
    """How many gifts had been confirmed when the server was last started."""

    def client(self, token: str | None, *, confirmed: bool | None = None) -> Client:
        """A client of the game, which connects again by itself until the tables change."""

        async def pause(seconds: float) -> None:
            await asyncio.sleep(min(seconds, RECONNECT_SECONDS_MAX))

        return connect(self.server.url, DATABASE, token=token, confirmed=confirmed, random=self.rng, sleep=pause)


class Actor:
    """Somebody who does something with the server, again and again, until the task is cancelled."""

    def __init__(self, scene: Scene, rng: Random) -> None:
        self.scene = scene
        self.rng = rng
        self.token: str | None = None
        """Who it is, in all its connections."""
        self.client: Client | None = None
        """While it is connected."""

    async def live(self) -> None:
        """For ever. That there is no server, or another version of the game, is no fault."""
        while True:
            with contextlib.suppress(ConnectionLost, SchemaError, OSError, httpx.TransportError):
                await self.act()
            await asyncio.sleep(self.rng.random() * PAUSE_SECONDS_MAX)

    async def act(self) -> None:
        """Do something, until it is done or there is no server."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def connected(self, *, confirmed: bool | None = None) -> AsyncIterator[Client]:
        """A client that is the same as before."""
        async with self.scene.client(self.token, confirmed=confirmed) as client:
            self.token, self.client = client.token, client
            try:
                yield client
            finally:
                self.client = None
