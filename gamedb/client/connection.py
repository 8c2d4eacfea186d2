"""One websocket connection: bytes of messages out, WebSocket messages in. It knows nothing of what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from gamedb.client.addresses import Address, authorization, refusal
from gamedb.errors import ConnectionLost, WireError

PROTOCOLS: Final = (Subprotocol("v3.bsatn.spacetimedb"), Subprotocol("v2.bsatn.spacetimedb"))
FRAME_BYTES_MAX: Final = 256 * 1024
"""How many bytes of small messages are packed into one WebSocket message."""
MESSAGE_BYTES_MAX: Final = 1 << 30
"""What one WebSocket message of the server may take, decoded."""
OPEN_SECONDS_MAX: Final = 20.0
CLOSE_SECONDS_MAX: Final = 2.0


class Connection:
    """An open websocket. It closes by itself when the server does not answer for two heartbeats."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def open(
        cls, where: Address, token: str | None, *, confirmed: bool | None, heartbeat_seconds: float
    ) -> Connection:
        """Connect; `ConnectionLost`, `NotAllowed` or `UnknownName` when that fails."""
        try:
            socket = await connect(
                where.socket_url(confirmed),
                subprotocols=PROTOCOLS,
                additional_headers=authorization(token),
                compression=None,
                max_size=MESSAGE_BYTES_MAX,
                open_timeout=OPEN_SECONDS_MAX,
                ping_interval=heartbeat_seconds,
                ping_timeout=heartbeat_seconds,
                close_timeout=CLOSE_SECONDS_MAX,
                user_agent_header=None,
            )
        except InvalidStatus as error:
            text = (error.response.body or b"").decode(errors="replace").strip()
            raise refusal(error.response.status_code, text, where) from None
        except (OSError, WebSocketException, EOFError) as error:
            raise ConnectionLost(f"cannot connect to {where.base}: {error or type(error).__name__}") from None
        if socket.subprotocol is None:
            await socket.close()
            raise ConnectionLost(f"the server at {where.base} speaks none of {', '.join(PROTOCOLS)}")
        return cls(socket)

    @property
    def single(self) -> bool:
        """Whether a WebSocket message holds one message only."""
        return self._socket.subprotocol == PROTOCOLS[1]

    async def receive(self) -> bytes:
        """The next WebSocket message; `ConnectionLost` when there will be none, `WireError` for text."""
        try:
            payload = await self._socket.recv()
        except ConnectionClosed as error:
            close = error.rcvd or error.sent
            why = f": {close.code} {close.reason}".rstrip() if close is not None else " without a word"
            raise ConnectionLost(f"the connection was closed{why}") from None
        if isinstance(payload, str):
            raise WireError("the server sent text, not bytes")
        return payload

    async def send(self, encoded: list[bytes]) -> None:
        """Send messages in order; what cannot be sent any more is left to `receive` to tell."""
        try:
            for payload in encoded if self.single else packed(encoded):
                await self._socket.send(payload)
        except ConnectionClosed:
            return

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye, and close."""
        await self._socket.close(code, reason)

    def abort(self) -> None:
        """End at once, without a word."""
        self._socket.transport.abort()


def packed(encoded: list[bytes]) -> Iterator[bytes]:
    """Messages together in WebSocket messages of up to `FRAME_BYTES_MAX`; a larger one goes alone."""
    group: list[bytes] = []
    size = 0
    for message in encoded:
        if group and size + len(message) > FRAME_BYTES_MAX:
            yield b"".join(group)
            group, size = [], 0
        group.append(message)
        size += len(message)
    if group:
        yield b"".join(group)
