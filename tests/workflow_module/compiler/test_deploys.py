"""Labels, and states of an older version of the code."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

import textwrap
from typing import Any

import msgspec
import pytest
from compiler_harness import Context, define

from workflow_module import StateMismatch
from workflow_module.outcome import Value


def labels(body: str, before: str = "") -> list[str]:
    text = (
        textwrap.dedent(before)
        + "\n@workflow\nasync def program(ctx: WorkflowContext) -> int:\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
        + "\n    return 0\n"
    )
    return [point.label for point in define(text)["program"].suspension_points]


def test_labels_say_what_is_waited_for() -> None:
    assert labels(
        """
        await timer(Clock.RING, after=SECOND)
        await sleep(SECOND)
        await signal(Ping)
        await select(timer(Clock.RING, after=SECOND), Ping, sleep(SECOND), call(ask, 1))
        await call(ask, 1)
        await gather(call(ask, 1), sleep(SECOND))
        await gather(*[call(ask, i) for i in range(3)])
        await wait_all(Ping, Quit)
        await helper(ctx)
        await spawn(child, None)
        await sleep(SECOND, name="rest")
        """,
        """
        @subroutine
        async def helper(ctx: WorkflowContext) -> int:
            return 1
        @workflow
        async def child(ctx: WorkflowContext) -> int:
            return 1
        """,
    ) == [
        "timer(RING)",
        "sleep",
        "signal(Ping)",
        "select(RING, Ping, sleep, call(ask))",
        "call(ask)",
        "gather(call(ask), sleep)",
        "gather(*)",
        "wait_all(Ping, Quit)",
        "helper",
        "spawn(child)",
        "rest",
    ]


def test_equal_waits_are_told_apart_by_where_they_stand() -> None:
    assert labels(
        """
        await sleep(SECOND)
        for i in range(3):
            await sleep(SECOND)
            if i > 1:
                await sleep(SECOND)
            else:
                await sleep(SECOND)
                await sleep(SECOND)
        """
    ) == [
        "sleep in body",
        "sleep in for i",
        "sleep in for i/if i > 1",
        "sleep in for i/else of i > 1, 1 of 2",
        "sleep in for i/else of i > 1, 2 of 2",
    ]


def test_labels_do_not_depend_on_lines_or_on_other_waits() -> None:
    before = labels("await sleep(SECOND)\nawait call(ask, 1)")
    after = labels(
        "emit(1)\nawait signal(Ping)\n\nawait sleep(SECOND)\nif True:\n    await timer(Clock.RING, after=SECOND)\nawait call(ask, 1)"
    )
    assert set(before) <= set(after)


def test_suspension_points_tell_line_kind_and_variables() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            xs = [1]
            due = ctx.now + SECOND
            for x in xs:
                await timer(Clock.RING, at=due)
            return len(xs)
        """
    )
    (point,) = names["program"].suspension_points
    assert (point.label, point.kind) == ("timer(RING)", "timer")
    assert {name: str(found) for name, found in point.variables.items()} == {
        "xs": "list[int]",
        "due": "<class 'datetime.datetime'>",
        "$for x: index": "<class 'int'>",
    }


OLD = """
@workflow
async def program(ctx: WorkflowContext) -> int:
    count = 2
    await call(ask, 1)
    return count
"""


def waiting(source: str = OLD) -> bytes:
    outcome = define(source)["program"].start(Context(), None)
    return bytes(outcome.state)


def resumed(new: str, state: bytes | None = None, value: Any = 5) -> Any:
    return define(new)["program"].resume(Context(), state or waiting(), Value(value))


def test_unrelated_edits_go_on_in_the_new_code() -> None:
    new = """
@workflow(version=2)
async def program(ctx: WorkflowContext) -> int:
    count = 1
    await sleep(SECOND)
    x = await call(ask, 7)
    if x > 3:
        await signal(Ping)
    return count * 100
"""
    outcome = resumed(new)
    assert outcome.label == "signal(Ping)"
    assert msgspec.json.decode(outcome.state)["$version"] == 2
    assert resumed(new, value=1).result == 200


def test_a_new_variable_that_begins_with_a_constant_has_that() -> None:
    new = """
@workflow
async def program(ctx: WorkflowContext) -> int:
    count = 1
    bonus: int = 30
    await call(ask, 7)
    return count + bonus
"""
    assert resumed(new).result == 32


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (
            "count = 2\n    await signal(Ping)\n    return count",
            "stopped at 'call(ask)', which the code does not have any more; it has 'signal(Ping)'",
        ),
        ("count = 'a'\n    await call(ask, 1)\n    return len(count)", "Expected `str`, got `int` - at `$.count`"),
        (
            "count = 2\n    other = note(3)\n    await call(ask, 1)\n    return count + other",
            "without the variable other",
        ),
    ],
)
def test_a_state_that_does_not_fit_says_what_changed(new: str, said: str) -> None:
    program = define(f"@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    {new}\n")["program"]
    state = waiting()
    message = program.check_state(state)
    assert message is not None
    assert said in message
    with pytest.raises(StateMismatch):
        program.resume(Context(), state, Value(1))


def test_a_third_equal_wait_parks_rather_than_going_on_at_the_wrong_one() -> None:
    two = "@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    await sleep(SECOND)\n    await sleep(SECOND)\n    return 0\n"
    three = two.replace("    return", "    await sleep(SECOND)\n    return")
    state = waiting(two)
    message = define(three)["program"].check_state(state)
    assert message is not None
    assert "'sleep in body, 1 of 2', which the code does not have any more" in message


def test_another_workflows_state_is_refused() -> None:
    program = define(OLD.replace("def program", "def other") + "\nprogram = other")["program"]
    message = program.check_state(waiting())
    assert message is not None
    assert "not a state of other" in message or "do not fit" in message


def test_a_migration_maps_the_old_state() -> None:
    names = define(
        """
        @workflow(version=3)
        async def program(ctx: WorkflowContext) -> int:
            amount = note(2)
            await signal(Ping)
            return amount

        @program.migrate
        def renamed(old: dict[str, Any]) -> dict[str, Any]:
            return {**old, "$at": "signal(Ping)", "amount": old["count"] * 10}
        """
    )
    program = names["program"]
    state = waiting()
    assert program.check_state(state) is None
    assert program.resume(Context(), state, Value(None)).result == 20
    assert program.view(state).amount == 20


def test_a_migration_that_fails_is_told_by_check_state() -> None:
    names = define(
        """
        @workflow(version=3)
        async def program(ctx: WorkflowContext) -> int:
            await signal(Ping)
            return 0

        @program.migrate
        def broken(old: dict[str, Any]) -> dict[str, Any]:
            return {"x": old["nothing"]}
        """
    )
    assert names["program"].check_state(waiting()) == "the migration of program raised KeyError: 'nothing'"


def test_garbage_is_told_by_check_state() -> None:
    program = define(OLD)["program"]
    for state in (b"", b"{", b"[]", b"{}", b'{"$workflow":"program"}'):
        assert program.check_state(state) is not None


def test_a_subroutine_that_is_gone_is_told() -> None:
    with_helper = """
@subroutine
async def helper(ctx: WorkflowContext) -> int:
    return await call(ask, 1)

@workflow
async def program(ctx: WorkflowContext) -> int:
    return await helper(ctx)
"""
    without = with_helper.replace("await helper(ctx)", "await call(ask, 1, name='helper')")
    message = define(without)["program"].check_state(waiting(with_helper))
    assert message == "program stopped inside the subroutine helper, which it does not use any more"


def test_states_do_not_depend_on_where_classes_live() -> None:
    source = """
class Local(Struct):
    n: int

@workflow
async def program(ctx: WorkflowContext) -> int:
    x: Local = Local(4)
    await call(ask, 1)
    return x.n
"""
    state = waiting(source)
    assert b"Local" not in state
    assert resumed(source, state).result == 4


def test_a_handled_exception_whose_class_is_gone_is_told() -> None:
    from workflow_module.outcome import Throw

    source = """
class Odd(Exception):
    pass

@workflow
async def program(ctx: WorkflowContext) -> int:
    try:
        await call(ask, 1)
    except Exception:
        await sleep(SECOND)
    return 1
"""
    names = define(source)
    program = names["program"]
    outcome = program.resume(Context(), program.start(Context(), None).state, Throw(names["Odd"]()))
    state = outcome.state.replace(b"Odd", b"Gone")
    message = program.check_state(state)
    assert message is not None
    assert "Gone cannot be found any more" in message
