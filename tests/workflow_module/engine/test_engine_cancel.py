"""Cancelling, terminating and deleting, in any state."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from engine_support import Bid, Clock, Faults, Game, Go, Number, Stop, fragile, mark, seconds

from gamedb import ReducerContext
from workflow_module import (
    Cancelled,
    ChildCancelled,
    UnknownWorkflow,
    Workflow,
    WorkflowCancelled,
    WorkflowContext,
    WorkflowFinished,
    call,
    continue_as_new,
    select,
    signal,
    sleep,
    spawn,
    start,
    subscribe,
    timer,
    workflow,
)


@workflow
async def tidy(ctx: WorkflowContext) -> str:
    subscribe(Bid, "x")
    try:
        await select(timer(Clock.END, after=seconds(60)), Stop)
    finally:
        mark(ctx, "cleanup 1")
        await sleep(seconds(5))
        mark(ctx, "cleanup 2")
    return "done"


def test_cancel_runs_finally_blocks_which_may_wait() -> None:
    game = Game([tidy])
    flow = game.flows.start(tidy, None)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelling"
    assert game.marks() == ["cleanup 1"]
    assert game.timers(flow) == ["sleep"]
    game.advance(5)
    assert game.marks() == ["cleanup 1", "cleanup 2"]
    assert game.status(flow) == "Cancelled"
    with pytest.raises(WorkflowCancelled):
        game.flows.result(flow)


def test_cancelling_twice_is_cancelling_once() -> None:
    game = Game([tidy])
    flow = game.flows.start(tidy, None)
    game.flows.cancel(flow)
    before = game.row(flow)
    game.flows.cancel(flow)
    assert game.row(flow) == before
    game.advance(5)
    assert game.marks() == ["cleanup 1", "cleanup 2"]


def test_a_finished_workflow_cannot_be_cancelled() -> None:
    game = Game([tidy])
    flow = game.flows.start(tidy, None)
    game.flows.cancel(flow)
    game.advance(5)
    with pytest.raises(WorkflowFinished):
        game.flows.cancel(flow)
    with pytest.raises(UnknownWorkflow):
        game.flows.cancel(99)


def test_a_cancel_while_cleaning_up_goes_on_after_a_crash(tmp_path: Path) -> None:
    game = Game([tidy], tmp_path / "game.db")
    flow = game.flows.start(tidy, None)
    game.flows.cancel(flow)
    game.crash()
    assert game.status(flow) == "Cancelling"
    game.advance(5)
    assert game.status(flow) == "Cancelled"
    assert game.marks() == ["cleanup 1", "cleanup 2"]


@workflow
async def stubborn(ctx: WorkflowContext) -> str:
    try:
        await sleep(seconds(60))
    except Cancelled:
        mark(ctx, "swallowed")
    bid = await signal(Bid)
    mark(ctx, f"bid {bid.amount}")
    return "ended by itself"


def test_swallowing_cancelled_goes_on_but_ends_as_cancelled() -> None:
    game = Game([stubborn])
    flow = game.flows.start(stubborn, None)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelling"
    game.flows.cancel(flow)
    game.flows.signal(flow, Bid(amount=1))
    assert game.marks() == ["swallowed", "bid 1"]
    assert game.status(flow) == "Cancelled"
    assert game.row(flow).result is None


@workflow
async def returns_anyway(ctx: WorkflowContext) -> str:
    try:
        await sleep(seconds(60))
    except Cancelled:
        return "anyway"
    return "slept"


def test_a_return_while_cancelled_ends_as_cancelled() -> None:
    game = Game([returns_anyway])
    flow = game.flows.start(returns_anyway, None)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"


@workflow
async def restarts_anyway(ctx: WorkflowContext) -> str:
    try:
        await sleep(seconds(60))
    finally:
        await continue_as_new(None)
    return "slept"


def test_continue_as_new_while_cancelled_ends_as_cancelled() -> None:
    game = Game([restarts_anyway])
    flow = game.flows.start(restarts_anyway, None)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.rows_of(flow).keys() <= {"WorkflowEvent", "WorkflowExpiry"}


@workflow
async def dirty(ctx: WorkflowContext) -> str:
    try:
        await sleep(seconds(60))
    finally:
        mark(ctx, "kept")
        await sleep(seconds(1))
        mark(ctx, "vanishes")
        fragile("while cleaning up")
    return "slept"


def test_an_error_while_cleaning_up_is_kept_and_its_steps_effects_vanish() -> None:
    game = Game([dirty])
    game.quiet()
    Faults.on = True
    flow = game.flows.start(dirty, None)
    game.flows.cancel(flow)
    game.advance(1)
    row = game.row(flow)
    assert row.status.value == "Cancelled"
    assert "while cleaning up" in (row.error or "")
    assert game.marks() == ["kept"]
    assert game.rows_of(flow).keys() == {"WorkflowEvent", "WorkflowExpiry"}


def test_a_parked_workflow_is_cancelled_where_it_was() -> None:
    @workflow
    async def halting(ctx: WorkflowContext) -> str:
        try:
            await signal(Go)
            fragile()
            return "went"
        finally:
            mark(ctx, "cleaned up")

    game = Game([halting])
    game.quiet()
    flow = game.flows.start(halting, None)
    Faults.on = True
    game.flows.signal(flow, Go())
    assert game.status(flow) == "Failed"
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.marks() == ["cleaned up"]
    assert game.row(flow).unread_signals == 1


@workflow
async def first(ctx: WorkflowContext) -> str:
    mark(ctx, "began")
    fragile()
    return "done"


def test_a_workflow_that_failed_at_its_start_is_cancelled_without_running() -> None:
    game = Game([first])
    game.quiet()
    Faults.on = True
    flow = game.flows.start(first, None)
    Faults.on = False
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.marks() == []


@workflow
async def nursery(ctx: WorkflowContext) -> str:
    kid = start(tidy, None)
    cancel_by_reducer(ctx, kid.workflow_id)
    try:
        return await kid
    except ChildCancelled as error:
        return f"cancelled: {error.error}"


ENGINES: dict[str, Any] = {}


def cancel_by_reducer(ctx: ReducerContext, workflow_id: int) -> None:
    ENGINES["game"].cancel(ctx, workflow_id)


def test_cancel_before_the_first_step_ends_it_without_running_it() -> None:
    game = Game([nursery, tidy])
    ENGINES["game"] = game.engine
    flow = game.flows.start(nursery, None)
    (kid,) = game.children(flow)
    assert kid.status.value == "Cancelled"
    assert game.marks() == []
    assert game.flows.result(flow) == "cancelled: cancelled"


@workflow
async def suicidal(ctx: WorkflowContext, init: Number) -> str:
    await signal(Go)
    cancel_by_reducer(ctx, ctx.workflow_id)
    mark(ctx, "still here")
    if init.n == 0:
        return "returned"
    try:
        await sleep(seconds(10))
    except Cancelled:
        mark(ctx, "delivered")
        await sleep(seconds(1))
        mark(ctx, "cleaned up")
        raise
    mark(ctx, "never")
    return "slept"


def test_a_workflow_that_cancels_itself_gets_it_at_the_next_wait() -> None:
    game = Game([suicidal])
    ENGINES["game"] = game.engine
    flow = game.flows.start(suicidal, Number(n=1))
    game.flows.signal(flow, Go())
    assert game.status(flow) == "Cancelling"
    game.advance(1)
    assert game.marks() == ["still here", "delivered", "cleaned up"]
    assert game.status(flow) == "Cancelled"


def test_a_workflow_that_cancels_itself_and_returns_ends_as_cancelled() -> None:
    game = Game([suicidal])
    ENGINES["game"] = game.engine
    flow = game.flows.start(suicidal, Number(n=0))
    game.flows.signal(flow, Go())
    assert game.status(flow) == "Cancelled"
    assert game.marks() == ["still here"]


@workflow
async def self_terminating(ctx: WorkflowContext, init: Number) -> str:
    start(tidy, None)
    await signal(Go)
    if init.n == 0:
        ENGINES["game"].terminate(ctx, ctx.workflow_id)
    else:
        ENGINES["game"].delete(ctx, ctx.workflow_id)
    start(tidy, None)
    mark(ctx, "last words")
    if init.n >= 2:
        return "returned"
    await sleep(seconds(1))
    mark(ctx, "never")
    return "slept"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_workflow_that_terminates_or_deletes_itself_is_gone_and_its_children_are_cancelled(n: int) -> None:
    game = Game([self_terminating, tidy])
    ENGINES["game"] = game.engine
    flow = game.flows.start(self_terminating, Number(n=n))
    game.flows.signal(flow, Go())
    game.advance(100)
    assert "last words" in game.marks()
    assert "never" not in game.marks()
    found = game.flows.find(flow)
    assert (found is None) if n else (found is not None and found.status.value == "Cancelled")
    assert {row.status.value for row in game.db.read(Workflow)} <= {"Cancelled"}
    assert game.rows_of(flow).keys() <= ({"WorkflowEvent", "WorkflowExpiry"} if n == 0 else set())


async def slow(ctx: Any) -> int:
    return 1


@workflow
async def busy(ctx: WorkflowContext) -> str:
    subscribe(Bid, "x")
    ctx.set_attribute("phase", 1)
    try:
        await select(call(slow), spawn(tidy, None), timer(Clock.END, after=seconds(60)), Stop)
    finally:
        mark(ctx, "busy cleans up")
    return "over"


def states(game: Game) -> list[tuple[str, int]]:
    """One workflow in each state that is not finished."""
    suspended = game.flows.start(busy, None, signals=[Bid(amount=1)])
    cancelling = game.flows.start(tidy, None)
    game.flows.cancel(cancelling)
    Faults.on = True
    parked_first = game.flows.start(first, None)
    parked_later = game.flows.start(dirty_go, None, signals=[Go()])
    Faults.on = False
    manual = game.flows.start_test(busy, None)
    return [
        ("Suspended", suspended),
        ("Cancelling", cancelling),
        ("Failed", parked_first),
        ("Failed", parked_later),
        ("Suspended", manual),
    ]


@workflow
async def dirty_go(ctx: WorkflowContext) -> str:
    await signal(Go)
    fragile()
    return "went"


def test_terminate_ends_a_workflow_in_any_state_at_once_without_running_its_code() -> None:
    game = Game([busy, tidy, first, dirty_go])
    game.quiet()
    flows = states(game)
    before = game.marks()
    for status, flow in flows:
        assert game.status(flow) == status
        game.flows.terminate(flow)
        assert game.status(flow) == "Cancelled"
        assert "terminated" in (game.row(flow).error or "")
        assert game.rows_of(flow).keys() <= {"WorkflowEvent", "WorkflowAttribute", "WorkflowExpiry"}
        with pytest.raises(WorkflowFinished):
            game.flows.terminate(flow)
    assert [text for text in game.marks() if text not in before] == []
    assert game.calls() == []


def test_delete_forgets_a_workflow_in_any_state_and_all_that_belongs_to_it() -> None:
    game = Game([busy, tidy, first, dirty_go])
    game.quiet()
    flows = states(game)
    done = game.flows.start(busy, None)
    game.flows.signal(done, Stop())
    for _, flow in [*flows, ("Completed", done)]:
        game.flows.delete(flow)
        assert game.flows.find(flow) is None
        assert game.rows_of(flow) == {}
        with pytest.raises(UnknownWorkflow):
            game.flows.delete(flow)
    game.advance(1000)
    left = list(game.db.read(Workflow))  # the children; those of a manual workflow are manual, and clean up by hand
    assert {(row.status.value, row.test_mode) for row in left} == {("Cancelled", False), ("Cancelling", True)}


def test_every_state_lives_over_a_crash_and_can_go_on(tmp_path: Path) -> None:
    game = Game([busy, tidy, first, dirty_go], tmp_path / "game.db")
    game.quiet()
    flows = states(game)
    rows = [game.row(flow) for _, flow in flows]
    game.crash()
    game.quiet()
    assert [game.row(flow) for _, flow in flows] == rows
    suspended, _, parked_first, parked_later, manual = (flow for _, flow in flows)
    game.flows.signal(suspended, Stop())
    game.flows.fire_timer(manual, "end")
    game.advance(5)
    game.flows.resume(parked_first)
    game.flows.resume(parked_later)
    assert [game.status(flow) for _, flow in flows] == [
        "Completed",
        "Cancelled",
        "Completed",
        "Completed",
        "Completed",
    ]
    assert game.flows.result(parked_later) == "went"


@workflow
async def agent(ctx: WorkflowContext) -> int:
    return await spawn(agent, None)


def test_a_workflow_that_calls_itself_without_end_can_be_removed() -> None:
    game = Game([agent], resumptions_max=20, journal=False)
    flow = game.flows.start(agent, None)
    for _ in range(5):
        game.db._scheduler.run_due(limit=1)
    assert len(game.db.read(Workflow)) > 50
    game.flows.terminate(flow)
    game.due()
    assert {row.status.value for row in game.db.read(Workflow)} == {"Cancelled"}
    game.flows.delete(flow)


def test_a_workflow_without_code_can_be_terminated_and_deleted(tmp_path: Path) -> None:
    game = Game([busy, tidy], tmp_path / "game.db")
    one, two = game.flows.start(busy, None), game.flows.start(busy, None)
    game.reopen([tidy])
    game.quiet()
    game.flows.terminate(one)
    game.flows.delete(two)
    assert game.status(one) == "Cancelled"
    assert game.flows.find(two) is None


def test_a_workflow_without_code_that_was_cancelled_is_cancelled_when_its_code_is_back(tmp_path: Path) -> None:
    game = Game([busy, tidy], tmp_path / "game.db")
    flow = game.flows.start(busy, None)
    game.reopen([tidy])
    game.quiet()
    game.flows.cancel(flow)
    assert game.status(flow) == "Suspended"
    game.reopen([busy, tidy])
    game.due()
    assert game.status(flow) == "Cancelled"
    assert "busy cleans up" in game.marks()


def test_cancel_removes_timers_calls_and_subscriptions_in_the_same_transaction() -> None:
    game = Game([busy, tidy])
    flow = game.flows.start(busy, None)
    assert len(game.calls()) == 1
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.rows_of(flow).keys() <= {"WorkflowEvent", "WorkflowAttribute", "WorkflowExpiry"}
    assert game.calls() == []


def test_finished_workflows_are_deleted_after_their_retention() -> None:
    @workflow(retention=timedelta(hours=1))
    async def brief(ctx: WorkflowContext) -> int:
        ctx.set_attribute("a", 1)
        return 1

    game = Game([brief, first], retention=timedelta(days=2))
    one, two = game.flows.start(brief, None), game.flows.start(first, None)
    game.advance(3599)
    assert game.flows.result(one) == 1
    game.advance(1)
    with pytest.raises(UnknownWorkflow, match="retention"):
        game.flows.result(one)
    assert game.rows_of(one) == {}
    game.advance(2 * 86_400 - 3601)
    assert game.flows.result(two) == "done"
    game.advance(1)
    assert game.flows.find(two) is None


def test_retention_none_keeps_for_ever_and_the_default_is_seven_days() -> None:
    ever, week = Game([first], retention=None), Game([first])
    one, two = ever.flows.start(first, None), week.flows.start(first, None)
    ever.advance(10_000 * 86_400)
    week.advance(7 * 86_400 - 1)
    assert ever.flows.result(one) == "done"
    assert week.flows.result(two) == "done"
    week.advance(1)
    assert week.flows.find(two) is None


def test_a_workflow_can_be_kept_for_ever_where_others_are_deleted() -> None:
    @workflow(retention=None)
    async def chronicle(ctx: WorkflowContext) -> int:
        return 7

    game = Game([chronicle, first], retention=timedelta(days=1))
    one, two = game.flows.start(chronicle, None), game.flows.start(first, None)
    game.advance(10_000 * 86_400)
    assert game.flows.result(one) == 7
    assert game.flows.find(two) is None


@workflow
async def swallows_exceptions(ctx: WorkflowContext) -> str:
    try:
        await sleep(seconds(60))
    except Exception:
        mark(ctx, "wrong")
    return "done"


def test_except_exception_does_not_swallow_a_cancel() -> None:
    game = Game([swallows_exceptions])
    flow = game.flows.start(swallows_exceptions, None)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.marks() == []


def test_no_code_of_a_waiting_workflow_runs_when_the_process_stops(tmp_path: Path) -> None:
    game = Game([tidy], tmp_path / "game.db")
    flow = game.flows.start(tidy, None)
    game.reopen()
    assert game.marks() == []
    assert game.status(flow) == "Suspended"
