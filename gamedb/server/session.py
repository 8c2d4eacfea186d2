"""`Session`: one client of one database. Bytes in, messages out; it knows no socket and no event loop.

It is given a `Channel` to write frames to, `Turns` to do its work in shares, and a way to run coroutines. Everything
here happens in the loop's thread, except `push` and `abandon`, which commits of other threads call under the
database's lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any, Final, Protocol

import msgspec

from gamedb.errors import (
    DatabaseClosed,
    GamedbError,
    QueryError,
    ReducerError,
    StorageError,
    UnknownName,
    WireError,
)
from gamedb.query import Catalog, Delta, LiveQuery, Query
from gamedb.server.audience import Run
from gamedb.server.endpoints import Endpoint, Endpoints
from gamedb.server.hub import Feed, Hub
from gamedb.server.limits import Limits
from gamedb.server.outbound import EVERYTHING, Outbound
from gamedb.server.snapshot import Snapshot
from gamedb.server.turns import Turns
from gamedb.types import ConnectionId, Identity
from gamedb.wire import messages
from gamedb.wire.bsatn import row_codec
from gamedb.wire.messages import (
    CallProcedure,
    CallReducer,
    ClientMessage,
    OneOffQuery,
    Subscribe,
    Unsubscribe,
    UnsubscribeFlags,
)

_log: Final = logging.getLogger("gamedb.server")

SHARE_MESSAGES: Final = 64
"""How many messages of a client are worked off before others have their turn."""
SHARE_SECONDS: Final = 0.002
UNFINISHED_ANSWERS_MAX: Final = 4
"""How many large answers to a client are being made at the same time; its next messages wait for them."""
REASON_BYTES_MAX: Final = 123
"""What fits into the close frame of a websocket."""

CLOSED_NORMALLY: Final = 1000
GOING_AWAY: Final = 1001
POLICY: Final = 1008
FAILED: Final = 1011
TRY_AGAIN: Final = 1013


class Channel(Protocol):
    """The way to a client."""

    paused: bool
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


class QuerySet:
    """A live query set of a client."""

    __slots__ = ("feeds", "request_id")

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self.feeds: list[Feed] = []


class Refused(GamedbError):
    """A client that `client_connected` did not let in; the text is for it."""


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
        self.limits = limits
        self.marked = False
        """Whether the hub has it on the list of those that have something to send."""
        self.ended = False
        self._hub = hub
        self._backlog = hub.backlog
        self._db = hub.db
        self._lock: Any = hub.db.lock
        self._catalog = catalog
        self._reducers = endpoints.reducers
        self._endpoints = endpoints
        self._token = caller.token
        self._several = caller.several
        self._confirmed = caller.confirmed
        self._channel = channel
        self._turns = turns
        self._spawn = spawn
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
        self._unfinished = 0
        self._held = False
        self._draining = False
        self._query_sets: dict[int, QuerySet] = {}
        self._queries = 0
        self._procedures: set[asyncio.Task[None]] = set()
        self._connected = False
        self._doom: tuple[int, str] | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            CallReducer: self._call_reducer,
            CallProcedure: self._call_procedure,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            OneOffQuery: self._one_off_query,
        }

    def __repr__(self) -> str:
        return f"<session {self.connection_id} of {self.identity} from {self.address or 'nowhere'}>"

    @property
    def query_sets(self) -> int:
        """How many query sets are live."""
        return len(self._query_sets)

    @property
    def procedures(self) -> int:
        """How many procedures are running."""
        return len(self._procedures)

    @property
    def bytes_waiting(self) -> int:
        """What waits to be sent."""
        return self._outbound.bytes_waiting

    @property
    def idle(self) -> bool:
        """Whether nothing is running or waiting to be sent."""
        return not (self._procedures or self._inbox or self._outbound)

    # --- its life

    def open(self) -> None:
        """Run `client_connected` and greet the client; `Refused` when it may not come in, and nothing has happened."""
        try:
            self._db.connect(self.identity, self.connection_id)
        except ReducerError as error:
            raise Refused(str(error)) from None
        except Exception as error:
            self._db.report_failure("client_connected", error)
            raise Refused("the server could not let you in; its log says why") from None
        self._connected = True
        self._hub.enter(self)
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

    def lost(self) -> None:
        """The connection is gone: end what ran for it, and run `client_disconnected`. Twice is once."""
        if self.ended:
            return
        self.ended = True
        self._inbox.clear()
        for task in list(self._procedures):
            task.cancel()
        with self._lock:
            for query_set_id in list(self._query_sets):
                self._drop(query_set_id)
            self._hub.leave(self)
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
            self.flush()
            self.end(FAILED, f"malformed message: {error}")
            return
        self._inbox.extend(decoded)
        if len(self._inbox) > self.limits.queued_messages_max:
            self.end(TRY_AGAIN, f"too many requests: more than {self.limits.queued_messages_max} wait to be answered")
            return
        self._continue()

    def receive_text(self) -> None:
        """A text message came, which the protocol does not have."""
        self.flush()
        self.end(FAILED, "text messages are not part of the protocol; send binary ones")

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
        return self._outbound.bytes_waiting > self._answer_bytes_max or self._unfinished >= UNFINISHED_ANSWERS_MAX

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
                self._hub.mark(self)

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
            self._hub.mark(self)

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

    def abandon(self, reason: str, code: int = FAILED) -> None:
        """End the session as soon as the loop gets to it; for other threads, under the database's lock."""
        self._doom = (code, reason)
        self._hub.mark(self)

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
                        self._hub.wait_for_disk(self)
                    break
                channel.write(self._hub.frame(taken))
        if self._inbox and not self._is_full():
            self._continue()

    def _answer_now(self, message: bytes) -> None:
        """Queue an answer that tells of what is committed by now."""
        with self._lock:
            self.answer(message, self._db.last_tx_id)

    # --- calls

    def _call_reducer(self, message: CallReducer) -> None:
        name = message.reducer
        endpoint = self._reducers.get(name)
        request_id = message.request_id
        hub, db = self._hub, self._db
        hub.counters.calls += 1
        if endpoint is None or endpoint.private:
            refusal = self._refusal(endpoint, name, "reducer")
            if refusal is not None or endpoint is None:
                self._answer_now(messages.reducer_internal_error(request_id, db.clock.micros(), refusal or ""))
                return
        try:
            arguments, _ = endpoint.decode(message.arguments)
        except WireError as error:
            text = f"invalid arguments for reducer {name}: {error}"
            self._answer_now(messages.reducer_internal_error(request_id, db.clock.micros(), text))
            return
        with self._lock:
            hub.calling = (self, request_id)
            try:
                db.execute(name, endpoint.invoke, arguments, self.identity, self.connection_id)
            except ReducerError as error:
                answer = messages.reducer_error(request_id, db.clock.micros(), str(error))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # sys.exit() in a reducer must not end the server
                answer = messages.reducer_internal_error(request_id, db.clock.micros(), self._failure(name, error))
            else:
                if hub.calling is None:  # the hub has answered, at the place of the commit
                    return
                answer = messages.reducer_ok(request_id, db.clock.micros(), b"", ())
            finally:
                hub.calling = None
            self.answer(answer, db.last_tx_id)

    def _refusal(self, endpoint: Endpoint | None, name: str, kind: str) -> str | None:
        """Why this client may not call a function; what is private looks like what does not exist."""
        if endpoint is None:
            return f"no such {kind}: `{name[:REASON_BYTES_MAX]}`"
        if endpoint.private and self.identity not in self._db.operators:
            if endpoint.function.lifecycle is not None:
                return f"can't directly call special {endpoint.function.lifecycle} lifecycle reducer"
            return f"no such {kind}: `{name}`"
        return None

    def _failure(self, name: str, error: BaseException) -> str:
        """Log an unexpected exception; what the client is told of it."""
        if isinstance(error, DatabaseClosed | StorageError):
            _log.warning("%s was not called: %s", name, error)
            return "the database takes no calls at the moment"
        self._db.report_failure(name, error)
        return f"{name} failed; the log of the server says why"

    def _call_procedure(self, message: CallProcedure) -> None:
        name = message.procedure
        endpoint = self._endpoints.procedures.get(name)
        problem = self._refusal(endpoint, name, "procedure")
        if problem is None and len(self._procedures) >= self.limits.procedures_max:
            problem = f"{self.limits.procedures_max} procedures of this connection are running; wait for one to end"
        arguments: tuple[Any, ...] = ()
        if problem is None and endpoint is not None:
            try:
                arguments, _ = endpoint.decode(message.arguments)
            except WireError as error:
                problem = f"invalid arguments for procedure {name}: {error}"
        if problem is not None or endpoint is None:
            self._answer_now(messages.procedure_error(message.request_id, problem or ""))
            return
        task = self._spawn(self._run_procedure(message.request_id, endpoint, arguments))
        self._procedures.add(task)
        task.add_done_callback(self._procedures.discard)

    async def _run_procedure(self, request_id: int, endpoint: Endpoint, arguments: tuple[Any, ...]) -> None:
        db = self._db
        started = db.clock.micros()
        began = perf_counter()
        try:
            value = await db.run_procedure_async(endpoint.function, arguments, self.identity, self.connection_id)
            data = endpoint.encode_result(value)
        except asyncio.CancelledError:
            if self.ended:
                raise
            answer = messages.procedure_error(request_id, f"{endpoint.name} was cancelled")
        except ReducerError as error:
            answer = messages.procedure_error(request_id, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = messages.procedure_error(request_id, self._failure(endpoint.name, error))
        else:
            micros = round((perf_counter() - began) * 1_000_000)
            answer = messages.procedure_returned(request_id, started, micros, data)
        self._answer_now(answer)
        self.flush()

    # --- queries

    def _subscribe(self, message: Subscribe) -> None:
        if message.query_set_id in self._query_sets:
            self.flush()
            self.end(FAILED, f"query set {message.query_set_id} is live already; unsubscribe it first")
            return
        texts = list(dict.fromkeys(text.strip() for text in message.queries))
        try:
            self._check_room(len(texts))
            with self._lock:
                self._begin_query_set(message, self._parse(texts))
        except _QueryFailed as error:
            self._answer_now(messages.subscription_error(message.request_id, message.query_set_id, str(error)))

    def _check_room(self, queries: int) -> None:
        limits = self.limits
        if len(self._query_sets) >= limits.query_sets_max:
            raise _QueryFailed(f"this connection has {limits.query_sets_max} query sets; unsubscribe some first")
        if self._queries + queries > limits.queries_max:
            raise _QueryFailed(f"this connection would have more than {limits.queries_max} queries; subscribe to less")

    def _parse(self, texts: list[str]) -> list[tuple[str, Query]]:
        operator = self.identity in self._db.operators
        found = []
        for text in texts:
            try:
                found.extend([(text, query) for query in self._catalog.parse_all(text, operator=operator)])
            except QueryError as error:
                raise _QueryFailed(f"{error}, executing: `{text}`") from None
        return found

    def _begin_query_set(self, message: Subscribe, queries: list[tuple[str, Query]]) -> None:
        """Under the lock: rows and registration belong to the same point in the order of commits."""
        query_set = QuerySet(message.request_id)
        query_set_id = message.query_set_id
        snapshots: list[tuple[str, Snapshot]] = []
        try:
            for text, query in queries:
                try:
                    feed = self._hub.follow(self, query_set_id, query)
                    if feed is not None:
                        query_set.feeds.append(feed)
                        snapshots.append((feed.name, self._hub.snapshot(feed, self.limits.rows_max)))
                except Exception as error:
                    raise self._query_failed(text, query, error) from None
        except _QueryFailed:
            self._hub.unfollow(self, query_set_id, query_set.feeds)
            raise
        self._query_sets[query_set_id] = query_set
        self._queries += len(query_set.feeds)

        def applied(tables: list[bytes]) -> bytes:
            return messages.subscribe_applied(message.request_id, query_set_id, tables)

        self._answer_with_rows(snapshots, applied)

    def _answer_with_rows(self, snapshots: list[tuple[str, Snapshot]], finish: Callable[[list[bytes]], bytes]) -> None:
        """Under the lock: answer with rows as they are now, even if making bytes of them takes a while."""
        tx_id = self._db.last_tx_id
        unfinished = {id(s): s for _, s in snapshots if s.row_list is None}
        if not unfinished:
            self.answer(finish(_tables(snapshots)), tx_id)
            return
        if self._backlog.pending:
            self._backlog.settle(self)
        place = self._outbound.hold(tx_id)
        self._unfinished += 1
        left = len(unfinished)

        def one_finished() -> None:
            nonlocal left
            left -= 1
            if left or self.ended:
                return
            self._unfinished -= 1
            if any(snapshot.row_list is None for _, snapshot in snapshots):
                self.end(FAILED, "rows could not be sent; the log of the server says why")
                return
            self._outbound.fill(place, finish(_tables(snapshots)))
            self.flush()

        for snapshot in unfinished.values():
            if not snapshot.waiting:
                self._turns.add(snapshot.work)
            snapshot.waiting.append(one_finished)

    def _unsubscribe(self, message: Unsubscribe) -> None:
        query_set_id = message.query_set_id
        query_set = self._query_sets.get(query_set_id)
        if query_set is None:
            text = f"query set {query_set_id} is not live"
            self._answer_now(messages.subscription_error(message.request_id, query_set_id, text))
            return
        with self._lock:
            if message.flags is UnsubscribeFlags.SEND_DROPPED_ROWS:
                snapshots = [(feed.name, self._hub.snapshot(feed)) for feed in query_set.feeds]
                self._answer_with_rows(
                    snapshots, lambda tables: messages.unsubscribe_applied(message.request_id, query_set_id, tables)
                )
            else:
                answer = messages.unsubscribe_applied(message.request_id, query_set_id, None)
                self.answer(answer, self._db.last_tx_id)
            self._drop(query_set_id)

    def _drop(self, query_set_id: int) -> None:
        query_set = self._query_sets.pop(query_set_id)
        self._queries -= len(query_set.feeds)
        self._hub.unfollow(self, query_set_id, query_set.feeds)

    def end_query_set(self, query_set_id: int, error: str, changes: dict[LiveQuery, Delta], tx_id: int) -> None:
        """Under the lock: a query of a set cannot be answered any more, so the set ends; its rows are taken back.

        `changes`: what the commit that ended it did, and what this client has not been told.
        """
        query_set = self._query_sets[query_set_id]
        withdrawn = [self._hub.withdrawal(feed, changes.get(feed.live)) for feed in query_set.feeds]
        tables = [table for table in withdrawn if table is not None]
        if tables:
            self.push(messages.transaction_update([messages.query_set_update(query_set_id, tables)]), tx_id)
        self.push(messages.subscription_error(query_set.request_id, query_set_id, error), tx_id)
        self._drop(query_set_id)

    def _one_off_query(self, message: OneOffQuery) -> None:
        request_id, text = message.request_id, message.query.strip()
        with self._lock:
            try:
                snapshots = [self._rows_once(text, query) for _, query in self._parse([text])]
            except _QueryFailed as error:
                self.answer(messages.one_off_error(request_id, str(error)), self._db.last_tx_id)
            else:
                self._answer_with_rows(snapshots, lambda tables: messages.one_off_result(request_id, tables))

    def _rows_once(self, text: str, query: Query) -> tuple[str, Snapshot]:
        try:
            rows = self._hub.matcher.answer(query, self.identity, self.limits.rows_max)
        except Exception as error:
            raise self._query_failed(text, query, error) from None
        codec = row_codec(query.table)
        return query.name, Snapshot(rows, codec.encode, codec.fixed_size)

    def _query_failed(self, text: str, query: Query, error: Exception) -> _QueryFailed:
        """What the client is told of a query that raised; what it is not told is logged."""
        if isinstance(error, QueryError):
            return _QueryFailed(f"{error}, executing: `{text}`")
        self._db.report_failure(f"a query on {query.name}", error)
        return _QueryFailed(f"the query failed; the log of the server says why, executing: `{text}`")


class _QueryFailed(Exception):
    """A query that fails its set; the text is for the client."""


def _tables(snapshots: list[tuple[str, Snapshot]]) -> list[bytes]:
    return [messages.table_rows(name, snapshot.row_list or b"") for name, snapshot in snapshots]


def shorten(reason: str) -> str:
    """A text as it fits into a close frame."""
    data = reason.encode(errors="replace")
    return reason if len(data) <= REASON_BYTES_MAX else data[: REASON_BYTES_MAX - 3].decode(errors="ignore") + "..."
