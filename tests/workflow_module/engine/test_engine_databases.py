"""Several databases of one module in one process: realms of a host, or tests. None knows of the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from engine_support import Bid, Game, GameError, Number, Stop

from gamedb import Database, ManualClock, Module, ProcedureContext
from workflow_module import WorkflowContext, Workflows, call, install, select, signal, workflow
from workflow_module.local import LocalState

SECONDS_MAX = 20.0


class Attempts:
    """What the procedures of a test do, by the number that their workflow was started with."""

    began: dict[int, threading.Event] = {}
    ended: dict[int, threading.Event] = {}
    release = threading.Event()


@pytest.fixture(autouse=True)
def attempts() -> Iterator[None]:
    Attempts.began = {0: threading.Event(), 1: threading.Event()}
    Attempts.ended = {0: threading.Event(), 1: threading.Event()}
    Attempts.release.clear()
    yield
    Attempts.release.set()


def endless(ctx: Any, number: int) -> None:
    Attempts.began[number].set()
    while not ctx.cancelled and not Attempts.release.wait(0.005):
        pass
    if ctx.cancelled:
        Attempts.ended[number].set()


@workflow
async def droppable(ctx: WorkflowContext, init: Number) -> str:
    return str(await select(call(endless, init.n), Stop))


@workflow
async def bids(ctx: WorkflowContext) -> int:
    total = 0
    while True:
        total += (await signal(Bid)).amount


def two_games(*workflows: Any) -> tuple[Game, Game]:
    """Two databases of the very same module."""
    first, second = Game(workflows), Game(workflows)
    second.db.close()
    second.db = Database(first.module, clock=ManualClock(), seed=2)
    second.module, second.engine, second.flows = first.module, first.engine, Workflows(second.db)
    first.quiet()
    return first, second


def test_an_attempt_is_dropped_in_its_own_database_alone() -> None:
    games = two_games(droppable)
    flows = [game.flows.start(droppable, Number(n=n)) for n, game in enumerate(games)]
    assert games[0].calls()[0].id == games[1].calls()[0].id
    for n, game in enumerate(games):
        game.db.run()
        assert Attempts.began[n].wait(SECONDS_MAX)
    games[0].flows.signal(flows[0], Stop())
    assert Attempts.ended[0].wait(SECONDS_MAX)
    games[0].db.close()
    assert not Attempts.ended[1].is_set()
    games[1].flows.signal(flows[1], Stop())
    assert Attempts.ended[1].wait(SECONDS_MAX)
    games[1].db.close()


def test_what_one_database_holds_of_its_waits_is_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two_games(bids)
    flows = [game.flows.start(bids, None) for game in (first, second)]
    assert flows[0] == flows[1]
    for game, flow in zip((first, second), flows, strict=True):
        game.flows.signal(flow, Bid(amount=5))
    for game, flow in zip((first, second), flows, strict=True):
        held = game.db.extensions[LocalState].held
        assert held.take(game.row(flow)) is not None
    first.db.close()
    second.db.close()


def test_the_attempts_of_one_database_leave_the_others_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stuck realm may use up its own threads for procedures, and no more."""
    monkeypatch.setattr("workflow_module.local.SYNC_ATTEMPTS_MAX", 1)
    games = two_games(droppable)
    flows = [game.flows.start(droppable, Number(n=n)) for n, game in enumerate(games)]

    async def both() -> None:
        driven = [asyncio.create_task(game.db.run_async()) for game in games]
        began = [asyncio.to_thread(event.wait, SECONDS_MAX) for event in Attempts.began.values()]
        assert await asyncio.gather(*began) == [True, True]
        for game, flow in zip(games, flows, strict=True):
            game.flows.signal(flow, Stop())
        for task in driven:
            task.cancel()
        await asyncio.gather(*driven, return_exceptions=True)

    asyncio.run(both())
    for game in games:
        game.db.close()


async def priced(ctx: ProcedureContext) -> int:
    raise GameError("nobody runs this here")


@workflow
async def pricing(ctx: WorkflowContext) -> int:
    return await call(priced)


def test_each_game_that_includes_a_library_of_workflows_has_queues_of_its_own() -> None:
    library = Module("library")
    install(library, [pricing])
    here, away = Module("here"), Module("away")
    here.include(library)
    away.include(library)
    here.procedure(priced)
    away.procedure(queue="prices")(priced)
    queues = []
    for module in (here, away):
        with Database(module, clock=ManualClock()) as db:
            Workflows(db).start(pricing, None)
            queues += [queue for (queue,) in db.sql("SELECT queue FROM pending_procedure").rows]
    assert queues == [None, "prices"]
