"""A server and its workers, each in a process of its own; one of them is killed while it works."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gamedb.client import Client, connect
from gamedb.errors import CallFailed, QueryError
from tests.gamedb.test_cli_server import Process
from tests.workflow_module.worker_game import Answer, ask, module

GAME = "tests.workflow_module.worker_game:module"
WAIT_SECONDS = 60


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Process]]:
    monkeypatch.setenv("ORACLE_WORLD", str(tmp_path))
    monkeypatch.delenv("GAMEDB_TOKEN", raising=False)
    with contextlib.ExitStack() as running:

        def start(*arguments: str) -> Process:
            process = Process(*arguments, cwd=tmp_path)
            running.callback(process.stop, signal.SIGKILL)  # if it has not ended
            return process

        yield start


class Attempts:
    """What the workers have begun, as they told the world."""

    def __init__(self, world: Path) -> None:
        self.file = world / "attempts"

    def wait_for(self, count: int) -> list[list[str]]:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            lines = self.file.read_text().splitlines() if self.file.exists() else []
            if len(lines) >= count:
                return [line.split() for line in lines]
            time.sleep(0.01)
        raise AssertionError(f"{count} attempts were not begun in {WAIT_SECONDS} s")


def at(server: Process) -> str:
    found = re.search(r"http://[\d.]+:\d+", server.wait_for("/v1/database/oracle"))
    assert found is not None
    server.wait_for("Serving.")
    return found[0]


def test_a_call_lives_over_the_death_of_its_worker_and_keeps_its_step_key(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    uri = at(start("start", GAME, "--listen", "127.0.0.1:0"))
    workers = {}
    for name in ("w1", "w2"):
        worker = start("worker", GAME, "--queue", "llm", "--uri", uri, "--lease", "1", "--name", name)
        worker.wait_for(f"{name}#")
        workers[worker.process.pid] = worker
    stranger = start("worker", GAME, "--queue", "llm", "--uri", uri, "--token", "none")
    world = Attempts(tmp_path)

    async def scenario() -> None:
        async with connect(uri, "oracle", module=module) as player:
            await player.subscribe(Answer)
            await player.call(ask, "why?")
            await has(player, "thinking, attempt 1")
            (pid, step_key, attempt_key, attempt), *_ = await asyncio.to_thread(world.wait_for, 1)
            assert attempt == "1"
            workers[int(pid)].process.send_signal(signal.SIGKILL)
            _, (other, same_key, other_key, second), *_ = await asyncio.to_thread(world.wait_for, 2)
            assert int(other) in workers.keys() - {int(pid)}
            assert (same_key, second) == (step_key, "2")
            assert other_key != attempt_key
            await has(player, "thinking, attempt 2")
            (tmp_path / "answer to why?").touch()
            await has(player, "why?: 42")
            with pytest.raises(QueryError, match="pending_procedure"):
                await player.subscribe("SELECT * FROM pending_procedure")
            assert len(world.wait_for(2)) == 2
            workers.pop(int(pid))

    asyncio.run(scenario())
    (survivor,) = workers.values()
    assert survivor.stop() == 0
    assert stranger.process.wait(WAIT_SECONDS) == 2
    stranger.wait_for("needs the token of an operator")


async def has(player: Client, text: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while [row.text for row in player.table(Answer)] != [text]:
            await asyncio.sleep(0.01)


def test_a_worker_that_is_told_to_stop_gives_back_what_it_has(start: Callable[..., Process], tmp_path: Path) -> None:
    server = start("start", GAME, "--listen", "127.0.0.1:0")
    uri = at(server)
    first = start("worker", GAME, "--queue", "llm", "--uri", uri, "--lease", "3600", "--drain", "0")
    world = Attempts(tmp_path)

    async def asked() -> None:
        async with connect(uri, "oracle", module=module) as player:
            await player.call(ask, "when?")

    asyncio.run(asked())
    world.wait_for(1)
    assert first.stop() == 0  # within its hour
    second = start("worker", GAME, "--queue", "llm", "--uri", uri)
    one, two, *_ = world.wait_for(2)
    assert one[1:] == two[1:]  # the same attempt, by the same keys
    (tmp_path / "answer to when?").touch()

    async def answered() -> None:
        owner = (tmp_path / "data" / "owner.token").read_text().strip()
        async with connect(uri, "oracle", module=module, token=owner) as player:
            await player.subscribe(Answer)
            await has(player, "when?: 42")
            with pytest.raises(CallFailed, match="workers of queue 'llm'"):
                await player.procedure("think", "when?")

    asyncio.run(answered())
    assert second.stop() == 0


def test_a_server_that_dies_finds_its_workers_at_work_when_it_is_back(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    server = start("start", GAME, "--listen", "127.0.0.1:0")
    uri = at(server)
    listen = uri.removeprefix("http://")
    worker = start("worker", GAME, "--queue", "llm", "--uri", uri, "--lease", "1")
    world = Attempts(tmp_path)

    async def scenario() -> None:
        async with connect(uri, "oracle", module=module) as player:
            await player.subscribe(Answer)
            await player.call(ask, "where?")
            await asyncio.to_thread(world.wait_for, 1)
            server.stop(signal.SIGKILL)
            (tmp_path / "answer to where?").touch()
            at(start("start", GAME, "--listen", listen))
            await player.wait_connected()
            await has(player, "where?: 42")

    asyncio.run(scenario())
    assert len(world.wait_for(1)) == 1
    assert worker.stop() == 0


def test_what_a_worker_cannot_do_it_says(start: Callable[..., Process]) -> None:
    nowhere = start("worker", GAME, "--queue", "llm", "--uri", "http://127.0.0.1:1")
    other = start("worker", "tests.gamedb.cli_game:module", "--queue", "llm")
    assert nowhere.process.wait(WAIT_SECONDS) == 2
    nowhere.wait_for("cannot connect to http://127.0.0.1:1")
    assert other.process.wait(WAIT_SECONDS) == 2
    other.wait_for("leaves no work to workers")
