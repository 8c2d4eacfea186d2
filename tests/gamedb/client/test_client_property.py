"""Whatever a server does, and whenever connections are lost: what a client is told adds up to what it holds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gamedb.client.cache import Change
from gamedb.client.core import Core
from gamedb.client.events import Applied, Ended, Opened, QuerySet, Settled, State
from gamedb.client.remote import Remote
from gamedb.wire import messages as m
from tests.gamedb.client.client_game import DEFINITION, GREETING, Player, Tile, module, rows_of, sent, update

STEPS = int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000"))
PLAYERS = st.builds(Player, id=st.integers(1, 4), hp=st.integers(0, 2))
TILES = st.builds(Tile, x=st.integers(0, 2))
QUERIES = {
    "SELECT * FROM player": lambda row: type(row) is Player,
    "SELECT * FROM player WHERE hp = 1": lambda row: type(row) is Player and row.hp == 1,
    "SELECT * FROM tile": lambda row: type(row) is Tile,
}


class Connections(RuleBasedStateMachine):
    """A server of two tables in the model, and a client in the core; messages travel one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.core = Core(Remote(DEFINITION, module))
        self.players: dict[int, Player] = {}
        self.tiles: set[Tile] = set()
        self.live: dict[int, str] = {}
        """The server's query sets."""
        self.underway: list[bytes] = []
        """Sent by the server and not received."""
        self.told: dict[Any, Any] = {}
        """The rows as somebody knows them who only hears of changes."""
        self.query_sets: list[QuerySet] = []
        self.calls: dict[int, str] = {}
        self.connected = False

    def rows(self) -> list[Any]:
        return [*self.players.values(), *self.tiles]

    # --- the server

    def serve(self) -> None:
        """Answer all that the client has sent."""
        for message in sent(self.core):
            match message:
                case m.Subscribe(queries=["nonsense"]):
                    answer = m.subscription_error(message.request_id, message.query_set_id, "what?")
                case m.Subscribe():
                    [query] = message.queries
                    self.live[message.query_set_id] = query
                    found = filter(QUERIES[query], self.rows())
                    answer = m.subscribe_applied(message.request_id, message.query_set_id, rows_of(*found))
                case m.Unsubscribe(query_set_id=number) if number in self.live:
                    found = filter(QUERIES[self.live.pop(number)], self.rows())
                    answer = m.unsubscribe_applied(message.request_id, number, rows_of(*found))
                case m.Unsubscribe():
                    answer = m.subscription_error(message.request_id, message.query_set_id, "not live")
                case m.CallReducer():
                    answer = m.reducer_ok(message.request_id, 1, b"", [])
                case _:
                    raise AssertionError(message)
            self.underway.append(answer)

    def commit(self, inserts: Iterable[Any], deletes: Iterable[Any]) -> None:
        self.serve()
        inserts, deletes = list(inserts), list(deletes)
        sets = []
        for number, query in self.live.items():
            new, old = list(filter(QUERIES[query], inserts)), list(filter(QUERIES[query], deletes))
            if new or old:
                sets.append(update(number, new, old))
        if sets and self.connected:
            self.underway.append(m.transaction_update(sets))

    @rule(rows=st.lists(PLAYERS, max_size=3, unique_by=lambda row: row.id))
    def change_players(self, rows: list[Player]) -> None:
        old = [self.players[row.id] for row in rows if row.id in self.players]
        self.commit(
            [row for row in rows if self.players.get(row.id) != row],
            [row for row in old if row not in rows],
        )
        self.players.update({row.id: row for row in rows})

    @rule(ids=st.sets(st.integers(1, 4)))
    def delete_players(self, ids: set[int]) -> None:
        gone = [self.players[i] for i in ids if i in self.players]
        self.commit([], gone)
        for row in gone:
            del self.players[row.id]

    @rule(rows=st.sets(TILES))
    def change_tiles(self, rows: set[Tile]) -> None:
        self.commit(rows - self.tiles, self.tiles - rows)
        self.tiles = rows

    # --- the client

    @rule(query=st.sampled_from([*QUERIES, "nonsense"]))
    def subscribe(self, query: str) -> None:
        self.query_sets.append(self.core.subscribe([query]))

    @precondition(lambda self: self.query_sets)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        self.hear(self.core.unsubscribe(data.draw(st.sampled_from(self.query_sets))))

    @precondition(lambda self: self.core.ready)
    @rule()
    def call(self) -> None:
        function = self.core.remote.functions["leave"]
        request_id = self.core.call(function, function.arguments.encode((1,)))
        self.calls[request_id] = "waits"

    @rule(count=st.integers(1, 4))
    def receive(self, count: int) -> None:
        self.serve()
        taken, self.underway = self.underway[:count], self.underway[count:]
        if taken:
            for events in self.core.receive(m.frame(taken)):
                self.hear(events)

    @precondition(lambda self: not self.connected)
    @rule()
    def connect(self) -> None:
        self.connected = True
        self.underway = [GREETING]

    @precondition(lambda self: self.connected)
    @rule()
    def lose(self) -> None:
        self.connected = False
        self.underway.clear()
        self.live.clear()
        self.hear(self.core.lost())
        assert "waits" not in self.calls.values()

    def hear(self, events: list[Any]) -> None:
        for event in events:
            match event:
                case Change(table="player", old=old, new=new):
                    row = old or new
                    assert self.told.get(row.id) == old
                    assert old != new
                    self.told[row.id] = new
                case Change(old=old, new=new):
                    row = old or new
                    assert (old is None) != (new is None)
                    assert self.told.get(row) == old
                    self.told[row] = new
                case Applied(query_set=query_set):
                    assert query_set.state in (State.LIVE, State.ENDING)
                case Ended(query_set=query_set, error=error):
                    self.query_sets.remove(query_set)
                    assert (error is not None) == (query_set.queries == ["nonsense"]) or query_set.id is None
                case Settled(request_id=request_id):
                    assert self.calls[request_id] == "waits"
                    self.calls[request_id] = "settled"
                case Opened():
                    assert self.core.ready

    @invariant()
    def what_was_told_is_what_is_held(self) -> None:
        held = {key: h.row for key, h in self.core.tables["player"].rows.items()}
        held.update({h.row: h.row for h in self.core.tables["tile"].rows.values()})
        assert {key: row for key, row in self.told.items() if row is not None} == held

    def teardown(self) -> None:
        """When all messages have arrived, the client holds exactly what its query sets have."""
        if not self.connected:
            self.connect()
        while True:
            self.serve()
            if not self.underway:
                break
            self.receive(1)
        self.what_was_told_is_what_is_held()
        counts: Counter[Any] = Counter()
        for query_set in self.query_sets:
            assert query_set.state is State.LIVE
            counts.update(filter(QUERIES[query_set.queries[0]], self.rows()))
        held = [*self.core.tables["player"].rows.values(), *self.core.tables["tile"].rows.values()]
        assert {h.row: h.count for h in held} == counts
        assert "waits" not in self.calls.values()


TestConnections = Connections.TestCase
TestConnections.settings = settings(max_examples=max(5, STEPS // 20), stateful_step_count=30)
