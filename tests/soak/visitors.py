"""Visitors: those who come and go, those who do not read, and those who send rubbish."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Final

import httpx

from gamedb import ConnectionLost, ReducerError
from gamedb.client import Client
from gamedb.client.addresses import address
from gamedb.client.connection import Connection
from gamedb.wire.messages import Subscribe, encode_client
from tests.soak.processes import DATABASE
from tests.soak.scene import Actor, Scene

FACES: Final = 6
"""How many visitors come again and again; the others are new."""
NEW: Final = 0.15
SHOUT_CHARACTERS: Final = 1 << 20
SHOUTS_MAX: Final = 120
"""Together more than the server lets wait for one client, with what sockets take."""
NEVER: Final = 1e9
TOO_SLOW: Final = "1008 too slow"


class Visitor(Actor):
    """Comes, looks for a moment, and goes: with a word, or without one."""

    def __init__(self, scene: Scene, rng: Random) -> None:
        super().__init__(scene, rng)
        self._faces: list[str | None] = [None] * FACES

    async def act(self) -> None:
        face = self.rng.randrange(FACES)
        self.token = None if self.rng.random() < NEW else self._faces[face]
        async with self.connected() as client:
            self._faces[face] = self.token
            self.scene.report.counts["visits"] += 1
            with contextlib.suppress(ReducerError):
                await self._look_around(client)

    async def _look_around(self, client: Client) -> None:
        subscription = await client.subscribe("SELECT * FROM chat", "SELECT * FROM figure WHERE online = true")
        match self.rng.randrange(4):
            case 0:
                await subscription.unsubscribe()
            case 1:
                await client.call("say", "hello and goodbye")
            case 2:
                client.reconnect()  # the connection is dropped without a word
                await client.wait_connected()


async def read_nothing(scene: Scene) -> None:
    """Ask for everything that is shouted, and read nothing of it until it is too much: the server lets go of it.

    It says why, if the reader reads on in the next seconds: on a machine with much else to do it may be too late.
    """
    connection = await Connection.open(
        address(scene.server.url, DATABASE), None, confirmed=True, heartbeat_seconds=NEVER
    )
    let_go = f":{connection._socket.local_address[1]}) was closed: {TOO_SLOW}"
    try:
        await connection.send([encode_client(Subscribe(request_id=1, query_set_id=1, queries=["SELECT * FROM shout"]))])
        async with scene.client(None) as shouter:
            for _ in range(SHOUTS_MAX):
                await shouter.call("shout", SHOUT_CHARACTERS)
                if let_go in scene.server.log.read_text():
                    scene.report.counts["slow readers let go"] += 1
                    break
            else:
                scene.report.fault("a slow reader was kept", f"{SHOUTS_MAX} MiB after it had stopped to read")
                return
        while True:
            await connection.receive()
    except ConnectionLost as error:
        scene.report.counts["slow readers told why"] += TOO_SLOW in str(error)
    finally:
        connection.abort()


class Vandal(Actor):
    """Sends what no client sends. It must be refused, and nobody else notices."""

    async def act(self) -> None:
        pranks = (self._bytes, self._half_a_request, self._frames, self._frames, self._requests)
        await self.rng.choice(pranks)()
        self.scene.report.counts["pranks"] += 1

    async def _bytes(self) -> None:
        """Bytes that are no HTTP."""
        await self._raw(self.rng.randbytes(self.rng.randint(1, 5_000)))

    async def _half_a_request(self) -> None:
        """A request that never ends, from somebody who goes in the middle of it."""
        await self._raw(b"POST /v1/database/soak/call/give HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n[1, ")

    async def _raw(self, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.scene.server.port)
        try:
            writer.write(data)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.rng.random()):
                    await reader.read(1 << 16)
        finally:
            writer.transport.abort()

    async def _frames(self) -> None:
        """A client that speaks well at first."""
        where = address(self.scene.server.url, DATABASE)
        connection = await Connection.open(where, None, confirmed=True, heartbeat_seconds=NEVER)
        try:
            good = encode_client(Subscribe(request_id=1, query_set_id=1, queries=["SELECT * FROM item"]))
            at = self.rng.randrange(len(good))
            bad = good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]
            await connection.send([bad * self.rng.randint(1, 50)])
            with contextlib.suppress(TimeoutError, ConnectionLost):
                async with asyncio.timeout(self.rng.random()):
                    await connection.receive()
        finally:
            connection.abort()

    async def _requests(self) -> None:
        """HTTP requests that make no sense: each gets an answer that says so."""
        requests = (
            ("call/give", '["a", {}, null]'), ("call/give", "["), ("call/heartbeat", "[]"), ("call/nothing", "[]"),
            ("sql", "SELECT * FROM workflow_timer WHERE"), ("sql", "DELETE FROM character"), ("nowhere", "\0"),
        )  # fmt: skip
        async with httpx.AsyncClient(timeout=30.0) as client:
            for path, body in requests:
                url = f"{self.scene.server.url}/v1/database/{DATABASE}/{path}"
                answer = await client.post(url, content=body, headers={"Content-Type": "application/json"})
                wrong = answer.status_code < 400 or answer.status_code in (500, 502)
                self.scene.report.expect(not wrong, "nonsense was not refused", f"{path} {body}: {answer.status_code}")
