"""Fakes of procedures that workers elsewhere run: taken under leases, through crashes, and with workers that die."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from gamedb import ConnectionLost, Module, PrimaryKey, ReducerContext, Row, TransactionError, u64
from gamedb.testing import ExplorationFailed, Run
from workflow_module import (
    PendingProcedure,
    ProcedureFailed,
    StepContext,
    Struct,
    Workflow,
    WorkflowContext,
    WorkflowFailed,
    WorkflowStatus,
    call,
    gather,
    install,
    workflow,
)
from workflow_module.testing import WorkerDies, WorkflowSimulation
from workflow_module.testing.pytest_plugin import MakesWorkflowSimulations

module = Module("studio")


class Order(Struct):
    what: str


@module.table
class Wall(Row):
    id: PrimaryKey[u64]
    pictures: u64 = 0


@module.table
class Hung(Row):
    key: PrimaryKey[str]


@module.reducer
def hang(ctx: ReducerContext) -> None:
    wall = ctx.db[Wall].get(1) or ctx.db[Wall].insert(Wall(id=1))
    ctx.db[Wall].update(wall.replace(pictures=wall.pictures + 1))


@module.reducer
def hang_once(ctx: ReducerContext, key: str) -> None:
    if ctx.db[Hung].get(key) is None:
        ctx.db[Hung].insert(Hung(key=key))
        hang(ctx)


@module.procedure(queue="painters")
async def paint(ctx: StepContext, what: str) -> str:
    raise NotImplementedError("painters work elsewhere")


@module.procedure(queue="painters")
async def frame(ctx: StepContext, what: str) -> str:
    raise NotImplementedError("painters work elsewhere")


@workflow
async def portrait(ctx: WorkflowContext, init: Order) -> str:
    return await call(paint, init.what, attempts=5, timeout=timedelta(minutes=10))


@workflow
async def only_once(ctx: WorkflowContext, init: Order) -> str:
    try:
        return await call(paint, init.what, attempts=1)
    except ProcedureFailed as error:
        return error.error_type


@workflow
async def framed(ctx: WorkflowContext, init: Order) -> list[str]:
    painted, wood = await gather(call(paint, init.what), call(frame, init.what))
    return [painted, wood]


install(module, [portrait, only_once, framed])


@pytest.fixture
def sim(workflow_sim: MakesWorkflowSimulations) -> WorkflowSimulation:
    return workflow_sim(module)


def test_a_fake_stands_in_for_a_worker(sim: WorkflowSimulation) -> None:
    fake = sim.fake(paint, "a portrait of ann", delay=90)
    started = sim.now
    wf = sim.start(portrait, Order(what="ann"))
    assert [row.worker for row in sim.pending(wf)] == ["simulated worker"]
    assert sim.finish(wf) == "a portrait of ann"
    assert sim.now - started == timedelta(seconds=90), "its lease of a minute was extended meanwhile"
    assert [(seen.args, seen.attempt) for seen in fake.calls] == [(("ann",), 1)]


def test_a_call_that_waits_already_is_taken(sim: WorkflowSimulation) -> None:
    wf = sim.start(portrait, Order(what="ann"))
    sim.advance(3600)
    sim.fake("paint", "late")
    assert sim.finish(wf) == "late"


def test_failures_are_attempts_like_others(sim: WorkflowSimulation) -> None:
    fake = sim.fake(paint, ValueError("no paint"), lambda ctx, what: f"{what} in oil", delay=1)
    assert sim.finish(sim.start(portrait, Order(what="ann"))) == "ann in oil"
    assert [seen.attempt for seen in fake.calls] == [1, 2]
    assert len({seen.step_key for seen in fake.calls}) == 1


def test_a_result_of_the_wrong_type_is_refused(sim: WorkflowSimulation) -> None:
    sim.fake(paint, 7)
    with pytest.raises(WorkflowFailed):
        sim.finish(sim.start(portrait, Order(what="ann")))


def test_a_lease_runs_out_when_the_worker_dies(sim: WorkflowSimulation) -> None:
    fake = sim.fake(paint, WorkerDies, "at last")
    started = sim.now
    assert sim.finish(sim.start(portrait, Order(what="ann"))) == "at last"
    assert sim.now - started >= timedelta(seconds=60)
    assert [seen.attempt for seen in fake.calls] == [1, 2]
    sim.fake(paint, WorkerDies())
    assert sim.finish(sim.start(only_once, Order(what="ann"))) == "LeaseExpired"


def test_the_worker_goes_on_while_the_game_is_down(sim: WorkflowSimulation) -> None:
    fake = sim.fake(paint, "a portrait", delay=30)
    wf = sim.start(portrait, Order(what="ann"))
    sim.advance(10)
    sim.crash()
    sim.advance(19)
    assert not sim.ended(wf)
    sim.advance(2)
    assert sim.result(wf) == "a portrait"
    assert len(fake.calls) == 1


def test_a_lease_that_was_not_on_disk_is_none(sim: WorkflowSimulation) -> None:
    wf = sim.start(portrait, Order(what="ann"))
    sim.hold_disk()
    fake = sim.fake(paint, "a portrait")
    sim.advance(5)
    assert fake.calls == []
    sim.hold_disk(False)
    assert sim.finish(wf) == "a portrait"


def test_what_came_of_it_is_told_again_after_a_crash(sim: WorkflowSimulation) -> None:
    fake = sim.fake(paint, "a portrait", delay=10)
    wf = sim.start(portrait, Order(what="ann"))
    sim.advance(5)
    sim.hold_disk()
    sim.advance(6)
    assert sim.ended(wf), "but that is not on disk"
    sim.crash()
    assert not sim.ended(wf)
    sim.hold_disk(False)
    assert sim.finish(wf) == "a portrait"
    assert len(fake.calls) == 1


def test_a_call_that_nobody_waits_for_is_dropped(sim: WorkflowSimulation) -> None:
    ended: list[str] = []

    async def slowly(ctx: StepContext, what: str) -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(what)
        return what

    sim.fake(paint, slowly)
    wf = sim.start(portrait, Order(what="ann"))
    sim.advance(5)
    sim.cancel(wf)
    sim.advance(5)
    assert ended == ["ann"]


def test_it_calls_reducers_and_opens_no_transactions(sim: WorkflowSimulation) -> None:
    async def at_work(ctx: StepContext, what: str) -> str:
        await ctx.call(hang)
        with pytest.raises(TransactionError, match="runs in a worker"):
            ctx.transaction()
        return what

    sim.fake(paint, at_work)
    assert sim.finish(sim.start(portrait, Order(what="ann"))) == "ann"
    assert [wall.pictures for wall in sim.read(Wall)] == [1]


def test_what_has_no_fake_is_left_for_others(sim: WorkflowSimulation) -> None:
    sim.fake(paint, "a portrait")
    wf = sim.start(framed, Order(what="ann"))
    sim.advance(5)
    assert [(row.procedure, row.worker) for row in sim.pending(wf)] == [("frame", None)]
    sim.complete(wf, frame, "oak")
    assert sim.finish(wf) == ["a portrait", "oak"]


# --- explore


def three_portraits(run: Run[WorkflowSimulation]) -> None:
    @run.actor
    def patron() -> Iterator[None]:
        for number in range(3):
            run.sim.start(portrait, Order(what=f"picture {number}"))
            yield

    @run.always
    def each_hangs_once(sim: WorkflowSimulation) -> None:
        assert sum(wall.pictures for wall in sim.read(Wall)) <= sim.read(Workflow).count(), "a picture hangs twice"

    @run.at_end
    def all_hang(sim: WorkflowSimulation) -> None:
        """But for those in all of whose attempts a worker died."""
        done = sim.read(Workflow).where(status=WorkflowStatus.Completed)
        failed = sim.read(Workflow).where(status=WorkflowStatus.Failed)
        assert len(done) + len(failed) == sim.read(Workflow).count()
        assert {row.workflow_id for row in sim.read(PendingProcedure)} == {row.id for row in failed}
        assert sum(wall.pictures for wall in sim.read(Wall)) >= len(done)


async def careless(ctx: StepContext, what: str) -> str:
    await ctx.call(hang)
    return what


async def careful(ctx: StepContext, what: str) -> str:
    await ctx.call(hang_once, ctx.step_key)
    return what


def test_explore_finds_what_takes_a_worker_for_exactly_once(sim: WorkflowSimulation) -> None:
    sim.fake(paint, careless)
    with pytest.raises(ExplorationFailed, match="a picture hangs twice"):
        sim.explore(three_portraits, seeds=50, crashes=0, disk_errors=0)


def test_explore_has_nothing_against_one_that_knows_the_step_again(sim: WorkflowSimulation) -> None:
    sim.fake(paint, careful)
    explored = sim.explore(three_portraits, seeds=60)
    assert explored.crashes > 0


def test_a_worker_that_looks_after_the_process_has_died_is_told_so(sim: WorkflowSimulation) -> None:
    sim.fake(paint, careful)
    sim.db.die()  # nobody has noticed yet
    with pytest.raises(ConnectionLost):
        sim._worker._take()
    with pytest.raises(ConnectionLost):
        sim._worker._rows()
