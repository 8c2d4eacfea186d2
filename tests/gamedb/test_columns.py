"""What each column type accepts, converts, refuses, and how it looks in JSON; seen through a table and a reducer."""

from __future__ import annotations

import copy
import enum
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamedb import (
    ArgumentError,
    ColumnError,
    ConnectionId,
    Database,
    Identity,
    Module,
    ReducerContext,
    Row,
    ScheduleAt,
    SchemaError,
    Struct,
    f32,
    i8,
    i16,
    i32,
    i64,
    i128,
    i256,
    u8,
    u16,
    u32,
    u64,
    u128,
    u256,
)
from gamedb.columns import FrozenList, column_type, exact_function


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Point(Struct):
    x: float
    y: f32 = 0.0


class Path(Struct):
    points: list[Point]
    closed: bool = False


class Circle(Struct, tag="circle"):
    radius: float


class Square(Struct, tag="square"):
    side: u8
    at: Point | None = None


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLUS_TWO = timezone(timedelta(hours=2))
SIZED = {
    "u8": (u8, 0, 2**8 - 1),
    "u16": (u16, 0, 2**16 - 1),
    "u32": (u32, 0, 2**32 - 1),
    "u64": (u64, 0, 2**64 - 1),
    "u128": (u128, 0, 2**128 - 1),
    "u256": (u256, 0, 2**256 - 1),
    "i8": (i8, -(2**7), 2**7 - 1),
    "i16": (i16, -(2**15), 2**15 - 1),
    "i32": (i32, -(2**31), 2**31 - 1),
    "i64": (i64, -(2**63), 2**63 - 1),
    "i128": (i128, -(2**127), 2**127 - 1),
    "i256": (i256, -(2**255), 2**255 - 1),
    "int": (int, -(2**63), 2**63 - 1),
}


def table_of(annotation: Any) -> tuple[Database, type[Any]]:
    """A database with one table `thing` whose only column `v` has this type."""
    module = Module("columns")
    thing = type(Row)("Thing", (Row,), {"__annotations__": {"v": annotation}, "__module__": __name__})
    module.table(thing)  # type: ignore[call-overload]
    return Database(module), thing


def stored(annotation: Any, value: Any) -> Any:
    """The value as a table gives it back."""
    db, thing = table_of(annotation)
    with db.transaction() as ctx:
        assert ctx.db[thing].insert(thing(v=value)) is next(iter(ctx.db[thing]))
    [row] = db.read(thing)
    return row.v


def passed(annotation: Any, value: Any) -> Any:
    """The value as a reducer gets it."""
    module = Module("columns")

    def echo(ctx: ReducerContext, v: Any) -> Any:
        return v

    echo.__annotations__["v"] = annotation
    module.reducer(echo)
    return Database(module).call("echo", v=value)


ACCEPTED: list[tuple[Any, Any, Any]] = [
    *[(kind, bound, bound) for kind, low, high in SIZED.values() for bound in (low, high)],
    (bool, True, True),
    (bool, False, False),
    (u8, enum.IntEnum("Level", {"ONE": 1}).ONE, 1),  # type: ignore[attr-defined]
    (float, 1, 1.0),
    (float, 1.5, 1.5),
    (float, math.inf, math.inf),
    (float, -0.0, -0.0),
    (f32, 0.1, 0.10000000149011612),
    (f32, -math.inf, -math.inf),
    (f32, 16777217, 16777216.0),
    (str, "", ""),
    (str, "\0 \U0001f600 é", "\0 \U0001f600 é"),
    (str, enum.StrEnum("Name", {"ANN": "ann"}).ANN, "ann"),  # type: ignore[attr-defined]
    (bytes, b"", b""),
    (bytes, bytearray(b"\0\xff"), b"\0\xff"),
    (bytes, memoryview(b"ab"), b"ab"),
    (datetime, datetime(2026, 1, 1, 2, tzinfo=PLUS_TWO), datetime(2026, 1, 1, tzinfo=UTC)),
    (datetime, datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
    (datetime, datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    (timedelta, timedelta(-1, 5, 7), timedelta(-1, 5, 7)),
    (timedelta, timedelta(microseconds=2**63 - 1), timedelta(microseconds=2**63 - 1)),
    (ScheduleAt, EPOCH, EPOCH),
    (ScheduleAt, timedelta(microseconds=1), timedelta(microseconds=1)),
    (UUID, UUID(int=5), UUID(int=5)),
    (Identity, Identity.from_int(5), Identity.from_int(5)),
    (ConnectionId, ConnectionId.from_int(5), ConnectionId.from_int(5)),
    (Colour, Colour.BLUE, Colour.BLUE),
    (u8 | None, None, None),
    (u8 | None, 3, 3),
    (list[u8], [1, 2], [1, 2]),
    (list[u8], (1, 2), [1, 2]),
    (list[list[f32]], [[0.1], []], [[0.10000000149011612], []]),
    (list[Colour | None], [None, Colour.RED], [None, Colour.RED]),
    (Point, Point(x=1, y=0.1), Point(x=1.0, y=0.10000000149011612)),
    (Path, Path(points=[Point(x=1.0)]), Path(points=[Point(x=1.0)])),
    (Circle | Square, Square(side=1, at=Point(x=2)), Square(side=1, at=Point(x=2.0))),
    (Circle | Square | None, None, None),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED)
def test_a_value_is_stored_in_its_canonical_form(annotation: Any, value: Any, expected: Any) -> None:
    result = stored(annotation, value)
    assert result == expected
    assert repr(result) == repr(expected)
    assert type(result) is type(expected) or isinstance(result, FrozenList)


@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED)
def test_an_argument_is_passed_in_its_canonical_form(annotation: Any, value: Any, expected: Any) -> None:
    assert repr(passed(annotation, value)) == repr(expected)


@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED)
def test_a_value_survives_its_json_form(annotation: Any, value: Any, expected: Any) -> None:
    kind = column_type(annotation, "here")
    plain = kind.to_json(kind.coerce(value, "v"))
    text = msgspec.json.encode(plain)
    if not (isinstance(plain, int) and plain.bit_length() > 63):  # JSON numbers of any size: see below
        plain = msgspec.json.decode(text)
    assert repr(kind.from_json(plain, "v")) == repr(expected)


@pytest.mark.parametrize("number", [2**64 - 1, 2**64, 2**128 - 1, 2**256 - 1])
def test_a_large_number_in_json_text_keeps_its_value(number: int) -> None:
    module = Module("columns")

    @module.reducer
    def echo(ctx: ReducerContext, v: u256) -> Any:
        return v

    db = Database(module)
    assert db.call_json("echo", f"[{number}]") == number
    assert db.call_json("echo", f'{{"v": {number}}}'.encode()) == number


def test_nan_is_stored_as_nan() -> None:
    for annotation in (float, f32, float | None):
        assert math.isnan(stored(annotation, math.nan))
        assert math.isnan(passed(annotation, math.nan))
        kind = column_type(annotation, "here")
        assert math.isnan(kind.from_json(kind.to_json(math.nan), "v"))
    assert math.isnan(stored(list[f32], [math.nan])[0])


REFUSED: list[tuple[Any, Any, str]] = [
    *[(kind, low - 1, f"out of range for .*{low}") for kind, low, high in SIZED.values()],
    *[(kind, high + 1, f"out of range for .*{high}") for kind, low, high in SIZED.values()],
    *[(kind, wrong, repr(wrong)) for kind in (u8, int) for wrong in (True, 1.0, "1", None)],
    (bool, 1, "expected bool, got 1"),
    (float, True, "got True"),
    (float, "1", "got '1'"),
    (float, 10**400, "out of range for f64"),
    (f32, 1e39, "out of range for f32"),
    (str, b"a", "got b'a'"),
    (str, "\ud800", "surrogate"),
    (bytes, "a", "got 'a'"),
    (bytes, Identity.from_int(1), "expected bytes"),
    (datetime, datetime(2026, 1, 1), "no time zone"),
    (datetime, datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), "outside the years"),
    (datetime, 5, "got 5"),
    (timedelta, 5, "got 5"),
    (timedelta, timedelta(microseconds=2**63), "64 bits"),
    (timedelta, timedelta(microseconds=-(2**63) - 1), "64 bits"),
    (ScheduleAt, datetime(2026, 1, 1), "no time zone"),
    (ScheduleAt, timedelta(0), "must be positive"),
    (ScheduleAt, timedelta(-1), "must be positive"),
    (ScheduleAt, timedelta.max, "64 bits"),
    (ScheduleAt, 5, "a datetime fires once"),
    (UUID, "00000000-0000-0000-0000-000000000005", "expected UUID"),
    (Identity, bytes(32), "expected Identity"),
    (ConnectionId, Identity.from_int(1), "expected ConnectionId"),
    (Colour, "RED", "got 'RED'"),
    (Colour, 1, "got 1"),
    (u8 | None, 256, "256"),
    (list[u8], 5, "got 5"),
    (list[u8], "abc", "got 'abc'"),
    (list[u8], [1, 256], r"v\[1\]: 256"),
    (list[u8], FrozenList([1, 256]), r"v\[1\]: 256"),
    (list[list[u8]], [[1], [2, "x"]], r"v\[1\]\[1\]: .*'x'"),
    (Point, 5, "expected Point, got 5"),
    (Point, None, "expected Point, got None"),
    (Point, {"x": 1.0}, "expected Point"),
    (Point, Point(x="east"), r"v\.x: .*'east'"),
    (Point | None, Point(x="east"), r"v\.x: .*'east'"),
    (Path, Path(points=[Point(x=0.0), Point(x=None)]), r"v\.points\[1\]\.x: .*None"),
    (Circle | Square, Point(x=1.0), "Circle | Square"),
    (Circle | Square, Square(side=300), r"v\.side: 300"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), REFUSED)
def test_what_does_not_fit_is_refused_naming_table_column_and_value(annotation: Any, value: Any, message: str) -> None:
    db, thing = table_of(annotation)
    with pytest.raises(ColumnError, match=rf"^thing\.v.*{message}|^thing\.{message}"), db.transaction() as ctx:
        ctx.db[thing].insert(thing(v=value))
    assert db.read(thing).count() == 0


@pytest.mark.parametrize(("annotation", "value", "message"), REFUSED)
def test_an_argument_that_does_not_fit_is_refused_naming_it(annotation: Any, value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^reducer 'echo': v.*{message}|^reducer 'echo': {message}"):
        passed(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "plain", "message"),
    [
        (u8, 1.0, "got 1.0"),
        (float, "NaN", "'NaN'"),
        (bytes, "abc", "hex text"),
        (bytes, 5, "hex text"),
        (datetime, "yesterday", "times are written like"),
        (datetime, "2026-01-01T00:00:00", "no time zone"),
        (datetime, 5, "times are written like"),
        (timedelta, "5", "whole microseconds"),
        (timedelta, 2**63, "whole microseconds"),
        (ScheduleAt, 0, "must be positive"),
        (UUID, "x", "'x'"),
        (UUID, 5, "got 5"),
        (Identity, "00", "'00'"),
        (Identity, None, "None"),
        (Colour, "GREEN", "one of RED, BLUE"),
        (Colour, ["RED"], "one of RED, BLUE"),
        (list[u8], {}, "got {}"),
        (list[u8], [0, -1], r"v\[1\]: -1"),
        (Point, [1.0], r"got \[1.0\]"),
        (Point, {}, "needs the field 'x'"),
        (Point, {"x": 1.0, "z": 1.0}, "no field 'z'"),
        (Point, {"x": "1"}, r"v\.x: .*'1'"),
        (Circle | Square, {"radius": 1.0}, "must be one of circle, square"),
        (Circle | Square, {"type": "oval"}, "must be one of circle, square"),
        (Circle | Square, {"type": "square", "side": 256}, r"v\.side: 256"),
    ],
)
def test_json_that_does_not_fit_is_refused_naming_place_and_value(annotation: Any, plain: Any, message: str) -> None:
    with pytest.raises(ColumnError, match=rf"^v.*{message}|^{message}"):
        column_type(annotation, "here").from_json(plain, "v")


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ColumnError) as caught:
        stored(u8, "x" * 10_000)
    assert len(str(caught.value)) < 200


# --- lists in rows


def test_a_list_in_a_row_cannot_be_changed_in_place() -> None:
    items = stored(list[u8], [1, 2])
    for change in (
        lambda: items.append(3),
        lambda: items.extend([3]),
        lambda: items.insert(0, 3),
        lambda: items.remove(1),
        lambda: items.pop(),
        lambda: items.clear(),
        lambda: items.sort(),
        lambda: items.reverse(),
        lambda: items.__setitem__(0, 3),
        lambda: items.__delitem__(0),
        lambda: items.__iadd__([3]),
        lambda: items.__imul__(2),
    ):
        with pytest.raises(TypeError, match="make a new one"):
            change()
    assert items == [1, 2]


def test_a_list_in_a_row_reads_like_any_list() -> None:
    items = stored(list[u8], [2, 1])
    assert items == [2, 1]
    assert isinstance(items, list)
    assert [*items, 3] == items.__add__([3]) == [2, 1, 3]
    assert sorted(items) == [1, 2]
    assert msgspec.json.encode(items) == b"[2,1]"
    assert hash(items) == hash(FrozenList([2, 1]))


def test_a_list_in_a_row_is_not_the_list_that_was_given() -> None:
    mine = [1, 2]
    items = stored(list[u8], mine)
    mine.append(3)
    assert items == [1, 2]


def test_a_list_in_a_row_survives_pickle_and_copy() -> None:
    items = stored(list[u8], [1])
    for other in (pickle.loads(pickle.dumps(items)), copy.copy(items), copy.deepcopy(items)):
        assert other == items
        assert type(other) is FrozenList


def test_a_canonical_list_is_kept_as_the_same_object() -> None:
    kind = column_type(list[list[u8]], "here")
    items = kind.coerce([[1], [2]], "v")
    assert kind.coerce(items, "v") is items


# --- annotations that are no column types


class Open(Struct, frozen=False):
    x: int


class Loose(Struct, eq=False):
    x: int


class Odd(Struct):
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Endless(Struct):
    inner: Endless


class Untagged(Struct):
    x: int


class AllAlike(enum.Enum):
    A = 1
    B = 2

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Flags(enum.Flag):
    A = 1


class NoMembers(enum.Enum):
    pass


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (object, "object is not a column type"),
        (Any, "Any is not a column type"),
        (list, r"write list\[T\]"),
        (dict[str, int], "not a column type"),
        (set[int], "not a column type"),
        (tuple[int, int], "not a column type"),
        (int | str, "a union may hold Structs with tags"),
        (Circle | Untagged, "declare it with tag=True"),
        (Circle | int, "a union may hold Structs"),
        (Open, "frozen=True"),
        (list[Open], "frozen=True"),
        (Loose, "must compare by its fields"),
        (Odd, "must compare by its fields"),
        (Endless, "contains itself, and so on without end"),
        (Flags, "is a Flag"),
        (AllAlike, "AllAlike must compare by its members"),
        (NoMembers, "has no members"),
        (None, "not a column type"),
    ],
)
def test_other_annotations_are_refused_with_a_remedy(annotation: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=f"Thing.v.*{message}"):
        table_of(annotation)


# --- exact comparison


@given(st.floats(), st.floats())
def test_exact_tells_floats_apart_as_repr_does(left: float, right: float) -> None:
    exact = exact_function(column_type(float, "here"))
    assert exact is not None
    assert (exact(left) == exact(right)) == (repr(left) == repr(right))
    assert hash(exact(left)) == hash(exact(left))


def test_exact_looks_into_lists_structs_and_unions() -> None:
    for annotation, left, right in [
        (list[float], [0.0], [-0.0]),
        (float | None, 0.0, -0.0),
        (Point, Point(x=0.0), Point(x=-0.0)),
        (list[Point | None], [None, Point(x=0.0)], [None, Point(x=-0.0)]),
        (Circle | Square, Circle(radius=0.0), Circle(radius=-0.0)),
        (Circle | Square, Square(side=0, at=Point(x=0.0)), Square(side=0, at=Point(x=-0.0))),
    ]:
        kind = column_type(annotation, "here")
        exact = exact_function(kind)
        assert exact is not None
        left, right = kind.coerce(left, "v"), kind.coerce(right, "v")
        assert left == right
        assert exact(left) != exact(right)
        assert exact(left) == exact(left)
    nan = [column_type(Point, "here").coerce(Point(x=float("nan")), "v") for _ in range(2)]
    exact = exact_function(column_type(Point, "here"))
    assert exact is not None
    assert nan[0] != nan[1]
    assert exact(nan[0]) == exact(nan[1])


def test_types_without_floats_need_no_exact_function() -> None:
    for annotation in (u8, str, list[str], Square if False else Untagged, Colour | None):
        assert exact_function(column_type(annotation, "here")) is None
