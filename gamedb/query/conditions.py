"""What a row, or a pair of joined rows, must fulfil: typed conditions, and their canonical form.

Side 0 is the row that the query returns, side 1 the row that it is joined with. A comparison with an absent value
(`None`) is false, and so is its negation. It knows no store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from gamedb.columns import ColumnType, FloatType, OptionType
from gamedb.errors import QueryError
from gamedb.query.literals import literal, whole
from gamedb.query.text import Piece


class _Sender:
    def __repr__(self) -> str:
        return ":sender"


SENDER: Final = _Sender()
"""Stands for the identity of who asks."""


class Hole(msgspec.Struct, frozen=True):
    """A literal whose text is not known yet: queries that differ only in literals share everything up to here."""

    piece: int
    type: ColumnType
    where: str


class Test(msgspec.Struct, frozen=True):
    """A column compared with a value."""

    side: int
    column: str
    operator: str
    value: Any
    """A canonical value, `SENDER`, or a `Hole`."""
    optional: bool = False


class Pair(msgspec.Struct, frozen=True):
    """A column compared with a column."""

    side: int
    column: str
    operator: str
    other_side: int
    other: str
    optional: bool = False
    """Whether either may be absent."""


class Constant(msgspec.Struct, frozen=True):
    """Two literals compared with each other, as `TRUE = TRUE`; gone when the literals are known."""

    operator: str
    left: int
    right: int


class Exists(msgspec.Struct, frozen=True):
    """There is a row of another table with `other == column` for which the condition holds.

    In that condition the row itself is side 0, wherever it stands in the query, and the other row side 1.
    """

    side: int
    column: str
    table: str
    other: str
    condition: Condition


class All(msgspec.Struct, frozen=True):
    parts: tuple[Condition, ...]


class Any_(msgspec.Struct, frozen=True):
    parts: tuple[Condition, ...]


Condition = Test | Pair | Constant | Exists | All | Any_

TRUE: Final = All(())
FALSE: Final = Any_(())

NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NOT_FOR_FLOATS: Final = {"<": "!<", "<=": "!<=", ">": "!>", ">=": "!>="}
"""nan is not less than 1 and not at least 1, so these negations are operators of their own for floats."""


def negated(operator: str, kind: ColumnType) -> str:
    """The operator of the opposite comparison of present values of this type."""
    inner = kind.inner if isinstance(kind, OptionType) else kind
    if isinstance(inner, FloatType):
        operator = _NOT_FOR_FLOATS.get(operator, operator)
        if operator.startswith("!"):
            return operator
    return NEGATED[operator]


def all_of(parts: Iterable[Condition]) -> Condition:
    """The condition that all of these hold, flat and without what is always true."""
    return _joined(parts, All, FALSE)


def any_of(parts: Iterable[Condition]) -> Condition:
    """The condition that one of these holds."""
    return _joined(parts, Any_, TRUE)


def _joined(parts: Iterable[Condition], kind: type[All] | type[Any_], decisive: Condition) -> Condition:
    result: dict[Condition, None] = {}
    for part in parts:
        if part == decisive:
            return decisive
        if type(part) is kind:
            result |= dict.fromkeys(part.parts)
        else:
            result[part] = None
    return next(iter(result)) if len(result) == 1 else kind(tuple(result))


def filled(condition: Condition, pieces: Sequence[Piece]) -> Condition:
    """The condition with the literals of a text in its holes; `QueryError` for one that does not fit its column."""
    kind = type(condition)
    if kind is Test:
        assert isinstance(condition, Test)
        hole = condition.value
        if type(hole) is not Hole:
            return condition
        value = literal(pieces[hole.piece], hole.type, hole.where)
        return Test(condition.side, condition.column, condition.operator, value, condition.optional)
    if isinstance(condition, Constant):
        return TRUE if _constant(condition, pieces) else FALSE
    if isinstance(condition, All | Any_):
        join = all_of if kind is All else any_of
        return join([filled(part, pieces) for part in condition.parts])
    return condition


def _constant(condition: Constant, pieces: Sequence[Piece]) -> bool:
    pair = [pieces[condition.left], pieces[condition.right]]
    kinds = {piece.kind for piece in pair}
    numbers: list[Any] = [whole(piece) for piece in pair]
    if kinds <= {"number", "hex"} and None not in numbers:
        values = numbers
    elif kinds == {"number"}:
        values = [float(piece.value) for piece in pair]
    elif kinds in ({"bool"}, {"string"}):
        values = [piece.value for piece in pair]
    else:
        raise QueryError(
            "one side of a comparison must be a column; these two values are of different kinds", pair[0].start
        )
    return bool(_COMPARE[condition.operator](*values))


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def moved(condition: Condition, side: int) -> Condition:
    """A condition about one row, as a condition about the row of another side."""
    if isinstance(condition, All):
        return All(tuple(moved(part, side) for part in condition.parts))
    if isinstance(condition, Any_):
        return Any_(tuple(moved(part, side) for part in condition.parts))
    if isinstance(condition, Pair):
        return msgspec.structs.replace(condition, side=side, other_side=side)
    if isinstance(condition, Constant):
        return condition
    return msgspec.structs.replace(condition, side=side)


def leaves(condition: Condition) -> Iterable[Test | Pair | Constant | Exists]:
    """The comparisons of a condition."""
    if isinstance(condition, All | Any_):
        for part in condition.parts:
            yield from leaves(part)
    else:
        yield condition


def asks_sender(condition: Condition) -> bool:
    """Whether who asks makes a difference."""
    return any(
        leaf.value is SENDER if isinstance(leaf, Test) else isinstance(leaf, Exists) and asks_sender(leaf.condition)
        for leaf in leaves(condition)
    )


def columns_of(condition: Condition, side: int) -> set[str]:
    """The columns of a side that the condition looks at."""
    result: set[str] = set()
    for leaf in leaves(condition):
        if isinstance(leaf, Test | Pair | Exists) and leaf.side == side:
            result.add(leaf.column)
        if isinstance(leaf, Pair) and leaf.other_side == side:
            result.add(leaf.other)
    return result


def key_of(condition: Condition) -> Any:
    """Equal for conditions that differ only in the order of their parts."""
    if isinstance(condition, All | Any_):
        return (type(condition), frozenset(map(key_of, condition.parts)))
    if isinstance(condition, Exists):
        return (Exists, condition.side, condition.column, condition.table, condition.other, key_of(condition.condition))
    return condition


def bound(condition: Condition, sender: Any) -> Condition:
    """The condition as this sender asks it."""
    if isinstance(condition, Test):
        return msgspec.structs.replace(condition, value=sender) if condition.value is SENDER else condition
    if isinstance(condition, Exists):
        return msgspec.structs.replace(condition, condition=bound(condition.condition, sender))
    if isinstance(condition, All):
        return All(tuple([bound(part, sender) for part in condition.parts]))
    if isinstance(condition, Any_):
        return Any_(tuple([bound(part, sender) for part in condition.parts]))
    return condition


Route = tuple[str, Any]
"""A column and the value that it must have."""


def routes_of(
    condition: Condition, side: int, prefer: Callable[[str], int]
) -> tuple[tuple[Route, ...] | None, Condition]:
    """Equalities of which a fulfilling row has at least one, and what is left to test on a row that has.

    `None` when there are none such: then any row may fulfil it. `prefer` rates columns, the lowest is taken.
    """
    if isinstance(condition, Test):
        if condition.side == side and condition.operator == "=":
            return ((condition.column, condition.value),), TRUE
        return None, condition
    if isinstance(condition, Any_):
        found: dict[Route, None] = {}
        for part in condition.parts:
            routes, _ = routes_of(part, side, prefer)
            if routes is None:
                return None, condition
            found |= dict.fromkeys(routes)
        return tuple(found), condition
    if isinstance(condition, All):
        best: tuple[tuple[int, int, int], int, tuple[Route, ...], Condition] | None = None
        for place, part in enumerate(condition.parts):
            routes, rest = routes_of(part, side, prefer)
            if routes is None:
                continue
            rating = (max((prefer(column) for column, _ in routes), default=0), len(routes), place)
            if best is None or rating < best[0]:
                best = (rating, place, routes, rest)
        if best is not None:
            _, chosen, routes, rest = best
            parts = [rest if place == chosen else part for place, part in enumerate(condition.parts)]
            return routes, all_of(parts)
    return None, condition
