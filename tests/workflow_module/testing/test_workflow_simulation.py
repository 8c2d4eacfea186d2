"""Workflows in simulated time: timers, children and retries in due order, procedures real or faked, and crashes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_flows import (
    BuffInit,
    BuffResult,
    BuffTimer,
    Dispel,
    Order,
    Stack,
    both,
    buff,
    charge,
    module,
    paint,
    portrait,
    season,
    shop,
    stamp,
)

from gamedb import Module
from workflow_module import UnknownProcedure, UnknownWorkflow, WorkflowPending, WorkflowStatus, install
from workflow_module.testing import WorkflowSimulation, workflow_events
from workflow_module.testing.pytest_plugin import MakesWorkflowSimulations

MINUTE = BuffInit(duration=timedelta(seconds=60))


@pytest.fixture
def sim(workflow_sim: MakesWorkflowSimulations) -> WorkflowSimulation:
    return workflow_sim(module)


# --- workflows


def test_buff_expires(workflow_sim: MakesWorkflowSimulations) -> None:
    sim = workflow_sim(module)
    wf = sim.start(buff, BuffInit(duration=timedelta(seconds=60)))
    sim.advance(30)
    sim.signal(wf, Stack(n=2))
    sim.crash()
    sim.advance(31)
    assert sim.result(wf) == BuffResult(final_stacks=3)


def test_a_signal_that_was_not_on_disk_is_lost_with_the_process(sim: WorkflowSimulation) -> None:
    wf = sim.start(buff, MINUTE)
    sim.hold_disk()
    sim.signal(wf, Stack(n=2))
    assert sim.view(wf).stacks == 3
    sim.crash()
    assert sim.view(wf).stacks == 1


def test_timers_fire_by_hand(sim: WorkflowSimulation) -> None:
    wf = sim.start(buff, MINUTE, manual=True)
    sim.advance(3600)
    with pytest.raises(WorkflowPending):
        sim.result(wf)
    sim.fire_timer(wf, BuffTimer.EXPIRE)
    assert sim.result(wf) == BuffResult(final_stacks=1)


def test_a_workflow_is_cancelled(sim: WorkflowSimulation) -> None:
    wf = sim.start(buff, MINUTE)
    assert [timer.timer_name for timer in sim.timers(wf)] == ["expire"]
    sim.cancel(wf)
    assert sim.status(wf) is WorkflowStatus.Cancelled


def test_thirty_days_with_children_end_in_due_order(sim: WorkflowSimulation) -> None:
    start = sim.now
    wf = sim.start(season, Order(item="season"))
    assert sim.finish(wf) == sum(range(30))
    assert sim.now == start + timedelta(days=30)


def test_it_takes_any_crash_on_the_way(sim: WorkflowSimulation) -> None:
    wf = sim.start(season, Order(item="season"))
    for _ in range(40):
        sim.advance(timedelta(hours=18))
        sim.crash()
    assert sim.result(wf) == sum(range(30))


# --- procedures


def test_a_real_procedure_takes_simulated_time(sim: WorkflowSimulation) -> None:
    start = sim.now
    wf = sim.start(shop, Order(item="sword", price=5))
    assert [row.procedure for row in sim.pending(wf)] == ["charge"]
    assert sim.finish(wf) == "[paid 5 for sword]"
    assert sim.now == start + timedelta(seconds=30)


def test_a_fake_gives_a_value(sim: WorkflowSimulation) -> None:
    fake = sim.fake(charge, "free")
    wf = sim.start(shop, Order(item="sword", price=5))
    assert sim.result(wf) == "[free]"
    assert [(found.args, found.attempt) for found in fake.calls] == [(("sword", 5), 1)]


def test_a_fake_by_name_takes_its_time(sim: WorkflowSimulation) -> None:
    sim.fake("stamp", "signed", delay=timedelta(hours=2))
    start = sim.now
    wf = sim.start(shop, Order(item="sword"))
    assert sim.finish(wf) == "signed"
    assert sim.now == start + timedelta(hours=2, seconds=30)


def test_a_fake_fails_and_then_does_not(sim: WorkflowSimulation) -> None:
    fake = sim.fake(charge, ConnectionError("no route"), TimeoutError, "third time lucky")
    wf = sim.start(shop, Order(item="sword"))
    assert sim.finish(wf) == "[third time lucky]"
    assert len({found.step_key for found in fake.calls}) == 1


def test_a_fake_that_always_fails_uses_up_the_attempts(sim: WorkflowSimulation) -> None:
    sim.fake(charge, ConnectionError("no route"))
    wf = sim.start(shop, Order(item="sword"))
    assert sim.finish(wf) == "no sale after 3 attempts: no route"


def test_a_fake_may_be_a_function(sim: WorkflowSimulation) -> None:
    async def slowly(ctx: Any, item: str, price: int) -> str:
        await asyncio.sleep(price)
        return f"{item} by attempt {ctx.attempt}"

    sim.fake(charge, slowly)
    wf = sim.start(shop, Order(item="sword", price=20))
    assert sim.finish(wf) == "[sword by attempt 1]"


def test_the_timeout_of_an_attempt_is_in_simulated_time(sim: WorkflowSimulation) -> None:
    fake = sim.fake(charge, "late", delay=61)
    wf = sim.start(shop, Order(item="sword"))
    assert sim.finish(wf).startswith("no sale after 3 attempts: the attempt took longer than 60 s")
    assert len(fake.calls) == 3


def test_an_attempt_that_a_crash_ended_runs_again_with_the_same_keys(sim: WorkflowSimulation) -> None:
    fake = sim.fake(charge, "paid", delay=10)
    wf = sim.start(shop, Order(item="sword"))
    sim.advance(5)
    sim.crash()
    assert sim.finish(wf) == "[paid]"
    assert [found.attempt for found in fake.calls] == [1, 1]
    assert fake.calls[0].step_key == fake.calls[1].step_key


def test_procedures_overtake_each_other(sim: WorkflowSimulation) -> None:
    sim.fake(charge, "slow", delay=5)
    sim.fake(stamp, "fast", delay=1)
    wf = sim.start(both, Order(item=""))
    sim.advance(2)
    assert [row.procedure for row in sim.pending(wf)] == ["charge"]
    assert sim.finish(wf) == ["slow", "fast"]


def test_what_a_worker_elsewhere_would_do_is_answered_by_hand(sim: WorkflowSimulation) -> None:
    wf = sim.start(portrait, Order(item="ann"))
    with pytest.raises(UnknownProcedure, match="it waits for: paint"):
        sim.complete(wf, charge, "x")
    sim.complete(wf, paint, "a picture")
    assert sim.result(wf) == "a picture"


def test_what_no_workflow_calls_cannot_be_faked(sim: WorkflowSimulation) -> None:
    with pytest.raises(UnknownProcedure, match="they call: charge, paint, stamp"):
        sim.fake("chrage", 1)
    with pytest.raises(TypeError, match="needs an outcome"):
        sim.fake(charge)


# --- the past


def test_the_past_of_a_workflow_can_be_looked_at(sim: WorkflowSimulation) -> None:
    start = sim.now
    wf = sim.start(buff, MINUTE)
    for n in (2, 3):
        sim.advance(10)
        sim.signal(wf, Stack(n=n))
    sim.advance(60)
    history = sim.history(wf)
    assert [moment.kind for moment in history] == ["started", "step", "step", "completed"]
    assert [moment.number for moment in history] == [1, 2, 3, 4]
    states = [sim.at(wf, number).state for number in (1, 2, 3)]
    assert [state.stacks for state in states if state is not None] == [1, 3, 6]
    assert sim.at(wf, 2).at == start + timedelta(seconds=10)
    assert "Stack" in sim.at(wf, 2).detail
    assert sim.at(wf, -1).kind == "completed"
    for number in (0, 5, -5):
        with pytest.raises(IndexError, match="has events 1 to 4"):
            sim.at(wf, number)


def test_there_is_no_past_without_a_journal(workflow_sim: MakesWorkflowSimulations) -> None:
    silent = Module("silent")
    install(silent, [buff], journal=False)
    sim = workflow_sim(silent)
    wf = sim.start(buff, MINUTE)
    assert sim.history(wf) == []
    with pytest.raises(UnknownWorkflow, match="keeps none"):
        sim.at(wf, 1)


# --- with Hypothesis


@given(st.data())
def test_stacks_are_what_was_sent(data: st.DataObject) -> None:
    with WorkflowSimulation(module) as sim:
        wf = sim.start(buff, MINUTE)
        expected, ends = 1, False
        for event in data.draw(workflow_events(buff, timers=False)):
            taken = event.apply(sim, wf)
            message = getattr(event, "message", None)
            assert taken or ends or sim.ended(wf)
            if taken and isinstance(message, Stack):
                expected += message.n
            ends = ends or isinstance(message, Dispel)
        sim.advance(60)
        assert sim.result(wf) == BuffResult(final_stacks=expected)


@given(workflow_events(buff))
def test_all_kinds_of_events_can_happen(events: list[Any]) -> None:
    with WorkflowSimulation(module) as sim:
        wf = sim.start(buff, MINUTE)
        for event in events:
            event.apply(sim, wf)
        sim.advance(60)
        assert sim.ended(wf)


def test_an_attempt_that_is_dropped_while_nothing_can_be_written_ends_quietly(sim: WorkflowSimulation) -> None:
    wf = sim.start(shop, Order(item="sword"))
    sim.flush()
    sim.fail_disk()
    sim.cancel(wf)  # whoever runs the attempt looks whether it is still wanted
    sim.advance(60)
    sim.crash()
    assert sim.finish(wf) == "[paid 0 for sword]"
