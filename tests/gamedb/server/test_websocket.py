"""The websocket over real sockets: the handshake, ends of every kind, and who notices what."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from gamedb import Database, Module, PrimaryKey, Row, u32
from gamedb.server.limits import Limits
from gamedb.server.requests import Http
from gamedb.server.serve import Serving
from gamedb.server.websocket import WebSocket
from gamedb.wire import messages
from tests.gamedb.server.arena import Gates, Mark, Player, Reminder, Secret, Visit, arena
from tests.gamedb.server.with_sockets import (
    SECONDS_MAX,
    UPGRADE,
    V2,
    V3,
    Connection,
    masked,
    raw,
    served,
    until,
    upgrade_answer,
)


class Game:
    """The arena, served."""

    def __init__(self, db: Database, gates: Gates, serving: Serving) -> None:
        self.db = db
        self.gates = gates
        self.serving = serving


@pytest.fixture
def game() -> Iterator[Game]:
    module, gates = arena()
    with Database(module) as db, served(db) as serving:
        yield Game(db, gates, serving)


# --- the handshake


def test_a_client_connects_subscribes_and_calls(game: Game) -> None:
    with Connection(game.serving) as ann, Connection(game.serving) as bob:
        assert ann.websocket.subprotocol == V3
        bob.subscribe("SELECT * FROM player")
        assert isinstance(ann.call("spawn", 1, 7), messages.ReducerOk)
        assert isinstance(bob.next(), messages.TransactionUpdate)
        assert game.db.read(Player).get(1) == Player(id=1, zone=7)


@pytest.mark.parametrize(
    ("offered", "chosen"), [((V3, V2), V3), ((V2, V3), V3), ((V2,), V2), (("v1.bsatn.spacetimedb", V2), V2)]
)
def test_the_best_protocol_that_was_offered_is_chosen(game: Game, offered: tuple[str, ...], chosen: str) -> None:
    with Connection(game.serving, protocols=offered) as ann:
        assert ann.websocket.subprotocol == chosen
        assert isinstance(ann.call("nothing"), messages.ReducerOk)


def test_a_client_without_a_known_protocol_is_refused(game: Game) -> None:
    for headers in ("", "Sec-WebSocket-Protocol: v1.json.spacetimedb, other\r\n"):
        answer = upgrade_answer(game.serving, headers=headers)
        assert answer.startswith("HTTP/1.1 400 ")
        assert "no valid protocol selected" in answer


def offering(extra: str = "") -> str:
    return f"Sec-WebSocket-Protocol: {V3}\r\n{extra}"


@pytest.mark.parametrize(
    ("name", "query", "headers", "status"),
    [
        ("nowhere", "", "", 404),
        ("..%2f", "", "", 404),
        ("arena", "?confirmed=perhaps", "", 400),
        ("arena", "?compression=zstd", "", 400),
        ("arena", "?connection_id=00000000000000000000000000000000", "", 400),
        ("arena", "?connection_id=12", "", 400),
        ("arena", "?" + "a=1&" * 101, "", 400),
        ("arena", "?token=damaged", "", 401),
        ("arena", "?token=" + "x" * 7000, "", 401),
        ("arena", "", "Authorization: Bearer damaged\r\n", 401),
        ("arena", "", "Authorization: Basic YTpi\r\n", 400),
    ],
)
def test_what_is_wrong_with_a_handshake_is_an_http_answer(
    game: Game, name: str, query: str, headers: str, status: int
) -> None:
    """L25: a token that is not right never makes an anonymous client."""
    answer = upgrade_answer(game.serving, name=name, query=query, headers=offering(headers))
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert game.db.read(Visit).count() == 0


@pytest.mark.parametrize("compression", ["None", "Gzip", "Brotli"])
def test_answers_are_never_compressed_whatever_is_allowed(game: Game, compression: str) -> None:
    with Connection(game.serving, query=f"?compression={compression}&light=true") as ann:
        game.db.call("mark", 1, "x" * 5_000)
        assert len(ann.subscribe("SELECT * FROM mark").tables[0].rows.data) > 5_000
        assert "Sec-WebSocket-Extensions" not in ann.websocket.response.headers  # type: ignore[union-attr]


def test_a_token_gives_the_same_identity_again_by_header_and_by_query(game: Game) -> None:
    with Connection(game.serving) as first:
        greeting = first.greeting
    header = {"Authorization": f"Bearer {greeting.token}"}
    with (
        Connection(game.serving, additional_headers=header) as by_header,
        Connection(game.serving, query=f"?token={greeting.token}") as by_query,
        Connection(game.serving, additional_headers=header, query="?token=damaged") as by_both,
        Connection(game.serving, query="?token=") as by_nothing,
    ):
        for again in (by_header, by_query, by_both):
            assert again.greeting.identity == greeting.identity
            assert again.greeting.token == greeting.token
            assert again.greeting.connection_id != greeting.connection_id
        assert by_nothing.greeting.identity != greeting.identity


def test_the_database_is_found_by_its_identity_too(game: Game) -> None:
    identity = game.serving.server.hosted["arena"].identity.hex()
    with Connection(game.serving, database=identity) as ann:
        assert isinstance(ann.call("nothing"), messages.ReducerOk)


def test_a_request_without_an_upgrade_is_told_to_upgrade(game: Game) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{game.serving.url}/v1/database/arena/subscribe", timeout=SECONDS_MAX)
    assert refused.value.code == 426
    refused.value.close()


def test_several_databases_are_served_side_by_side() -> None:
    first, _ = arena()
    other = Module("other")

    @other.table(public=True)
    class Thing(Row):
        id: PrimaryKey[u32]

    with Database(first) as one, Database(other) as two, served(one, two) as serving:
        with two.transaction() as tx:
            tx.db[Thing].insert(Thing(id=1))
        with Connection(serving) as ann, Connection(serving, database="other") as bob:
            assert isinstance(ann.call("spawn", 1, 1), messages.ReducerOk)
            assert len(bob.subscribe("SELECT * FROM thing").tables[0].rows.data) == 4


def test_a_client_that_client_connected_refuses_is_closed_with_the_reason(game: Game) -> None:
    """L26."""
    with game.db.transaction() as tx:
        tx.db[Secret].insert(Secret(id=666, text=""))
    with Connection(game.serving, greeted=False) as ann:
        assert ann.closed() == (1008, "the arena is closed")
    assert game.db.read(Visit).count() == 0


def test_more_connections_than_allowed_are_refused() -> None:
    module, _ = arena()
    with Database(module) as db, served(db, limits=Limits(connections_max=2)) as serving:
        with Connection(serving), Connection(serving):
            with pytest.raises(InvalidStatus) as refused:
                Connection(serving)
            assert refused.value.response.status_code == 503
        until(lambda: len(serving.server.websockets) == 0, "both are gone")
        with Connection(serving) as ann:
            assert isinstance(ann.call("nothing"), messages.ReducerOk)


# --- ends


def test_client_disconnected_runs_once_when_a_client_goes(game: Game) -> None:
    with Connection(game.serving) as ann:
        identity = ann.greeting.identity
    until(lambda: game.db.read(Visit).get(identity) == Visit(identity=identity, came=1, went=1), "it ran")
    with Connection(game.serving, query=f"?token={ann.greeting.token}") as ann:
        ann.vanish()
    until(lambda: game.db.read(Visit).get(identity) == Visit(identity=identity, came=2, went=2), "it ran again")


@pytest.mark.parametrize("payload", [b"", b"\xff\xff", b"\x03\x01\x00"])
def test_malformed_messages_end_their_connection_alone(game: Game, payload: bytes) -> None:
    with Connection(game.serving) as ann, Connection(game.serving) as bob:
        bob.subscribe("SELECT * FROM player")
        ann.send_bytes(payload)
        code, reason = ann.closed()
        assert code == 1011
        assert reason.startswith("malformed message: ")
        assert isinstance(bob.call("spawn", 1, 1), messages.ReducerOk)


def test_a_text_message_ends_the_connection(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.websocket.send("hello")
        assert ann.closed()[0] == 1011


def test_a_giant_message_ends_the_connection_before_it_is_read() -> None:
    module, _ = arena()
    with Database(module) as db, served(db, limits=Limits(message_bytes_max=10_000)) as serving:
        with Connection(serving) as ann:
            ann.send_bytes(bytes(10_001))
            assert ann.closed()[0] == 1009
        with Connection(serving) as bob:
            bob.send_bytes([bytes(6_000), bytes(6_000)])
            assert bob.closed()[0] == 1009
        with Connection(serving) as eve:  # says that it is about to send 2**62 bytes
            eve.websocket.socket.sendall(b"\x82\xff\x40" + bytes(7) + bytes(4))
            assert eve.closed()[0] == 1009


def test_a_message_in_many_fragments_is_one_message(game: Game) -> None:
    with Connection(game.serving) as ann:
        whole = messages.encode_client(messages.CallReducer(request_id=9, reducer="nothing", arguments=b""))
        ann.send_bytes([whole[:5], b"", whole[5:7], whole[7:]])
        result = ann.next()
        assert isinstance(result, messages.ReducerResult)
        assert result.request_id == 9


def test_unmasked_frames_are_refused(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.websocket.socket.sendall(b"\x82\x01\x00")
        assert ann.closed()[0] == 1002


def test_a_client_that_sends_no_sign_of_life_is_dropped_and_one_that_only_listens_stays() -> None:
    """L21, from our side."""
    module, _ = arena()
    limits = Limits(ping_seconds=0.05, silence_seconds_max=0.5)
    with Database(module) as db, served(db, limits=limits) as serving, Connection(serving) as listening:
        with raw(serving) as silent:
            silent.sendall(UPGRADE.format(name="arena", query="", headers=offering()).encode())
            until(lambda: db.read(Visit).count() == 2, "it came")
            until(lambda: sum(visit.went for visit in db.read(Visit)) == 1, "it was dropped")
        assert isinstance(listening.call("nothing"), messages.ReducerOk)


def test_a_client_that_asks_and_never_reads_the_answers_is_dropped() -> None:
    """L24: although we do not listen to it either, as so much waits for it."""
    module, _ = arena()
    limits = Limits(ping_seconds=0.05, silence_seconds_max=0.5, queued_bytes_max=1 << 20)
    with Database(module) as db, served(db, limits=limits) as serving, raw(serving) as stalled:
        for number in range(20):
            db.call("mark", number, "x" * 100_000)
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.sendall(UPGRADE.format(name="arena", query="", headers=offering()).encode())
        assert b" 101 " in stalled.recv(1024)
        query = messages.OneOffQuery(request_id=1, query="SELECT * FROM mark")
        stalled.sendall(masked(messages.encode_client(query)) * 50)
        until(lambda: sum(visit.went for visit in db.read(Visit)) == 1, "it was dropped")


def test_a_reader_that_stalls_is_closed_and_others_notice_nothing() -> None:
    """L24."""
    module, _ = arena()
    limits = Limits(queued_bytes_max=1 << 20)
    with Database(module) as db, served(db, limits=limits) as serving, raw(serving) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.sendall(UPGRADE.format(name="arena", query="", headers=offering()).encode())
        assert b" 101 " in stalled.recv(1024)
        subscribe = messages.Subscribe(request_id=1, query_set_id=1, queries=["SELECT * FROM mark"])
        stalled.sendall(masked(messages.encode_client(subscribe)))
        until(lambda: serving.server.hosted["arena"].hub.live_queries == 1, "it follows")
        with Connection(serving) as reading:
            reading.subscribe("SELECT * FROM mark")
            sent = 0
            while not any(visit.went for visit in db.read(Visit)):
                db.call("mark", sent, "x" * 10_000)
                assert isinstance(reading.next(), messages.TransactionUpdate)
                sent += 1
                assert sent < 5_000
            assert isinstance(reading.call("nothing"), messages.ReducerOk)


def test_a_commit_of_the_game_itself_reaches_clients_from_any_thread(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.subscribe("SELECT * FROM mark")
        threads = [threading.Thread(target=game.db.call, args=("mark", number, "x")) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(ann.next(), messages.TransactionUpdate) for _ in range(20)) == 20


def test_schedules_fire_while_the_database_is_served(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.subscribe("SELECT * FROM mark")
        with game.db.transaction() as tx:
            tx.db[Reminder].insert(Reminder(scheduled_at=datetime.now(UTC)))
        assert isinstance(ann.next(), messages.TransactionUpdate)
        assert list(game.db.read(Mark)) == [Mark(zone=0, text="reminded")]


# --- procedures


def procedure(name: str, request_id: int, arguments: bytes = b"") -> messages.CallProcedure:
    return messages.CallProcedure(request_id=request_id, procedure=name, arguments=arguments)


def test_procedures_run_beside_each_other_and_beside_reducers(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.send(procedure("wait_in_thread", 1), procedure("wait", 2))
        until(lambda: game.gates.started == 2, "both run")
        assert isinstance(ann.call("nothing"), messages.ReducerOk)
        game.gates.thread_open.set()
        result = ann.next()
        assert isinstance(result, messages.ProcedureResult)
        assert result.status == messages.ProcedureReturned((8).to_bytes(4, "little"))


def test_the_procedures_of_a_client_that_goes_are_cancelled(game: Game) -> None:
    with Connection(game.serving) as ann:
        ann.send(procedure("wait", 1))
        until(lambda: game.gates.started == 1, "it runs")
    until(lambda: game.gates.cancelled == 1, "it is cancelled")


# --- the end of the server


def test_the_end_lets_procedures_finish_and_closes_clients_as_going_away() -> None:
    module, gates = arena()
    with Database(module) as db:
        with served(db) as serving:
            ann = Connection(serving)
            ann.send(procedure("wait_in_thread", 1))
            until(lambda: gates.started == 1, "it runs")
            serving.stop()
            until(lambda: serving.server.closing, "it ends")
            gates.thread_open.set()
            result = ann.next()
            assert isinstance(result, messages.ProcedureResult)
            assert ann.closed() == (1001, "the server is shutting down")
        ann.close()
        assert [(visit.came, visit.went) for visit in db.read(Visit)] == [(1, 1)]


PROGRAM = """
import asyncio, sys
from gamedb import Database
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.serve import run
from gamedb.server.server import Server
from tests.gamedb.server.arena import arena

module, _ = arena()
with Database(module, sys.argv[1], quiet=True) as db:
    server = Server([Hosted(db)], Authenticator(Keys(None)))
    run(server, "127.0.0.1:0", ready=lambda serving: print(serving.port, flush=True))
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_gracefully(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "arena.db")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with Connection(f"http://127.0.0.1:{port}") as ann:
            assert isinstance(ann.call("spawn", 1, 7), messages.ReducerOk)
            process.send_signal(number)
            assert ann.closed() == (1001, "the server is shutting down")
        assert process.stdout.read().strip() == "ended"
        assert process.wait(SECONDS_MAX) == 0
    again, _ = arena()
    with Database(again, tmp_path / "arena.db", quiet=True) as db:
        assert db.read(Player).get(1) == Player(id=1, zone=7)
        assert [(visit.came, visit.went) for visit in db.read(Visit)] == [(1, 1)]


# --- many, and odd ones


def test_many_connects_leave_nothing_behind(game: Game) -> None:
    """L58."""
    for _ in range(20):
        crowd = [Connection(game.serving) for _ in range(10)]
        for one in crowd:
            one.subscribe("SELECT * FROM player")
        for one in crowd[:5]:
            one.close()
        for one in crowd[5:]:
            one.vanish()
    hosted = game.serving.server.hosted["arena"]
    until(lambda: not game.serving.server.websockets and not hosted.sessions, "all are gone")
    assert hosted.hub.live_queries == 0
    visits = list(game.db.read(Visit))
    assert len(visits) == 200
    assert all((visit.came, visit.went) == (1, 1) for visit in visits)


def test_half_open_connections_harm_nobody(game: Game) -> None:
    beginnings = (
        b"",
        b"GET /v1/data",
        b"GET /v1/database/arena/subscribe HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n",
        b"\x16\x03\x01\x02\x00",
        b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\nabc",
    )
    held = []
    for beginning in beginnings * 10:
        connection = raw(game.serving)
        connection.sendall(beginning)
        held.append(connection)
    with Connection(game.serving) as ann:
        assert isinstance(ann.call("spawn", 1, 1), messages.ReducerOk)
    for connection in held:
        connection.close()
    with Connection(game.serving) as ann:
        assert isinstance(ann.call("kill", 1), messages.ReducerOk)


def test_a_connection_that_never_finishes_its_request_is_dropped() -> None:
    module, _ = arena()
    limits = Limits(handshake_seconds_max=0.2)
    with Database(module) as db, served(db, limits=limits) as serving, Connection(serving) as ann:
        whole = b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n"
        call = b"POST /v1/database/arena/call/nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        for beginning in (
            b"",
            b"GET /v1/data",
            whole + b"GET /v1/data",
            call + b"Content-Length: 100\r\n\r\n[",
            call + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
        ):
            with raw(serving) as connection:
                connection.sendall(beginning)
                with suppress(ConnectionResetError):
                    while connection.recv(1000):
                        pass
        assert isinstance(ann.call("nothing"), messages.ReducerOk)


def test_a_client_that_goes_during_its_handshake_leaves_nothing(game: Game) -> None:
    for _ in range(50):
        with raw(game.serving) as connection:
            connection.sendall(UPGRADE.format(name="arena", query="", headers=offering()).encode())
    with Connection(game.serving) as ann:
        assert isinstance(ann.call("nothing"), messages.ReducerOk)
    until(lambda: not game.serving.server.websockets, "all are gone")
    assert all(visit.came == visit.went for visit in game.db.read(Visit))


def test_connections_that_have_gone_are_kept_by_nothing() -> None:
    """L58: no timer that still runs, say."""

    def kept() -> int:
        gc.collect()
        return sum(type(found) in (Http, WebSocket) for found in gc.get_objects())

    module, _ = arena()
    with Database(module) as db, served(db, limits=Limits(handshake_seconds_max=600)) as serving:
        with Connection(serving):  # makes what is made once
            pass
        before = kept()
        for _ in range(10):
            with Connection(serving):
                pass
        until(lambda: kept() <= before, "all are forgotten")


def test_a_view_that_fails_is_in_the_log_of_the_database_whatever_that_is_called() -> None:
    """L18, L51: how it is asked for does not matter either."""
    module, _ = arena()
    with Database(module) as db, served(db, names=("eu",)) as serving:
        db.call("spawn", 1, 7)
        with Connection(serving, database="eu") as ann:
            ann.subscribe("SELECT * FROM strong")
            db.call("note", 1, "break the view")
            until(lambda: len(serving.server.hosted["eu"].logs.last()) == 1, "it is logged")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{serving.url}/v1/database/eu/sql", b"SELECT * FROM strong")
        refused.value.close()
        lines = serving.server.hosted["eu"].logs.last()
    assert len(lines) == 2
    assert all(b"view strong failed" in line for line in lines)


def test_tokens_stand_in_no_log(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with Connection(game.serving) as ann:
        token = ann.greeting.token
    with Connection(game.serving, query=f"?token={token}"):
        pass
    upgrade_answer(game.serving, query=f"?token={token}x", headers=offering())
    until(lambda: not game.serving.server.websockets, "all are gone")
    mine = [record.getMessage() for record in caplog.records if not record.name.startswith("websockets")]
    assert mine
    assert not any(token[:40] in message for message in mine)
