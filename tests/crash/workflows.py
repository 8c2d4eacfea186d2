"""The examples as games that get killed: their workflows, timers and calls really run, on a clock that hurries.

What players may do, and what must hold at any time, is in `tests.examples.games`. Here is what only a process that dies
can show: each call that was made reached the world outside with one step key, and belongs to a workflow that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from examples import sale_settlement
from examples.post import PostOffice
from examples.stage import Stage
from gamedb import Database, ManualClock, ReducerError
from tests.crash.game import Game, Life, Told
from tests.examples.games.base import Choices, Play
from tests.examples.games.base import Game as Example
from workflow_module import Engine, Workflow, WorkflowError, Workflows

FLUSHED = 0.05
PAUSED = 0.3
PAUSE_SECONDS_MAX = 0.001
FAILING = 0.2
"""How often a call fails, before or after it has done its work."""


class Killed(Game):
    """One of the examples."""

    speed = 3_000

    def __init__(self, name: str, example: Example) -> None:
        self.name = name
        self.module = example.module
        self.pause = example.pause
        self._example = example

    def live(self, life: Life) -> None:
        """Do what players do, at random."""
        example, flows = self._example, Workflows(life.db)
        play = Play(_Running(flows), _Chance(life.rng))
        with _outside(flows.engine, life.path, life.rng):
            example.begin(life.db)
            life.db.run()
            life.say("open")
            actions = [*example.actions(play) * 5, play.rarely(play.cancel), play.resume]
            while True:
                with contextlib.suppress(ReducerError, WorkflowError):
                    play.one_of(actions)()
                if life.rng.random() < FLUSHED:
                    life.flush()
                if life.rng.random() < PAUSED:
                    time.sleep(life.rng.random() * PAUSE_SECONDS_MAX)

    def look(self, db: Database, path: Path, told: Told, rng: random.Random) -> None:
        """Check what was found; and, sometimes, what was overdue, before anybody else can do something."""
        running = _Running(Workflows(db))
        self._example.begin(db)
        self._check(running, path)
        if rng.random() < 0.5:
            with _outside(running.flows.engine, path, rng):
                db.run_due()
            self._check(running, path)

    def finish(self, path: Path, clock: ManualClock) -> None:
        """Everything comes to its end, and nothing is missing."""
        stage = Stage(self.module, path, clock=clock)
        rng = random.Random(0)
        play = Play(stage, _Chance(rng))
        with stage.db, _outside(stage.flows.engine, path, rng):
            stage.db.log.disabled = True
            _resume_until_all_goes_on(play, stage)
            stage.wait(days=self._example.days)
            _resume_until_all_goes_on(play, stage)
            self._example.end(play)
            self._check(stage, path)
            self._example.check_end(stage)

    def _check(self, running: Any, path: Path) -> None:
        assert self._example.sums(running.db) == self._sums, "something was made or lost"
        self._example.check(running)
        calls = _calls(running, path)
        missing = self._example.calls(running) - calls
        assert not missing, f"these calls were never made: {missing}"

    @functools.cached_property
    def _sums(self) -> object:
        """The sums of a world that has just begun."""
        with Database(self.module) as db:
            self._example.begin(db)
            return self._example.sums(db)


def _resume_until_all_goes_on(play: Play, stage: Stage) -> None:
    stage.wait(hours=1)
    while play.resume():
        stage.wait(hours=1)


class _Running:
    def __init__(self, flows: Workflows) -> None:
        self.db = flows.db
        self.flows = flows


class _Chance(Choices):
    """Chance from a seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def number(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)


# --- the world outside: it is there when the process is not


@contextlib.contextmanager
def _outside(engine: Engine, path: Path, rng: random.Random) -> Iterator[None]:
    """Every attempt of a call is written to a file beside the game's; some fail."""
    procedures = dict(engine.procedures)
    descriptor = os.open(_record(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for name, procedure in procedures.items():
        engine.procedures[name] = _recorded(name, getattr(procedure, "function", procedure), descriptor, rng)
    post, sale_settlement.post = sale_settlement.post, PostOffice()
    try:
        yield
    finally:
        sale_settlement.post = post
        engine.procedures.update(procedures)
        os.close(descriptor)


def _recorded(name: str, procedure: Callable[..., Any], descriptor: int, rng: random.Random) -> Callable[..., Any]:
    """A procedure that leaves a trace: sync, or async, which the engine runs in other ways."""

    def attempt(ctx: Any, *args: Any) -> Any:
        os.write(descriptor, f"{name} {ctx.workflow_id} {ctx.step_key} {ctx.attempt_key}\n".encode())
        _fail_at_times(rng)
        result = procedure(ctx, *args)
        _fail_at_times(rng)
        return result

    @functools.wraps(procedure)
    async def in_loop(ctx: Any, *args: Any) -> Any:
        return await asyncio.to_thread(attempt, ctx, *args)

    return in_loop if rng.random() < 0.5 else functools.wraps(procedure)(attempt)


def _fail_at_times(rng: random.Random) -> None:
    if rng.random() < FAILING / 2:
        raise ConnectionError("try again")


def _record(path: Path) -> Path:
    return path.with_suffix(".outside")


def _calls(running: Any, path: Path) -> set[tuple[str, int]]:
    """Which procedures were called by which workflows: with one step key each, and their workflows are there."""
    keys: dict[tuple[str, int], str] = {}
    for line in _record(path).read_text().splitlines() if _record(path).exists() else ():
        name, workflow_id, step_key, attempt_key = line.split()
        call = (name, int(workflow_id))
        assert keys.setdefault(call, step_key) == step_key, f"{call} got another step key"
        assert attempt_key.startswith(step_key)
    lost = {workflow_id for _, workflow_id in keys} - {row.id for row in running.db.read(Workflow)}
    assert not lost, f"calls were made for workflows that are not there: {lost}"
    return set(keys)
