"""A game that thinks: calls that run until a test lets them, for tests of leases and of workers."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine_support import Game, Number, Stop, seconds
from worker_support import QUEUE, WorkerAtHand, until

from workflow_module import PendingProcedure, StepContext, WorkflowContext, call, select, workflow


class Outside:
    """The world that procedures act on."""

    attempts: list[tuple[str, str, int]] = []
    seen: list[str] = []
    gates: dict[int, asyncio.Event] = {}
    sync_gate = threading.Event()
    running = 0
    running_max = 0
    contexts: list[StepContext] = []


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test runs in an asyncio loop."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


async def think(ctx: StepContext, n: int) -> str:
    """Runs until its gate opens."""
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    Outside.contexts.append(ctx)
    Outside.running += 1
    Outside.running_max = max(Outside.running, Outside.running_max)
    try:
        await Outside.gates.setdefault(n, asyncio.Event()).wait()
    except asyncio.CancelledError:
        Outside.seen.append(f"{n} cancelled {ctx.cancelled}")
        raise
    finally:
        Outside.running -= 1
    return f"thought {n}"


def think_sync(ctx: StepContext, n: int) -> str:
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    Outside.sync_gate.wait(60)
    return f"thought {n}"


@workflow
async def thinker(ctx: WorkflowContext, init: Number) -> str:
    got = await select(call(think, init.n, queue=QUEUE, attempts=3, backoff=seconds(10)), Stop)
    return str(got)


@workflow
async def thinker_sync(ctx: WorkflowContext, init: Number) -> str:
    return await call(think_sync, init.n, queue=QUEUE)


def game_with(path: Path | None = None) -> Game:
    game = Game([thinker, thinker_sync], path)
    game.quiet()
    return game


def open_gate(n: int) -> None:
    Outside.gates.setdefault(n, asyncio.Event()).set()


def attempts(count: int) -> Callable[[], bool]:
    return lambda: len(Outside.attempts) == count


def took(game: Game, worker: str, lease_seconds: float = 30, limit: int = 10) -> list[PendingProcedure]:
    return list(game.db.call("workflow_procedure_take", QUEUE, worker, lease_seconds, limit))


async def at_work() -> tuple[Game, int, WorkerAtHand]:
    """A game, its workflow, and the worker that runs that workflow's call."""
    game = game_with()
    flow = game.flows.start(thinker, Number(n=1))
    worker = WorkerAtHand(game)
    await until(attempts(1))
    return game, flow, worker


async def think_to_the_end(game: Game, flow: int) -> None:
    """The call of `at_work` returns, and what comes of it counts."""
    open_gate(1)
    await until(lambda: not game.calls())
    assert game.flows.result(flow) == "thought 1"
