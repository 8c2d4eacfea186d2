"""What opening a database finds and repairs: every unfinished workflow has something that wakes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_support import Bid, Clock, Faults, Game, GameError, Go, Stop, fragile, seconds

from gamedb import Database, ManualClock, Module, ReducerContext
from workflow_module import (
    ChildError,
    PendingProcedure,
    ProcedureFailed,
    Workflow,
    WorkflowContext,
    WorkflowSignal,
    WorkflowTimer,
    call,
    select,
    signal,
    spawn,
    timer,
    workflow,
)
from workflow_module.tables import WorkflowWake


@workflow
async def kid(ctx: WorkflowContext) -> int:
    await signal(Go)
    fragile()
    return 7


@workflow
async def parent(ctx: WorkflowContext) -> str:
    try:
        return f"got {await spawn(kid, None)}"
    except ChildError as error:
        return f"{type(error).__name__}: {error.error}"


async def work(ctx: Any) -> int:
    return 42


@workflow
async def caller(ctx: WorkflowContext) -> str:
    try:
        return f"got {await call(work)}"
    except ProcedureFailed as error:
        return f"failed {error.error_type}"


@workflow
async def sleeper(ctx: WorkflowContext) -> str:
    got = await select(timer(Clock.END, after=seconds(10)), Bid, Stop)
    return str(got)


ALL = [kid, parent, caller, sleeper]


def damaged(path: Path, start: Any, damage: Any) -> tuple[Game, int]:
    """A game whose rows were damaged while it was closed."""
    game = Game(ALL, path / "game.db")
    flow = game.flows.start(start, None)
    with game.db.transaction() as ctx:
        damage(ctx, flow)
    game.reopen()
    return game, flow


def test_nothing_is_changed_when_nothing_is_wrong(tmp_path: Path) -> None:
    game = Game(ALL, tmp_path / "game.db")
    for definition in ALL:
        game.flows.start(definition, None)
        game.flows.start_test(definition, None)
    Faults.on = True
    game.quiet()
    game.flows.signal(1, Go())
    rows = sorted(game.db.read(Workflow), key=lambda row: row.id)
    last = game.db.last_tx_id
    game.reopen()
    assert sorted(game.db.read(Workflow), key=lambda row: row.id) == rows
    assert game.db.last_tx_id == last
    assert game.db.read(WorkflowWake).count() == 0


def test_a_parent_whose_child_vanished_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def lose_child(ctx: ReducerContext, flow: int) -> None:
        for row in ctx.db[Workflow].where(parent_id=flow):
            ctx.db[Workflow].delete(row.id)

    game, flow = damaged(tmp_path, parent, lose_child)
    game.due()
    assert game.flows.result(flow).startswith("ChildFailed: ")
    assert "child 2" in caplog.text


@pytest.mark.parametrize(
    ("status", "expected"),
    [("Completed", "got 7"), ("Cancelled", "ChildCancelled: cancelled"), ("Failed", "ChildFailed: failed")],
)
def test_a_parent_that_was_not_told_of_its_childs_end_is_told(status: str, expected: str, tmp_path: Path) -> None:
    def end_child(ctx: ReducerContext, flow: int) -> None:
        (row,) = ctx.db[Workflow].where(parent_id=flow)
        ctx.db[Workflow].update(row.replace(status=type(row.status)(status), result="7"))

    game, flow = damaged(tmp_path, parent, end_child)
    game.due()
    assert game.flows.result(flow) == expected


def test_a_call_that_vanished_has_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    game, flow = damaged(tmp_path, caller, lambda ctx, flow: ctx.db[PendingProcedure].clear())
    game.due()
    assert game.flows.result(flow) == "failed CallLost"
    assert "work" in caplog.text


def test_a_call_of_nobody_is_dropped_and_not_made(tmp_path: Path) -> None:
    game, _ = damaged(tmp_path, caller, lambda ctx, flow: ctx.db[Workflow].delete(flow))
    assert game.calls() == []


def test_a_lost_timer_comes_back_with_its_deadline(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    game, flow = damaged(tmp_path, sleeper, lambda ctx, flow: ctx.db[WorkflowTimer].clear())
    assert "lost a timer" in caplog.text
    game.advance(9)
    assert game.status(flow) == "Suspended"
    game.advance(1)
    assert game.flows.result(flow) == "Clock.END"


def test_a_lost_timer_that_is_due_already_wakes_its_workflow(tmp_path: Path) -> None:
    game = Game(ALL, tmp_path / "game.db")
    flow = game.flows.start(sleeper, None)
    with game.db.transaction() as ctx:
        ctx.db[WorkflowTimer].clear()
    game.jump(20)
    game.reopen()
    game.due()
    assert game.flows.result(flow) == "Clock.END"


def test_an_unread_signal_that_is_waited_for_wakes_its_workflow(tmp_path: Path) -> None:
    def put(ctx: ReducerContext, flow: int) -> None:
        ctx.db[WorkflowSignal].insert(WorkflowSignal(workflow_id=flow, signal="Stop", payload="{}", arrived_at=ctx.now))

    game, flow = damaged(tmp_path, sleeper, put)
    game.due()
    assert game.flows.result(flow) == "Stop()"


def test_a_cancel_that_was_not_delivered_is_delivered(tmp_path: Path) -> None:
    def ask(ctx: ReducerContext, flow: int) -> None:
        row = ctx.db[Workflow].get(flow)
        assert row is not None
        ctx.db[Workflow].update(row.replace(cancel_requested=True))

    game, flow = damaged(tmp_path, sleeper, ask)
    game.due()
    assert game.status(flow) == "Cancelled"


def test_a_workflow_that_had_not_begun_begins(tmp_path: Path) -> None:
    game = Game(ALL, tmp_path / "game.db", resumptions_max=0)
    flow = game.flows.start(sleeper, None)
    with game.db.transaction() as ctx:
        ctx.db[WorkflowWake].clear()
    assert game.row(flow).current_step == ""
    game.resumptions_max = None
    game.reopen()
    game.due()
    assert game.row(flow).current_step != ""


def test_a_workflow_without_code_is_reported_and_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    game = Game(ALL, tmp_path / "game.db")
    flows = [game.flows.start(definition, None) for definition in (sleeper, caller, parent)]
    game.reopen([kid])
    assert "1 unfinished workflow(s) of type 'sleeper'" in caplog.text
    assert "'caller'" in caplog.text
    game.advance(3600)
    (child,) = game.children(flows[2])
    game.flows.signal(child.id, Go())
    assert [game.status(flow) for flow in flows] == ["Suspended"] * 3
    game.reopen(ALL)
    game.due()
    assert [game.flows.result(flow) for flow in flows] == ["Clock.END", "got 42", "got 7"]


def test_one_that_cannot_be_read_does_not_keep_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    game = Game(ALL, tmp_path / "game.db")
    one, two = game.flows.start(kid, None), game.flows.start(sleeper, None)
    with game.db.transaction() as ctx:
        row = game.row_in(ctx, one)
        ctx.db[Workflow].update(row.replace(wait_data=b"?"))
        ctx.db[WorkflowTimer].clear()
    game.reopen()
    assert f"workflow {one} (kid) cannot be looked after" in caplog.text
    game.advance(10)
    assert game.flows.result(two) == "Clock.END"


async def refuses(ctx: Any) -> int:
    mark_outside.append(ctx.attempt)
    raise GameError("no")


mark_outside: list[int] = []


@workflow
async def trusting(ctx: WorkflowContext) -> int:
    return await call(refuses, attempts=1)


def test_a_call_that_parked_its_workflow_is_not_made_again_by_opening(tmp_path: Path) -> None:
    mark_outside.clear()
    game = Game([trusting], tmp_path / "game.db")
    game.quiet()
    flow = game.flows.start(trusting, None)
    game.due()
    assert game.status(flow) == "Failed"
    game.reopen()
    game.advance(1000)
    assert mark_outside == [1]


# --- the hook itself


def test_on_open_runs_each_time_in_a_transaction_and_what_it_raises_refuses_the_opening(tmp_path: Path) -> None:
    opened: list[int] = []
    module = Module("game")

    def look(ctx: ReducerContext) -> None:
        opened.append(ctx.micros)
        if len(opened) == 3:
            raise GameError("no")

    module.on_open(look)
    including = Module("all")
    including.include(module)
    clock = ManualClock()
    for number in (1, 2):
        Database(including, tmp_path / "game.db", clock=clock).close()
        assert len(opened) == number
    with pytest.raises(GameError):
        Database(including, tmp_path / "game.db", clock=clock)
    Database(including, tmp_path / "game.db", clock=clock).close()
