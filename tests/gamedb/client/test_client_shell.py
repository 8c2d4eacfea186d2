"""The client over real sockets, with a server that the test plays: opening, losses, heartbeat, the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from gamedb.client import Client, connect
from gamedb.client.backoff import Backoff
from gamedb.errors import (
    ArgumentError,
    ConnectionLost,
    GamedbError,
    NotAllowed,
    QueryError,
    SchemaError,
    UnknownName,
)
from gamedb.wire import messages as m
from tests.gamedb.client.client_game import Player, damage, join, module, rows_of, update
from tests.gamedb.client.scripted_server import V2, Accepted, ScriptedServer, scripted

ANN = Player(id=1, name="ann")
WAIT_SECONDS = 10


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 30))  # type: ignore[arg-type]


async def no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def connected(script: ScriptedServer, **options: Any) -> AsyncIterator[tuple[Client, Accepted]]:
    """A connected client, and the server's side of it."""
    client = connect(script.uri, "duel", **{"module": module, "sleep": no_sleep, **options})
    opening = asyncio.create_task(client.open())
    accepted = await script.accept()
    await opening
    try:
        yield client, accepted
    finally:
        await client.close()


async def subscribed(client: Client, accepted: Accepted, *rows: Any) -> Any:
    waiting = asyncio.create_task(client.subscribe(Player))
    message = await accepted.message()
    await accepted.send(m.subscribe_applied(message.request_id, message.query_set_id, rows_of(*rows)))
    return await waiting


class Happened:
    """Counts what is told, and waits for it."""

    def __init__(self) -> None:
        self.what: list[Any] = []
        self._news = asyncio.Event()

    def __call__(self, *what: Any) -> None:
        self.what.append(what)
        self._news.set()

    async def wait(self, count: int) -> list[Any]:
        while len(self.what) < count:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), WAIT_SECONDS)
        return self.what


# --- opening


def test_opening_names_the_database_and_who_asks() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            async with connected(script, token="mine", confirmed=False) as (client, accepted):
                assert accepted.path == "/v1/database/duel/subscribe?compression=None&confirmed=false"
                assert accepted.headers["Authorization"] == "Bearer mine"
                assert "Sec-WebSocket-Extensions" not in accepted.headers
                assert script.requests[0] == "/v1/database/duel/schema?version=10"
                assert client.connected
                assert client.identity is not None
                assert client.token == "mine"
            assert await accepted.closed() == 1000

    run(scenario)


def test_calls_of_one_turn_go_out_together_on_v3_and_alone_on_v2() -> None:
    async def scenario(protocol: str | None, frames: list[int]) -> None:
        async with scripted(*([protocol] if protocol else [])) as script, connected(script) as (client, accepted):
            calls = [asyncio.create_task(client.call(damage, 1, amount)) for amount in range(3)]
            received = [await accepted.frame() for _ in frames]
            assert [len(frame) for frame in received] == frames
            for [message] in ([message] for frame in received for message in frame):
                await accepted.send(m.reducer_ok(message.request_id, 1, b"", []))
            await asyncio.gather(*calls)

    run(lambda: scenario(None, [3]))
    run(lambda: scenario(V2, [1, 1, 1]))


@pytest.mark.parametrize(
    ("status", "error"), [(401, NotAllowed), (403, NotAllowed), (404, UnknownName), (503, ConnectionLost)]
)
def test_a_first_attempt_that_is_refused_is_the_error_of_opening(status: int, error: type[Exception]) -> None:
    async def scenario() -> None:
        async with scripted() as script:
            script.refuse = (status, "go away")
            with pytest.raises(error, match="go away"):
                await connect(script.uri, "duel").open()
            script.schema_status = status
            with pytest.raises(error, match="not here"):
                async with connect(script.uri, "duel"):
                    pass

    run(scenario)


def test_no_server_at_all() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            uri = script.uri
        with pytest.raises(ConnectionLost, match=r"cannot connect to http://127\.0\.0\.1"):
            await connect(uri, "duel").open()

    run(scenario)
    with pytest.raises(SchemaError, match="write it like ws://"):
        connect("localhost:3000", "duel")
    with pytest.raises(SchemaError, match="name of a database"):
        connect("ws://localhost:3000", "")


def test_a_server_that_closes_before_it_greets() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            opening = asyncio.create_task(connect(script.uri, "duel").open())
            accepted = await script.accept(greet=False)
            await accepted.socket.close(1008, "you are banned")
            with pytest.raises(ConnectionLost, match="1008 you are banned"):
                await opening

    run(scenario)


def test_a_module_that_differs_from_the_servers() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            script.definition = with_other_type(script.definition)
            with pytest.raises(SchemaError, match="table 'player' differs between the server and the module"):
                await connect(script.uri, "duel", module=module).open()

    run(scenario)


def with_other_type(definition: Any) -> Any:
    """The definition, with `hp` as a 64-bit number."""
    changed = deepcopy(definition)
    types = next(s["Typespace"]["types"] for s in changed["sections"] if "Typespace" in s)
    player = next(t for t in types if [e["name"]["some"] for e in t["Product"]["elements"]] == ["id", "name", "hp"])
    player["Product"]["elements"][2]["algebraic_type"] = {"U64": []}
    return changed


# --- losses


def test_after_a_loss_it_connects_again_as_the_same_one_and_tells_the_differences() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            lost, found, inserted, updated = Happened(), Happened(), Happened(), Happened()
            client.on_disconnect(lost)
            client.on_connect(found)
            await subscribed(client, accepted, ANN)
            client.table(Player).on_insert(inserted)
            client.table(Player).on_update(updated)
            accepted.drop()

            again = await script.accept()
            assert again.headers["Authorization"] == "Bearer token-of-7"
            message = await again.message()
            assert message.queries == ['SELECT * FROM "player"']
            assert not client.connected
            bob = Player(id=2)
            await again.send(m.subscribe_applied(message.request_id, message.query_set_id, rows_of(ANN, bob)))
            assert await inserted.wait(1) == [(bob,)]
            assert client.connected
            await client.wait_connected()
            await again.send(m.transaction_update([update(message.query_set_id, [ANN.replace(hp=1)], [ANN])]))
            assert await updated.wait(1) == [(ANN, ANN.replace(hp=1))]
            assert len(lost.what) == 1
            assert isinstance(lost.what[0][0], ConnectionLost)
            assert len(found.what) == 1

    run(scenario)


def test_attempts_wait_longer_and_longer_and_one_loss_is_told_once() -> None:
    async def scenario() -> None:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 7:
                script.refuse = None
            await asyncio.sleep(0)

        async with scripted() as script, connected(script, sleep=sleep, random=Random(1)) as (client, accepted):
            lost = Happened()
            client.on_disconnect(lost)
            script.refuse = (503, "later")
            accepted.drop()
            await script.accept()
            await client.wait_connected()
            steps = [1, 2, 4, 8, 16, 30, 30]
            assert all(step / 2 <= wait <= step for step, wait in zip(steps, waits, strict=True))
            assert waits == [Random(1).uniform(0.5, 1) * 1, *waits[1:]]
            assert len(lost.what) == 1

    run(scenario)


def test_waits_double_up_to_a_limit_and_start_over_after_success() -> None:
    backoff = Backoff(Random(0))
    assert [round(backoff.seconds() / step, 1) <= 1 for step in (1, 2, 4, 8, 16, 30, 30)] == [True] * 7
    backoff.reset()
    assert backoff.seconds() <= 1


def test_reconnect_does_not_wait() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script, sleep=lambda _: asyncio.Event().wait()) as (client, first):
            client.reconnect()
            second = await script.accept()
            await client.wait_connected()
            lost = Happened()
            client.on_disconnect(lost)
            second.drop()
            await lost.wait(1)
            client.reconnect()
            await script.accept()
            await client.wait_connected()
            assert await first.closed() == 1006

    run(scenario)


def test_a_silent_server_is_noticed() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script, heartbeat_seconds=0.05) as (client, accepted):
            lost = Happened()
            client.on_disconnect(lost)
            accepted.socket.transport.pause_reading()  # it answers no ping any more
            await lost.wait(1)
            await script.accept()
            await client.wait_connected()

    run(scenario)


def test_calls_that_were_on_their_way_fail() -> None:
    async def scenario() -> None:
        async with (
            scripted() as script,
            connected(script, sleep=lambda _: asyncio.Event().wait()) as (client, accepted),
        ):
            calling = asyncio.create_task(client.call(join, player_id=1))
            assert isinstance(await accepted.message(), m.CallReducer)
            accepted.drop()
            with pytest.raises(ConnectionLost, match="may or may not have happened"):
                await calling
            with pytest.raises(ConnectionLost, match="was not sent"):
                await client.call(join, player_id=1)

    run(scenario)


@pytest.mark.parametrize("payload", ["text", b"\x00\x09", b"\x01abc", b""])
def test_bad_messages_end_the_connection_not_the_client(payload: Any) -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            lost = Happened()
            client.on_disconnect(lost)
            await accepted.socket.send(payload)
            assert await accepted.closed() == 1002
            await script.accept()
            await client.wait_connected()
            assert len(lost.what) == 1

    run(scenario)


def test_a_fault_of_the_client_itself_ends_the_connection_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            lost = Happened()
            client.on_disconnect(lost)
            with monkeypatch.context() as patch:
                patch.setattr("gamedb.client.core.Core._update", lambda *_: 1 / 0)
                await accepted.send(m.transaction_update([]))
                [(error,)] = await lost.wait(1)
            assert "ZeroDivisionError" in str(error)
            assert await accepted.closed() == 1006
            await script.accept()
            await client.wait_connected()

    with caplog.at_level(logging.ERROR, logger="gamedb.client"):
        run(scenario)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_server_that_came_back_with_other_tables_ends_the_client() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script, module=None) as (client, accepted):
            await subscribed_by_name(client, accepted)
            changes = client.table("player").changes()
            script.definition = with_other_type(script.definition)
            accepted.drop()
            with pytest.raises(SchemaError, match=r"the server changed its .*table player"):
                await anext(changes)
            with pytest.raises(SchemaError, match="connect with a new client"):
                await client.call("join", 1, "x")
            with pytest.raises(SchemaError):
                await client.wait_connected()

    run(scenario)


async def subscribed_by_name(client: Client, accepted: Accepted) -> None:
    waiting = asyncio.create_task(client.subscribe("SELECT * FROM player"))
    message = await accepted.message()
    await accepted.send(m.subscribe_applied(message.request_id, message.query_set_id, rows_of(ANN)))
    await waiting


def test_without_reconnecting_a_loss_is_the_end() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script, reconnect=False) as (client, accepted):
            subscription = await subscribed(client, accepted, ANN)
            lost = Happened()
            client.on_disconnect(lost)
            accepted.drop()
            await lost.wait(1)
            with pytest.raises(ConnectionLost, match="was closed"):
                await client.wait_connected()
            assert not subscription.active
            assert list(client.table(Player)) == [ANN], "the last that was known"

    run(scenario)


# --- subscriptions and callbacks


def test_subscriptions_say_how_they_stand() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            subscription = await subscribed(client, accepted, ANN)
            assert subscription.active
            ending = asyncio.create_task(subscription.unsubscribe())
            message = await accepted.message()
            assert message.flags is m.UnsubscribeFlags.SEND_DROPPED_ROWS
            await accepted.send(m.unsubscribe_applied(message.request_id, 0, rows_of(ANN)))
            await ending
            await subscription.unsubscribe()
            assert (subscription.active, subscription.error, len(client.table(Player))) == (False, None, 0)

            waiting = asyncio.create_task(client.subscribe("SELECT"))
            message = await accepted.message()
            await accepted.send(m.subscription_error(message.request_id, message.query_set_id, "what?"))
            with pytest.raises(QueryError, match="what\\?"):
                await waiting
            with pytest.raises(QueryError, match="needs a query"):
                await client.subscribe()

    run(scenario)


def test_a_subscription_that_the_server_ends_later() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            errors = Happened()
            waiting = asyncio.create_task(client.subscribe(Player, on_error=errors))
            message = await accepted.message()
            await accepted.send(m.subscribe_applied(message.request_id, message.query_set_id, []))
            subscription = await waiting
            await accepted.send(m.subscription_error(message.request_id, message.query_set_id, "the view failed"))
            [(error,)] = await errors.wait(1)
            assert subscription.error is error
            await subscription.unsubscribe()

    run(scenario)


def test_a_subscribe_that_is_cancelled_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            waiting = asyncio.create_task(client.subscribe(Player))
            message = await accepted.message()
            waiting.cancel()
            assert isinstance(await accepted.message(), m.Unsubscribe)
            await accepted.send(m.subscribe_applied(message.request_id, message.query_set_id, rows_of(ANN)))
            await accepted.send(m.unsubscribe_applied(1, message.query_set_id, rows_of(ANN)))
            query = asyncio.create_task(client.query("SELECT * FROM player"))
            message = await accepted.message()
            await accepted.send(m.one_off_result(message.request_id, rows_of(ANN)))
            assert await query == [ANN]
            assert len(client.table(Player)) == 0

    run(scenario)


def test_callbacks_see_all_of_a_message_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            players = client.table(Player)
            seen = Happened()

            def failing(_row: Player) -> None:
                raise ValueError("a bug in the game")

            players.on_insert(failing)
            undo = players.on_insert(lambda row: seen(row.id, len(players)))
            await subscribed(client, accepted, ANN, Player(id=2))
            assert seen.what == [(1, 2), (2, 2)]
            undo()
            undo()
            await accepted.send(m.transaction_update([update(0, [Player(id=3)])]))
            await accepted.send(m.transaction_update([update(0, [], [Player(id=3)])]))
            gone = Happened()
            players.on_delete(gone)
            await gone.wait(1)
            assert len(seen.what) == 2

    with caplog.at_level(logging.ERROR, logger="gamedb.client"):
        run(scenario)
    assert [record.message[:31] for record in caplog.records] == ["a callback of the client failed"] * 3


def test_changes_come_one_after_the_other_and_end_with_the_client() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            async with connected(script) as (client, accepted):
                changes = client.table(Player).changes()
                await subscribed(client, accepted, ANN)
                await accepted.send(m.transaction_update([update(0, [ANN.replace(hp=1)], [ANN])]))
                first, second = await anext(changes), await anext(changes)
                assert (first.kind, first.new, second.kind, second.old) == ("insert", ANN, "update", ANN)
            assert [change async for change in changes] == []
            assert [change async for change in client.table(Player).changes()] == []

    run(scenario)


def test_a_loop_that_does_not_keep_up_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            changes = client.table(Player).changes()
            monkeypatch.setattr("gamedb.client.tables.CHANGES_MAX", 1)
            await subscribed(client, accepted, ANN, Player(id=2))
            with pytest.raises(GamedbError, match="read them faster"):
                await anext(changes)

    run(scenario)


def test_reading_a_table() -> None:
    async def scenario() -> None:
        async with scripted() as script, connected(script) as (client, accepted):
            await subscribed(client, accepted, ANN, Player(id=2, name="bob"))
            players = client.table(Player)
            assert client.table("player") is players
            assert players.get(1) == ANN
            assert players.get(9) is None
            assert players.count() == len(players) == 2
            assert players.where(name="bob", hp=100) == [Player(id=2, name="bob")]
            with pytest.raises(GamedbError, match="has no column 'nmae'"):
                players.where(nmae="bob")
            with pytest.raises(GamedbError, match="no primary key"):
                client.table("tile").get(1)
            with pytest.raises(UnknownName, match="no table 'ghost' for this client"):
                client.table("ghost")

    run(scenario)


# --- calls and the end


def test_arguments_are_checked_before_they_are_sent() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            async with connected(script) as (client, _):
                with pytest.raises(ArgumentError, match="amount"):
                    await client.call(damage, 1, -1)
                with pytest.raises(ArgumentError, match="needs"):
                    await client.call("damage", 1)
                with pytest.raises(UnknownName, match="no reducer 'dance'"):
                    await client.call("dance")
            async with connected(script, module=None) as (client, _):
                with pytest.raises(ArgumentError, match="amount: -1 is out of range"):
                    await client.call("damage", 1, amount=-1)
                with pytest.raises(ArgumentError, match="takes \\(player_id: u64, amount: u32\\)"):
                    await client.call("damage", 1)
                with pytest.raises(UnknownName, match="module="):
                    await client.call(damage, 1, 1)
                with pytest.raises(UnknownName, match="module="):
                    client.table(Player)

    run(scenario)


def test_the_end_fails_what_waits() -> None:
    async def scenario() -> None:
        async with scripted() as script:
            async with connected(script) as (client, accepted):
                lost = Happened()
                client.on_disconnect(lost)
                calling = asyncio.create_task(client.call(join, 1))
                subscribing = asyncio.create_task(client.subscribe(Player))
                await accepted.frame()
            for waiting in (calling, subscribing):
                with pytest.raises(ConnectionLost):
                    await waiting
            with pytest.raises(ConnectionLost, match="was closed; make a new one"):
                await client.call(join, 1)
            with pytest.raises(ConnectionLost, match="was closed"):
                await client.wait_connected()
            with pytest.raises(ConnectionLost, match="opened already"):
                await client.open()
            await client.close()
            assert lost.what == [], "it was no loss"

    run(scenario)


def test_a_client_is_of_no_use_before_it_is_open() -> None:
    client = connect("ws://127.0.0.1:1", "duel")
    with pytest.raises(ConnectionLost, match="not connected yet"):
        client.table("player")
