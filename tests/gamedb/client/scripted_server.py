"""A websocket server that does what a test says, with the schema of the small game."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from gamedb.wire import messages
from tests.gamedb.client.client_game import DEFINITION, GREETING

WAIT_SECONDS = 10
V3 = "v3.bsatn.spacetimedb"
V2 = "v2.bsatn.spacetimedb"


class Accepted:
    """One connection of a client, from the server's side."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        assert socket.request is not None
        self.path = socket.request.path
        self.headers = socket.request.headers

    async def frame(self) -> list[messages.ClientMessage]:
        """The messages in the next WebSocket message of the client."""
        payload = await asyncio.wait_for(self.socket.recv(), WAIT_SECONDS)
        assert isinstance(payload, bytes)
        return messages.decode_client(payload)

    async def message(self) -> Any:
        """The next message, which comes alone."""
        [message] = await self.frame()
        return message

    async def send(self, *encoded: bytes) -> None:
        await self.socket.send(messages.frame(encoded))

    def drop(self) -> None:
        """Cut the connection, without a word."""
        self.socket.transport.abort()

    async def closed(self) -> int:
        """The code with which the client closed."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.wait_for(self.socket.recv(), WAIT_SECONDS)
        return self.socket.close_code or 0


class ScriptedServer:
    """Accepts clients; the test plays the server."""

    def __init__(self) -> None:
        self.definition: Any = DEFINITION
        self.refuse: tuple[int, str] | None = None
        """The answer to websockets."""
        self.schema_status = 200
        self.requests: list[str] = []
        self.server: Server | None = None
        self._accepted: asyncio.Queue[Accepted] = asyncio.Queue()

    @property
    def uri(self) -> str:
        assert self.server is not None
        return f"ws://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def accept(self, *, greet: bool = True) -> Accepted:
        """The next client."""
        accepted = await asyncio.wait_for(self._accepted.get(), WAIT_SECONDS)
        if greet:
            await accepted.send(GREETING)
        return accepted

    async def serve(self, connection: ServerConnection) -> None:
        self._accepted.put_nowait(Accepted(connection))
        await connection.wait_closed()

    async def answer(self, _connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request.path)
        if "/schema?" in request.path:
            body = json.dumps(self.definition).encode() if self.schema_status == 200 else b"not here"
            headers = Headers({"Content-Length": str(len(body)), "Connection": "close"})
            return Response(self.schema_status, HTTPStatus(self.schema_status).phrase, headers, body)
        if self.refuse is not None:
            status, text = self.refuse
            headers = Headers({"Content-Length": str(len(text)), "Connection": "close"})
            return Response(status, HTTPStatus(status).phrase, headers, text.encode())
        return None


@contextlib.asynccontextmanager
async def scripted(*protocols: str) -> AsyncIterator[ScriptedServer]:
    """A server that runs for as long as the `async with`; `protocols` as it prefers them (v3 by default)."""
    script = ScriptedServer()
    known = [Subprotocol(protocol) for protocol in protocols or (V3,)]
    async with serve(
        script.serve,
        "127.0.0.1",
        0,
        subprotocols=known,
        process_request=script.answer,
        ping_interval=None,
        close_timeout=0.1,
    ) as script.server:
        yield script
        for connection in script.server.connections:
            connection.transport.abort()
