"""Commits of several threads, over real sockets and a real disk: every client ends with what the tables hold."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from gamedb import Database
from gamedb.errors import ConstraintError, ReducerError, RowNotFound
from gamedb.wire import messages
from tests.gamedb.server.arena import Mark, Player, arena
from tests.gamedb.server.with_sockets import V2, V3, Connection, served
from tests.gamedb.server.without_sockets import Cache

THREADS = 3
CALLS = 150


def play(db: Database, number: int) -> None:
    """Call random reducers."""
    chance = random.Random(number)
    for _ in range(CALLS):
        id = chance.randrange(20)
        try:
            match chance.randrange(4):
                case 0:
                    db.call("spawn", id, chance.randrange(3))
                case 1:
                    db.call("kill", id)
                case 2:
                    db.call("move", id, chance.randrange(3))
                case 3:
                    db.call("mark", chance.randrange(3), str(chance.randrange(10_000)))
        except (ConstraintError, RowNotFound, ReducerError):
            continue


@pytest.mark.parametrize("stored", [False, True])
def test_every_client_sees_every_commit_in_order(tmp_path: Path, stored: bool) -> None:
    module, _ = arena()
    with ExitStack() as stack:
        db = stack.enter_context(Database(module, tmp_path / "arena.db" if stored else None, quiet=True))
        serving = stack.enter_context(served(db))
        clients = []
        for number in range(12):
            query = "?confirmed=false" if number % 3 == 0 else ""
            client = Connection(serving, query=query, protocols=[V2] if number % 4 == 0 else [V3])
            clients.append(stack.enter_context(client))
        caches = [Cache(db) for _ in clients]
        for client, cache in zip(clients, caches, strict=True):
            cache.apply(client.subscribe("SELECT * FROM player"))
            cache.apply(client.subscribe("SELECT * FROM mark WHERE zone = 1", query_set_id=2))
        threads = [threading.Thread(target=play, args=(db, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for number in range(CALLS):  # two of the clients call, too
            for client, cache in zip(clients[:2], caches[:2], strict=True):
                client.send(
                    client.calling("spawn" if number % 2 else "kill", number % 20, *([1] if number % 2 else []))
                )
                while True:
                    message = client.next()
                    cache.apply(message)
                    if isinstance(message, messages.ReducerResult):
                        break
        for thread in threads:
            thread.join()
        db.call("mark", 1, "the end")
        players = sorted(db.read(Player), key=lambda player: str(player.id))
        marks = {mark for mark in db.read(Mark) if mark.zone == 1}
        for client, cache in zip(clients, caches, strict=True):
            while Mark(zone=1, text="the end") not in cache.rows("mark"):
                cache.apply(client.next())
            assert cache.problems == []
            assert cache.rows("player") == players
            assert set(cache.rows("mark")) == marks
