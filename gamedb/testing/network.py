"""The network of a simulation, without sockets: the server's side of it, and the lines between it and clients.

What one side writes reaches the other in order, after a latency in simulated time that is zero by default.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gamedb.query import Catalog, Matcher
from gamedb.server.endpoints import Endpoints
from gamedb.server.hub import Hub
from gamedb.server.limits import Limits
from gamedb.server.session import Caller, Session
from gamedb.server.turns import Turns
from gamedb.store import ReadTables
from gamedb.testing.database import SimulatedDatabase
from gamedb.testing.loop import SimulatedLoop

if TYPE_CHECKING:
    from gamedb.testing.clients import SimulatedClient

BUFFERED_BYTES_MAX: Final = 16 << 10
"""From how many bytes on that it has not read, a client does not keep up."""


class Gate:
    """What a server is made of but for its sockets, in one life of the process."""

    def __init__(self, db: SimulatedDatabase, loop: SimulatedLoop, limits: Limits) -> None:
        self.db = db
        self.loop = loop
        self.limits = limits
        self.catalog = Catalog(db.module)
        self.endpoints = Endpoints(db.module)
        self.turns = Turns(loop.call_soon, seconds=loop.time)
        self.hub = Hub(db, Matcher(self.catalog, ReadTables(db.module.name, db.game_tables)), schedule=self._schedule)

    def _schedule(self, callback: Callable[[], None]) -> None:
        self.loop.call_soon(callback)

    def session(self, caller: Caller, channel: Line) -> Session:
        """A session for a client that has just come."""
        return Session(
            self.hub,
            self.catalog,
            self.endpoints,
            caller,
            channel,
            turns=self.turns,
            spawn=self.loop.spawn,
            limits=self.limits,
        )


class Line:
    """One connection, as a session sees it and as its client does."""

    def __init__(self, client: SimulatedClient, gate: Gate, latency: Callable[[], float]) -> None:
        self._client = client
        self._gate = gate
        self._latency = latency
        self._down_at = self._up_at = 0.0
        self._under_way = 0
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self.session: Session | None = None

    @property
    def paused(self) -> bool:
        """Whether the client does not keep up with what was written."""
        return self._unread_bytes > BUFFERED_BYTES_MAX

    @property
    def idle(self) -> bool:
        """Whether nothing is under way, nor waits on either side."""
        session = self.session
        return not (self._under_way or self._unread) and session is not None and session.idle and not session.marked

    def write(self, frame: bytes) -> None:
        """Send a frame to the client."""
        if not self._gate.db.dead:
            if self._client.confirmed:
                self._client.sim.disk.rely()
            self._unread_bytes += len(frame)
            self._down_at = self._deliver(self._down_at, self._take, frame)

    def _take(self, frame: bytes) -> None:
        self._unread.append(frame)
        if self._client.reading:
            self.read()

    def read(self) -> None:
        """Let the client have what has come."""
        was_paused = self.paused
        while self._unread:
            frame = self._unread.popleft()
            self._unread_bytes -= len(frame)
            self._client.receive(self, frame)
        if was_paused and not self.paused and self.session is not None:
            self.session.flush()

    def send(self, payload: bytes) -> None:
        """Send messages to the server."""
        self._up_at = self._deliver(self._up_at, self._arrive, payload)

    def _deliver(self, last: float, function: Callable[..., None], *arguments: Any) -> float:
        """In order, whatever the latencies are."""
        at = max(last, self._gate.loop.time() + self._latency())
        self._under_way += 1
        self._gate.loop.call_at(at, self._delivered, function, *arguments)
        return at

    def _delivered(self, function: Callable[..., None], *arguments: Any) -> None:
        self._under_way -= 1
        function(*arguments)

    def _arrive(self, payload: bytes) -> None:
        if self.session is not None:
            self.session.receive(payload)

    def close(self, code: int, reason: str) -> None:
        """End the connection."""
        if not self._gate.db.dead:
            self._down_at = self._deliver(self._down_at, self._client.closed, self, code, reason)

    def hold(self, held: bool) -> None:
        """The simulated network does not mind."""
