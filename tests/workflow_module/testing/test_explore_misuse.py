"""Scenarios that are written wrong: `explore` says so; and what it tells repeats what it has found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from gamedb import Module, PrimaryKey, ReducerContext, Row, u64
from gamedb.testing import ExplorationFailed, Run, SimulationStuck
from workflow_module import Signal, StepContext, WorkflowContext, call, install, signal, workflow
from workflow_module.testing import WorkflowSimulation
from workflow_module.testing.pytest_plugin import MakesWorkflowSimulations

Runs = Run[WorkflowSimulation]


class Note(Row):
    id: PrimaryKey[u64]


class Never(Signal): ...


async def weigh(ctx: StepContext) -> int:
    raise NotImplementedError


@workflow
async def patient(ctx: WorkflowContext) -> None:
    await signal(Never)


@workflow
async def weighing(ctx: WorkflowContext) -> int:
    return await call(weigh)


module = Module("notes")
module.table(Note)
install(module, [patient, weighing])


@module.reducer
def note(ctx: ReducerContext, id: u64) -> None:
    ctx.db[Note].upsert(Note(id=id))


@pytest.fixture
def sim(workflow_sim: MakesWorkflowSimulations) -> WorkflowSimulation:
    return workflow_sim(module)


def fails(run: Runs) -> None:
    @run.actor
    def writer() -> Iterator[None]:
        run.sim.call(note, 1)
        yield

    @run.at_end
    def nothing_is_noted(sim: WorkflowSimulation) -> bool:
        return not len(sim.read(Note))


def test_an_actor_without_a_yield_is_no_actor(sim: WorkflowSimulation) -> None:
    def scenario(run: Runs) -> None:
        @run.actor  # type: ignore[arg-type]
        def writer() -> None:
            run.sim.call(note, 1)

    with pytest.raises(ExplorationFailed, match="the actor writer must be a generator function"):
        sim.explore(scenario, seeds=1)


@pytest.mark.filterwarnings("error")
def test_nothing_of_it_is_async(sim: WorkflowSimulation) -> None:
    def scenario(run: Runs) -> None:
        @run.actor  # type: ignore[arg-type]
        async def writer() -> None: ...

    async def staged(run: Runs) -> None: ...

    with pytest.raises(ExplorationFailed, match="the actor writer must be a generator function"):
        sim.explore(scenario, seeds=1)
    with pytest.raises(ExplorationFailed, match="the scenario staged must be a def, not an async def"):
        sim.explore(staged, seeds=1)


@pytest.mark.parametrize("seeds", [0, -5, [], "12", 1.5, [1.5]])
def test_no_seed_at_all_is_no_success(sim: WorkflowSimulation, seeds: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seeds="):
        sim.explore(fails, seeds=seeds)


@pytest.mark.parametrize("option", ["crashes", "disk_errors", "linger"])
def test_less_than_nothing_is_refused(sim: WorkflowSimulation, option: str) -> None:
    options: dict[str, Any] = {option: -1}
    with pytest.raises(ValueError, match=rf"explore\({option}=-1\)"):
        sim.explore(fails, seeds=1, **options)


def test_what_pytest_says_is_a_failure_with_a_seed(sim: WorkflowSimulation) -> None:
    def expects(run: Runs) -> None:
        @run.actor
        def writer() -> Iterator[None]:
            yield
            with pytest.raises(ValueError):
                run.sim.call(note, 1)

    def forbids(run: Runs) -> None:
        @run.actor
        def writer() -> Iterator[None]:
            run.sim.call(note, 1)
            yield

        @run.always
        def nothing_is_noted(sim: WorkflowSimulation) -> None:
            if len(sim.read(Note)):
                pytest.fail("noted")

    with pytest.raises(ExplorationFailed, match=r"expects fails with seed \d+: Failed: DID NOT RAISE"):
        sim.explore(expects, seeds=20)
    with pytest.raises(ExplorationFailed, match=r"forbids fails with seed \d+: Failed: noted"):
        sim.explore(forbids, seeds=20)


def test_what_is_skipped_is_no_failure(sim: WorkflowSimulation) -> None:
    with pytest.raises(pytest.skip.Exception):
        sim.explore(lambda run: pytest.skip("not today"), seeds=1)


def test_how_to_repeat_it_has_all_that_it_depends_on(sim: WorkflowSimulation) -> None:
    def no_notes(sim: WorkflowSimulation) -> bool:
        return True

    with pytest.raises(ExplorationFailed) as plain:
        sim.explore(fails)
    assert str(plain.value).endswith("repeat it with explore(fails, seeds=[0])")
    with pytest.raises(ExplorationFailed) as other:
        sim.explore(fails, invariants=[no_notes], crashes=0, disk_errors=0, linger=timedelta(minutes=1))
    assert str(other.value).endswith(
        "repeat it with explore(fails, seeds=[0], invariants=[no_notes], crashes=0, disk_errors=0, linger=60.0)"
    )


def test_an_invariant_that_is_false_has_a_place(sim: WorkflowSimulation) -> None:
    with pytest.raises(ExplorationFailed, match=r"at .*test_explore_misuse.py:\d+"):
        sim.explore(fails, seeds=1)


def test_what_does_not_end_says_where_it_waits(sim: WorkflowSimulation) -> None:
    wf = sim.start(patient, None)
    with pytest.raises(SimulationStuck, match=r"workflow 1 \(patient\) is Suspended at signal\(Never\): has_ended"):
        sim.finish(wf)


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), timedelta(-1), "3"])
def test_a_fake_takes_no_time_that_is_none(sim: WorkflowSimulation, delay: Any) -> None:
    with pytest.raises(ValueError, match="how long an attempt takes"):
        sim.fake(weigh, 1, delay=delay)


@pytest.mark.parametrize("outcome", [KeyboardInterrupt("no"), SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_whatever_a_fake_raises_is_a_failed_attempt(sim: WorkflowSimulation, outcome: BaseException) -> None:
    fake = sim.fake(weigh, outcome, 7)
    assert sim.finish(sim.start(weighing, None)) == 7
    assert len(fake.calls) == 2


def test_an_event_is_named_by_a_number(sim: WorkflowSimulation) -> None:
    wf = sim.start(patient, None)
    for number in ("1", 1.0):
        with pytest.raises(TypeError, match="is named by its number, 1 to 1"):
            sim.at(wf, number)  # type: ignore[arg-type]
