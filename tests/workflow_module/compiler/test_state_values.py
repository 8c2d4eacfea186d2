"""What a state keeps exactly, and what is an error because it could not."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from compiler_harness import Context, define, drive, same

from gamedb import ConnectionId, Identity
from workflow_module import StateError, codec
from workflow_module.outcome import Value

VALUES = [
    ("int", "2**100"),
    ("int", "-(2**64)"),
    ("float", "float('inf')"),
    ("float", "-float('inf')"),
    ("float", "0.1 + 0.2"),
    ("float", "1"),
    ("float", "2**80"),
    ("int | float", "1.0"),
    ("bool | int", "True"),
    ("str", "'a\\x00\\U0001F600'"),
    ("bytes", "b'\\x00\\xff'"),
    ("None", "None"),
    ("int | None", "None"),
    ("datetime", "datetime(2026, 1, 2, 3, 4, 5, 6)"),
    ("datetime", "ctx.now"),
    ("timedelta", "timedelta(days=-1, microseconds=3)"),
    ("Color", "Color.BLUE"),
    ("Level", "Level.HIGH"),
    ("Point", "Point(1, float('inf'))"),
    ("list[Point]", "[Point(1.5, 2), Point(0, -0.0)]"),
    ("Pair | Point", "Point(1, 2)"),
    ("Pair | Point | None", "Pair(1, 2)"),
    ("list[Pair | Point]", "[Pair(1, 2), Point(1, 2)]"),
    ("Ping | Quit", "Quit()"),
    ("Clock | Ping", "Clock.RING"),
    ("dict[int, str]", "{1: 'a', -2: 'b'}"),
    ("dict[str, list[int]]", "{'a': [1]}"),
    ("dict[Color, int]", "{Color.RED: 1}"),
    ("dict[Level, int]", "{Level.LOW: 1}"),
    ("dict[tuple[int, int], str]", "{(1, 2): 'x'}"),
    ("dict[bool, int]", "{True: 1}"),
    ("dict[float, int]", "{0.5: 1, float('inf'): 2}"),
    ("set[int]", "{3, 1}"),
    ("frozenset[str]", "frozenset({'a'})"),
    ("tuple[int, str]", "(1, 'a')"),
    ("tuple[float, ...]", "(1.0, 2)"),
    ("tuple[()]", "()"),
    ("range", "range(1, 10, 3)"),
    ("str | bytes", "b'a'"),
    ("datetime | str", "'2026-01-01'"),
    ("list[list[int]]", "[[1], [2]]"),
    ("Literal[1, 'a']", "'a'"),
    ("Json", "{'a': [1, None, True, 'x', 2.5]}"),
    ("Bag", "Bag([1, 2], 3)"),
    ("Weird", "Weird.TUPLE"),
    ("Flags", "Flags.A | Flags.B"),
    ("Huge", "Huge.B"),
    ("Literal[Color.RED, True]", "Color.RED"),
    ("Annotated[int, msgspec.Meta(gt=0)]", "5"),
    ("UserId", "UserId(5)"),
    ("Annotated[int, 'u32']", "5"),
    ("Tree", "Tree(1, [Tree(2, [])])"),
    ("ValueError", "ValueError('a', 1)"),
    ("ValueError | KeyError", "UnicodeError('a')"),
    ("FileNotFoundError", "FileNotFoundError(2, 'gone', 'a.txt')"),
    ("ValueError", "ValueError(0.5, float('inf'), [1, (2, b'x')], {'a': None}, KeyError('k'), Pair(1, 2))"),
    ("ValueError", "ValueError(Color.RED, Point(1, 2.5))"),
    ("Pair | None", "None"),
    ("list[Pair | Point | None]", "[None, Pair(1, 2)]"),
    ("tuple[float, Point]", "(float('inf'), Point(1, 2))"),
    ("tuple[list[int], int]", "([1], 2)"),
    ("list[int] | Bag", "Bag([1])"),
    ("dict[str, float]", "{'a': float('inf')}"),
    ("time", "time(1, 2, tzinfo=timezone(timedelta(hours=2)))"),
    ("datetime", "datetime(2026, 1, 2, tzinfo=timezone(timedelta(minutes=-90)))"),
    ("decimal.Decimal", "decimal.Decimal('0.10')"),
]
BEFORE = """
import decimal
import enum
import msgspec
from datetime import time, timezone
from typing import Annotated, Literal, NewType
class Weird(enum.Enum):
    TUPLE = (1, 2)
    NUMBER = 5
class Flags(enum.Flag):
    A = 1
    B = 2
class Huge(enum.IntEnum):
    A = 1
    B = 2**70
UserId = NewType("UserId", int)
class Tree(Struct):
    value: int
    children: list[Tree]
"""


@pytest.mark.parametrize(("annotation", "expression"), VALUES, ids=[f"{a}: {e}"[:50] for a, e in VALUES])
def test_a_value_of_its_declared_type_comes_back_exactly(annotation: str, expression: str) -> None:
    same(f"x: {annotation} = {expression}\nawait sleep(SECOND)\nemit(type(x).__name__, x)\nreturn 0", before=BEFORE)


@pytest.mark.parametrize(
    ("annotation", "expression", "kept"),
    [
        ("int", "5", True),
        ("float", "float('inf')", True),
        ("str | None", "None", True),
        ("int | None", "7", True),
        ("range", "range(3)", True),
        ("Color", "Color.BLUE", True),
        ("datetime", "ctx.now", True),
        ("datetime | None", "ctx.now", True),
        ("datetime", "datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1), 'noon'))", False),
        ("datetime | None", "datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1), 'noon'))", False),
        ("Pair", "Pair(1, 2)", True),
        ("Pair | None", "Pair(1, 2)", True),
        ("Ping", "Ping(5)", True),
        ("Moment", "Moment(ctx.now)", True),
        ("Moment", "Moment(datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1), 'noon')))", False),
        ("Counted", "Counted(1)", False),
        ("list[int]", "[1]", False),
        ("Bag", "Bag([1, 2], 3)", False),
    ],
)
def test_a_frame_of_plain_values_can_be_kept_in_place_of_its_state(
    annotation: str, expression: str, kept: bool
) -> None:
    names = define(
        f"""
        import msgspec
        from datetime import timezone
        class Moment(Struct):
            at: datetime
        class Counted(Struct):
            n: int
            def __post_init__(self) -> None:
                msgspec.structs.force_setattr(self, "n", self.n + 1)

        @workflow
        async def program(ctx: WorkflowContext) -> str:
            x: {annotation} = {expression}
            count = 0
            await sleep(SECOND)
            count += 1
            return repr((x, count))
        """
    )
    program = names["program"]
    outcome = program.start(Context(), None)
    assert (outcome.frame is not None) == kept
    for frame in (outcome.frame, outcome.frame, None):  # a step does not change it
        result = program.resume(Context(), outcome.state, Value(None), frame).result
        assert result == program.resume(Context(), outcome.state, Value(None)).result


@pytest.mark.parametrize("kept", [False, True])
def test_a_frame_is_not_kept_when_its_init_may_be_read_as_another(kept: bool) -> None:
    counts = "def __post_init__(self) -> None:\n                msgspec.structs.force_setattr(self, 'n', self.n + 1)"
    names = define(
        f"""
        import msgspec
        class Init(Struct):
            n: int
            {"" if kept else counts}

        @workflow
        async def program(ctx: WorkflowContext, init: Init) -> int:
            await sleep(SECOND)
            return init.n
        """
    )
    outcome = names["program"].start(Context(), names["Init"](1))
    assert (outcome.frame is not None) == kept


def test_a_frame_of_other_code_is_not_taken_for_ones_own() -> None:
    source = """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            x = {value}
            await sleep(SECOND)
            return x
        """
    first, second = (define(source.format(value=value))["program"] for value in (1, 2))
    state, frame = second.start(Context(), None).state, first.start(Context(), None).frame
    assert second.resume(Context(), state, Value(None), frame).result == 2


def test_nan_comes_back_as_nan() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> float:
            x = float("nan")
            await sleep(SECOND)
            return x
        """
    )
    assert math.isnan(drive(names["program"], [None]).result)


@pytest.mark.parametrize(
    ("annotation", "expression", "said"),
    [
        ("int", "Level.HIGH", "x is declared as int"),
        ("int", "True", "x is declared as int"),
        ("list[int]", "[1, 'a']", "x is declared as int"),
        ("Pair", "Pair(1, 'a')", "x.right is declared as int"),
        ("dict[str, int]", "{1: 2}", "a key of x is declared as str"),
        ("Json", "{'a': (1,)}", "plain JSON"),
        ("Json", "{1: 2}", "a key of x is declared as a string of plain JSON"),
        ("Json", "[float('nan')]", "which has no inf and nan: declare it as float"),
        ("list[int]", "(1, 2)", "x is declared as list"),
        ("tuple[int, str]", "(1,)", "x is declared as a tuple of 2"),
        ("dict[str, int]", "[('a', 1)]", "x is declared as dict"),
        ("float", "'1'", "x is declared as float"),
        ("range", "[1]", "x is declared as range"),
        ("Color", "'red'", "x is declared as Color"),
        ("Pair", "Point(1, 2)", "x is declared as Pair"),
        ("Pair | Point", "Bag([1])", r"x is declared as Pair \| Point"),
        ("Pair | Point", "Pair(1, 'a')", "x.right is declared as int"),
        ("ValueError", "KeyError('a')", "x is declared as ValueError"),
        ("datetime", "timedelta(1)", "x is declared as datetime"),
        ("datetime", "datetime(2026, 10, 25, 2, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))", "its zone is not kept"),
        ("datetime", "datetime(2026, 10, 25, 2, fold=1)", "its zone is not kept"),
        ("str", "'\\ud800'", "cannot be written"),
        ("Literal['a', 1]", "'b'", "x is declared as Literal"),
        ("Literal['a', 1]", "True", r"x is declared as int \| str and holds True"),
        ("Chosen", "Chosen('z')", "x.letter is declared as Literal"),
        ("Chosen", "Chosen('x', 0)", "x.number is declared as .* Expected `int` >= 1"),
        ("Chosen", "Chosen('x', 1, 'long')", "x.text is declared as .* length <= 3"),
    ],
)
def test_a_value_that_is_not_of_its_declared_type_is_an_error_at_that_wait(
    annotation: str, expression: str, said: str
) -> None:
    names = define(
        f"""
        import zoneinfo
        from typing import Annotated, Literal
        from msgspec import Meta

        class Chosen(Struct):
            letter: Literal["x", "y"]
            number: Annotated[int, Meta(gt=0)] = 1
            text: Annotated[str, Meta(max_length=3)] = ""

        def given() -> Any:
            return {expression}

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            x: {annotation} = given()
            await sleep(SECOND)
            return 0
        """
    )
    with pytest.raises(StateError, match=said) as caught:
        names["program"].start(Context(), None)
    assert ": at sleep in program" in str(caught.value)


def test_two_variables_that_share_a_mutable_object_are_an_error_that_names_both() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            xs = [1]
            ys = xs
            await sleep(SECOND)
            ys.append(2)
            return len(xs)
        """
    )
    with pytest.raises(StateError, match="xs and ys are the same mutable list object"):
        names["program"].start(Context(), None)


def test_a_place_inside_a_variable_that_is_shared_is_named() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            bags = [Bag([1]), Bag([2])]
            bag = bags[1]
            await sleep(SECOND)
            bag.n += 1
            return bags[1].n
        """
    )
    with pytest.raises(StateError, match=r"bag and bags\[1\] are the same mutable Bag object"):
        names["program"].start(Context(), None)


def test_a_list_of_init_is_shared_with_init() -> None:
    names = define(
        """
        class Init(Struct):
            waypoints: list[int]

        @workflow
        async def shared(ctx: WorkflowContext, init: Init) -> int:
            waypoints = init.waypoints
            await sleep(SECOND)
            return len(waypoints)

        @workflow
        async def copied(ctx: WorkflowContext, init: Init) -> int:
            waypoints = list(init.waypoints)
            await sleep(SECOND)
            return len(waypoints)
        """
    )
    with pytest.raises(StateError, match=r"waypoints and init\.waypoints are the same mutable list object"):
        names["shared"].start(Context(), names["Init"]([1]))
    assert drive(names["copied"], [None], init=names["Init"]([1])).result == 1


def test_sharing_what_is_immutable_is_harmless() -> None:
    same("p = Pair(1, 2)\nq = p\nt = (1, (2, 3))\nu = t\nawait sleep(SECOND)\nemit(p, q, t, u)\nreturn 0")


def test_replace_gives_a_changed_copy_of_the_same_type() -> None:
    same("p = Pair(1, 2).replace(right=await call(ask, 1))\nawait sleep(SECOND)\nemit(p)\nreturn p.right", [7, None])


def test_an_object_shared_only_until_the_wait_is_harmless() -> None:
    same("xs = [1]\nys = xs\nys.append(2)\nemit(xs)\nys = [3]\nawait sleep(SECOND)\nemit(xs, ys)\nreturn 0")


def test_the_state_holds_what_is_needed_and_what_is_annotated() -> None:
    names = define(
        """
        @workflow
        async def program(ctx: WorkflowContext) -> int:
            shown: int = 5
            needed = 6
            dropped = 7
            emit(dropped)
            await sleep(SECOND)
            return needed
        """
    )
    outcome = names["program"].start(Context(), None)
    assert msgspec.json.decode(outcome.state) == {
        "$workflow": "program", "$at": "sleep", "init": None, "$version": 1, "needed": 6, "shown": 5
    }  # fmt: skip
    view = names["program"].view(outcome.state)
    assert (view.shown, view.needed, view.init) == (5, 6, None)
    with pytest.raises(AttributeError, match="dropped"):
        _ = view.dropped


def test_a_resume_runs_each_statement_once() -> None:
    names = define(
        """
        import random

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            first = random.randrange(10**9)
            emit("once", first)
            for x in range(2):
                second = random.randrange(10**9)
                await sleep(SECOND)
                emit("again", first, second)
            return first
        """
    )
    program = names["program"]
    outcome = program.start(Context(), None)
    while hasattr(outcome, "state"):
        outcome = program.resume(Context(), outcome.state, Value(None))
    assert [entry.split(",")[0] for entry in names["LOG"]] == ["('once'", "('again'", "('again'"]
    assert str(outcome.result) in names["LOG"][2]


def test_a_handle_is_stored_and_awaited_twice() -> None:
    names = define(
        """
        class Init(Struct):
            n: int

        @workflow
        async def child(ctx: WorkflowContext, init: Init) -> int:
            return init.n

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            handle = start(child, Init(3))
            await sleep(SECOND)
            first = await handle
            return first + await handle + await select(handle, sleep(SECOND))
        """
    )
    ctx: Any = Context()
    outcome = names["program"].start(ctx, None)
    assert ctx.done == [("start", "child", b'{"n":3}')]
    assert msgspec.json.decode(outcome.state)["handle"] == {
        "kind": "handle",
        "workflow_id": 101,
        "workflow_type": "child",
    }
    for value in (None, 1, 2, 3):
        outcome = names["program"].resume(Context(), outcome.state, Value(value))
    assert outcome.result == 6


def test_a_path_that_is_rebound_under_a_waiting_expression_is_an_error() -> None:
    names = define(
        """
        def swap(bag: Bag) -> int:
            bag.items = [7]
            return 1

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            bag = Bag([1])
            bag.items.append(await call(ask, swap(bag)))
            return len(bag.items)
        """
    )
    with pytest.raises(StateError, match=r"bag\.items in line .* names another object"):
        names["program"].start(Context(), None)


def test_a_registered_class_is_stored_its_own_way() -> None:
    names = define(
        """
        from fractions import Fraction
        from workflow_module import codec
        codec.register(Fraction, str, str, Fraction)

        @workflow
        async def program(ctx: WorkflowContext) -> str:
            x = Fraction(1, 3)
            await sleep(SECOND)
            return str(x + 1)
        """
    )
    assert drive(names["program"], [None]).result == "4/3"
    assert codec.encode(names["Fraction"](1, 2), names["Fraction"], "x") == b'"1/2"'


def test_who_somebody_is_can_be_stored() -> None:
    names = define(
        """
        from gamedb import ConnectionId, Identity

        class Deed(Struct):
            by: Identity
            over: ConnectionId | None = None

        @workflow
        async def program(ctx: WorkflowContext, init: Deed) -> list[Identity]:
            mine = init.by
            scores: dict[Identity, int] = {mine: 1}
            over = init.over
            await sleep(SECOND)
            assert scores[init.by] == 1 and over is not None and over.to_int() == 7
            return [mine]
        """
    )
    ann = Identity(b"a" * 32)
    deed = names["Deed"](ann, ConnectionId.from_int(7))
    finished = drive(names["program"], [None], deed)
    assert finished.result == [ann]
    assert type(finished.result[0]) is Identity
    assert codec.encode(ann, Identity, "x") == b'"' + b"61" * 32 + b'"'
    assert codec.decode('"0x' + "61" * 32 + '"', Identity) == ann
    with pytest.raises(msgspec.ValidationError, match=r"\$\.by"):
        codec.decode('{"by": "ann"}', names["Deed"])
    with pytest.raises(StateError, match="x is declared as Identity"):
        codec.encode(b"a" * 32, Identity, "x")
