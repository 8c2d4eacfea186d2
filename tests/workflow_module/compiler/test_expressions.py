"""Waits in the middle of expressions: Python's evaluation order, each operand once."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

from compiler_harness import same
from compiler_support import Ping


def test_several_waits_in_one_expression_run_from_left_to_right() -> None:
    run = same("return await call(ask, 1) * 100 + await call(ask, 2) * 10 + await call(ask, 3)", [4, 5, 6])
    assert run.ending == ("returned", "456")


def test_a_left_operand_is_evaluated_before_the_wait_and_only_once() -> None:
    run = same("return note(5) + await call(ask, 1) + note(7)", [1])
    assert run.ending == ("returned", "13")


def test_a_local_on_the_left_keeps_its_value_when_the_right_side_rebinds_it() -> None:
    run = same("x = 1\nreturn x + (x := await call(ask, 1)) + x", [10])
    assert run.ending == ("returned", "21")


def test_an_item_is_set_with_value_first_then_key() -> None:
    run = same("d = {1: 0}\nd[await call(ask, 1)] = await call(ask, 2)\nreturn sum(d) * 100 + d[5]", [7, 5])
    assert run.ending == ("returned", "607")


def test_an_augmented_item_reads_before_the_wait() -> None:
    same("d = {1: 10}\nd[await call(ask, 1)] += await call(ask, 2)\nreturn d[1]", [1, 5])


def test_an_augmented_variable_reads_before_the_wait() -> None:
    run = same("x = 3\nx += await call(ask, 1)\nreturn x", [4])
    assert run.ending == ("returned", "7")


def test_an_augmented_attribute() -> None:
    run = same("bag = Bag([1], 2)\nbag.n += await call(ask, 1)\nreturn bag.n", [4])
    assert run.ending == ("returned", "6")


def test_an_augmented_list_is_changed_in_place() -> None:
    run = same(
        "d = {1: [1]}\nd[1] += [await call(ask, 1)]\nd[1].append(await call(ask, 2))\nemit(d)\nreturn len(d[1])",
        [4, 5],
    )
    assert run.ending == ("returned", "3")


def test_an_augmented_variable_that_its_value_rebinds() -> None:
    run = same("x = 3\nx += (x := await call(ask, 1))\nreturn x", [4])
    assert run.ending == ("returned", "7")


def test_and_and_or_stop_early() -> None:
    same(
        "a = await call(ask, 1) and await call(ask, 2)\nb = await call(ask, 3) or await call(ask, 4)\nreturn a * b",
        [0, 5],
    )
    same(
        "a = await call(ask, 1) and await call(ask, 2)\nb = await call(ask, 3) or await call(ask, 4)\nreturn a * b",
        [1, 2, 0, 4],
    )


def test_a_conditional_expression_evaluates_one_side() -> None:
    body = "return await call(ask, 2) if await call(ask, 1) > 3 else await call(ask, 3)"
    same(body, [4, 10])
    same(body, [1, 10])


def test_a_chained_comparison_stops_early_and_evaluates_the_middle_once() -> None:
    body = "emit(note(1) < await call(ask, 1) < await call(ask, 2) < note(9))\nreturn 0"
    same(body, [5, 7])
    same(body, [0, 7])
    same(body, [5, 4])


def test_a_walrus_binds_at_its_place() -> None:
    run = same("y = (x := await call(ask, 1)) + x\nreturn x * 10 + y", [3])
    assert run.ending == ("returned", "36")


def test_an_fstring_formats_each_part_in_turn() -> None:
    body = (
        "x = 3\nemit(f'{x!r:>4}|{await call(ask, 1):{await call(ask, 2)}}|{(x := await call(ask, 3))}|{x}')\nreturn x"
    )
    same(body, [7, 5, 2])


def test_star_arguments_are_taken_before_a_later_wait() -> None:
    run = same("xs = [1, 2]\nemit(add(*xs, await call(ask, 1), *[xs.clear() or 9]))\nreturn len(xs)", [5])
    assert run.ending == ("returned", "0")


def test_keyword_arguments_and_double_star() -> None:
    same("d = {'left': 2}\nreturn add(**d, right=await call(ask, 1))", [5])
    same("return add(await call(ask, 1), **{'right': await call(ask, 2)})", [5, 6])


def test_slices_and_subscripts() -> None:
    same(
        "xs = [1, 2, 3, 4]\nemit(xs[await call(ask, 1):await call(ask, 2)])\nreturn xs[await call(ask, 3)]",
        [1, 3, -1],
    )
    same("xs = [1, 2, 3, 4]\nxs[await call(ask, 1):await call(ask, 2):1] = [9]\nemit(xs)\nreturn 0", [1, 3])
    same("xs = [1, 2, 3]\ndel xs[await call(ask, 1)]\nemit(xs)\nreturn 0", [1])


def test_displays() -> None:
    same("emit([1, await call(ask, 1), *[2, 3], await call(ask, 2)])\nreturn 0", [4, 5])
    same("emit({note(1): await call(ask, 1), await call(ask, 2): note(2), **{9: 9}})\nreturn 0", [4, 5])
    same("emit({1, await call(ask, 1)}, (await call(ask, 2), note(3)))\nreturn 0", [4, 5])


def test_unpacking_into_targets_that_wait() -> None:
    same("xs = [0, 0, 0]\nxs[await call(ask, 1)], *rest, a = 1, 2, 3, 4\nemit(xs, rest, a)\nreturn 0", [2])
    same("xs = [0, 0]\na = xs[await call(ask, 1)] = await call(ask, 2)\nemit(xs, a)\nreturn 0", [7, 1])


def test_a_method_call_keeps_its_object() -> None:
    run = same(
        "xs = [1]\nxs.append(await call(ask, 1))\nemit(xs, ','.join([str(await call(ask, 2))]))\nreturn len(xs)",
        [5, 6],
    )
    assert run.ending == ("returned", "2")


def test_a_missing_method_raises_before_the_wait() -> None:
    run = same("xs = [1]\nxs.nothing(await call(ask, 1))\nreturn 0", [5])
    assert len(run.trace) == 1
    assert run.ending[1] == "AttributeError"


def test_an_unbound_name_on_the_left_raises_before_the_wait() -> None:
    run = same("if len('') > 0:\n    x = 1\nreturn x + await call(ask, 1)", [5])
    assert len(run.trace) == 1
    assert run.ending[1] == "UnboundLocalError"


def test_a_lambda_argument_is_ordinary_python() -> None:
    same("base = 2\nemit(sorted([3, 1, await call(ask, 1)], key=lambda x: -x * base))\nreturn 0", [2])


def test_a_comprehension_over_a_wait() -> None:
    run = same("return sum([x * 2 for x in await gather(call(ask, 1), call(ask, 2))])", [(3, 4)])
    assert run.ending == ("returned", "14")


def test_assert_and_raise_with_waits() -> None:
    same("assert await call(ask, 1), f'no {await call(ask, 2)}'\nreturn 1", [1])
    same("assert await call(ask, 1), f'no {await call(ask, 2)}'\nreturn 1", [0, 5])
    same("raise ValueError(await call(ask, 1)) from KeyError(await call(ask, 2))", [1, 2])


def test_a_signal_is_a_struct_with_its_fields() -> None:
    run = same(
        "ping = await signal(Ping)\nawait sleep(SECOND)\nreturn (await signal(Ping)).n + ping.n",
        [Ping(3), None, Ping(4)],
    )
    assert run.ending == ("returned", "7")


def test_a_modules_own_list_is_used_in_place() -> None:
    body = "LIST.append(await call(ask, 1))\nHOLDER.items[0] = await call(ask, 2)\nemit(LIST, HOLDER.items)\nreturn len(LIST)"
    run = same(body, [5, 6], before="LIST = [1]\nHOLDER = Bag([2])")
    assert run.ending == ("returned", "2")


def test_a_walrus_inside_a_target_that_does_not_run_binds_nothing() -> None:
    run = same(
        "c = await call(ask, 1)\nxs, d = [0, 0], {0: 0}\nxs[1 or (c := 9)], d[await call(ask, 2)] = 5, 6\nemit(xs, d)\nreturn c",
        [7, 3],
    )
    assert run.ending == ("returned", "7")


def test_slices_inside_a_tuple_index() -> None:
    before = (
        "class Grid:\n    def __getitem__(self, key: Any) -> int:\n        emit(key)\n        return 1\nGRID = Grid()"
    )
    same("return GRID[1:await call(ask, 1), await call(ask, 2):note(3)]", [4, 5], before=before)
    same("return GRID[1:note(2), await call(ask, 2)]", [4, 5], before=before)


def test_a_late_global_is_read_when_it_is_used() -> None:
    same(
        "return late(await call(ask, 1)) + LATER",
        [1],
        before="def late(x: int) -> int:\n    return x + 1\nLATER = 7",
    )
