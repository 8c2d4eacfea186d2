"""Clients of a hub without sockets: an event loop that is turned by hand, and a cache that counts as the SDK's does."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from typing import Any

from gamedb import Database, Identity
from gamedb.identity import identity_of, new_connection_id
from gamedb.query import Catalog, Matcher
from gamedb.server.admission import Follow
from gamedb.server.endpoints import Endpoints
from gamedb.server.hub import Hub
from gamedb.server.limits import Limits
from gamedb.server.session import Caller, Session
from gamedb.server.turns import Turns
from gamedb.store import ReadTables
from gamedb.wire import messages
from gamedb.wire.bsatn import codec, parameters_codec, row_codec


class FakeTask:
    """A coroutine that is run by hand."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self.work = work
        self.callbacks: list[Callable[[Any], None]] = []
        self.cancelled = False

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.callbacks.append(callback)

    def cancel(self) -> None:
        self.cancelled = True
        self.work.close()


class Channel:
    """What was written to a client."""

    def __init__(self) -> None:
        self.paused = False
        self.held = False
        self.frames: list[bytes] = []
        self.closed: tuple[int, str] | None = None

    def write(self, frame: bytes) -> None:
        assert self.closed is None, "written after the close"
        self.frames.append(frame)

    def close(self, code: int, reason: str) -> None:
        assert len(reason.encode()) <= 123
        self.closed = (code, reason)

    def hold(self, held: bool) -> None:
        self.held = held


class World:
    """A database with its hub, and the loop that drives it."""

    def __init__(self, db: Database, *, limits: Limits | None = None) -> None:
        self.db = db
        self.limits = limits or Limits()
        self.queue: deque[Callable[[], None]] = deque()
        self.tasks: list[FakeTask] = []
        self.turns = Turns(self.queue.append, seconds=lambda: 0.0)
        self.catalog = Catalog(db.module)
        self.endpoints = Endpoints(db.module)
        matcher = Matcher(self.catalog, ReadTables("arena", db.game_tables))
        self.hub = Hub(db, matcher, schedule=self.queue.append)
        self.people = 0

    def turn(self) -> None:
        """Run the loop until nothing is left to do."""
        while self.queue:
            self.queue.popleft()()

    def one_share_a_pass(self) -> None:
        """From now on, each pass of the loop is over after one share of work."""
        self.turns.seconds = itertools.count(step=0.25).__next__

    def spawn(self, work: Coroutine[Any, Any, None]) -> Any:
        task = FakeTask(work)
        self.tasks.append(task)
        return task

    def client(
        self,
        *,
        identity: Identity | None = None,
        several: bool = True,
        confirmed: bool = True,
        limits: Limits | None = None,
        follow: Follow | None = None,
    ) -> Client:
        """A connected client that has read its greeting."""
        client = self.stranger(identity=identity, several=several, confirmed=confirmed, limits=limits, follow=follow)
        client.session.open()
        self.turn()
        [greeting] = client.read()
        assert isinstance(greeting, messages.InitialConnection)
        return client

    def stranger(
        self,
        *,
        identity: Identity | None = None,
        several: bool = True,
        confirmed: bool = True,
        limits: Limits | None = None,
        follow: Follow | None = None,
    ) -> Client:
        """A client that has not come in."""
        self.people += 1
        caller = Caller(
            identity=identity or identity_of("test", str(self.people)),
            connection_id=new_connection_id(),
            token="token",
            several=several,
            confirmed=confirmed,
            follow=follow,
        )
        channel = Channel()
        session = Session(
            self.hub,
            self.catalog,
            self.endpoints,
            caller,
            channel,
            turns=self.turns,
            spawn=self.spawn,
            limits=limits or self.limits,
        )
        return Client(self, session, channel)


class Client:
    """One client, its connection and its cache."""

    def __init__(self, world: World, session: Session, channel: Channel) -> None:
        self.world = world
        self.session = session
        self.channel = channel
        self.request_id = 0
        self.cache = Cache(world.db)
        self.frames: list[list[messages.ServerMessage]] = []

    # --- sending

    def send(self, *sent: messages.ClientMessage) -> None:
        """Send messages in one websocket message, and let the server work."""
        self.session.receive(b"".join(map(messages.encode_client, sent)))
        self.world.turn()

    def calling(self, reducer: str, *arguments: Any) -> messages.CallReducer:
        """A call, not sent yet."""
        self.request_id += 1
        data = parameters_codec(self.world.db.module.functions[reducer].parameters).encode(arguments)
        return messages.CallReducer(request_id=self.request_id, reducer=reducer, arguments=data)

    def call(self, reducer: str, *arguments: Any) -> Any:
        """Call a reducer; its outcome, and nothing else may have come."""
        self.send(self.calling(reducer, *arguments))
        [result] = self.read()
        assert isinstance(result, messages.ReducerResult)
        assert result.request_id == self.request_id
        return result.outcome

    def calling_procedure(self, procedure: str, *arguments: Any) -> messages.CallProcedure:
        """A call of a procedure, not sent yet."""
        self.request_id += 1
        data = parameters_codec(self.world.db.module.functions[procedure].parameters).encode(arguments)
        return messages.CallProcedure(request_id=self.request_id, procedure=procedure, arguments=data)

    def subscribing(self, query_set_id: int, *queries: str) -> messages.Subscribe:
        """A subscription, not sent yet."""
        self.request_id += 1
        return messages.Subscribe(request_id=self.request_id, query_set_id=query_set_id, queries=list(queries))

    def subscribe(self, query_set_id: int, *queries: str) -> messages.SubscribeApplied:
        """Subscribe; what was applied."""
        self.send(self.subscribing(query_set_id, *queries))
        applied = self.read()[-1]
        assert isinstance(applied, messages.SubscribeApplied), applied
        return applied

    def unsubscribing(self, query_set_id: int, *, drop: bool = True) -> messages.Unsubscribe:
        """The end of a subscription, not sent yet."""
        self.request_id += 1
        flags = messages.UnsubscribeFlags.SEND_DROPPED_ROWS if drop else messages.UnsubscribeFlags.DEFAULT
        return messages.Unsubscribe(request_id=self.request_id, query_set_id=query_set_id, flags=flags)

    def unsubscribe(self, query_set_id: int, *, drop: bool = True) -> messages.UnsubscribeApplied:
        """End a subscription; what was applied."""
        self.send(self.unsubscribing(query_set_id, drop=drop))
        applied = self.read()[-1]
        assert isinstance(applied, messages.UnsubscribeApplied), applied
        return applied

    # --- receiving

    def read(self) -> list[messages.ServerMessage]:
        """The messages that have come since the last time; the cache has taken them in."""
        frames, self.channel.frames = self.channel.frames, []
        self.frames = [messages.decode_server(frame) for frame in frames]
        found = [message for frame in self.frames for message in frame]
        for message in found:
            self.cache.apply(message)
        return found

    def rows(self, table: str) -> list[Any]:
        """What the cache holds of a table, in the order of the bytes."""
        self.read()
        return self.cache.rows(table)


class Cache:
    """The rows of a client, counted as the official SDK counts them: by primary key, or by bytes without one."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._tables: dict[str, dict[Any, list[Any]]] = {}
        self.events: list[Any] = []
        self.problems: list[str] = []

    def rows(self, table: str) -> list[Any]:
        found = self._tables.get(table, {})
        return [row for _, (row, _) in sorted(found.items(), key=lambda item: str(item[0]))]

    def count(self, table: str) -> int:
        """All counts together."""
        return sum(count for _, count in self._tables.get(table, {}).values())

    def counts(self, table: str) -> Counter[Any]:
        """How often each row is there."""
        return Counter(dict(self._tables.get(table, {}).values()))

    def decode(self, table: str, rows: messages.RowList) -> list[Any]:
        """The rows of a list, each also as bytes."""
        schema = self._db.module.tables.get(table)
        if schema is not None:
            rows_codec = row_codec(schema)
        else:
            view = self._db.module.functions[table]
            assert view.returns is not None
            rows_codec = codec(view.returns)
        found, at = [], 0
        starts = []
        while at < len(rows.data):
            starts.append(at)
            row, end = rows_codec.decode(rows.data, at)
            found.append((row, rows.data[at:end]))
            at = end
        if isinstance(rows.hint, messages.FixedSize):
            assert starts == list(range(0, len(rows.data), rows.hint.row_size))
        else:
            assert list(rows.hint.starts) == starts
        return found

    def apply(self, message: messages.ServerMessage) -> None:
        """Take a message in, all of its query sets together."""
        inserts: dict[str, list[Any]] = {}
        deletes: dict[str, list[Any]] = {}
        match message:
            case messages.SubscribeApplied(tables=tables):
                for table in tables:
                    inserts.setdefault(table.table, []).extend(self.decode(table.table, table.rows))
            case messages.UnsubscribeApplied(dropped=dropped) if dropped is not None:
                for table in dropped.tables:
                    deletes.setdefault(table.table, []).extend(self.decode(table.table, table.rows))
            case (
                messages.TransactionUpdate(query_sets=sets)
                | messages.ReducerResult(outcome=messages.ReducerOk(query_sets=sets))
            ):
                for update in (update for query_set in sets for update in query_set.tables):
                    for rows in update.rows:
                        if isinstance(rows, messages.EventRows):
                            self.events.extend(row for row, _ in self.decode(update.table, rows.events))
                        else:
                            inserts.setdefault(update.table, []).extend(self.decode(update.table, rows.inserts))
                            deletes.setdefault(update.table, []).extend(self.decode(update.table, rows.deletes))
        for table in {**inserts, **deletes}:
            self._merge(table, inserts.get(table, []), deletes.get(table, []))

    def _merge(self, table: str, inserts: list[Any], deletes: list[Any]) -> None:
        schema = self._db.module.tables.get(table)
        key_column = None if schema is None else schema.primary_key

        def key_of(pair: Any) -> Any:
            return pair[1] if key_column is None else getattr(pair[0], key_column)

        rows = self._tables.setdefault(table, {})
        added, removed = Counter(map(key_of, inserts)), Counter(map(key_of, deletes))
        contents = {key_of(pair): pair[0] for pair in inserts}
        for key in {**added, **removed}:
            change = added[key] - removed[key]
            if key not in rows:
                if removed[key]:
                    self.problems.append(f"{table}: {removed[key]} deletes of {key!r}, which is not there")
                    if added[key]:
                        continue
                if change <= 0:
                    continue
                rows[key] = [contents[key], change]
                continue
            if added[key]:
                rows[key][0] = contents[key]
            rows[key][1] += change
            if rows[key][1] < 0:
                self.problems.append(f"{table}: the count of {key!r} is {rows[key][1]}")
            if rows[key][1] <= 0:
                del rows[key]
