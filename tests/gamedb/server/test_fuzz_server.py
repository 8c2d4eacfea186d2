"""Random and mutated input: whatever a client sends harms nobody but itself."""

from __future__ import annotations

import logging
import os
import random
import tracemalloc

import pytest

from gamedb import Database, ManualClock
from gamedb.wire import messages
from tests.gamedb.server.arena import Player, arena
from tests.gamedb.server.with_sockets import UPGRADE, V3, Connection, raw, served
from tests.gamedb.server.without_sockets import Client, World

STEPS = max(400, int(os.environ.get("GAMEDB_FUZZ_STEPS", "0")))
SEED = int(
    os.environ.get(
        "GAMEDB_FUZZ_SEED", random.SystemRandom().randrange(2**32) if "GAMEDB_FUZZ_STEPS" in os.environ else 1
    )
)

TEXTS = (
    "SELECT * FROM player",
    "SELECT * FROM player WHERE zone = 1",
    "SELECT * FROM *",
    "SELECT player.* FROM level JOIN player ON level.player_id = player.id",
    "SELECT * FROM strong",
    "SELECT * FROM secret",
    "SELECT * FROM player WHERE " + "(" * 500 + "zone = 1" + ")" * 500,
    "SELECT * FROM player WHERE zone = '" + "x" * 5_000,
    "",
    "\x00",
    "SELECT * FROM player WHERE note = 'ü'' OR 1 = 1 --'",
)


def sound(client: Client, chance: random.Random) -> messages.ClientMessage:
    """A message that is well formed."""
    match chance.randrange(7):
        case 0:
            return client.subscribing(chance.randrange(4), *chance.sample(TEXTS, chance.randint(0, 3)))
        case 1:
            return client.unsubscribing(chance.randrange(4), drop=chance.random() < 0.5)
        case 2:
            return messages.OneOffQuery(request_id=chance.randrange(2**32), query=chance.choice(TEXTS))
        case 3:
            name = chance.choice(("add", "decline", "fly", "spawn", ""))
            return messages.CallProcedure(
                request_id=1, procedure=name, arguments=chance.randbytes(chance.randrange(20))
            )
        case 4:
            name = chance.choice(("spawn", "secret", "remind", "came", "mark", "crash", "leave", "é" * 50))
            return messages.CallReducer(request_id=1, reducer=name, arguments=chance.randbytes(chance.randrange(20)))
        case _:
            return client.calling("spawn", chance.randrange(1_000_000), chance.randrange(3))


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Bytes with something wrong with them, perhaps."""
    damaged = bytearray(data)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 8))):
        place = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                damaged[place : place + 1] = chance.randbytes(1)
            case 1:
                del damaged[place : place + chance.randrange(1, 9)]
            case 2:
                damaged[place:place] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                damaged[place : place + 4] = chance.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)))
            case 4:
                damaged += damaged[: chance.randrange(200)]
    return bytes(damaged)


def test_fuzz_sessions(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(SEED)
    module, _ = arena()
    with Database(module, clock=clock) as db:
        world = World(db)
        bystander = world.client()
        bystander.subscribe(1, "SELECT * FROM player WHERE id = 4000000000")
        client = world.client()
        closed = 0
        for number in range(STEPS):
            payload = b"".join(messages.encode_client(sound(client, chance)) for _ in range(chance.randrange(4)))
            client.session.receive(mutated(payload, chance))
            world.turn()
            for task in world.tasks:
                task.work.close()
            world.tasks.clear()
            client.channel.frames.clear()
            if client.channel.closed is not None:
                closed += 1
                client = world.client()
            if number % 20 == 0:
                assert isinstance(bystander.call("spawn", 4_000_000_000, number), messages.ReducerOk), f"seed {SEED}"
                assert bystander.rows("player") == [Player(id=4_000_000_000, zone=number)]
                bystander.call("kill", 4_000_000_000)
        assert closed > STEPS // 20
        client.session.lost()
        bystander.session.lost()
        assert world.hub.live_queries == len(world.hub.matcher) == len(world.hub.sessions) == 0
        world.hub.close()
    bugs = [r.getMessage() for r in caplog.records if r.name == "gamedb.server" and r.levelno >= logging.ERROR]
    assert bugs == [], f"seed {SEED}"


def test_fuzz_memory_stays_bounded(clock: ManualClock) -> None:
    """Lengths that promise gigabytes cost nothing."""
    chance = random.Random(SEED)
    module, _ = arena()
    with Database(module, clock=clock) as db:
        world = World(db)
        client = world.client()
        tracemalloc.start()
        try:
            for _ in range(STEPS // 4):
                data = bytearray(messages.encode_client(sound(client, chance)))
                place = chance.randrange(len(data))
                data[place : place + 4] = b"\xff\xff\xff\x7f"
                client.session.receive(bytes(data))
                world.turn()
                client.channel.frames.clear()
                if client.channel.closed is not None:
                    client = world.client()
                for task in world.tasks:
                    task.work.close()
                world.tasks.clear()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        client.session.lost()
        world.hub.close()
    assert peak < 30 << 20, f"seed {SEED}"


def websocket_frame(payload: bytes, chance: random.Random) -> bytes:
    """A client's frame, with odd headers now and then."""
    first = chance.choice((0x82, 0x82, 0x82, 0x81, 0x02, 0x80, 0x88, 0x89, 0x8A, 0xF2, 0x83, chance.randrange(256)))
    mask = 0x80 if chance.random() < 0.95 else 0
    length = chance.choice((len(payload), len(payload), len(payload), 125, 2**40))
    head = bytes([first, mask | 127]) + length.to_bytes(8, "big") if length > 125 else bytes([first, mask | length])
    return head + (bytes(4) if mask else b"") + payload


def test_fuzz_sockets() -> None:
    chance = random.Random(SEED)
    module, _ = arena()
    with Database(module) as db, served(db) as serving, Connection(serving) as bystander:
        headers = f"Sec-WebSocket-Protocol: {V3}\r\n"
        opening = UPGRADE.format(name="arena", query="", headers=headers).encode()
        sample = messages.encode_client(messages.CallReducer(request_id=1, reducer="nothing", arguments=b""))
        for number in range(STEPS // 8):
            with raw(serving) as connection:
                connection.sendall(opening if chance.random() < 0.8 else mutated(opening, chance))
                try:
                    for _ in range(chance.randrange(6)):
                        connection.sendall(mutated(websocket_frame(mutated(sample, chance), chance), chance))
                    if chance.random() < 0.3:
                        connection.recv(100)
                except OSError:
                    pass  # it was closed already
            if number % 5 == 0:
                assert isinstance(bystander.call("spawn", number, 1), messages.ReducerOk), f"seed {SEED}"
        assert isinstance(bystander.call("spawn", 4_000_000_000, 1), messages.ReducerOk)
