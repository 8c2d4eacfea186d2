"""`try`, `except` and `finally` around and inside waits."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

import traceback
from typing import Any

import pytest
from compiler_harness import Context, define, drive, same
from compiler_support import GameError, HardError

from workflow_module import Cancelled
from workflow_module.outcome import Throw, Value


@pytest.mark.parametrize("events", [[1, 2, 3], [ValueError, 2, 3], [HardError, 5], [KeyError, 5], [1, KeyError, 4]])
def test_try_except_else_finally(events: list[Any]) -> None:
    same(
        """
        try:
            x = await call(ask, 1)
        except ValueError as e:
            emit(e.args)
            x = await call(ask, 2)
            emit(e.args)
        except GameError:
            return await call(ask, 3)
        else:
            emit("else", await call(ask, 4))
        finally:
            emit("finally", await call(ask, 5))
        return x
        """,
        events,
    )


@pytest.mark.parametrize("how", ["return 1", "break", "continue", "raise ValueError(3)", "pass"])
@pytest.mark.parametrize("final", ["pass", "return 2", "break", "continue", "raise KeyError(4)"])
def test_leaving_through_a_finally_that_waits(how: str, final: str) -> None:
    same(
        f"""
        for i in range(3):
            try:
                emit(i)
                if i == 1:
                    {how}
            finally:
                emit("finally", await call(ask, i))
                if i > 0:
                    {final}
        else:
            emit("else")
        return 9
        """
    )


def test_nested_finallys_run_from_the_inside_out() -> None:
    same(
        """
        try:
            try:
                try:
                    return await call(ask, 1)
                finally:
                    emit("a", await call(ask, 2))
            finally:
                emit("b", await call(ask, 3))
        finally:
            emit("c")
        """,
        [1, 2, 3],
    )


def test_an_inner_return_that_is_broken_off_does_not_replace_the_outer_one() -> None:
    run = same(
        """
        try:
            return 1
        finally:
            for _ in range(1):
                try:
                    return 2
                finally:
                    await sleep(SECOND)
                    break
        """
    )
    assert run.ending == ("returned", "1")


def test_reraise_after_a_wait_keeps_class_and_args() -> None:
    run = same(
        "try:\n    await call(ask, 1)\nexcept GameError as e:\n    await sleep(SECOND)\n    raise",
        [HardError("x", 1, (2, 3))],
    )
    assert run.ending == ("raised", "HardError", "('x', 1, (2, 3))")


def test_reraise_in_a_nested_handler_raises_the_inner_one() -> None:
    same(
        """
        try:
            await call(ask, 1)
        except ValueError:
            try:
                await call(ask, 2)
            except KeyError:
                await sleep(SECOND)
                raise
        return 0
        """,
        [ValueError(1), KeyError(2)],
    )
    same(
        """
        try:
            await call(ask, 1)
        except ValueError:
            try:
                await call(ask, 2)
            except KeyError:
                await sleep(SECOND)
            await sleep(SECOND)
            raise
        return 0
        """,
        [ValueError(1), KeyError(2)],
    )


def test_the_exception_variable_ends_with_its_handler() -> None:
    run = same(
        "e = 1\ntry:\n    await call(ask, 1)\nexcept ValueError as e:\n    await sleep(SECOND)\nreturn e",
        [ValueError],
    )
    assert run.ending[1] == "UnboundLocalError"
    same(
        "e = 1\ntry:\n    await call(ask, 1)\nexcept ValueError as e:\n    e = 2\n    await sleep(SECOND)\n    emit(e)\nreturn 3",
        [ValueError],
    )


def test_the_exception_variable_is_there_in_a_native_finally_on_the_way_out() -> None:
    same(
        """
        try:
            await call(ask, 1)
        except ValueError as e:
            try:
                return 1
            finally:
                emit(e.args)
        return 0
        """,
        [ValueError(7)],
    )


def test_handlers_are_tried_in_order_and_by_pythons_own_rules() -> None:
    same(
        "try:\n    await call(ask, 1)\nexcept (KeyError, ValueError):\n    emit(1)\nexcept Exception:\n    emit(2)\nreturn 0",
        [ValueError],
    )
    same("try:\n    await call(ask, 1)\nexcept missing_name:\n    emit(1)\nreturn 0", [ValueError])
    same("try:\n    await call(ask, 1)\nexcept 5:\n    emit(1)\nreturn 0", [ValueError])


def test_sys_exc_info_is_right_in_a_handler_also_after_a_wait() -> None:
    same(
        """
        try:
            await call(ask, 1)
        except ValueError:
            emit(sys.exc_info()[1])
            await sleep(SECOND)
            emit(sys.exc_info()[1])
        emit(sys.exc_info()[1])
        return 0
        """,
        [ValueError(3)],
        before="import sys",
    )


def test_raise_from_keeps_cause_and_context_within_a_step() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            try:
                await call(ask, 1)
            except ValueError as e:
                raise GameError("wrapped") from e
            return 0

        @workflow
        async def implicit(ctx: WorkflowContext) -> int:
            try:
                await call(ask, 1)
            except ValueError:
                raise GameError("second")
            finally:
                await sleep(SECOND)
            return 0
        """
    )
    with pytest.raises(GameError) as caught:
        drive(names["program"], [ValueError(1)])
    assert isinstance(caught.value.__cause__, ValueError)
    outcome = drive(names["implicit"], [ValueError(1)])
    with pytest.raises(GameError, match="second"):
        names["implicit"].resume(Context(), outcome.state, Value(None))


def test_cancel_runs_cleanup_that_waits() -> None:
    same(
        """
        try:
            await call(ask, 1)
        except Cancelled:
            emit("cleaning", await call(ask, 2))
            raise
        finally:
            emit("finally", await call(ask, 3))
        return 0
        """,
        [Cancelled, 5, 6],
    )


def test_cancel_while_cleaning_up_is_raised_at_that_wait() -> None:
    same(
        """
        try:
            try:
                await call(ask, 1)
            finally:
                emit("first", await call(ask, 2))
        finally:
            emit("second", await call(ask, 3))
        return 0
        """,
        [Cancelled, Cancelled, 6],
    )


def test_cleanup_runs_only_when_the_logic_reaches_it() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            try:
                await call(ask, 1)
            finally:
                emit("cleanup")
            return 0
        """
    )
    outcome = names["program"].start(Context(), None)
    del outcome
    import gc

    gc.collect()
    assert names["LOG"] == []


def test_a_step_can_be_tried_again_from_the_same_state_and_event() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            x = await call(ask, 1)
            if x > 5:
                raise GameError("too big")
            return x
        """
    )
    program = names["program"]
    outcome = program.start(Context(), None)
    before = bytes(outcome.state)
    for _ in range(2):
        with pytest.raises(GameError):
            program.resume(Context(), outcome.state, Value(6))
    assert outcome.state == before
    assert program.resume(Context(), outcome.state, Value(5)).result == 5


SOURCE = """
@subroutine
async def inner(ctx: WorkflowContext) -> int:
    x = await call(ask, 1)
    return 1 // x

@workflow
async def program(ctx: WorkflowContext) -> int:
    try:
        await sleep(SECOND)
    finally:
        emit("line")
    y = (
        await inner(ctx)
    )
    return y
"""


def test_tracebacks_show_the_authors_lines_through_frames() -> None:
    names = define(SOURCE)
    program = names["program"]
    outcome = program.resume(Context(), program.start(Context(), None).state, Value(None))
    with pytest.raises(ZeroDivisionError) as caught:
        program.resume(Context(), outcome.state, Value(0))
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename.startswith("<program")]
    assert [(frame.name, frame.line) for frame in frames] == [
        ("program", "await inner(ctx)"),
        ("inner", "return 1 // x"),
    ]


def test_a_traceback_has_no_lines_of_the_compiler_in_between() -> None:
    names = define(
        """
        def fail() -> None:
            raise GameError("here")

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            try:
                await sleep(SECOND)
                fail()
            except KeyError:
                await sleep(SECOND)
            except ValueError as e:
                emit(e)
            return 1
        """
    )
    with pytest.raises(GameError) as caught:
        drive(names["program"], [None])
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename.startswith("<program")]
    assert [(frame.name, frame.line) for frame in frames] == [
        ("program", "fail()"),
        ("fail", 'raise GameError("here")'),
    ]


def test_what_cannot_be_stored_of_an_exception_becomes_its_text() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            try:
                await call(ask, 1)
            except GameError as e:
                await sleep(SECOND)
                emit([type(arg).__name__ for arg in e.args])
            return 1
        """
    )
    outcome = drive(names["program"], [GameError(object(), b"x", {1: (2,)}, ValueError("in"))])
    names["program"].resume(Context(), outcome.state, Value(None))
    assert names["LOG"] == ["(['str', 'bytes', 'dict', 'ValueError'],)"]


def test_throw_at_the_first_wait_of_a_loop() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            failures = 0
            while True:
                try:
                    return await call(ask, failures)
                except GameError:
                    failures += 1
                    await sleep(SECOND * failures)
        """
    )
    program = names["program"]
    state = program.start(Context(), None).state
    for _ in range(3):
        state = program.resume(Context(), state, Throw(GameError("again"))).state
        state = program.resume(Context(), state, Value(None)).state
    assert program.resume(Context(), state, Value(8)).result == 8
    assert program.view(state).failures == 3
