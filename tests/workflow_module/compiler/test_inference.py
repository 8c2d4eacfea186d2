"""Types that nobody wrote down: what the compiler infers for an expression keeps that value exactly over a wait."""

# ruff: noqa: E501  (tables are easier to read on one line)

from __future__ import annotations

import pytest
from compiler_harness import define, same

from workflow_module import CompileError

BEFORE = """
import enum
import math
import random
from datetime import date, time
from typing import Final
from msgspec.structs import replace

class Suit(enum.Enum):
    HEARTS = "h"
    SPADES = 4

class Fort:
    walls: int
    def __init__(self) -> None:
        self.walls = 3
    @property
    def height(self) -> float:
        return 2.5
    def area(self, depth: int) -> int:
        return self.walls * depth

class Angle(Struct):
    degrees: int
    def __add__(self, other: Angle) -> Angle:
        return Angle(self.degrees + other.degrees)
    def __rmul__(self, times: int) -> Angle:
        return Angle(times * self.degrees)
    def __mul__(self, times: int) -> Angle:
        return times * self

class Table:
    __hash__ = None
    def __call__(self, n: int) -> int:
        return n

class UntypedTable(Table):
    def __call__(self, n):
        return n

class Door:
    def __enter__(self) -> int:
        return 7
    def __exit__(self, *error: object) -> None:
        pass

def pair() -> Pair | None:
    return Pair(1, 2)

def anything(value: int | None) -> int | None:
    return value

def suit() -> Suit:
    return Suit.HEARTS

def something():
    return 4

table = Table()
untyped_table = UntypedTable()
GRAVITY: Final[float] = 10
WINDS: list[str] = []
PRICES = {"sword": 3}
"""

EXPRESSIONS = [
    # parts of values
    "b'abc'[0]",
    "b'abc'[1:]",
    "'abc'[0]",
    "range(9)[2]",
    "range(9)[2:7:2]",
    "(1, 'a', 2.5)[1]",
    "(1, 2, 3)[1:]",
    "(1, 'a')[ctx.workflow_id]",
    "[1, 2][0]",
    "{'a': 1.5}['a']",
    "PRICES['sword']",
    "list(WINDS)",
    "GRAVITY",
    # displays and comprehensions
    "(*[1, 2], 3)",
    "[*(1, 2), *{3}]",
    "{**{'a': 1}, 'b': 2}",
    "{n % 2 for n in range(5)}",
    "{n: str(n) for n in range(3)}",
    "[a + b for a in range(3) for b in range(a) if a != b]",
    # calls of builtins
    "tuple([1, 2])",
    "tuple()",
    "dict([('a', 1)])",
    "dict({'a': 1})",
    "abs(-2.5)",
    "abs(True)",
    "round(2.6)",
    "round(2.64, 1)",
    "next(iter([1, 2]))",
    "next(iter([1, 2]), None)",
    "max([1, 2], default=None)",
    "min(1, 2.5)",
    "sum([True, True])",
    "sum([0.5], 1)",
    "list(filter(None, [0, 1]))",
    "list(zip([1], 'a'))",
    "list(enumerate('ab'))",
    "list(reversed([1, 2]))",
    "sorted({2, 1})",
    "replace(Pair(1, 2), left=3)",
    "math.floor(2.5)",
    "math.sqrt(4)",
    "math.isnan(1)",
    # methods
    "'a-b'.split('-')",
    "'a-b'.partition('-')",
    "'ab'.find('b')",
    "'ab'.startswith('a')",
    "'ab'.encode()",
    "b'ab'.decode()",
    "b'ab'.hex()",
    "b'ab'.startswith(b'a')",
    "b'ab'.find(b'b')",
    "(5).bit_length()",
    "(2.0).is_integer()",
    "[1, 2].copy()",
    "[1, 2].index(2)",
    "{1, 2}.union({3})",
    "{1, 2}.issubset({1})",
    "{1}.pop()",
    "frozenset({1, 2}).intersection({1})",
    "(1, 2, 2).count(2)",
    "{'a': 1}.get('a')",
    "{'a': 1}.get('b')",
    "{'a': 1}.get('b', 2.5)",
    "{'a': 1}.pop('a')",
    "{'a': 1}.setdefault('b', 2)",
    "list({'a': 1}.items())",
    "{'a': 1}.copy()",
    "ctx.now.replace(year=2020)",
    "ctx.now.date()",
    "ctx.now.time()",
    "ctx.now.isoformat()",
    "ctx.now.timestamp()",
    "SECOND.total_seconds()",
    "random.Random(1).choice([1, 2])",
    "random.Random(1).sample('abc', 2)",
    "random.Random(1).choices([1.5], k=2)",
    "random.Random(1).randint(1, 6)",
    # attributes
    "ctx.now.year",
    "SECOND.seconds",
    "range(2, 9).start",
    "suit().name",
    "suit().value",
    "Suit.HEARTS.name",
    "Suit.HEARTS.value",
    "Suit.SPADES.value",
    "Fort().walls",
    "Fort().height",
    "Fort().area(2)",
    # operators
    "'%d%%' % 5",
    "b'%d' % 5",
    "'ab' * 2",
    "2 * b'ab'",
    "[1] * 2",
    "(1, 2) * 2",
    "[1] + [2.5]",
    "(1,) + ('a',)",
    "(1,) + tuple([2])",
    "() + ()",
    "{1} | {2.5}",
    "{1, 2} - {1}",
    "{1, 2} & {1}",
    "{1, 2} ^ {1, 3}",
    "{'a': 1} | {'b': 2.5}",
    "6 & 3",
    "True ^ True",
    "True & 3",
    "1 << 70",
    "7 >> 1",
    "7 / 2",
    "7 // 2",
    "7 // 2.0",
    "2 ** 3",
    "2 ** -1",
    "2.0 ** 2",
    "-True",
    "SECOND * 1.5",
    "SECOND // 2",
    "SECOND / SECOND",
    "ctx.now - ctx.now",
    "ctx.now - SECOND",
    "date(2026, 1, 2) - date(2026, 1, 1)",
    "Angle(2) + Angle(3)",
    "2 * Angle(3)",
    "Angle(3) * 2",
    "1 if ctx.workflow_id else 'a'",
    "f'{1}'",
    "(lambda n: n * 2)(4)",
    "table(1)",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_variable_keeps_what_it_was_given_without_an_annotation(expression: str) -> None:
    same(f"x = {expression}\nawait sleep(SECOND)\nemit(type(x).__name__, x)\nreturn 0", before=BEFORE)


STATEMENTS = {
    "a pattern with a name for all of it": "match pair():\n    case Pair(left=1) as x:\n        pass",
    "one name for several patterns": "match anything(1):\n    case (None | 1) as x:\n        pass",
    "a pattern in a pattern": "match anything(1):\n    case (int() as y) as x:\n        emit(y)",
    "parts of a sequence": "match [1, 2, 3]:\n    case [first, *x]:\n        emit(first)",
    "a sequence whose rest has no name": "match (1, 'a', 2):\n    case [x, *_]:\n        pass",
    "the value of a key": "match {'a': 1, 'b': 2}:\n    case {'a': x}:\n        pass",
    "the rest of a mapping": "match {'a': 1, 'b': 2}:\n    case {'a': 1, **x}:\n        pass",
    "several assignments": "x = 1\nif ctx.workflow_id:\n    x = 'a'",
    "a target with a star": "first, *x = [1, 2, 3]\nemit(first)",
    "a loop": "for x in [1, 2]:\n    pass",
    "added to": "x = 1\nx += 0.5",
    "an expression that names its value": "emit((x := 4) + 1)",
    "what a context manager gives": "with Door() as x:\n    pass",
    "a value by way of another": "y = 1\nx = y\ny = x + 1",
}


@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS)
def test_every_statement_that_binds_a_name_gives_it_a_type(statements: str) -> None:
    same(f"{statements}\nawait sleep(SECOND)\nemit(type(x).__name__, x)\nreturn 0", before=BEFORE)


UNKNOWN = {
    "pairs that are lists": "x = dict([[1, 2]])",
    "pairs by keywords": "x = dict(a=1)",
    "no arguments": "x = round()",
    "a mapping that is none": "x = {**list(WINDS)}",
    "what only the object knows": "x = (1.5).__class__",
    "a name that is nowhere": "x = nowhere",
    "a method that is generic": "x = {1: 2}.fromkeys([1])",
    "an object that cannot be hashed": "x = untyped_table(1)",
    "a function without types": "x = something()",
    "one of several assignments": "x = 1\nif ctx.workflow_id:\n    x = something()",
    "by way of another variable": "y = 1\nx = y\ny = something()",
    "named inside a comprehension": "print([(x := n) for n in [1]])",
}


@pytest.mark.parametrize("statements", UNKNOWN.values(), ids=UNKNOWN)
def test_what_cannot_be_inferred_must_be_annotated(statements: str) -> None:
    lines = "\n".join("    " + line for line in statements.splitlines())
    head = "@workflow\nasync def program(ctx: WorkflowContext) -> int:\n"
    with pytest.raises(CompileError, match=r"the variable [xy] .* cannot be inferred"):
        define(f"{BEFORE}\n{head}{lines}\n    await sleep(SECOND)\n    print(x)\n    return 0\n")


def test_a_type_of_the_module_says_what_its_names_are() -> None:
    """And not what they happen to be when the workflow is compiled."""
    before = "from typing import Final, TypeAlias\nLIMIT: int | None = None\nWORDS: dict[str, int] = {}\nTOP: Final = 3\nNumber: TypeAlias = int"
    same("x = LIMIT\nn = WORDS.get('a')\nt = Number(TOP)\nawait sleep(SECOND)\nemit(x, n, t)\nreturn 0", before=before)
