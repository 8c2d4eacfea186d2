"""`Session`: one client of one database. Bytes in, messages out; it knows no socket and no event loop.

Here is its life, and what waits to be worked off and to be sent; what its messages ask for is done by `Calls` and
`QuerySets`. It is given a `Channel` to write frames to, `Turns` to do its work in shares, and a way to run coroutines.
All this happens in the loop's thread, except `push`, `tell` and `abandon`, which commits of other threads call under
the database's lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import msgspec

from gamedb.errors import DatabaseClosed, GamedbError, ReducerError, StorageError, UnknownName, WireError
from gamedb.query import Catalog
from gamedb.server.admission import Follow
from gamedb.server.audience import Run
from gamedb.server.calls import Calls
from gamedb.server.endpoints import Endpoints
from gamedb.server.hub import Hub
from gamedb.server.limits import Limits
from gamedb.server.outbound import EVERYTHING, Outbound, Place
from gamedb.server.query_sets import UNFINISHED_MAX, QuerySets
from gamedb.server.turns import Turns
from gamedb.types import ConnectionId, Identity
from gamedb.wire import messages
from gamedb.wire.messages import CallProcedure, CallReducer, ClientMessage, OneOffQuery, Subscribe, Unsubscribe

_log: Final = logging.getLogger("gamedb.server")

SHARE_MESSAGES: Final = 64
"""How many messages of a client are worked off before others have their turn."""
SHARE_SECONDS: Final = 0.002
REASON_BYTES_MAX: Final = 123
"""What fits into the close frame of a websocket."""

CLOSED_NORMALLY: Final = 1000
GOING_AWAY: Final = 1001
POLICY: Final = 1008
FAILED: Final = 1011
TRY_AGAIN: Final = 1013


class Channel(Protocol):
    """The way to a client."""

    @property
    def paused(self) -> bool:
        """Whether the client does not keep up with what was written."""

    def write(self, frame: bytes) -> None:
        """Send a frame that `Hub.frame` made."""

    def close(self, code: int, reason: str) -> None:
        """Send a close frame, and end the connection soon after."""

    def hold(self, held: bool) -> None:
        """Read nothing from the client, or read again."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who opens a session, and how."""

    identity: Identity
    connection_id: ConnectionId
    token: str
    """The token that the client gets told."""
    several: bool = True
    """Whether a websocket message may hold several messages (protocol v3)."""
    confirmed: bool = True
    """Whether nothing is sent before it is on disk."""
    address: str = ""
    """Where it comes from, for the log."""
    follow: Follow | None = None
    """Asked before each query: `Admission.follow` for its address. `TooMany` is why not now."""


class Refused(GamedbError):
    """A client that was not let in; text and close code are for it."""

    def __init__(self, text: str, code: int = POLICY) -> None:
        super().__init__(text)
        self.code = code


class Session:
    """One connected client."""

    def __init__(
        self,
        hub: Hub,
        catalog: Catalog,
        endpoints: Endpoints,
        caller: Caller,
        channel: Channel,
        *,
        turns: Turns,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        limits: Limits,
    ) -> None:
        self.identity = caller.identity
        self.connection_id = caller.connection_id
        self.address = caller.address
        self.follow = caller.follow
        self.limits = limits
        self.seconds = turns.seconds
        """The clock of its budgets."""
        self.marked = False
        """Whether the hub has it on the list of those that have something to send."""
        self.ended = False
        self.hub = hub
        self._backlog = hub.backlog
        self._db = hub.db
        self._lock: Any = hub.db.lock
        self._token = caller.token
        self._several = caller.several
        self._confirmed = caller.confirmed
        self._channel = channel
        self._turns = turns
        self._outbound = Outbound(pack=caller.several, frame_bytes_max=limits.frame_bytes_max)
        self._queued_bytes_max = limits.queued_bytes_max
        self._answer_bytes_max = limits.queued_bytes_max // 2
        self._wire_limits = messages.Limits(
            payload_bytes_max=limits.message_bytes_max,
            messages_max=limits.queued_messages_max,
            queries_max=limits.queries_max,
        )
        self._inbox: deque[ClientMessage] = deque()
        self._working = False
        self._held = False
        self._draining = False
        self._connected = False
        self._doom: tuple[int, str] | None = None
        self.calls = Calls(self, endpoints, spawn)
        self.query_sets = QuerySets(self, catalog, turns)
        self._handlers: dict[type, Callable[[Any], None]] = {
            CallReducer: self.calls.reducer,
            CallProcedure: self.calls.procedure,
            Subscribe: self.query_sets.subscribe,
            Unsubscribe: self.query_sets.unsubscribe,
            OneOffQuery: self.query_sets.one_off,
        }

    def __repr__(self) -> str:
        return f"<session {self.connection_id} of {self.identity} from {self.address or 'nowhere'}>"

    @property
    def bytes_waiting(self) -> int:
        """What waits to be sent."""
        return self._outbound.bytes_waiting

    @property
    def idle(self) -> bool:
        """Whether nothing is running or waiting to be sent."""
        return not (self.calls or self._inbox or self._outbound)

    # --- its life

    def open(self) -> None:
        """Run `client_connected` and greet the client; `Refused` when it may not come in, and nothing has happened."""
        try:
            self._db.connect(self.identity, self.connection_id)
        except ReducerError as error:
            raise Refused(str(error)) from None
        except (Exception, SystemExit) as error:
            if self._db.failure is not None:
                _log.warning("a client from %s could not be let in: %s", self.address, error)
                raise Refused("the database takes no calls at the moment; try again later", TRY_AGAIN) from None
            self._db.report_failure("client_connected", error)
            raise Refused("the server could not let you in; its log says why") from None
        self._connected = True
        self.hub.enter(self)
        greeting = messages.initial_connection(self.identity, self.connection_id, self._token)
        with self._lock:
            self.answer(greeting, 0)
        self.flush()

    def end(self, code: int = CLOSED_NORMALLY, reason: str = "") -> None:
        """Close the connection, and forget the client. Twice is once."""
        if self.ended:
            return
        if code not in (CLOSED_NORMALLY, GOING_AWAY):
            _log.warning("connection %s (%s) was closed: %d %s", self.connection_id, self.address, code, reason)
        self._channel.close(code, shorten(reason))
        self.lost()

    def refuse(self, reason: str) -> None:
        """The client broke the protocol: end it, after what was answered before."""
        self.flush()
        self.end(FAILED, reason)

    def lost(self) -> None:
        """The connection is gone: end what ran for it, and run `client_disconnected`. Twice is once."""
        if self.ended:
            return
        self.ended = True
        self._inbox.clear()
        self.calls.cancel()
        with self._lock:
            self.query_sets.drop_all()
            self.hub.leave(self)
            self._outbound.clear()
        if self._connected:
            self._connected = False
            try:
                self._db.disconnect(self.connection_id)
            except (UnknownName, DatabaseClosed, StorageError) as error:  # it runs when the database is next opened
                _log.warning("client_disconnected of %s has not run: %s", self.connection_id, error)

    def drain(self) -> None:
        """Take in nothing any more; what was taken in is worked off."""
        self._draining = True
        self._hold()

    # --- what comes in

    def receive(self, payload: bytes) -> None:
        """Take in a websocket message. What is wrong with it ends the session, and nothing else."""
        if self.ended:
            return
        try:
            decoded = messages.decode_client(payload, self._wire_limits, single=not self._several)
        except WireError as error:
            self.refuse(f"malformed message: {error}")
            return
        self._inbox.extend(decoded)
        if len(self._inbox) > self.limits.queued_messages_max:
            self.end(TRY_AGAIN, f"too many requests: more than {self.limits.queued_messages_max} wait to be answered")
            return
        self._continue()

    def receive_text(self) -> None:
        """A text message came, which the protocol does not have."""
        self.refuse("text messages are not part of the protocol; send binary ones")

    def _continue(self) -> None:
        if not self._working and self._inbox:
            self._working = True
            self._turns.add(self._work)

    def _work(self) -> bool:
        """Work off a share of the messages; says whether there are more."""
        inbox = self._inbox
        handlers = self._handlers
        seconds = self._turns.seconds
        until = seconds() + SHARE_SECONDS
        full = self._is_full()
        left = SHARE_MESSAGES
        while inbox and left and not (full or self.ended):
            left -= 1
            message = inbox.popleft()
            try:
                handlers[type(message)](message)
            except Exception as error:  # a bug of ours
                _log.error("a message of %r failed: %r", self, error, exc_info=error)
                self.end(FAILED, "the server failed; its log says why")
                break
            if type(message) is not CallReducer or not left & 7:  # results of reducers are small, most of them
                full = self._is_full()
            if seconds() > until:
                break
        if not self.ended:
            self.flush()
        self._working = bool(inbox) and not self.ended and not self._is_full()
        self._hold()
        return self._working

    def _is_full(self) -> bool:
        """Whether so much waits for this client that its next messages have to wait, too."""
        return self._outbound.bytes_waiting > self._answer_bytes_max or self.query_sets.unfinished >= UNFINISHED_MAX

    def _hold(self) -> None:
        """Let the client wait while there is enough of it to work off."""
        held = (bool(self._inbox) or self._draining) and not self.ended
        if held != self._held:
            self._held = held
            self._channel.hold(held)

    # --- what goes out

    def push(self, message: bytes, tx_id: int) -> None:
        """Queue an update, under the database's lock in any thread."""
        if self._backlog.pending:
            self._backlog.settle(self)
        if self._keeps_up():
            self._outbound.push(message, tx_id)
            if not self.marked:
                self.hub.mark(self)

    def tell(self, run: Run) -> None:
        """Queue updates of several commits, under the database's lock in any thread."""
        if not self._keeps_up():
            return
        if self._several:
            self._outbound.push(run.joined, run.tx_id)
        else:
            for message in run.messages:
                self._outbound.push(message, run.tx_id)
        if not self.marked:
            self.hub.mark(self)

    def _keeps_up(self) -> bool:
        """Whether the client reads what it is sent; one that does not is let go of."""
        if self._outbound.update_bytes_waiting <= self._queued_bytes_max:
            return True
        if self._doom is None:
            self.abandon(f"too slow: more than {self._queued_bytes_max} bytes of updates wait to be read", POLICY)
        return False

    def answer(self, message: bytes, tx_id: int) -> None:
        """Queue an answer, under the database's lock."""
        if not self.ended:
            if self._backlog.pending:
                self._backlog.settle(self)
            self._outbound.answer(message, tx_id)

    def answer_now(self, message: bytes) -> None:
        """Queue an answer that tells of what is committed by now."""
        with self._lock:
            self.answer(message, self._db.last_tx_id)

    def hold_place(self) -> Place:
        """Under the database's lock: a place for an answer that tells of what is committed by now."""
        if self._backlog.pending:
            self._backlog.settle(self)
        return self._outbound.hold(self._db.last_tx_id)

    def fill_place(self, place: Place, message: bytes) -> None:
        """Put the answer at its place."""
        self._outbound.fill(place, message)
        self.flush()

    def abandon(self, reason: str, code: int = FAILED) -> None:
        """End the session as soon as the loop gets to it; for other threads, under the database's lock."""
        self._doom = (code, reason)
        self.hub.mark(self)

    def flush(self) -> None:
        """Send what may be sent by now."""
        if self.ended:
            return
        if self._doom is not None:
            self.end(*self._doom)
            return
        channel, outbound = self._channel, self._outbound
        if outbound:
            durable = self._db.durable_tx_id if self._confirmed else EVERYTHING
            while not channel.paused:
                taken = outbound.take(durable)
                if not taken:
                    if outbound.waits_for() is not None:
                        self.hub.wait_for_disk(self)
                    break
                channel.write(self.hub.frame(taken))
        if self._inbox and not self._is_full():
            self._continue()


def shorten(reason: str) -> str:
    """A text as it fits into a close frame."""
    data = reason.encode(errors="replace")
    return reason if len(data) <= REASON_BYTES_MAX else data[: REASON_BYTES_MAX - 3].decode(errors="ignore") + "..."
