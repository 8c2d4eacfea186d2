"""The client and the server together, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gamedb import Database, Module, PrimaryKey, Row, Unique, u32, u64
from gamedb.client import connect
from gamedb.errors import (
    CallFailed,
    ConnectionLost,
    NotAllowed,
    QueryError,
    ReducerError,
    TransactionError,
    UnknownName,
)
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.serve import Serving, serving
from gamedb.server.server import Server
from tests.gamedb.client.client_game import Hit, Player, count_letters, damage, join, leave, module

ANN = Player(id=1, name="ann")
WAIT_SECONDS = 10


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def served(db: Database, keys: Path | None = None, listen: str = "127.0.0.1:0") -> AsyncIterator[Serving]:
    server = Server([Hosted(db)], Authenticator(Keys(keys), clock=db.clock))
    async with serving(server, listen) as running:
        yield running


async def until(condition: Callable[[], object]) -> None:
    """Let the loop go on until it is so."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0)


def test_a_game_over_the_wire() -> None:
    async def scenario() -> None:
        with Database(module) as db:
            async with served(db) as running, connect(running.url, "duel", module=module) as client:
                players, told = client.table(Player), []
                players.on_insert(lambda row: told.append(("insert", row)))
                players.on_update(lambda old, new: told.append(("update", old.hp, new.hp)))
                players.on_delete(lambda row: told.append(("delete", row.id)))
                client.table(Hit).on_insert(lambda row: told.append(("hit", row.player_id)))
                subscription = await client.subscribe(Player, "SELECT * FROM hit")
                await client.call(join, player_id=1)
                assert sorted(told, key=str) == sorted([("insert", ANN), ("hit", 1)], key=str)
                await client.call(damage, 1, amount=30)
                assert told[2:] == [("update", 100, 70)]
                assert players.get(1) == ANN.replace(hp=70) == players.find(id=1)
                assert players.find(id=2) is None
                with pytest.raises(TransactionError, match=r"player.hp is not unique; use where\(hp=...\)"):
                    players.find(hp=70)
                db.call(damage, 1, 1)
                await until(lambda: told[3:] == [("update", 70, 69)])
                assert await client.query("SELECT * FROM player WHERE hp = 69") == [ANN.replace(hp=69)]
                assert await client.procedure(count_letters, "abc") == 3
                await subscription.unsubscribe()
                assert told[4:] == [("delete", 1)]
                assert list(db.read(Player)) == [ANN.replace(hp=69)]

    run(scenario)


def test_what_goes_wrong_says_so() -> None:
    async def scenario() -> None:
        with Database(module) as db:
            async with served(db) as running, connect(running.url, "duel", module=module) as client:
                with pytest.raises(ReducerError, match="a player needs a name"):
                    await client.call(join, 1, "")
                with pytest.raises(ReducerError, match="no player 9"):
                    await client.call("damage", 9, 1)
                await client.call(join, 1)
                with pytest.raises(CallFailed, match="join failed; the log of the server says why"):
                    await client.call(join, 1)
                with pytest.raises(QueryError, match="no such table: `secret`"):
                    await client.subscribe("SELECT * FROM secret")
                with pytest.raises(QueryError):
                    await client.query("SELEKT")
                with pytest.raises(UnknownName, match="no database 'ghost'"):
                    await connect(running.url, "ghost").open()
                with pytest.raises(NotAllowed):
                    await connect(running.url, "duel", token="nonsense").open()

    run(scenario)


def test_two_clients_without_the_module() -> None:
    async def scenario() -> None:
        with Database(module) as db:
            async with (
                served(db) as running,
                connect(running.url.replace("http", "ws"), "duel") as one,
                connect(running.url, "duel", confirmed=False) as other,
            ):
                assert one.identity != other.identity
                changes = other.table("player").changes()
                await other.subscribe("SELECT * FROM player WHERE hp < 50")
                await one.subscribe("SELECT * FROM player", "SELECT * FROM player WHERE id = 1")
                await one.call("join", 1, "ann")
                await one.call("damage", 1, 60)
                change = await anext(changes)
                assert (change.kind, change.new.name, change.new.hp) == ("insert", "ann", 40)
                await other.call("leave", player_id=1)
                assert (await anext(changes)).kind == "delete"
                await until(lambda: len(one.table("player")) == 0)

    run(scenario)


def test_a_client_without_the_module_finds_rows_by_their_unique_columns() -> None:
    guild = Module("guild")

    class Member(Row):
        id: PrimaryKey[u64]
        name: Unique[str | None] = None
        rank: u32 = 1

    guild.table(public=True)(Member)

    async def scenario() -> None:
        with Database(guild) as db:
            with db.transaction() as ctx:
                ctx.db[Member].insert(Member(id=1, name="ann"))
            async with served(db) as running, connect(running.url, "guild") as client:
                await client.subscribe("SELECT * FROM member")
                members = client.table("member")
                found = members.find(name="ann")
                assert found is not None
                assert (found.id, members.find(name="ben")) == (1, None)
                with pytest.raises(TransactionError, match=r"member.rank is not unique"):
                    members.find(rank=1)

    run(scenario)


def test_many_calls_at_once_come_back_each_with_its_own_answer() -> None:
    async def scenario() -> None:
        with Database(module) as db:
            async with served(db) as running, connect(running.url, "duel", module=module) as client:
                await client.subscribe(Player)
                await asyncio.gather(
                    *[client.call(join, number, "x" * (number % 3)) for number in range(1, 500) if number % 3]
                )
                results: list[Any] = await asyncio.gather(
                    *[client.procedure(count_letters, "x" * number) for number in range(50)]
                )
                assert results == list(range(50))
                assert len(client.table(Player)) == db.read(Player).count() == 333

    run(scenario)


def test_a_server_that_restarts_is_found_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        path, keys = tmp_path / "duel.db", tmp_path / "keys"
        told: list[Any] = []
        with Database(module, path=path) as db:
            async with served(db, keys) as running:
                listen = running.url.removeprefix("http://")
                client = connect(running.url, "duel", module=module, sleep=lambda _: asyncio.sleep(0.01))
                await client.open()
                identity = client.identity
                await client.subscribe(Player)
                await client.call(join, 1)
                await client.call(join, 2, "bob")
                client.on_disconnect(lambda error: told.append(str(error)))
        await until(lambda: told)
        assert "shutting down" in told.pop()
        with pytest.raises(ConnectionLost):
            await client.call(leave, 1)
        client.table(Player).on_insert(lambda row: told.append(("insert", row.id)))
        client.table(Player).on_update(lambda old, new: told.append(("update", old.hp, new.hp)))
        client.table(Player).on_delete(lambda row: told.append(("delete", row.id)))
        with Database(module, path=path) as db:
            db.call(damage, 1, 10)
            db.call(leave, 2)
            db.call(join, 3, "cid")
            async with served(db, keys, listen):
                await client.wait_connected()
                assert sorted(told, key=str) == sorted([("update", 100, 90), ("delete", 2), ("insert", 3)], key=str)
                assert client.identity == identity
                await client.call(damage, 3, 1)
                assert told[3:] == [("update", 100, 99)]
                await client.close()

    run(scenario)
