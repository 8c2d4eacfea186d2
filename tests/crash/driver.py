"""Play, kill, look; again and again, until as many kills or the first fault."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from gamedb import Clock, Database, ManualClock, SystemClock
from gamedb.columns import from_micros, micros_of
from tests.crash.game import Game, HurriedClock, Life, Told

KILLS_A_FILE = 10
LIFE_SECONDS_MAX = 0.15
OPENING_SECONDS_MAX = 0.05
OPENING_KILLED = 0.1
"""How often a process is killed while it opens the file."""
PATIENCE_SECONDS = 60


def kill_often(game: Game, kills: int, seed: int, show: bool = False) -> None:
    """Kill a game as often; raises `AssertionError` with the seed at the first fault."""
    rng = random.Random(seed)
    done = 0
    with tempfile.TemporaryDirectory() as directory:
        try:
            while done < kills:
                for _ in _kill_a_file(game, Path(directory, f"{done}.db"), rng, min(KILLS_A_FILE, kills - done)):
                    done += 1
                    if show:
                        print(f"\r{game.name}: {done} kills", end="", file=sys.stderr, flush=True)
        except Exception as error:
            repeat = f"python -m tests.crash {game.name} --kills {kills} --seed {seed}"
            raise AssertionError(f"{error}\nafter {done} kills and looks: {repeat}") from error
    if show:
        print(f"\nok: {game.name}, {kills} kills, seed {seed}")


def _kill_a_file(game: Game, path: Path, rng: random.Random, kills: int) -> Iterator[None]:
    """Kill those who play on one file; then let the game come to its end."""
    told, now = Told(), SystemClock().micros()
    for _ in range(kills):
        clock = HurriedClock(now, game.speed)
        _play_and_kill(game, path, clock, rng, told)
        now = clock.micros() + rng.randint(0, micros_of(game.pause))
        told.check(game.module, path)
        with opened(game, path, ManualClock(from_micros(now))) as db:
            game.look(db, path, told, rng)
            told.begin(db)
        yield
    game.finish(path, ManualClock(from_micros(now)))


def _play_and_kill(game: Game, path: Path, clock: HurriedClock, rng: random.Random, told: Told) -> None:
    """Start a process that plays, and kill it a random moment after it has opened the file (or before)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.games", "gamedb.storage"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_play, args=(game.name, path, clock, rng.randrange(1 << 30), send))
    process.start()
    send.close()
    kill_at: float | None = None
    deadline = time.monotonic() + PATIENCE_SECONDS
    if rng.random() < OPENING_KILLED:
        kill_at = time.monotonic() + rng.random() * OPENING_SECONDS_MAX
    rest = b""
    while True:
        wait = (kill_at or deadline) - time.monotonic()
        if not select.select([receive.fileno()], [], [], max(0.0, wait))[0]:
            assert kill_at is not None, "the game did not open its file in time"
            os.kill(process.pid or 0, signal.SIGKILL)
            kill_at = deadline = time.monotonic() + PATIENCE_SECONDS
        data = os.read(receive.fileno(), 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            told.hear(line.decode())
        if told.opened and kill_at is None:
            kill_at = time.monotonic() + rng.random() ** 2 * LIFE_SECONDS_MAX
    process.join()
    receive.close()
    assert process.exitcode == -signal.SIGKILL, f"the game ended by itself: exit code {process.exitcode}"


def _play(name: str, path: Path, clock: HurriedClock, seed: int, send: Connection[object, object]) -> None:
    """The process that gets killed."""
    from tests.crash.games import GAMES

    game = GAMES[name]
    db = Database(game.module, path, clock=clock, seed=seed, quiet=True)
    db.log.disabled = True
    game.live(Life(db, path, random.Random(seed), send.fileno()))


@contextmanager
def opened(game: Game, path: Path, clock: Clock) -> Iterator[Database]:
    """The database as it was left, which must have nothing to repair."""
    complaints = _Complaints()
    log = logging.getLogger(f"gamedb.{game.module.name}")
    log.addHandler(complaints)
    try:
        db = Database(game.module, path, clock=clock, quiet=True)
    finally:
        log.removeHandler(complaints)
    with db:
        assert complaints.texts == []
        yield db


class _Complaints(logging.Handler):
    """What a database had to repair."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
