"""The client's side of the protocol without a socket: frames in, events and messages out.

The shell calls `opened`, `receive` and `lost` as connections come and go. Query sets outlive connections: after a loss
they are subscribed again, and once all of them are answered, the difference between the rows before and the rows now
is reported. Until then the rows stay as they were, and whatever else arrives waits.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from gamedb.client.cache import Part, TableCache
from gamedb.client.events import Applied, Ended, Event, Opened, QuerySet, Settled, State
from gamedb.client.remote import Remote, RemoteFunction
from gamedb.columns import column_type
from gamedb.errors import CallFailed, ConnectionLost, GamedbError, QueryError, ReducerError, UnknownName, WireError
from gamedb.wire import messages
from gamedb.wire.bsatn import Codec, codec

_log: Final = logging.getLogger("gamedb.client")
_TEXT: Final = codec(column_type(str, "the text of an error"))
_ID_COUNT: Final = 2**32


class _Call(msgspec.Struct, frozen=True):
    """A request that is on its way: what its answer is read with."""

    what: str
    returns: Codec | None = None


class Core:
    """One client of one database."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.tables = _empty(remote)
        """What users see."""
        self.output: list[bytes] = []
        """Encoded messages that shall be sent; the shell takes them out."""
        self.ready = False
        """Whether the server has greeted the client, so that messages can be sent."""
        self.single = False
        """Whether a WebSocket message holds one message only (protocol v2)."""
        self._query_sets: list[QuerySet] = []
        self._by_id: dict[int, QuerySet] = {}
        self._calls: dict[int, _Call] = {}
        self._unsubscribes: dict[int, QuerySet] = {}
        self._request_ids = itertools.count()
        self._query_set_ids = itertools.count()
        self._fresh: dict[str, TableCache] | None = None
        self._awaited: set[int] = set()
        self._held: list[Event] = []

    @property
    def resuming(self) -> bool:
        """Whether the rows are still those of the last connection, as not all query sets have been answered yet."""
        return self._fresh is not None

    # --- what the shell asks for

    def subscribe(self, queries: Sequence[str]) -> QuerySet:
        """A new query set; it is asked for now, or as soon as there is a connection."""
        query_set = QuerySet(queries)
        self._query_sets.append(query_set)
        if self.ready:
            self._ask_for(query_set)
        return query_set

    def unsubscribe(self, query_set: QuerySet) -> list[Event]:
        """End a query set; `Ended` comes when the server has confirmed it, or is given at once."""
        if query_set.state in (State.ENDING, State.ENDED):
            return []
        if query_set.id is None or not self.ready:
            return self._end(query_set)
        request_id = self._next(self._request_ids)
        query_set.state = State.ENDING
        self._unsubscribes[request_id] = query_set
        flags = messages.UnsubscribeFlags.SEND_DROPPED_ROWS
        self._send(messages.Unsubscribe(request_id=request_id, query_set_id=query_set.id, flags=flags))
        return []

    def call(self, function: RemoteFunction, arguments: bytes) -> int:
        """Call a reducer or procedure; gives the request id under which `Settled` will come."""
        request_id = self._request(_Call(f"{function.kind} {function.name!r}", function.returns))
        message: messages.ClientMessage
        if function.kind == "reducer":
            message = messages.CallReducer(request_id=request_id, reducer=function.name, arguments=arguments)
        else:
            message = messages.CallProcedure(request_id=request_id, procedure=function.name, arguments=arguments)
        self._send(message)
        return request_id

    def query(self, sql: str) -> int:
        """Ask a one-off query; gives the request id under which `Settled` will come."""
        request_id = self._request(_Call("a query"))
        self._send(messages.OneOffQuery(request_id=request_id, query=sql))
        return request_id

    def _request(self, call: _Call) -> int:
        if not self.ready:
            raise ConnectionLost(f"{call.what} was not sent: there is no connection; wait for it, or call again later")
        request_id = self._next(self._request_ids)
        self._calls[request_id] = call
        return request_id

    def _next(self, numbers: Iterator[int]) -> int:
        return next(numbers) % _ID_COUNT

    def _send(self, message: messages.ClientMessage) -> None:
        self.output.append(messages.encode_client(message))

    def _ask_for(self, query_set: QuerySet) -> None:
        query_set.id = self._next(self._query_set_ids)
        self._by_id[query_set.id] = query_set
        if self._fresh is not None:
            self._awaited.add(query_set.id)
        request_id = self._next(self._request_ids)
        self._send(messages.Subscribe(request_id=request_id, query_set_id=query_set.id, queries=query_set.queries))

    # --- what the connection brings

    def receive(self, payload: bytes) -> Iterator[list[Event]]:
        """For each message in a WebSocket message: take it in, and give what came of it. `WireError` for bad bytes."""
        for message in messages.decode_server(payload, single=self.single):
            events = self._take(message)
            if self._fresh is None:
                yield events
                continue
            self._held.extend(events)
            if not self._awaited:
                yield self._finish_resuming()

    def lost(self) -> list[Event]:
        """The connection is gone: calls without an answer fail, query sets wait for the next one."""
        events = self._drop_resuming()
        self.ready = False
        self.output.clear()
        self._fresh = None
        self._awaited.clear()
        self._by_id.clear()
        self._unsubscribes.clear()
        calls, self._calls = self._calls, {}
        for request_id, call in calls.items():
            text = f"the connection was lost before {call.what} was answered; it may or may not have happened"
            events.append(Settled(request_id, error=ConnectionLost(text)))
        for query_set in list(self._query_sets):
            query_set.id = None
            if query_set.state is State.ENDING:
                events.extend(self._end(query_set))
        return events

    def _drop_resuming(self) -> list[Event]:
        """What had come when the connection was lost before all was known: rows that nobody saw are forgotten."""
        held, self._held = self._held, []
        for event in held:
            if isinstance(event, Applied) and event.query_set.state is State.LIVE:
                event.query_set.state = State.WAITING
        return [event for event in held if not isinstance(event, Opened | Applied)]

    def _take(self, message: messages.ServerMessage) -> list[Event]:
        if isinstance(message, messages.InitialConnection):
            return self._open(message)
        if not self.ready:
            raise WireError(f"the server began with a {type(message).__name__}, not with a greeting")
        match message:
            case messages.TransactionUpdate():
                return self._update(message.query_sets)
            case messages.ReducerResult():
                return self._reducer_result(message)
            case messages.SubscribeApplied():
                return self._subscribe_applied(message)
            case messages.UnsubscribeApplied():
                return self._unsubscribe_applied(message)
            case messages.SubscriptionError():
                return self._subscription_error(message)
            case messages.ProcedureResult():
                return self._procedure_result(message)
            case _:
                return self._query_result(message)

    def _open(self, message: messages.InitialConnection) -> list[Event]:
        if self.ready:
            raise WireError("the server greeted the client a second time")
        self.ready = True
        self._fresh = _empty(self.remote)
        for query_set in self._query_sets:
            self._ask_for(query_set)
        return [Opened(message.identity, message.connection_id, message.token)]

    def _finish_resuming(self) -> list[Event]:
        assert self._fresh is not None
        fresh, self._fresh = self._fresh, None
        changes = [change for name, cache in self.tables.items() for change in cache.replaced_by(fresh[name])]
        self.tables = fresh
        held, self._held = self._held, []
        opened = [event for event in held if isinstance(event, Opened)]
        others = [event for event in held if not isinstance(event, Opened) and not _is_over(event)]
        return [*opened, *changes, *others]

    # --- rows

    def _apply(self, parts: Iterable[tuple[str, Part]]) -> list[Event]:
        by_table: dict[str, list[Part]] = {}
        for name, part in parts:
            by_table.setdefault(name, []).append(part)
        tables = self.tables if self._fresh is None else self._fresh
        events: list[Event] = []
        for name, found in by_table.items():
            cache = tables.get(name)
            if cache is None:
                _log.warning("the server sent rows of %r, which it did not describe; they are left out", name)
                continue
            changes = cache.apply(found)
            if self._fresh is None or cache.table.schema.event:  # the others are compared as a whole
                events.extend(changes)
        return events

    def _update(self, query_sets: Iterable[messages.QuerySetUpdate]) -> list[Event]:
        return self._apply(
            (table.table, _part(rows)) for one in query_sets for table in one.tables for rows in table.rows
        )

    # --- answers

    def _reducer_result(self, message: messages.ReducerResult) -> list[Event]:
        call = self._calls.pop(message.request_id, None)
        outcome = message.outcome
        events = self._update(outcome.query_sets) if isinstance(outcome, messages.ReducerOk) else []
        error: GamedbError | None = None
        if isinstance(outcome, messages.ReducerFailed):
            error = ReducerError(_TEXT.decode_whole(outcome.error))
        elif isinstance(outcome, messages.InternalError):
            error = CallFailed(outcome.error)
        return events if call is None else [*events, Settled(message.request_id, error=error)]

    def _procedure_result(self, message: messages.ProcedureResult) -> list[Event]:
        call = self._calls.pop(message.request_id, None)
        if call is None:
            return []
        if isinstance(message.status, messages.InternalError):
            return [Settled(message.request_id, error=CallFailed(message.status.error))]
        value = None if call.returns is None else call.returns.decode_whole(message.status.value)
        return [Settled(message.request_id, value)]

    def _query_result(self, message: messages.OneOffQueryResult) -> list[Event]:
        if self._calls.pop(message.request_id, None) is None:
            return []
        if isinstance(message.result, messages.QueryFailed):
            return [Settled(message.request_id, error=QueryError(message.result.error))]
        rows: list[Any] = []
        for table in message.result.tables:
            try:
                cache = TableCache(self.remote.table(table.table))
            except UnknownName as error:
                return [Settled(message.request_id, error=error)]
            rows.extend(row for row, _ in cache.read(table.rows.data))
        return [Settled(message.request_id, rows)]

    # --- query sets

    def _subscribe_applied(self, message: messages.SubscribeApplied) -> list[Event]:
        query_set = self._by_id.get(message.query_set_id)
        if query_set is None:
            _log.warning("the server answered a query set that was not asked for; its rows are left out")
            return []
        self._awaited.discard(message.query_set_id)
        events = self._apply((t.table, Part(inserts=t.rows.data)) for t in message.tables)
        if query_set.state is State.WAITING:
            query_set.state = State.LIVE
            events.append(Applied(query_set))
        return events

    def _unsubscribe_applied(self, message: messages.UnsubscribeApplied) -> list[Event]:
        tables = [] if message.dropped is None else message.dropped.tables
        events = self._apply((t.table, Part(deletes=t.rows.data)) for t in tables)
        query_set = self._unsubscribes.pop(message.request_id, None)
        return events if query_set is None else [*events, *self._end(query_set)]

    def _subscription_error(self, message: messages.SubscriptionError) -> list[Event]:
        if message.request_id is not None:
            self._unsubscribes.pop(message.request_id, None)
        query_set = self._by_id.get(message.query_set_id)
        if query_set is None:
            return []
        return self._end(query_set, QueryError(message.error))

    def _end(self, query_set: QuerySet, error: QueryError | None = None) -> list[Event]:
        if query_set.state is State.ENDED:
            return []
        query_set.state = State.ENDED
        self._query_sets.remove(query_set)
        if query_set.id is not None:
            self._by_id.pop(query_set.id, None)
            self._awaited.discard(query_set.id)
        return [Ended(query_set, error)]


def _is_over(event: Event) -> bool:
    """Whether a query set that had its rows has ended meanwhile."""
    return isinstance(event, Applied) and event.query_set.state is State.ENDED


def _empty(remote: Remote) -> dict[str, TableCache]:
    return {name: TableCache(table) for name, table in remote.tables.items()}


def _part(rows: messages.PersistentRows | messages.EventRows) -> Part:
    if isinstance(rows, messages.EventRows):
        return Part(events=rows.events.data)
    return Part(inserts=rows.inserts.data, deletes=rows.deletes.data)
