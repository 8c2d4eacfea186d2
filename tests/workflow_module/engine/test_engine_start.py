"""Starting: joins, signals with the start, a first step that raises, refusals."""

from __future__ import annotations

import threading

import pytest
from engine_support import SECOND, Bid, Faults, Game, Go, Number, Stop, Text, fragile, mark

from workflow_module import (
    BadPayload,
    UnknownSignal,
    UnknownWorkflow,
    Workflow,
    WorkflowContext,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowPending,
    select,
    signal,
    sleep,
    start,
    workflow,
)


@workflow
async def collector(ctx: WorkflowContext, init: Number) -> int:
    total = init.n
    while True:
        match await select(Bid, Stop):
            case Bid(amount):
                total += amount
                mark(ctx, f"bid {amount}")
            case Stop():
                return total


@workflow
async def other(ctx: WorkflowContext, init: Number) -> int:
    await signal(Stop)
    return init.n


@workflow
async def brittle(ctx: WorkflowContext) -> str:
    mark(ctx, "began")
    fragile("at the first step")
    await sleep(SECOND)
    return "done"


@workflow
async def instant(ctx: WorkflowContext, init: Number) -> int:
    mark(ctx, f"instant {init.n}")
    return init.n * 2


@workflow
async def namesake(ctx: WorkflowContext) -> int:
    child = start(namesake, None, correlation_id="one")
    await child
    return 1


def test_a_start_with_a_known_correlation_id_joins_that_run() -> None:
    game = Game([collector, other])
    first = game.flows.start(collector, Number(n=1), correlation_id="order-1")
    assert game.flows.start(collector, Number(n=100), correlation_id="order-1") == first
    assert game.flows.view(first).init == Number(n=1)
    assert len(game.db.read(Workflow)) == 1


def test_starts_at_the_same_time_with_one_id_make_one_run() -> None:
    game = Game([collector])
    ids: list[int] = []
    gate = threading.Barrier(8)

    def begin(n: int) -> None:
        gate.wait()
        ids.append(game.flows.start(collector, Number(n=n), correlation_id="x"))

    threads = [threading.Thread(target=begin, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert game.row(ids[0]).steps == 1


def test_a_correlation_id_belongs_to_its_type() -> None:
    game = Game([collector, other])
    first = game.flows.start(collector, Number(n=1), correlation_id="order-1")
    assert game.flows.start(other, Number(n=1), correlation_id="order-1") != first


def test_starts_without_a_correlation_id_are_different_runs() -> None:
    game = Game([other])
    assert game.flows.start(other, Number(n=1)) != game.flows.start(other, Number(n=1))


def test_a_joined_run_gets_the_signals_of_the_start() -> None:
    game = Game([collector])
    first = game.flows.start(collector, Number(n=0), correlation_id="x")
    game.flows.start(collector, Number(n=0), correlation_id="x", signals=[Bid(amount=5), Stop()])
    assert game.flows.result(first) == 5


def test_a_finished_run_is_joined_as_long_as_it_is_kept() -> None:
    game = Game([instant])
    first = game.flows.start(instant, Number(n=4), correlation_id="x")
    assert game.flows.start(instant, Number(n=5), correlation_id="x") == first
    assert game.flows.result(first) == 8
    assert game.marks() == ["instant 4"]


def test_signals_to_a_finished_run_that_was_joined_are_refused_and_nothing_changes() -> None:
    game = Game([collector])
    first = game.flows.start(collector, Number(n=4), correlation_id="x", signals=[Stop()])
    with pytest.raises(WorkflowFinished):
        game.flows.start(collector, Number(n=5), correlation_id="x", signals=[Bid(amount=1)])
    assert game.flows.result(first) == 4


def test_a_parked_run_is_joined() -> None:
    game = Game([brittle])
    game.quiet()
    Faults.on = True
    first = game.flows.start(brittle, None, correlation_id="x")
    assert game.flows.start(brittle, None, correlation_id="x") == first


def test_a_child_may_not_take_the_id_of_its_own_parent() -> None:
    game = Game([namesake])
    game.quiet()
    parent = game.flows.start(namesake, None, correlation_id="one")
    assert game.status(parent) == "Failed"
    assert "correlation_id" in (game.row(parent).error or "")
    assert len(game.db.read(Workflow)) == 1


def test_signals_of_the_start_are_there_for_the_first_statement_in_order() -> None:
    game = Game([collector])
    flow = game.flows.start(collector, Number(n=0), signals=[Bid(amount=1), Bid(amount=2), Stop()])
    assert game.flows.result(flow) == 3
    assert game.marks() == ["bid 1", "bid 2"]


def test_start_and_its_signals_are_one_transaction() -> None:
    game = Game([collector])
    with pytest.raises(BadPayload, match="Text"):
        game.flows.start(collector, Number(n=0), signals=[Bid(amount=1), Text(text="x")])
    assert len(game.db.read(Workflow)) == 0
    assert game.marks() == []


def test_a_workflow_whose_first_step_raises_exists_and_is_parked_and_the_caller_gets_its_id() -> None:
    game = Game([brittle])
    game.quiet()
    Faults.on = True
    flow = game.flows.start(brittle, None)
    assert game.status(flow) == "Failed"
    assert "GameError: at the first step" in (game.row(flow).error or "")
    assert game.marks() == []
    with pytest.raises(WorkflowFailed, match="at the first step"):
        game.flows.result(flow)
    Faults.on = False
    game.flows.resume(flow)
    assert game.marks() == ["began"]
    game.advance(1)
    assert game.flows.result(flow) == "done"


def test_signals_queue_for_a_workflow_that_failed_at_its_start() -> None:
    @workflow
    async def picky(ctx: WorkflowContext) -> int:
        fragile()
        return (await signal(Bid)).amount

    game = Game([picky])
    game.quiet()
    Faults.on = True
    flow = game.flows.start(picky, None, signals=[Bid(amount=1)])
    game.flows.signal(flow, Bid(amount=2))
    assert game.inbox(flow) == ["Bid", "Bid"]
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == 1


def test_a_workflow_that_never_waits_is_finished_when_start_returns() -> None:
    game = Game([instant])
    flow = game.flows.start(instant, Number(n=21))
    assert game.flows.result(flow) == 42
    assert game.rows_of(flow) == {"WorkflowEvent": 1, "WorkflowExpiry": 1}


def test_the_result_of_a_waiting_workflow_is_an_error_of_its_own() -> None:
    game = Game([other])
    flow = game.flows.start(other, Number(n=1))
    with pytest.raises(WorkflowPending):
        game.flows.result(flow)


def test_a_workflow_that_is_not_installed_is_refused() -> None:
    game = Game([other])
    with pytest.raises(UnknownWorkflow, match="collector"):
        game.flows.start(collector, Number(n=1))
    with pytest.raises(UnknownWorkflow, match="collector"):
        game.db.call("workflow_start", "collector", None, None, "{}")


def test_an_init_that_does_not_fit_is_refused_with_its_json_path_and_nothing_changes() -> None:
    game = Game([other])
    with pytest.raises(BadPayload, match=r"\$\.n"):
        game.db.call("workflow_start", "other", None, None, '{"n": "five"}')
    with pytest.raises(BadPayload, match="n"):
        game.db.call("workflow_start", "other", None, None, "{}")
    with pytest.raises(BadPayload):
        game.db.call("workflow_start", "other", None, None, "{not json")
    with pytest.raises(BadPayload):
        game.flows.start(other, Go(n=1))  # type: ignore[arg-type]
    assert len(game.db.read(Workflow)) == 0


def test_a_start_by_name_and_json_is_the_same() -> None:
    game = Game([collector])
    flow = game.db.call("workflow_start", "collector", 7, "x", '{"n": 3}')
    assert game.row(flow).entity_id == 7
    assert game.row(flow).correlation_id == "x"
    game.db.call("workflow_signal", flow, "Bid", '{"amount": 4}')
    game.db.call("workflow_signal", flow, "Stop", "")
    assert game.flows.result(flow) == 7


def test_a_refused_signal_by_json_says_the_path_and_what_is_known() -> None:
    game = Game([collector])
    flow = game.flows.start(collector, Number(n=3))
    with pytest.raises(BadPayload, match=r"\$\.amount"):
        game.db.call("workflow_signal", flow, "Bid", '{"amount": "much"}')
    with pytest.raises(UnknownSignal, match="Bid, Stop"):
        game.db.call("workflow_signal", flow, "Bit", "{}")
    assert game.row(flow).steps == 1
