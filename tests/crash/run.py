"""`python -m tests.crash.run --kills 1000`: play, kill, look; until as many kills or the first fault."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from gamedb import Database
from gamedb.columns import micros_of, to_micros
from gamedb.system import ScheduleState
from tests.crash import game
from tests.crash.game import Account, Fired, Tick, Timer, Transfer

KILLS_A_FILE = 25
OPEN_SECONDS_MAX = 60


class Told:
    """What the killed processes had said about one file."""

    def __init__(self) -> None:
        self.flushed = 0
        self.id = 0
        self.phase: int | None = None


Play = Callable[[str, int, Connection], None]


def play_and_kill(path: Path, rng: random.Random, told: Told, play: Play | None = None) -> None:
    """Start the game in a process of its own and kill it a random moment after it has opened the file."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.game", "tests.crash.workflow_game", "gamedb.storage"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=play or _child, args=(str(path), rng.randrange(1 << 30), send))
    process.start()
    send.close()
    descriptor = receive.fileno()
    kill_at: float | None = None
    deadline = time.monotonic() + OPEN_SECONDS_MAX
    rest = b""
    if rng.random() < 0.1:  # also while it opens
        kill_at = time.monotonic() + rng.random() * 0.05
    while True:
        wait = (kill_at or deadline) - time.monotonic()
        ready, _, _ = select.select([descriptor], [], [], max(0.0, wait))
        if not ready:
            assert kill_at is not None, "the game did not open its file in time"
            os.kill(process.pid or 0, signal.SIGKILL)
            kill_at = deadline = time.monotonic() + OPEN_SECONDS_MAX
        data = os.read(descriptor, 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line == b"open" and kill_at is None:
                kill_at = time.monotonic() + rng.random() ** 2 * 0.15
            elif line.startswith(b"id "):
                told.id = max(told.id, int(line[3:]))
            elif line.startswith(b"flushed "):
                told.flushed = max(told.flushed, int(line[8:]))
    process.join()
    receive.close()
    assert process.exitcode == -signal.SIGKILL, f"the game ended by itself: exit code {process.exitcode}"


def _child(path: str, seed: int, send: Connection[object, object]) -> None:
    game.play(path, seed, send.fileno())


def look(path: Path, told: Told) -> int:
    """Open the file and check it against what was told; the number of its last step."""
    with Database(game.module, path, quiet=True) as db:
        transfers = sorted(db.read(Transfer), key=lambda row: row.number)
        steps = len(transfers)
        assert [row.number for row in transfers] == list(range(1, steps + 1)), "a step is missing"
        assert steps >= told.flushed, f"step {told.flushed} was told to be on disk, the file ends at {steps}"

        balances = Counter(dict.fromkeys(range(game.ACCOUNTS), game.START_BALANCE))
        for row in transfers:
            balances[row.source] -= row.amount
            balances[row.target] += row.amount
        assert {row.id: row.balance for row in db.read(Account)} == dict(balances), "half of a transaction"

        due = {row.number for row in transfers if row.number % game.TIMER_EVERY == 0}
        pending = [row.number for row in db.read(Timer)]
        fired = [row.number for row in db.read(Fired)]
        assert sorted(pending + fired) == sorted(due), "a timer was lost or fired twice"

        (state,) = db._system[ScheduleState]
        phase = to_micros(state.next_at) % micros_of(game.TICK)
        assert told.phase in (None, phase), "the ticker lost its phase"
        told.phase = phase
        ticks = sorted(row.at_micros for row in db.read(Tick))
        slots = [(at - phase) // micros_of(game.TICK) for at in ticks]
        assert len(set(slots)) == len(slots), "two ticks in one interval"

        ids = [row.id for row in transfers]
        assert len(set(ids)) == len(ids)
        told.id = max(told.id, *ids, 0)
        new = db.call(game.step, steps + 1)
        assert new > told.id, f"id {new} was handed out again (the highest was {told.id})"
        told.id = new
        db.flush()
        told.flushed = steps + 1
    return steps + 1


def main(kills: int, seed: int, show: bool = False) -> None:
    """Kill as often; raises `AssertionError` with the seed at the first fault."""
    rng = random.Random(seed)
    done = steps = 0
    with tempfile.TemporaryDirectory() as directory:
        while done < kills:
            path, told = Path(directory, f"{done}.db"), Told()
            for _ in range(min(KILLS_A_FILE, kills - done)):
                play_and_kill(path, rng, told)
                done += 1
                try:
                    steps = look(path, told)
                except Exception as error:
                    raise AssertionError(f"after kill {done} with seed {seed}: {error}") from error
                if show:
                    print(f"\r{done} kills, {steps} steps in the file", end="", file=sys.stderr, flush=True)
    if show:
        print(f"\nok: {kills} kills, seed {seed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    main(arguments.kills, arguments.seed, show=True)
