"""Random schemas, commits and subscriptions that come and go: every client always has what the query gives.

After each commit the rows that a client was sent, first ones and changes together, must be the answer of its query as
a simple evaluator finds it by nested loops. GAMEDB_FUZZ_STEPS says about how many commits to make (1,000 by default).
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Final

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from gamedb import Commit, Identity, Row
from gamedb.query import Catalog, Delta, LiveQuery, Matcher
from gamedb.store import ReadTables
from tests.gamedb.query.random_games import Asked, Game, clients

COMMITS: Final = int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000"))
COMMITS_PER_GAME: Final = 12
CLIENTS_MAX: Final = 12


class Client:
    """What one subscription of a client holds."""

    def __init__(self, asked: Asked, sql: str, sender: Identity, operator: bool, live: LiveQuery) -> None:
        self.asked = asked
        self.sql = sql
        self.sender = sender
        self.operator = operator
        self.live = live
        self.bag: Counter[str] = Counter(map(repr, live.rows()))

    def take(self, delta: Delta) -> None:
        assert delta.error is None
        assert delta.deleted or delta.inserted
        deleted, inserted = Counter(map(repr, delta.deleted)), Counter(map(repr, delta.inserted))
        assert not deleted & inserted, "a row both deleted and inserted is no change"
        assert deleted <= self.bag, "rows were deleted that the client does not have"
        self.bag = self.bag - deleted + inserted


class Run:
    """A random game with its clients."""

    def __init__(self, random: Random, *, filters: bool) -> None:
        self.random = random
        self.game = Game(random, filters=filters)
        self.catalog = Catalog(self.game.db.module)
        self.matcher = Matcher(self.catalog, ReadTables("random", self.game.db.game_tables))
        self.clients: list[Client] = []
        self.commits: list[tuple[Commit, list[Delta]]] = []
        self.game.db.observe(lambda commit: self.commits.append((commit, self.matcher.commit(commit))))
        self.senders = clients(random)

    def come(self) -> None:
        sender, operator = next(self.senders)
        if self.clients and self.random.random() < 0.3:
            asked = self.random.choice(self.clients).asked  # the same again, by somebody
        else:
            asked = self.game.asked()
        sql = asked.sql(self.random)
        query = self.catalog.parse(sql, operator=operator)
        assert query == self.catalog.parse(asked.sql(self.random), operator=operator)
        client = Client(asked, sql, sender, operator, self.matcher.open(query, sender))
        self.clients.append(client)
        if client.live.query.is_event:
            assert not client.bag
        else:
            self.check(client)
            answer = Counter(map(repr, self.matcher.answer(query, sender)))
            assert answer == client.bag

    def go(self) -> None:
        client = self.clients.pop(self.random.randrange(len(self.clients)))
        if not client.live.query.is_event:
            assert Counter(map(repr, client.live.rows())) == client.bag
        self.matcher.close(client.live)

    def check(self, client: Client) -> None:
        expected = self.game.answer(client.asked, client.sender, client.operator)
        if client.bag != expected:
            note(f"{client.sql} of {client.sender.to_int()}, operator: {client.operator}")
        assert client.bag == expected

    def commit(self) -> None:
        self.commits.clear()
        self.game.play()
        if not self.commits:
            return
        [(commit, deltas)] = self.commits
        assert len({id(delta.live) for delta in deltas}) == len(deltas)
        by_live = {delta.live: delta for delta in deltas}
        for client in self.clients:
            delta = by_live.get(client.live)
            if client.live.query.is_event:
                changes = commit.changes.get(client.asked.table)
                events: list[Row] = [] if changes is None else changes.inserted
                expected = self.game.answer(client.asked, client.sender, client.operator, events)
                assert Counter(map(repr, delta.inserted if delta else [])) == expected, client.sql
                assert delta is None or (delta.inserted and not delta.deleted)
                continue
            if delta is not None:
                client.take(delta)
            self.check(client)

    def end(self) -> None:
        while self.clients:
            self.go()
        assert len(self.matcher) == 0
        for follower in self.matcher._followers:
            for name, value in vars(follower).items():
                kept = isinstance(value, dict) and not isinstance(value, ReadTables) and value
                assert not kept, f"{name} keeps something of closed queries"


def play(random: Random, *, filters: bool) -> None:
    run = Run(random, filters=filters)
    with run.game.db:
        for _ in range(COMMITS_PER_GAME):
            while len(run.clients) < CLIENTS_MAX and random.random() < 0.75:
                run.come()
            if run.clients and random.random() < 0.3:
                run.go()
            run.commit()
        run.end()


_settings = settings(
    max_examples=max(1, COMMITS // COMMITS_PER_GAME // 2),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_settings
@given(st.randoms(use_true_random=False))
def test_clients_have_what_their_queries_give(random: Random) -> None:
    play(random, filters=False)


@_settings
@given(st.randoms(use_true_random=False))
def test_clients_under_visibility_filters_have_what_they_may_see(random: Random) -> None:
    play(random, filters=True)
