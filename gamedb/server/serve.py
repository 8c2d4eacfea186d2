"""Serving: sockets, the event loop, signals, the end. Uvicorn runs HTTP and hands websockets to `WebSocket`.

The end is graceful: nothing new is accepted, running procedures and unsent messages get some seconds, clients are
closed with 1001, `client_disconnected` runs, what is committed reaches the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette

from gamedb.errors import SchemaError, StorageError
from gamedb.server.http import routes
from gamedb.server.requests import Http
from gamedb.server.server import Server
from gamedb.server.session import GOING_AWAY
from gamedb.server.websocket import WebSocket

_log: Final = logging.getLogger("gamedb.server")

LISTEN: Final = "127.0.0.1:3000"
BACKLOG: Final = 2048
"""Connections that wait to be accepted."""
HTTP_SECONDS_MAX: Final = 3
"""How long the end waits for HTTP requests that are being answered."""
LOOK_SECONDS: Final = 0.02


class Serving:
    """A server that is running: where it listens, and how it ends."""

    def __init__(self, server: Server, bound: socket.socket, uvicorn_server: _Uvicorn) -> None:
        self.server = server
        host, self.port = bound.getsockname()[:2]
        self.host = f"[{host}]" if ":" in host else host
        """The address as URLs have it: brackets around IPv6."""
        self._uvicorn = uvicorn_server
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()

    @property
    def url(self) -> str:
        """`http://host:port`."""
        return f"http://{self.host}:{self.port}"

    def stop(self) -> None:
        """End gracefully; a second time, at once. From any thread."""
        with contextlib.suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._stopped.is_set():
            self._uvicorn.force_exit = True
        self._stopped.set()

    async def stopped(self) -> None:
        """Return when `stop` was called, or when serving has failed."""
        await self._stopped.wait()


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its signal handlers, and with our end before its own."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._game_server = server

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        await self._end_sessions()
        await super().shutdown(sockets)

    async def _end_sessions(self) -> None:
        """Let what is running come to its end, then close the clients."""
        server = self._game_server
        server.closing = True
        loop = asyncio.get_running_loop()
        until = loop.time() + server.limits.drain_seconds_max
        for session in server.sessions():
            session.drain()
        while loop.time() < until and not self.force_exit:
            if all(session.idle for session in server.sessions()):
                break
            await asyncio.sleep(LOOK_SECONDS)
        for session in server.sessions():
            session.end(GOING_AWAY, server.goodbye)


def bind(listen: str) -> socket.socket:
    """A listening socket at `HOST:PORT`; port 0 takes any that is free."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise SchemaError(f"listen={listen!r}: use HOST:PORT, such as {LISTEN}; port 0 takes any that is free")
    host = host.strip("[]") or "0.0.0.0"
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, int(port)), family=family, backlog=BACKLOG)
    except (OSError, ValueError) as error:  # a host name that can be none is a ValueError
        why = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        raise StorageError(f"cannot listen on {listen}: {why}; choose another address or port") from None


@contextlib.asynccontextmanager
async def serving(
    server: Server, listen: str = LISTEN, *, static: Path | None = None, schedules: bool = True
) -> AsyncIterator[Serving]:
    """Serve for as long as the `async with` lasts, and end gracefully. `schedules`: drive the scheduled tables, too."""
    app = Starlette(routes=routes(server, static=static))
    bound = bind(listen)
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(
        app,
        http=cast("Any", partial(Http, server.limits.handshake_seconds_max)),
        ws=cast("Any", partial(WebSocket, server)),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # uvicorn would believe any X-Forwarded-For of this machine; see `Admission`
        backlog=BACKLOG,
        timeout_graceful_shutdown=HTTP_SECONDS_MAX,
    )
    uvicorn_server = _Uvicorn(config, server)
    running = Serving(server, bound, uvicorn_server)
    server.begin(loop)
    driven = [one.db for one in server.hosted.values() if schedules and not one.db.drives_schedules]
    tasks = [loop.create_task(db.run_async()) for db in driven]
    for task in tasks:
        task.add_done_callback(_report_end)
    accepting = loop.create_task(uvicorn_server.serve(sockets=[bound]))
    accepting.add_done_callback(lambda _: running._stop())
    try:
        while not uvicorn_server.started and not accepting.done():
            await asyncio.sleep(0)
        if accepting.done():
            accepting.result()
        yield running
    finally:
        uvicorn_server.should_exit = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(accepting, *tasks, return_exceptions=True)
        server.end()
        bound.close()


async def serve(
    server: Server,
    listen: str = LISTEN,
    *,
    static: Path | None = None,
    ready: Callable[[Serving], None] | None = None,
    signals: bool = False,
) -> None:
    """Serve until `Serving.stop` is called or the task is cancelled. `ready` is called once clients can come.

    `signals`: SIGTERM and SIGINT stop it (only in the main thread).
    """
    async with serving(server, listen, static=static) as running:
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, running.stop)
        if ready is not None:
            ready(running)
        await running.stopped()


def run(
    server: Server,
    listen: str = LISTEN,
    *,
    static: Path | None = None,
    ready: Callable[[Serving], None] | None = None,
) -> None:
    """Serve from this thread until SIGTERM or SIGINT, on uvloop where it exists. Databases stay open."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(server, listen, static=static, ready=ready, signals=True))


def _report_end(schedules: asyncio.Task[None]) -> None:
    """Schedules that stop by themselves are never silent about it; health tells, too, once something is overdue."""
    error = None if schedules.cancelled() else schedules.exception()
    if error is not None:
        _log.error("schedules stopped: %r", error, exc_info=error)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop's loop where there is one; `None` for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
