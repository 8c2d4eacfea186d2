"""Whatever is committed and subscribed to, each client's cache is what its queries give when asked afresh."""

from __future__ import annotations

import os
import random
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamedb import Database, ManualClock
from gamedb.errors import RowNotFound
from gamedb.wire import messages
from tests.gamedb.server.arena import Level, Mark, Player, arena
from tests.gamedb.server.without_sockets import Client, World

STEPS = int(os.environ.get("GAMEDB_FUZZ_STEPS", "0"))
QUERIES = (
    "SELECT * FROM player",
    "SELECT * FROM player WHERE zone = 1",
    "SELECT * FROM player WHERE zone = 1 OR hp < 50",
    "SELECT * FROM player WHERE zone <> 1 AND hp >= 50",
    "SELECT * FROM mark",
    "SELECT * FROM mark WHERE zone = 1",
    "SELECT * FROM level",
    "SELECT player.* FROM level JOIN player ON level.player_id = player.id",
    "SELECT level.* FROM player JOIN level ON level.player_id = player.id WHERE player.zone = 1",
    "SELECT * FROM strong",
    "SELECT * FROM strong WHERE zone = 1",
    "SELECT * FROM hit",
)
CLIENTS = 10
"""Enough for audiences that are told by a log."""


CROWD = ("SELECT * FROM player",)
ASIDE = ("SELECT * FROM mark", "SELECT * FROM level")
"""What is asked for besides where all follow one query, so that commits concern that one alone."""


def change(world: World, chance: random.Random) -> None:
    """A transaction of a few random changes, of one table or of several."""
    kinds = chance.choice(((0, 1, 2), (3,), (4, 5), range(6)))
    with world.db.transaction() as tx:
        for _ in range(chance.randint(1, 4)):
            number, zone = chance.randrange(6), chance.randrange(3)
            match chance.choice(kinds):
                case 0 | 1:
                    tx.db[Player].upsert(Player(id=number, zone=zone, hp=chance.choice((10, 60, 100))))
                case 2:
                    if tx.db[Player].get(number) is not None:
                        tx.db[Player].delete(number)
                case 3:
                    row = Mark(zone=zone, text=chance.choice("ab"))
                    if row in tx.db[Mark]:
                        tx.db[Mark].delete(row)
                    else:
                        tx.db[Mark].insert(row)
                case 4:
                    tx.db[Level].upsert(Level(player_id=number, level=zone))
                case 5:
                    if tx.db[Level].get(number) is not None:
                        tx.db[Level].delete(number)


def step(
    world: World,
    clients: list[Client],
    sets: list[dict[int, list[str]]],
    chance: random.Random,
    asked: tuple[str, ...],
    shared: tuple[str, ...],
) -> None:
    """Something that happens: a subscription comes or goes, a commit, a call, a client's connection ends."""
    place = chance.randrange(len(clients))
    client, live = clients[place], sets[place]
    match chance.choice((*range(7), *range(7), 7, 7, 7, 7)):
        case 0 | 1 | 2:
            query_set_id = chance.randrange(4)
            if query_set_id not in live:
                queries = chance.sample(asked, chance.randint(1, min(3, len(asked))))
                client.session.receive(messages.encode_client(client.subscribing(query_set_id, *queries)))
                live[query_set_id] = queries
        case 3:
            if live:
                query_set_id = chance.choice(sorted(live))
                client.session.receive(messages.encode_client(client.unsubscribing(query_set_id)))
                del live[query_set_id]
        case 4 | 5:
            number = chance.randrange(6)
            call = chance.choice([client.calling("spawn", number, 1), client.calling("kill", number)])
            client.session.receive(messages.encode_client(call))
            if chance.random() < 0.5:
                client.session._work()
        case 6:
            if chance.randrange(3) == 0:
                client.session.lost()
                newcomer = clients[place] = world.client(several=chance.random() < 0.8)
                sets[place] = {}
                if shared:
                    change(world, chance)
                    newcomer.session.receive(messages.encode_client(newcomer.subscribing(9, *shared)))
                    newcomer.session._work()
                    sets[place][9] = list(shared)
        case _:
            change(world, chance)


def check(world: World, client: Client, live: dict[int, list[str]]) -> None:
    """Compare a cache with its queries, asked afresh."""
    client.read()
    assert client.cache.problems == []
    expected: dict[str, Counter[object]] = {}
    for queries in live.values():
        for text in queries:
            query = world.catalog.parse(text)
            rows = world.hub.matcher.answer(query, client.session.identity)
            expected.setdefault(query.name, Counter()).update(rows)
    for table in ("player", "mark", "level", "strong"):
        assert client.cache.counts(table) == expected.get(table, Counter()), table
    assert client.channel.closed is None


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=max(30, STEPS // 200))
@example(0)
def test_property_caches_equal_their_queries(seed: int) -> None:
    chance = random.Random(seed)
    module, _ = arena()
    with Database(module, clock=ManualClock(), seed=seed) as db:
        world = World(db)
        clients = [world.client(several=chance.random() < 0.8) for _ in range(CLIENTS)]
        sets: list[dict[int, list[str]]] = [{} for _ in clients]
        asked, shared = chance.choice(((QUERIES, ()), (QUERIES, CROWD), (ASIDE, CROWD), (ASIDE, CROWD)))
        for client, live in zip(clients, sets, strict=True):
            if shared:
                client.subscribe(9, *shared)
                live[9] = list(shared)
        for _ in range(80):
            try:
                step(world, clients, sets, chance, asked, shared)
            except RowNotFound:
                continue
            for client in clients if chance.random() < 0.2 else ():
                if client.session._working:  # calls that are worked off before anything is sent
                    client.session._work()
            if chance.random() < 0.2:
                world.turn()
                for client, live in zip(clients, sets, strict=True):
                    check(world, client, live)
        world.turn()
        for client, live in zip(clients, sets, strict=True):
            check(world, client, live)
            client.session.lost()
        assert world.hub.live_queries == len(world.hub.matcher) == 0
        world.hub.close()
