"""Clients in a simulation: real sessions, the real hub and codecs, and the core of the Python client, without sockets.

A client can stop reading, and one that was cut off comes back after a while, as the real one does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, overload

from gamedb.client.cache import Change
from gamedb.client.core import Core
from gamedb.client.events import Applied, Ended, Event, Opened, QuerySet, Settled, State
from gamedb.client.tables import ClientTable
from gamedb.errors import CallFailed, ConnectionLost, GamedbError, QueryError
from gamedb.schema import Row
from gamedb.server.session import Caller
from gamedb.testing.network import Line
from gamedb.types import ConnectionId, Identity

if TYPE_CHECKING:
    from gamedb.testing.simulation import Simulation

P = ParamSpec("P")
R = TypeVar("R", bound=Row)

TOKEN: Final = "simulated"
PATIENCE: Final = timedelta(hours=1)
"""How much simulated time a client waits for an answer."""
RETRY_SECONDS: Final = 1.0
"""The pause before a client that was cut off connects again."""


class Answer:
    """What a client waits for."""

    def __init__(self) -> None:
        self.done = False
        """Whether there is a value or an error."""
        self.value: Any = None
        """What came, when it is done without an error."""
        self.error: GamedbError | None = None
        """Why there is no value."""

    def settle(self, value: Any = None, error: GamedbError | None = None) -> None:
        """It is there."""
        if not self.done:
            self.done, self.value, self.error = True, value, error

    def result(self) -> Any:
        """The value; raises the error. `ConnectionLost` while there is neither."""
        if not self.done:
            raise ConnectionLost("there is no answer yet; let time pass with sim.advance(...)")
        if self.error is not None:
            raise self.error
        return self.value


class SimulatedClient:
    """A connected client. Made by `Simulation.client`. After a crash it connects again, with its subscriptions."""

    def __init__(self, sim: Simulation, identity: Identity, *, confirmed: bool, reconnects: bool) -> None:
        self.sim = sim
        """The simulation that it belongs to."""
        self.identity = identity
        """Who this client is."""
        self.confirmed = confirmed
        """Whether it hears only of what is on disk."""
        self.connection_id: ConnectionId | None = None
        """Its connection, another one after each loss; `None` before the first."""
        self.error: GamedbError | None = None
        """Why there is no connection; `None` while there is one."""
        self.reading = True
        """Whether it takes in what the server sends."""
        self.changes: deque[Change[Any]] = deque(maxlen=100_000)
        """What happened to the rows here, in order."""
        self._reconnects = reconnects
        self._core = Core(sim.described())
        self._tables: dict[str, ClientTable[Any]] = {}
        self._answers: dict[int, Answer] = {}
        self._subscribed: dict[QuerySet, Answer] = {}
        self._line: Line | None = None

    # --- the connection

    @property
    def connected(self) -> bool:
        """Whether the server has greeted it."""
        return self._core.ready

    @property
    def up_to_date(self) -> bool:
        """Whether its rows are those that there are now: it is connected, and nothing is under way."""
        line = self._line
        return line is not None and self.connected and not self._core.resuming and line.idle

    def stop_reading(self) -> None:
        """Take in nothing of what the server sends: it piles up there, until the server hangs up."""
        self.reading = False

    def read_on(self) -> None:
        """Take in what has come meanwhile, and what comes."""
        self.reading = True
        if self._line is not None:
            self._line.read()
        self.sim.settle()

    def connect(self) -> None:
        """Open a connection. `Refused` when `client_connected` does not let it in."""
        if self._line is not None:
            return
        gate = self.sim.gate
        number = self.sim.next_connection()
        line = Line(self, gate, self.sim.latency)
        who = Caller(
            identity=self.identity,
            connection_id=ConnectionId.from_int(number),
            token=TOKEN,
            confirmed=self.confirmed,
            address="simulation",
        )
        line.session = gate.session(who, line)
        self._line, self.error = line, None
        try:
            line.session.open()
        except GamedbError as error:
            down = self.sim.db.failure is not None
            self._line, self.error = None, ConnectionLost(str(error)) if down else error
            raise self.error from None

    def disconnect(self) -> None:
        """Hang up."""
        line, self._line = self._line, None
        if line is not None and line.session is not None:
            session, line.session = line.session, None
            self._lost(GamedbError("this client has hung up; connect() again"))
            with suppress(ConnectionLost):  # the process died of it, and has begun anew
                self.sim.act(session.end)

    def died(self) -> None:
        """The process of the server has died. For the simulation."""
        if self._line is not None:
            self._line = None
            self._lost(ConnectionLost("the server died"))

    def returns(self) -> None:
        """The server is back. For the simulation."""
        if self._line is not None or not self._reconnects or not isinstance(self.error, ConnectionLost):
            return
        if differences := self._core.remote.differences(self.sim.described()):
            self.error = GamedbError(f"the server changed its {', '.join(differences)}; make a new client")
            return
        try:
            self.connect()
        except ConnectionLost:
            self._try_later()
        except GamedbError as error:
            self.error = error

    def _try_later(self) -> None:
        if self._reconnects:
            self.sim.loop.call_later(RETRY_SECONDS, self.returns)

    def closed(self, line: Line, code: int, reason: str) -> None:
        """The server has closed the connection. For its line."""
        if line is self._line:
            self._line = None
            self._lost(ConnectionLost(f"the connection was closed: {code} {reason}".rstrip()))
            self._try_later()

    def _lost(self, error: GamedbError) -> None:
        self.error = error
        self._take(self._core.lost())

    def receive(self, line: Line, frame: bytes) -> None:
        """A frame has arrived. For its line."""
        if line is self._line:
            for events in self._core.receive(frame):
                self._take(events)
            self._send()

    def _take(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Change():
                    self.changes.append(event)
                    if event.table in self._tables:
                        self._tables[event.table].deliver(event)
                case Settled():
                    self._answers.pop(event.request_id, Answer()).settle(event.value, event.error)
                case Applied():
                    self._subscribed[event.query_set].settle()
                case Ended():
                    self._subscribed.pop(event.query_set).settle(error=event.error)
                case Opened():
                    self.connection_id = event.connection_id

    def _send(self) -> None:
        if self._core.output and self._line is not None:
            payload = b"".join(self._core.output)
            self._core.output.clear()
            self._line.send(payload)

    # --- rows

    @overload
    def table(self, table: type[R]) -> ClientTable[R]: ...
    @overload
    def table(self, table: str) -> ClientTable[Any]: ...
    def table(self, table: Any) -> ClientTable[Any]:
        """The rows of a table (by its Row class or name) or view (by name) that are here now."""
        name = self._core.remote.table(table).name
        if name not in self._tables:
            self._tables[name] = ClientTable(self._core, name)
        return self._tables[name]

    def rows(self, table: type[R]) -> list[R]:
        """The rows of a table that are here now, by primary key where it has one."""
        key = self._core.remote.table(table).schema.primary_key
        found = list(self.table(table))
        return found if key is None else sorted(found, key=lambda row: getattr(row, key))

    def subscribe(self, *queries: str | type[Row]) -> QuerySet:
        """Keep the rows of these queries (a Row class: all of its table) up to date here; returns when they are."""
        if not queries:
            raise QueryError("subscribe() needs a query, such as 'SELECT * FROM player'")
        remote = self._core.remote
        texts = [q if isinstance(q, str) else f'SELECT * FROM "{remote.table(q).name}"' for q in queries]
        query_set = self._core.subscribe(texts)
        answer = self._subscribed[query_set] = Answer()
        self._finish(answer)
        return query_set

    def unsubscribe(self, query_set: QuerySet) -> None:
        """End a subscription; returns when its rows are gone from here."""
        self._take(self._core.unsubscribe(query_set))
        self._send()
        self.sim.run_until(lambda: query_set.state is State.ENDED, within=PATIENCE)

    def query(self, sql: str) -> list[Any]:
        """The rows of a query as they are now, once."""
        rows: list[Any] = self._finish(self._ask(self._core.query(sql)))
        return rows

    # --- calls

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> None: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> None:
        """Call a reducer; returns when its changes are in the tables here. `ReducerError` has the text of a refusal."""
        self._finish(self.begin(reducer, *args, **kwargs))

    def begin(self, reducer: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Answer:
        """Call a reducer without waiting for the answer."""
        return self._begin("reducer", reducer, args, kwargs)

    def procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a procedure; gives what it returns."""
        return self._finish(self._begin("procedure", procedure, args, kwargs))

    def _begin(
        self, kind: str, function: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Answer:
        found = self._core.remote.function(function, kind)
        return self._ask(self._core.call(found, found.arguments.encode(found.bind(args, kwargs))))

    def _ask(self, request_id: int) -> Answer:
        answer = self._answers[request_id] = Answer()
        self._send()
        return answer

    def _finish(self, answer: Answer) -> Any:
        self._send()
        self.sim.run_until(lambda: answer.done, within=PATIENCE)
        if isinstance(answer.error, CallFailed) and self.sim.supervised and self.sim.disk.failure is not None:
            raise ConnectionLost(f"the server is about to be started again: {answer.error}")
        return answer.result()
