"""Workflows whose code raised: parked where they were, with the event kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from engine_support import Bid, Clock, Faults, Game, GameError, Go, Stop, fragile, mark, seconds

from workflow_module import (
    ChildFailed,
    NotFailed,
    StateError,
    UnknownWorkflow,
    WorkflowContext,
    WorkflowEvent,
    WorkflowFailed,
    WorkflowFinished,
    call,
    select,
    signal,
    sleep,
    spawn,
    start,
    timer,
    workflow,
)


@workflow
async def counter(ctx: WorkflowContext) -> list[int]:
    got: list[int] = []
    ends = ctx.now + seconds(60)
    while True:
        match await select(Bid, timer(Clock.END, at=ends)):
            case Bid(amount):
                mark(ctx, f"before {amount}")
                if amount < 0:
                    fragile(f"negative bid {amount}")
                got.append(amount)
                mark(ctx, f"after {amount}")
            case _:
                return got


def parked() -> tuple[Game, int]:
    game = Game([counter])
    game.quiet()
    flow = game.flows.start(counter, None, signals=[Bid(amount=1)])
    Faults.on = True
    game.flows.signal(flow, Bid(amount=-2))
    return game, flow


def test_the_effects_of_the_failed_step_vanish_and_the_state_is_that_before_it() -> None:
    game, flow = parked()
    row = game.row(flow)
    assert row.status.value == "Failed"
    assert game.marks() == ["before 1", "after 1"]
    assert game.flows.view(flow).got == [1]
    assert row.current_step == "select(Bid, END)"


def test_the_error_has_the_authors_traceback() -> None:
    game, flow = parked()
    error = game.row(flow).error or ""
    assert "GameError: negative bid -2" in error
    assert 'fragile(f"negative bid {amount}")' in error
    assert "test_engine_parked.py" in error
    assert "workflow_module/run.py" not in error


def test_resume_tries_exactly_that_step_again() -> None:
    game, flow = parked()
    game.flows.resume(flow)
    assert game.status(flow) == "Failed"
    Faults.on = False
    game.flows.resume(flow)
    assert game.marks() == ["before 1", "after 1", "before -2", "after -2"]
    assert game.row(flow).error is None


def test_signals_queue_and_due_timers_are_kept_while_parked() -> None:
    game, flow = parked()
    game.flows.signal(flow, Bid(amount=3))
    game.advance(100)
    assert game.timers(flow) == []
    game.flows.signal(flow, Bid(amount=4))
    assert game.inbox(flow) == ["Bid", "Bid", "Bid"]
    assert game.status(flow) == "Failed"
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == [1, -2, 3]
    assert game.row(flow).unread_signals == 1


def test_resume_of_a_workflow_that_has_not_failed_is_refused() -> None:
    game = Game([counter])
    flow = game.flows.start(counter, None)
    with pytest.raises(NotFailed, match="Suspended"):
        game.flows.resume(flow)
    game.flows.terminate(flow)
    with pytest.raises(WorkflowFinished):
        game.flows.resume(flow)
    with pytest.raises(UnknownWorkflow):
        game.flows.resume(99)


def test_a_parked_workflow_is_found_again_after_a_crash(tmp_path: Path) -> None:
    game = Game([counter], tmp_path / "game.db")
    game.quiet()
    flow = game.flows.start(counter, None)
    Faults.on = True
    game.flows.signal(flow, Bid(amount=-1))
    game.crash()
    game.quiet()
    assert game.status(flow) == "Failed"
    game.advance(100)
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == [-1]


def test_retention_does_not_delete_a_parked_workflow() -> None:
    game = Game([counter], retention=timedelta(days=1))
    game.quiet()
    flow = game.flows.start(counter, None)
    Faults.on = True
    game.flows.signal(flow, Bid(amount=-1))
    game.advance(10 * 86_400)
    assert game.status(flow) == "Failed"


@workflow
async def child(ctx: WorkflowContext) -> str:
    await signal(Go)
    mark(ctx, "child went on")
    await signal(Stop)
    fragile("the child")
    return "child"


@workflow
async def parent(ctx: WorkflowContext) -> str:
    try:
        return await spawn(child, None)
    except ChildFailed as error:
        mark(ctx, f"failed: {error.error}")
    await signal(Stop)
    return "parent"


def test_a_parent_is_told_at_once_and_once() -> None:
    game = Game([child, parent])
    game.quiet()
    flow = game.flows.start(parent, None)
    (kid,) = game.children(flow)
    Faults.on = True
    game.flows.signal(kid.id, Go())
    game.flows.signal(kid.id, Stop())
    assert game.marks() == ["child went on", "failed: engine_support.GameError: the child"]
    game.flows.resume(kid.id)
    assert game.status(kid.id) == "Failed"
    assert len(game.marks()) == 2
    Faults.on = False
    game.flows.resume(kid.id)
    assert game.flows.result(kid.id) == "child"
    assert game.status(flow) == "Suspended"
    assert len(game.marks()) == 2


@workflow
async def fragile_parent(ctx: WorkflowContext) -> str:
    handle = start(child, None)
    await signal(Go)
    fragile("the parent")
    return await handle


def test_children_of_a_parked_workflow_go_on_and_their_results_are_kept() -> None:
    game = Game([child, fragile_parent])
    game.quiet()
    flow = game.flows.start(fragile_parent, None)
    (kid,) = game.children(flow)
    Faults.on = True
    game.flows.signal(flow, Go())
    Faults.on = False
    game.flows.signal(kid.id, Go())
    game.flows.signal(kid.id, Stop())
    assert game.flows.result(kid.id) == "child"
    game.flows.resume(flow)
    assert game.flows.result(flow) == "child"


@workflow
async def easy_child(ctx: WorkflowContext) -> str:
    await signal(Stop)
    return "child"


@workflow
async def parked_at_result(ctx: WorkflowContext) -> str:
    got = await spawn(easy_child, None)
    fragile("with the result")
    return got


def test_the_result_of_a_child_is_kept_for_a_parked_step() -> None:
    game = Game([easy_child, parked_at_result])
    game.quiet()
    flow = game.flows.start(parked_at_result, None)
    (kid,) = game.children(flow)
    Faults.on = True
    game.flows.signal(kid.id, Stop())
    assert game.flows.result(kid.id) == "child"
    assert game.status(flow) == "Failed"
    game.flows.delete(kid.id)
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == "child"


async def pay(ctx: Any) -> int:
    return 42


@workflow
async def buyer(ctx: WorkflowContext) -> int:
    price = await call(pay)
    fragile("with the price")
    return price


def test_the_result_of_a_call_is_kept_for_a_parked_step_and_not_called_again() -> None:
    game = Game([buyer])
    game.quiet()
    flow = game.flows.start(buyer, None)
    Faults.on = True
    game.due()
    assert game.status(flow) == "Failed"
    assert game.calls(flow) == []
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == 42


@workflow
async def verbose(ctx: WorkflowContext) -> str:
    raise GameError("first line\nand a second")


@workflow
async def asks_verbose(ctx: WorkflowContext) -> str:
    handle = start(verbose, None)
    got: list[str] = []
    for _ in range(2):
        try:
            await handle
        except ChildFailed as error:
            got.append(error.error)
    return "|".join(got)


def test_a_parent_gets_the_line_that_names_the_error() -> None:
    game = Game([verbose, asks_verbose])
    game.quiet()
    flow = game.flows.start(asks_verbose, None)
    line = "engine_support.GameError: first line"
    assert game.flows.result(flow) == f"{line}|{line}"


@workflow
async def bad_state(ctx: WorkflowContext) -> int:
    await signal(Go)
    number: int = "not a number" if Faults.on else 3  # type: ignore[assignment]
    await sleep(seconds(1))
    return number


def test_a_value_that_cannot_be_stored_parks_with_file_line_and_variable() -> None:
    game = Game([bad_state])
    game.quiet()
    flow = game.flows.start(bad_state, None)
    Faults.on = True
    game.flows.signal(flow, Go())
    error = game.row(flow).error or ""
    assert StateError.__name__ in error
    assert "number" in error
    assert "test_engine_parked.py" in error
    Faults.on = False
    game.flows.resume(flow)
    game.advance(1)
    assert game.flows.result(flow) == 3


@workflow
async def bad_result(ctx: WorkflowContext) -> int:
    await signal(Go)
    return "text" if Faults.on else 1  # type: ignore[return-value]


def test_a_result_that_does_not_fit_parks() -> None:
    game = Game([bad_result])
    game.quiet()
    flow = game.flows.start(bad_result, None)
    Faults.on = True
    game.flows.signal(flow, Go())
    assert game.status(flow) == "Failed"
    assert "the result of bad_result" in (game.row(flow).error or "")


class Ending(BaseException):
    pass


@workflow
async def foreign(ctx: WorkflowContext) -> int:
    await signal(Go)
    if Faults.on:
        raise Ending("not an Exception")
    return 1


def test_a_base_exception_of_the_game_parks_too() -> None:
    game = Game([foreign])
    game.quiet()
    flow = game.flows.start(foreign, None)
    Faults.on = True
    game.flows.signal(flow, Go())
    assert game.status(flow) == "Failed"


def test_wait_tells_of_failure() -> None:
    game, flow = parked()
    with pytest.raises(WorkflowFailed, match="negative bid"):
        game.flows.wait(flow)


def test_the_timeline_tells_the_story() -> None:
    game, flow = parked()
    Faults.on = False
    game.flows.resume(flow)
    game.advance(60)
    rows = sorted(game.db.read(WorkflowEvent).where(workflow_id=flow), key=lambda row: row.id)
    assert [row.kind for row in rows] == ["started", "step", "failed", "resumed", "step", "completed"]
    assert rows[1].detail == "Bid(amount=1)"
    assert "negative bid" in rows[2].detail
    assert b'"got":[1]' in rows[2].state_data
    assert rows[5].detail == "[1,-2]"


def test_without_a_journal_there_is_no_timeline_and_all_else_is_the_same() -> None:
    game = Game([counter], journal=False)
    flow = game.flows.start(counter, None, signals=[Bid(amount=1)])
    game.advance(60)
    assert game.flows.result(flow) == [1]
    assert len(game.db.read(WorkflowEvent)) == 0


def test_a_state_that_is_damaged_parks_its_workflow_alone() -> None:
    game = Game([counter])
    game.quiet()
    one, two = game.flows.start(counter, None), game.flows.start(counter, None)
    with game.db.transaction() as ctx:
        row = game.row_in(ctx, one)
        ctx.db[type(row)].update(row.replace(state_data=b"\xff", wait_data=b"\xff"))
    game.advance(60)
    assert game.status(one) == "Failed"
    assert game.flows.result(two) == []
    game.flows.cancel(one)
    assert game.status(one) == "Cancelled"
