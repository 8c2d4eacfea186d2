"""Resuming what a procedure parked, errors that stay to be read, and libraries whose workflows a game installs."""

from __future__ import annotations

from typing import Any

from engine_support import Faults, Game, GameError, Go, fragile, seconds

from gamedb import Database, ManualClock, Module, ReducerContext, u64
from workflow_module import (
    ProcedureFailed,
    WorkflowContext,
    Workflows,
    call,
    gather,
    install,
    signal,
    sleep,
    spawn,
    workflow,
)


class Bank:
    """Refuses so many charges."""

    refusals = 0
    asked: list[tuple[str, int]] = []
    keys: set[str] = set()


async def charge(ctx: Any, amount: int) -> int:
    Bank.asked.append((ctx.step_key, ctx.attempt))
    Bank.keys.add(ctx.attempt_key)
    if Bank.refusals:
        Bank.refusals -= 1
        raise GameError("closed")
    return amount


@workflow
async def buy(ctx: WorkflowContext) -> int:
    return await call(charge, 5, attempts=2, backoff=seconds(1))


@workflow
async def buy_two(ctx: WorkflowContext) -> int:
    return sum(await gather(call(charge, 1, attempts=1), call(charge, 2, attempts=1)))


@workflow
async def careful(ctx: WorkflowContext) -> int:
    try:
        return await call(charge, 5, attempts=1)
    except ProcedureFailed:
        raise GameError("no way to pay") from None


@workflow
async def household(ctx: WorkflowContext) -> int:
    await gather(spawn(buy, None), signal(Go), return_exceptions=True)
    return 0


def parked(flow: Any, refusals: int) -> tuple[Game, int]:
    Bank.refusals, Bank.asked, Bank.keys = refusals, [], set()
    game = Game([buy, buy_two, careful, household])
    game.quiet()
    workflow_id = game.flows.start(flow, None)
    game.advance(10)
    assert game.status(workflow_id) == "Failed"
    return game, workflow_id


def test_resuming_what_ran_out_of_attempts_calls_again_with_as_many_and_the_same_step_key() -> None:
    game, flow = parked(buy, refusals=3)
    (call_,) = game.calls(flow)
    assert (call_.status.value, call_.last_error) == ("Failed", "GameError: closed")
    game.flows.resume(flow)
    game.advance(10)
    assert game.flows.result(flow) == 5
    assert [attempt for _, attempt in Bank.asked] == [1, 2, 3, 4]
    assert len({step_key for step_key, _ in Bank.asked}) == 1
    assert len(Bank.keys) == 4
    assert game.calls() == []


def test_of_several_calls_only_the_failed_one_is_made_again() -> None:
    game, flow = parked(buy_two, refusals=1)
    game.flows.resume(flow)
    game.advance(1)
    assert game.flows.result(flow) == 3
    assert len(Bank.asked) == 3


def test_an_error_of_the_codes_own_is_tried_again_with_the_same_event() -> None:
    game, flow = parked(careful, refusals=1)
    game.flows.resume(flow)
    game.advance(10)
    assert game.status(flow) == "Failed"
    assert len(Bank.asked) == 1


def test_a_call_that_failed_is_gone_when_its_workflow_went_on() -> None:
    game, flow = parked(buy, refusals=9)
    game.flows.cancel(flow)
    assert game.calls() == []


def test_a_parked_child_that_is_cancelled_keeps_its_error() -> None:
    Bank.refusals, Bank.asked = 9, []
    game = Game([buy, household])
    game.quiet()
    parent = game.flows.start(household, None)
    game.advance(5)
    (child,) = game.children(parent)
    assert child.status.value == "Failed"
    game.flows.signal(parent, Go())
    (child,) = game.children(parent)
    assert child.status.value == "Cancelled"
    assert child.error is not None
    assert "GameError: closed" in child.error


@workflow
async def errand(ctx: WorkflowContext) -> int:
    got = await signal(Go)
    return got.n


@workflow
async def sender(ctx: WorkflowContext) -> int:
    return await spawn(errand, None)


def test_a_librarys_reducers_work_with_the_engine_of_the_game_that_installs_its_workflows() -> None:
    library_engine = install(Module("library"), [errand])
    game = Module("game")

    @game.reducer
    def go(ctx: ReducerContext, workflow_id: u64) -> None:
        library_engine.signal(ctx, workflow_id, Go(n=7))

    install(game, [errand, sender])
    db = Database(game, clock=ManualClock())
    flows = Workflows(db)
    parent = flows.start(sender, None)
    db.call(go, parent + 1)
    assert flows.result(parent) == 7


@workflow
async def sleeper(ctx: WorkflowContext) -> int:
    await sleep(seconds(5))
    fragile()
    return 1


def test_a_clock_that_was_set_back_while_a_workflow_was_parked_lets_it_sleep_again() -> None:
    game = Game([sleeper])
    game.quiet()
    flow = game.flows.start(sleeper, None)
    Faults.on = True
    game.advance(5)
    assert game.status(flow) == "Failed"
    Faults.on = False
    game.clock.set(game.clock.now - seconds(3))
    game.flows.resume(flow)
    assert game.status(flow) == "Suspended"
    game.advance(3)
    assert game.flows.result(flow) == 1
