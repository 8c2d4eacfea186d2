"""Branches, match and loops around waits."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

import pytest
from compiler_harness import Run, define, drive, same
from compiler_support import Clock, Ping, Quit


def test_if_elif_else_nested() -> None:
    body = """
    if await call(ask, 1) > 5:
        if await call(ask, 2):
            return 1
        else:
            x = await call(ask, 3)
    elif await call(ask, 4):
        x = 4
    else:
        return await call(ask, 5)
    return x * 10
    """
    for events in ([6, 1], [6, 0, 7], [1, 1], [1, 0, 9]):
        same(body, list(events))


def test_match_on_signals_and_timers_with_guards_that_wait() -> None:
    body = """
    total = 0
    for _ in range(4):
        match await select(timer(Clock.RING, after=SECOND), timer(Clock.STOP, after=SECOND), Ping, Quit):
            case Ping(n) if n > await call(ask, n):
                total += n
            case Ping(n) if await call(ask, 50):
                total += 100 * n
            case Ping(n=other):
                total -= other
            case Clock.RING | Quit() as what:
                emit(what)
            case Clock.STOP:
                return await call(ask, total)
    return total
    """
    same(body, [Ping(5), 3, Ping(2), 9, 1, Ping(2), 9, 0, Quit()])
    same(body, [Clock.RING, Clock.STOP, 5])


def test_match_on_plain_values_with_waits_in_bodies() -> None:
    body = """
    match await call(ask, 1), [1, 2, 3], {"k": 5}:
        case 1, [first, *rest], {"k": value, **others}:
            await sleep(SECOND)
            emit(first, rest, value, others)
        case (2 | 3 as x), _, _:
            emit(await call(ask, x))
        case _:
            await sleep(SECOND)
            return 9
    return 0
    """
    for events in ([1], [2, 7], [3, 8], [4]):
        same(body, list(events), before="")


@pytest.mark.parametrize("events", [[1, 2, 3], [1, 9, 3], [9, 0, 0], [7, 1, 1]])
def test_loop_else_runs_without_break_only(events: list[int]) -> None:
    same(
        """
        for i in range(3):
            x = await call(ask, i)
            if x == 9:
                break
            if x == 7:
                continue
            emit(i, x)
        else:
            emit("else", await call(ask, 10))
        while x < 3:
            x += await call(ask, x)
        else:
            emit("while else")
        return x
        """,
        events,
    )


def test_a_list_that_grows_while_its_loop_waits_is_visited_to_its_new_end() -> None:
    run = same(
        """
        xs = [1, 2]
        for x in xs:
            if len(xs) < 5:
                xs.append(x + await call(ask, x))
            emit(x)
        return len(xs)
        """,
        [10, 20, 30],
    )
    assert run.ending == ("returned", "5")


def test_a_list_that_shrinks_while_its_loop_waits() -> None:
    same("xs = [1, 2, 3, 4]\nfor x in xs:\n    emit(x)\n    xs.pop(0)\n    await sleep(SECOND)\nreturn 0")


def test_a_loop_over_an_attribute_path() -> None:
    same(
        "bag = Bag([1, 2])\nfor x in bag.items:\n    if x < 3:\n        bag.items.append(x + await call(ask, x))\n    emit(x)\nreturn 0",
        [1, 1, 1],
    )


def test_a_loop_whose_list_is_rebound_goes_on_over_the_old_one() -> None:
    same("xs = [1, 2, 3]\nfor x in xs:\n    xs = [9]\n    emit(x, await call(ask, x))\nreturn 0")


@pytest.mark.parametrize(
    "head",
    [
        "for i, x in enumerate(xs):",
        "for i, x in enumerate(xs, 5):",
        "for i, x in enumerate(xs, start=len(xs)):",
        "for i, x in zip(xs, t):",
        "for i, x in zip(range(10), xs):",
        "for i, (x, y) in enumerate(zip(xs, reversed(xs))):",
        "for i, x in d.items():",
        "for i, x in enumerate(d):",
        "for i, x in enumerate(d.values()):",
        "for i, x in enumerate(reversed(xs)):",
        "for i, x in enumerate(sorted(xs)):",
        "for i, x in enumerate('abc'):",
        "for i, x in enumerate(b'abc'):",
        "for i, x in enumerate(t):",
        "for i, x in enumerate(range(6, 0, -2)):",
        "for i, x in enumerate({3}):",
        "for i, x in enumerate([q * q for q in xs]):",
        "for i, x in enumerate(map_list(xs)):",
    ],
)
def test_every_kind_of_loop(head: str) -> None:
    run = same(
        f"""
        xs, t, d = [3, 1, 2], (7, 8), {{"a": 1, "b": 2}}
        {head}
            emit(i, x)
            await sleep(SECOND)
            if len(xs) < 5:
                xs.append(9)
            emit(i, x)
        return len(xs)
        """,
        before="def map_list(xs: list[int]) -> list[int]:\n    return [x + 1 for x in xs]\n",
    )
    assert len(run.trace) > 2


def test_zip_strict_raises_at_the_end() -> None:
    run = same("for x, y in zip([1, 2], [3], strict=True):\n    emit(x, await call(ask, y))\nreturn 0")
    assert run.ending[1] == "ValueError"
    same("for x, y in zip([1, 2], [3, 4], strict=True):\n    emit(x, await call(ask, y))\nreturn 0")


def test_nested_loops_with_waits_at_both_levels() -> None:
    same(
        """
        total = 0
        for x in range(3):
            total += await call(ask, x)
            for y in [x, x + 1]:
                if await call(ask, y) == 5:
                    break
                total += y
            else:
                continue
            emit("broke", x)
        return total
        """,
        [1, 2, 5, 3, 4, 4, 5, 5],
    )


def test_a_loop_target_that_waits() -> None:
    same("xs = [0, 0]\nfor xs[await call(ask, 1)] in (5, 6):\n    emit(xs)\nreturn 0", [1, 0])


def test_a_loop_variable_is_unbound_after_an_empty_loop() -> None:
    run = same("for x in range(0):\n    await sleep(SECOND)\nreturn x")
    assert run.ending[1] == "UnboundLocalError"


def test_a_deleted_variable_is_unbound_after_a_wait() -> None:
    run = same("x = 1\ndel x\nawait sleep(SECOND)\nreturn x")
    assert run.ending[1] == "UnboundLocalError"
    same("x = 1\nif await call(ask, 1):\n    del x\nawait sleep(SECOND)\nreturn x", [0])
    same("x = 1\nif await call(ask, 1):\n    del x\nawait sleep(SECOND)\nreturn x", [1])


def test_eight_levels_deep() -> None:
    lines = []
    for level in range(8):
        head = (
            f"for x{level} in range(2):",
            f"if await call(ask, {level}) > 0:",
            "try:",
            f"while await call(ask, {level}):",
        )[level % 4]
        lines.append("    " * level + head)
    lines.append("    " * 8 + "emit('deep', await call(ask, 99))")
    for level in range(7, -1, -1):
        if level % 4 == 2:
            lines.append("    " * level + "finally:")
            lines.append("    " * level + f"    emit('finally', {level}, await call(ask, {level}))")
    lines.append("return 1")
    same("\n".join(lines), [1, 1, 0, 1, 1, 0, 1, 0, 2, 1, 1, 1, 0, 0, 0], steps_max=200)


def test_jumps_out_of_ordinary_statements_into_compiled_ones() -> None:
    same(
        """
        for x in range(4):
            await sleep(SECOND)
            for y in (1, 2, 3):
                with traced(y):
                    if y == 2 and x == 1:
                        return x * 10 + y
                    if x == 0:
                        break
            else:
                emit("else", x)
                continue
            emit("broke", x)
        return 0
        """
    )


def test_code_after_an_endless_loop() -> None:
    same("n = 0\nwhile True:\n    n += await call(ask, n)\n    if n > 5:\n        break\nreturn n", [2, 3, 4])


def test_ten_thousand_waits() -> None:
    run: Run = same("n = 0\nwhile n < 10_000:\n    n += await call(ask, 0)\nreturn n", [1] * 10_000, steps_max=10_010)
    assert run.ending == ("returned", "10000")


def test_a_context_expression_may_wait() -> None:
    same("with traced(await call(ask, 1)) as v, traced(2):\n    emit(v)\n    return v\nreturn 0", [3])


def test_types_of_the_standard_library_are_known() -> None:
    same(
        """
        a = math.floor(2.5) + await call(ask, 1)
        t = math.sqrt(a)
        u = datetime.fromisoformat("2026-01-02")
        r = random.Random(3).randint(1, 5)
        await sleep(SECOND)
        emit(a, t, u, r)
        return a
        """,
        [4, None],
        before="import math, random",
    )


def test_a_dict_changed_while_its_loop_waits_does_not_raise_the_stated_difference() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            d = {1: 1, 2: 2}
            for k in d:
                await sleep(SECOND)
                d[k + 10] = k
            return len(d)
        """
    )
    assert drive(names["program"], [None, None]).result == 4


def test_closures_see_variables_that_are_reassigned_later() -> None:
    same(
        """
        x = await call(ask, 1)
        f = lambda: x
        x += 1
        emit(f(), [y + x for y in (1, 2)])
        del f
        await sleep(SECOND)
        def g() -> int:
            return x
        x += 1
        emit(g())
        return x
        """,
        [5, None],
    )


def test_a_closure_over_an_unbound_variable_raises_as_in_python() -> None:
    same("await sleep(SECOND)\nf = lambda: x\nif f is None:\n    x = 1\nreturn f()")


def test_breakpoints_and_coverage_see_the_authors_lines() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            total = 0
            for x in range(3):
                if await call(ask, x):
                    total += 1
                try:
                    total += await call(ask, total)
                except ValueError:
                    total = 0
            return total
        """
    )
    program = names["program"]
    code = program.code.run.__code__
    native = program.function.__code__
    assert (code.co_filename, code.co_name) == (native.co_filename, "program")
    lines = {line for _, _, line in code.co_lines() if line is not None}
    theirs = {line for _, _, line in native.co_lines() if line is not None}
    assert theirs - {native.co_firstlineno} <= lines
    assert max(lines) == max(theirs)
