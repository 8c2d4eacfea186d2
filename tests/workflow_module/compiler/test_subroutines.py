"""Helper coroutines with frames of their own in the state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from compiler_harness import Context, assert_same, define, drive
from compiler_support import GameError

from workflow_module import StateError
from workflow_module.outcome import Value

COUNTDOWN = """
@subroutine
async def countdown(ctx: WorkflowContext, n: int, step: int = 1, *, label: str = "x") -> int:
    total = 0
    while n > 0:
        total += await call(ask, n)
        n -= step
        emit(label, n)
    return total
"""


def test_a_subroutine_that_waits_in_a_loop() -> None:
    run = assert_same(
        COUNTDOWN
        + """
@workflow
async def program(ctx: WorkflowContext) -> int:
    total = 0
    for n in range(3):
        total += await countdown(ctx, n + 1, label=f"round {n}") + await countdown(ctx, 2, step=2)
    return total
""",
        list(range(1, 12)),
    )
    assert run.ending[0] == "returned"


def test_recursion() -> None:
    run = assert_same(
        """
@subroutine
async def factorial(ctx: WorkflowContext, n: int) -> int:
    if n == 0:
        return await call(ask, 0)
    return n * await factorial(ctx, n - 1)

@workflow
async def program(ctx: WorkflowContext) -> int:
    return await factorial(ctx, 5)
""",
        [1],
    )
    assert run.ending == ("returned", "120")


def test_mutual_recursion_with_a_definition_further_down() -> None:
    assert_same(
        """
@subroutine
async def even(ctx: WorkflowContext, n: int) -> bool:
    await sleep(SECOND)
    return True if n == 0 else await odd(ctx, n - 1)

@subroutine
async def odd(ctx: WorkflowContext, n: int) -> bool:
    return False if n == 0 else await even(ctx, n - 1)

@workflow
async def program(ctx: WorkflowContext) -> bool:
    return await even(ctx, 5)
"""
    )


def test_exceptions_pass_through_frames() -> None:
    assert_same(
        """
@subroutine
async def risky(ctx: WorkflowContext, n: int) -> int:
    try:
        return await call(ask, n)
    finally:
        emit("inner", await call(ask, 99))

@workflow
async def program(ctx: WorkflowContext) -> int:
    try:
        return await risky(ctx, 1)
    except GameError as e:
        emit(e.args)
        return await risky(ctx, 2)
""",
        [GameError("a", 1), 3, 4, 5],
    )


def test_a_list_given_to_a_subroutine_that_does_not_wait_is_the_same_list() -> None:
    assert_same(
        """
@subroutine
async def fill(ctx: WorkflowContext, xs: list[int], wait: bool) -> None:
    xs.append(1)
    if wait:
        await sleep(SECOND)

@workflow
async def program(ctx: WorkflowContext) -> int:
    xs: list[int] = []
    await fill(ctx, xs, False)
    await sleep(SECOND)
    return len(xs)
"""
    )


def test_a_list_shared_with_a_waiting_subroutine_is_an_error_that_names_both() -> None:
    names = define(
        """
        @subroutine
        async def fill(ctx: WorkflowContext, xs: list[int]) -> None:
            await sleep(SECOND)
            xs.append(1)

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            ys: list[int] = []
            await fill(ctx, ys)
            return len(ys)
        """
    )
    with pytest.raises(StateError, match="ys and xs of fill are the same mutable list"):
        names["program"].start(Context(), None)


def test_the_state_holds_one_frame_for_each_call() -> None:
    names = define(
        COUNTDOWN
        + "\n@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    return 1 + await countdown(ctx, 3)\n"
    )
    outcome = drive(names["program"], [5])
    state: dict[str, Any] = msgspec.json.decode(outcome.state)
    assert state["$frames"] == [
        {"$subroutine": "countdown", "$at": "call(ask)", "label": "x", "n": 2, "step": 1, "total": 5}
    ]
    assert outcome.label == "countdown > call(ask)"


def test_wrong_arguments_are_pythons_own_error() -> None:
    names = define(
        COUNTDOWN + "\n@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    return await countdown(ctx)\n"
    )
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        names["program"].start(Context(), None)


def test_recursion_without_end_raises_recursion_error() -> None:
    names = define(
        """
        @subroutine
        async def forever(ctx: WorkflowContext, n: int) -> int:
            return await forever(ctx, n + 1)

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            return await forever(ctx, 0)
        """
    )
    with pytest.raises(RecursionError):
        names["program"].start(Context(), None)


def test_cost_of_a_resume_does_not_grow_with_steps() -> None:
    names = define(
        COUNTDOWN
        + "\n@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    return await countdown(ctx, 5000)\n"
    )
    program = names["program"]
    state = program.start(Context(), None).state
    sizes = []
    for _ in range(4000):
        state = program.resume(Context(), state, Value(1)).state
        sizes.append(len(state))
    assert max(sizes[10:]) - min(sizes[10:]) < 10


def test_star_parameters() -> None:
    assert_same(
        """
@subroutine
async def total(ctx: WorkflowContext, *numbers: int, **named: int) -> int:
    await sleep(SECOND)
    return sum(numbers) + sum(named.values())

@workflow
async def program(ctx: WorkflowContext) -> int:
    return await total(ctx, 1, 2, a=3)
"""
    )
