"""Clients of a served game over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from gamedb import Database
from gamedb.server.auth import Authenticator
from gamedb.server.background import in_thread
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.limits import Limits
from gamedb.server.serve import Serving
from gamedb.server.server import Server
from gamedb.wire import messages
from gamedb.wire.bsatn import parameters_codec
from tests.gamedb.server.arena import arena

V2, V3 = "v2.bsatn.spacetimedb", "v3.bsatn.spacetimedb"
ARENA = arena()[0].resolve()
SECONDS_MAX = 20
"""How long a test waits for what must come."""


@contextmanager
def served(
    *databases: Database, limits: Limits | None = None, names: tuple[str, ...] = (), proxies: tuple[str, ...] = ()
) -> Iterator[Serving]:
    """Serve databases from a thread."""
    named = zip(databases, names or [db.module.name for db in databases], strict=True)
    server = Server(
        [Hosted(db, name=name, limits=limits) for db, name in named],
        Authenticator(Keys(None)),
        limits=limits,
        proxies=proxies,
    )
    try:
        with in_thread(server) as serving:
            yield serving
    finally:
        for hosted in server.hosted.values():
            hosted.logs.close()


class Connection:
    """A client with a real websocket."""

    def __init__(
        self,
        serving: Serving | str,
        *,
        database: str = "arena",
        query: str = "",
        protocols: Any = (V3, V2),
        greeted: bool = True,
        **options: Any,
    ) -> None:
        base = serving if isinstance(serving, str) else serving.url
        url = f"{base.replace('http', 'ws', 1)}/v1/database/{database}/subscribe{query}"
        self._stack = ExitStack()
        self.websocket = self._stack.enter_context(connect(url, subprotocols=protocols, max_size=None, **options))
        self.waiting: list[messages.ServerMessage] = []
        self.request_id = 0
        if greeted:
            greeting = self.next()
            assert isinstance(greeting, messages.InitialConnection)
            self.greeting = greeting

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Say good-bye and go."""
        self._stack.close()

    def vanish(self) -> None:
        """Go without a word."""
        self.websocket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        self.websocket.socket.close()
        self.close()

    def send(self, *sent: messages.ClientMessage) -> None:
        self.websocket.send(b"".join(map(messages.encode_client, sent)))

    def send_bytes(self, payload: bytes | list[bytes]) -> None:
        """Send anything; a list is sent as fragments. The server may close the connection meanwhile."""
        with suppress(ConnectionClosed):
            self.websocket.send(payload)

    def next(self) -> messages.ServerMessage:
        """The next message."""
        while not self.waiting:
            frame = self.websocket.recv(timeout=SECONDS_MAX)
            assert isinstance(frame, bytes)
            self.waiting = messages.decode_server(frame)
        return self.waiting.pop(0)

    def calling(self, reducer: str, *arguments: Any) -> messages.CallReducer:
        """A call, not sent yet."""
        self.request_id += 1
        data = parameters_codec(ARENA.functions[reducer].parameters).encode(arguments)
        return messages.CallReducer(request_id=self.request_id, reducer=reducer, arguments=data)

    def call(self, reducer: str, *arguments: Any) -> Any:
        """The outcome of a call; updates that come before it are dropped."""
        self.send(self.calling(reducer, *arguments))
        while True:
            message = self.next()
            if isinstance(message, messages.ReducerResult):
                assert message.request_id == self.request_id
                return message.outcome

    def subscribe(self, *queries: str, query_set_id: int = 1) -> messages.SubscribeApplied:
        self.request_id += 1
        self.send(messages.Subscribe(request_id=self.request_id, query_set_id=query_set_id, queries=list(queries)))
        applied = self.next()
        assert isinstance(applied, messages.SubscribeApplied), applied
        return applied

    def closed(self) -> tuple[int, str]:
        """The code and reason of the close that comes next; what comes before is dropped."""
        try:
            while True:
                self.websocket.recv(timeout=SECONDS_MAX)
        except ConnectionClosed as closed:
            if closed.rcvd is None:
                return 1006, ""
            return closed.rcvd.code, closed.rcvd.reason


UPGRADE = (
    "GET /v1/database/{name}/subscribe{query} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
)


def masked(payload: bytes) -> bytes:
    """A client's frame with a small binary message."""
    assert len(payload) < 126
    return bytes([0x82, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def raw(serving: Serving) -> socket.socket:
    """A bare connection."""
    connection = socket.create_connection(("127.0.0.1", serving.port), timeout=SECONDS_MAX)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    return connection


def upgrade_answer(serving: Serving, *, name: str = "arena", query: str = "", headers: str = "") -> str:
    """What a server answers to a request for a websocket, up to the end of the connection or of the headers."""
    with raw(serving) as connection:
        connection.sendall(UPGRADE.format(name=name, query=query, headers=headers).encode())
        answer = b""
        while not (answer.startswith(b"HTTP/1.1 101") and b"\r\n\r\n" in answer):
            data = connection.recv(4096)
            if not data:
                break
            answer += data
        return answer.decode(errors="replace")


def until(holds: object, what: str) -> None:
    """Wait, a bounded time, for what another thread is about to do."""
    assert callable(holds)
    pause = threading.Event()
    for _ in range(SECONDS_MAX * 100):
        if holds():
            return
        pause.wait(0.01)
    raise AssertionError(f"it did not come to pass that {what}")
