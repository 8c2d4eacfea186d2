"""How sessions begin and end: admission, malformed input, slow readers, confirmed reads, the end of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamedb import Database, ManualClock, StorageError
from gamedb.server.limits import Limits
from gamedb.server.session import TRY_AGAIN, Refused
from gamedb.system import ClientConnection
from gamedb.wire import messages
from tests.gamedb.server.arena import Player, Secret, Visit, arena
from tests.gamedb.server.without_sockets import Client, World


@pytest.fixture
def world(clock: ManualClock) -> Iterator[World]:
    module, _ = arena()
    with Database(module, clock=clock) as db:
        world = World(db)
        yield world
        world.hub.close()


def open_connections(db: Database) -> int:
    return len(db._committed_system[ClientConnection])


# --- coming in


def test_the_greeting_is_the_first_message_whatever_came_before_it(world: World) -> None:
    ann = world.stranger()
    ann.session.open()
    ann.send(ann.calling("nothing"))
    greeting, result = ann.read()
    assert greeting == messages.InitialConnection(ann.session.identity, ann.session.connection_id, "token")
    assert isinstance(result, messages.ReducerResult)


def test_client_connected_has_run_before_the_greeting(world: World) -> None:
    ann = world.client()
    assert world.db.read(Visit).get(ann.session.identity) == Visit(identity=ann.session.identity, came=1)


def test_a_client_that_is_refused_has_no_effect_and_gets_no_disconnect(world: World) -> None:
    """L26."""
    with world.db.transaction() as tx:
        tx.db[Secret].insert(Secret(id=666, text=""))
    ann = world.stranger()
    with pytest.raises(Refused, match="the arena is closed"):
        ann.session.open()
    ann.session.lost()
    world.turn()
    assert ann.channel.frames == []
    assert world.db.read(Visit).count() == 0
    assert world.hub.sessions == {}
    assert open_connections(world.db) == 0


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_a_bug_in_client_connected_refuses_without_telling_why(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def fail(_identity: object, _connection_id: object) -> None:
        raise kind("password=hunter2")

    monkeypatch.setattr(world.db, "connect", fail)
    ann = world.stranger()
    with pytest.raises(Refused) as refused:
        ann.session.open()
    assert "hunter2" not in str(refused.value)
    assert "hunter2" in caplog.text


# --- going


def test_client_disconnected_runs_once_however_often_the_end_is_noticed(world: World) -> None:
    ann = world.client()
    assert open_connections(world.db) == 1
    ann.session.end(1001, "bye")
    ann.session.lost()
    ann.session.end(1011, "again")
    assert ann.channel.closed == (1001, "bye")
    assert world.db.read(Visit).get(ann.session.identity) == Visit(identity=ann.session.identity, came=1, went=1)
    assert open_connections(world.db) == 0


def test_a_client_that_has_gone_gets_and_does_nothing_more(world: World) -> None:
    ann, bob = world.client(), world.client()
    ann.subscribe(1, "SELECT * FROM player")
    ann.session.receive(messages.encode_client(ann.calling("spawn", 1, 1)))
    ann.session.lost()
    world.turn()
    bob.call("spawn", 2, 1)
    assert ann.channel.frames == []
    assert [player.id for player in world.db.read(Player)] == [2]


def test_connections_that_were_open_at_a_crash_end_before_anything_else(tmp_path: Path, clock: ManualClock) -> None:
    """L27."""
    module, _ = arena()
    db = Database(module, tmp_path / "arena.db", clock=clock)
    world = World(db)
    ann, bob = world.client(confirmed=False), world.client(confirmed=False)
    bob.session.lost()
    world.hub.close()
    db.close()  # nobody said good-bye to ann
    again, _ = arena()
    with Database(again, tmp_path / "arena.db", clock=clock) as db:
        assert db.read(Visit).get(ann.session.identity) == Visit(identity=ann.session.identity, came=1, went=1)
        assert db.read(Visit).get(bob.session.identity) == Visit(identity=bob.session.identity, came=1, went=1)
        assert open_connections(db) == 0


def test_draining_takes_nothing_new_and_finishes_what_was_taken(world: World) -> None:
    ann = world.client()
    ann.session.receive(messages.encode_client(ann.calling("spawn", 1, 1)))
    ann.session.drain()
    assert ann.channel.held
    assert not ann.session.idle
    world.turn()
    assert ann.session.idle
    assert len(ann.read()) == 1
    assert ann.channel.held


# --- malformed input


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"\x00", b"\x03\x01", b"\x00\x01\x00\x00\x00\x01\x00\x00\x00" + b"\xff" * 8]
)
def test_malformed_messages_close_their_connection_with_the_reason(
    world: World, payload: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    ann, bob = world.client(), world.client()
    ann.send(ann.calling("nothing"))
    ann.session.receive(payload)
    world.turn()
    assert ann.channel.closed is not None
    code, reason = ann.channel.closed
    assert code == 1011
    assert reason.startswith("malformed message: ")
    assert "malformed" in caplog.text
    assert isinstance(bob.call("spawn", 1, 1), messages.ReducerOk)
    assert bob.channel.closed is None
    ann.session.receive(payload)


def test_what_stands_before_the_malformed_part_is_not_done_either(world: World) -> None:
    ann = world.client()
    ann.session.receive(messages.encode_client(ann.calling("spawn", 1, 1)) + b"\xff")
    world.turn()
    assert world.db.read(Player).count() == 0


def test_text_messages_close_the_connection(world: World) -> None:
    ann = world.client()
    ann.session.receive_text()
    assert ann.channel.closed is not None
    assert ann.channel.closed[0] == 1011


def test_protocol_v2_takes_one_message_at_a_time(world: World) -> None:
    ann = world.client(several=False)
    ann.session.receive(messages.encode_client(ann.calling("nothing")) * 2)
    assert ann.channel.closed is not None
    assert ann.channel.closed[0] == 1011


# --- those who are too fast, and those who are too slow


def test_more_waiting_messages_than_allowed_close_the_connection_and_are_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """L24."""
    ann = world.client(limits=Limits(queued_messages_max=10))
    frame = b"".join(messages.encode_client(ann.calling("nothing")) for _ in range(6))
    ann.session.receive(frame)
    ann.session.receive(frame)
    assert ann.channel.closed is not None
    code, reason = ann.channel.closed
    assert code == 1013
    assert "too many requests" in reason
    assert "10" in reason
    assert "too many requests" in caplog.text


def test_a_client_with_much_to_work_off_has_to_wait_and_nobody_else(world: World) -> None:
    world.one_share_a_pass()
    ann, bob = world.client(), world.client()
    ann.session.receive(b"".join(messages.encode_client(ann.calling("nothing")) for _ in range(500)))
    bob.session.receive(messages.encode_client(bob.calling("nothing")))
    for _ in range(4):
        world.queue.popleft()()
    assert ann.channel.held
    assert len(bob.read()) == 1
    world.turn()
    assert len(ann.read()) == 500
    assert not ann.channel.held


def test_a_slow_reader_is_closed_with_a_reason_and_others_notice_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """L24."""
    ann, bob = world.client(limits=Limits(queued_bytes_max=10_000)), world.client()
    for client in (ann, bob):
        client.subscribe(1, "SELECT * FROM mark")
    ann.channel.paused = True
    for number in range(200):
        world.db.call("mark", number, "x" * 100)
        world.turn()
        if number == 20:
            assert ann.channel.closed is None
    assert ann.channel.closed is not None
    code, reason = ann.channel.closed
    assert code == 1008
    assert reason.startswith("too slow")
    assert "too slow" in caplog.text
    assert ann.session.bytes_waiting == 0
    assert len(bob.rows("mark")) == 200
    assert world.db.read(Visit).get(ann.session.identity) == Visit(identity=ann.session.identity, came=1, went=1)


def test_a_slow_reader_in_a_large_audience_is_closed_too(world: World) -> None:
    """L24."""
    clients = [world.client(limits=Limits(queued_bytes_max=10_000)) for _ in range(20)]
    for client in clients:
        client.subscribe(1, "SELECT * FROM mark")
    clients[3].channel.paused = True
    for number in range(200):
        world.db.call("mark", number, "x" * 100)
        world.turn()
    assert [client.channel.closed is not None for client in clients] == [number == 3 for number in range(20)]
    assert all(len(client.rows("mark")) == 200 for client in clients if client is not clients[3])


def test_a_client_that_does_not_read_its_answers_is_not_answered_any_further(world: World) -> None:
    """Its requests wait, so what it can pile up is bounded, and it is not closed for that."""
    with world.db.transaction() as tx:
        for number in range(50):
            tx.db[Player].insert(Player(id=number, note="x" * 100))
    ann = world.client(limits=Limits(queued_bytes_max=20_000))
    ann.channel.paused = True
    ann.send(*(messages.OneOffQuery(request_id=number, query="SELECT * FROM player") for number in range(100)))
    assert ann.session.bytes_waiting < 30_000
    assert ann.channel.held
    assert ann.channel.closed is None
    ann.channel.paused = False
    ann.session.flush()
    world.turn()
    assert len(ann.read()) == 100
    assert not ann.channel.held


def test_a_frame_of_many_large_queries_makes_only_a_few_answers_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gamedb.server import snapshot

    monkeypatch.setattr(snapshot, "SHARE_ROWS", 10)
    with world.db.transaction() as tx:
        for number in range(100):
            tx.db[Player].insert(Player(id=number))
    ann = world.client()
    world.one_share_a_pass()
    ann.session.receive(
        b"".join(
            messages.encode_client(messages.OneOffQuery(request_id=number, query="SELECT * FROM player"))
            for number in range(50)
        )
    )
    most = 0
    while world.queue:
        world.queue.popleft()()
        most = max(most, len(world.turns))
    assert most <= 6
    assert len(ann.read()) == 50


# --- confirmed reads


class Disk:
    """The storage of a database, whose writes wait until they are let through."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.fails = False
        storage = db._durability._storage  # type: ignore[union-attr]
        write = storage.write

        def held(*arguments: object) -> None:
            self.gate.wait(10)
            if self.fails:
                raise StorageError("the disk is full")
            write(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(storage, "write", held)


def scheduled(world: World, client: Client) -> None:
    """Turn the loop until the writer has called, and then some more."""
    called = threading.Event()
    world.db.when_durable(lambda _: called.set())
    assert called.wait(10)
    world.turn()


def test_confirmed_reads_wait_for_the_disk_and_keep_their_order(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = arena()
    with Database(module, tmp_path / "arena.db", clock=clock) as db:
        world = World(db)
        ann, bob, eve = world.client(), world.client(), world.client(confirmed=False)
        db.flush()
        for client in (ann, bob, eve):
            client.subscribe(1, "SELECT * FROM player")
        disk = Disk(db, monkeypatch)
        ann.send(ann.calling("spawn", 1, 1), ann.calling("refuse", "no"), ann.subscribing(2, "SELECT * FROM player"))
        assert ann.read() == []
        assert bob.read() == []
        assert len(eve.read()) == 1
        disk.gate.set()
        scheduled(world, ann)
        result, refused, applied = ann.read()
        assert isinstance(result, messages.ReducerResult)
        assert isinstance(refused, messages.ReducerResult)
        assert isinstance(applied, messages.SubscribeApplied)
        assert bob.rows("player") == [Player(id=1, zone=1)]
        world.hub.close()


def test_one_call_back_of_the_writer_serves_all_who_wait(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = arena()
    with Database(module, tmp_path / "arena.db", clock=clock) as db:
        world = World(db)
        clients = [world.client() for _ in range(20)]
        db.flush()
        disk = Disk(db, monkeypatch)
        asked = []
        when_durable = db.when_durable
        monkeypatch.setattr(db, "when_durable", lambda callback: (asked.append(1), when_durable(callback)))
        for number, client in enumerate(clients):
            client.send(client.calling("spawn", number, 1))
        assert len(asked) == 1
        disk.gate.set()
        scheduled(world, clients[0])
        while any(not client.channel.frames for client in clients):
            scheduled(world, clients[0])
        assert len(asked) < 20
        world.hub.close()


def test_a_disk_that_fails_ends_those_who_wait_for_it(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = arena()
    db = Database(module, tmp_path / "arena.db", clock=clock)
    world = World(db)
    ann = world.client()
    db.flush()
    disk = Disk(db, monkeypatch)
    disk.fails = True
    ann.send(ann.calling("spawn", 1, 1))
    disk.gate.set()
    scheduled(world, ann)
    assert ann.read() == []
    assert ann.channel.closed is not None
    assert "disk" in ann.channel.closed[1]
    world.hub.close()
    with pytest.raises(StorageError):
        db.close()


def test_a_call_that_the_database_cannot_take_is_answered(world: World) -> None:
    ann = world.client()
    world.db.close()
    outcome = ann.call("nothing")
    assert outcome == messages.InternalError("the database takes no calls at the moment")
    ann.session.lost()


def test_while_nothing_can_be_written_clients_come_and_go_without_the_game_being_blamed(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module, _ = arena()
    db = Database(module, tmp_path / "arena.db", clock=clock)
    world = World(db)
    ann = world.client()
    db.flush()
    disk = Disk(db, monkeypatch)
    disk.fails = True
    disk.gate.set()
    ann.send(ann.calling("spawn", 1, 1))
    scheduled(world, ann)
    assert ann.session.ended
    bea = world.stranger()
    with pytest.raises(Refused, match="try again later") as refused:
        bea.session.open()
    assert refused.value.code == TRY_AGAIN
    assert "client_disconnected" in caplog.text
    assert "rolled back" not in caplog.text
    with pytest.raises(StorageError):
        db.close()
