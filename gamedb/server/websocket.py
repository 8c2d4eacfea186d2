"""The websocket of a client: `websockets` does the framing (sans-I/O), this moves bytes and keeps the time.

Uvicorn makes a `WebSocket` for each upgrade request and hands it the socket. Frames go from here to a `Session` and
back without tasks or queues in between: what a client sent in one message is answered in one message. It knows
nothing of what is in them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from gamedb.server.admission import Follow, TooMany
from gamedb.server.opening import Opening, Refusal, opening
from gamedb.server.server import Server
from gamedb.server.session import FAILED, GOING_AWAY, Refused, Session, shorten

_log: Final = logging.getLogger("gamedb.server")
_quiet: Final = logging.getLogger("gamedb.server.websocket")
_quiet.setLevel(logging.CRITICAL)  # what clients do wrong is no error of ours, and tokens stand in URLs

CLOSE_SECONDS: Final = 0.25
"""How long the answer to a close frame is waited for."""
LAST_SECONDS_MAX: Final = 5.0
"""How long a closing client may take to read what was sent before."""
BUFFERED_BYTES_MAX: Final = 1 << 20
"""From how many bytes on that the socket has not taken, a client does not keep up."""


class WebSocket(asyncio.Protocol):
    """One connection, from the upgrade request to its end. What a `Session` calls its channel."""

    def __init__(self, server: Server, *, config: Any, server_state: Any, app_state: Any, _loop: Any = None) -> None:
        del config, app_state
        self._server = server
        self._limits = server.limits
        self._connections: set[Any] = server_state.connections
        self._tasks: set[asyncio.Task[None]] = server_state.tasks
        self._loop: asyncio.AbstractEventLoop = _loop or asyncio.get_running_loop()
        self._conn = ServerProtocol(max_size=self._limits.message_bytes_max, logger=_quiet)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._session: Session | None = None
        self._early: list[Frame] = []
        self._parts: bytearray | None = None
        self._is_text = False
        self._reading = True
        self._heard_at = self._loop.time()
        self._written = self._taken = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._lost = False
        self._from = ""
        """Where the client is, for the log."""
        self._follow: Follow | None = None
        self._leave: Callable[[], None] | None = None
        """Ends that it is counted for its address."""
        self.paused = False

    # --- the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=BUFFERED_BYTES_MAX)
        self._from = self._peer()
        self._connections.add(self)
        self._server.websockets.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self.paused = True
        self._connections.discard(self)
        self._server.websockets.discard(self)
        if self._leave is not None:
            self._leave()
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.lost()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self._session is not None:
            self._session.flush()

    def eof_received(self) -> bool | None:
        return None

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        conn = self._conn
        if conn.state is State.CLOSED or conn.eof_sent:
            return
        conn.receive_data(data)
        for event in conn.events_received():
            if isinstance(event, Request):
                self._begin(event)
            elif self._session is None:
                self._early.append(event)  # type: ignore[arg-type]
            else:
                self._take(event)  # type: ignore[arg-type]
        self._write_out()
        if conn.parser_exc is not None or (conn.state is not State.OPEN and conn.close_rcvd is not None):
            self._finish()

    def _write_out(self) -> None:
        """Send what the framing has to say: pongs, close frames."""
        output = self._conn.data_to_send()
        if self.paused and self._conn.state is State.OPEN:
            return  # pongs for a client that reads nothing would pile up
        for data in output:
            if data:
                self._transport.write(data)

    # --- opening

    def _begin(self, request: Request) -> None:
        self._pause_reading()
        task = self._loop.create_task(self._open(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, request: Request) -> None:
        try:
            found = await self._look_at(request)
        except Refusal as refusal:
            self._refuse(refusal.status, refusal.text)
            return
        except Exception as error:
            _log.error("a websocket could not be opened: %r", error, exc_info=error)
            self._refuse(500, "the server failed; its log says why")
            return
        if self._lost:
            return
        response = self._conn.accept(request)
        if response.status_code == 101:
            response.headers["Sec-WebSocket-Protocol"] = found.protocol
            response.headers["spacetime-identity"] = found.caller.identity.hex()
            response.headers["spacetime-identity-token"] = found.caller.token
        self._conn.send_response(response)
        self._write_out()
        if response.status_code != 101:
            self._transport.close()
            return
        try:
            self._enter(found)
        except Exception as error:
            _log.error("a session could not be opened: %r", error, exc_info=error)
            self.close(FAILED, "the server failed; its log says why")

    async def _look_at(self, request: Request) -> Opening:
        if len(self._server.websockets) > self._limits.connections_max:
            raise Refusal(503, f"the server has {self._limits.connections_max} connections; try again later")
        self._count_in(request.headers.get_all("X-Forwarded-For"))
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        offered = [
            protocol.strip()
            for header in request.headers.get_all("Sec-WebSocket-Protocol")
            for protocol in header.split(",")
        ]
        return await opening(self._server, request.path, headers, offered, address=self._from, follow=self._follow)

    def _count_in(self, forwarded: list[str]) -> None:
        admission = self._server.admission
        peer = self._transport.get_extra_info("peername")
        if self._lost or not isinstance(peer, tuple):  # nobody would count it out
            return
        address = admission.proxies.client(peer[0], forwarded)
        if address != peer[0]:
            self._from = address
        try:
            self._leave = admission.enter(address)
        except TooMany as error:
            raise Refusal(429, str(error)) from None
        self._follow = partial(admission.follow, address)

    def _refuse(self, status: int, text: str) -> None:
        _log.info("a websocket from %s was refused: %d %s", self._from, status, text)
        if self._lost:
            return
        self._conn.send_response(self._conn.reject(status, text))
        self._write_out()
        self._transport.close()

    def _enter(self, found: Opening) -> None:
        session = found.hosted.session(found.caller, self)
        try:
            session.open()
        except Refused as error:
            self.close(error.code, str(error))
            return
        self._session = session
        self._resume_reading()
        self._timer = self._loop.call_later(self._limits.ping_seconds, self._look_for_life)
        early, self._early = self._early, []
        for event in early:
            self._take(event)

    def _peer(self) -> str:
        peer = self._transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer or "")

    # --- frames that come in

    def _take(self, event: Frame) -> None:
        opcode = event.opcode
        if opcode is Opcode.BINARY or opcode is Opcode.TEXT:
            self._is_text = opcode is Opcode.TEXT
            if event.fin:
                self._message(bytes(event.data))
            else:
                self._parts = bytearray(event.data)
        elif opcode is Opcode.CONT and self._parts is not None:
            self._parts += event.data
            if event.fin:
                whole, self._parts = bytes(self._parts), None
                self._message(whole)

    def _message(self, payload: bytes) -> None:
        session = self._session
        if session is None or self._closing:
            return
        if self._is_text:
            session.receive_text()
        else:
            session.receive(payload)

    # --- what a session wants of its channel

    def write(self, data: bytes) -> None:
        """Send a frame."""
        if not self._closing:
            self._written += len(data)
            self._transport.write(data)

    def hold(self, held: bool) -> None:
        """Read nothing from the client for now, or read again."""
        if held:
            self._pause_reading()
        else:
            self._resume_reading()

    def close(self, code: int, reason: str) -> None:
        """Send a close frame; the socket is closed when the client has answered it, or soon after."""
        if self._closing or self._lost:
            return
        self._closing = True
        try:
            self._conn.send_close(code, shorten(reason))
        except InvalidState:
            self._transport.abort()
            return
        for data in self._conn.data_to_send():
            self._transport.write(data)
        self._resume_reading()
        self._finish()

    def shutdown(self) -> None:
        """Uvicorn ends."""
        if self._session is not None:
            self._session.end(GOING_AWAY, self._server.goodbye)
        elif not self._lost:
            self._transport.close()

    def _finish(self) -> None:
        """Close the socket when its last bytes are out, but do not wait for a client that does not read them."""
        self._closing = True
        if self._session is not None:
            self._session.lost()
        if self._lost:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._conn.close_rcvd is not None or self._conn.parser_exc is not None:
            self._transport.close()
        self._timer = self._loop.call_later(CLOSE_SECONDS, self._end_of_closing, self._loop.time() + LAST_SECONDS_MAX)

    def _end_of_closing(self, until: float) -> None:
        if self._lost:
            return
        if self._transport.get_write_buffer_size() and self._loop.time() < until:
            self._timer = self._loop.call_later(CLOSE_SECONDS, self._end_of_closing, until)
        else:
            self._transport.abort()

    # --- signs of life

    def _look_for_life(self) -> None:
        if self._lost or self._closing:
            return
        now = self._loop.time()
        buffered = self._transport.get_write_buffer_size()
        before, self._taken = self._taken, self._written - buffered
        if not (self._reading or self.paused) or (buffered and self._taken > before):
            self._heard_at = now  # it is us who do not listen, or it reads slowly what there is much of
        if now - self._heard_at >= self._limits.silence_seconds_max:
            _log.info("connection from %s was silent for %.0f s", self._from, now - self._heard_at)
            self._transport.abort()
            return
        if not self.paused:
            self._conn.send_ping(b"")
            self._write_out()
        self._timer = self._loop.call_later(self._limits.ping_seconds, self._look_for_life)

    def _pause_reading(self) -> None:
        if self._reading and not self._lost:
            self._reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._reading and not self._lost:
            self._reading = True
            self._transport.resume_reading()
