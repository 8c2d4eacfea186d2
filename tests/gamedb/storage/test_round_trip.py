"""Every value of every column type comes back from the database as it was."""

from __future__ import annotations

import enum
import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from conftest import Place, rows_of, schemas
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gamedb import types
from gamedb.columns import DURATION_MAX, DURATION_MIN, FrozenList
from gamedb.schema import PrimaryKey, Row, Struct


class Color(enum.Enum):
    RED = 1
    SCARLET = 1  # noqa: PIE796  # an alias
    BLUE = "blue"


class Point(Struct):
    x: float
    big: types.u256
    note: str | None = None


class Walk(Struct, tag=True):
    to: Point


class Wait(Struct, tag=True):
    until: datetime


class Everything(Row):
    id: PrimaryKey[types.u32]
    flag: bool
    u8: types.u8
    u16: types.u16
    u32: types.u32
    u64: types.u64
    u128: types.u128
    u256: types.u256
    i8: types.i8
    i16: types.i16
    i32: types.i32
    i64: types.i64
    i128: types.i128
    i256: types.i256
    f32: types.f32
    f64: float
    text: str
    blob: bytes
    at: datetime
    duration: timedelta
    uuid: UUID
    identity: types.Identity
    connection: types.ConnectionId
    fires: types.ScheduleAt
    color: Color
    maybe_float: float | None
    maybe_point: Point | None
    maybe_u64: types.u64 | None
    maybe_flag: bool | None
    points: list[Point]
    lists: list[list[int]]
    step: Walk | Wait


def ints(name: str) -> st.SearchStrategy[int]:
    bits = int(name[1:])
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.sampled_from([low, high, low + 1, high // 2, high // 2 + 1]) | st.integers(low, high)


TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("\x00\x1a0ax😀")
FLOATS = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda t: t.replace(fold=0))
DURATIONS = st.timedeltas(DURATION_MIN, DURATION_MAX)
POINTS = st.builds(Point, x=FLOATS, big=ints("u256"), note=st.none() | TEXTS)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    **{f"{sign}{bits}": ints(f"{sign}{bits}") for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)},
    "f32": st.floats(width=32),
    "f64": FLOATS,
    "text": TEXTS,
    "blob": st.binary(),
    "at": TIMES,
    "duration": DURATIONS,
    "uuid": st.uuids(),
    "identity": st.binary(min_size=32, max_size=32).map(types.Identity),
    "connection": st.binary(min_size=16, max_size=16).map(types.ConnectionId),
    "fires": TIMES | st.timedeltas(timedelta(microseconds=1), DURATION_MAX),
    "color": st.sampled_from(Color),
    "maybe_float": st.none() | FLOATS,
    "maybe_point": st.none() | POINTS,
    "maybe_u64": st.none() | ints("u64"),
    "maybe_flag": st.none() | st.booleans(),
    "points": st.lists(POINTS, max_size=3).map(FrozenList),
    "lists": st.lists(st.lists(ints("i64"), max_size=2).map(FrozenList), max_size=2).map(FrozenList),
    "step": st.builds(Walk, to=POINTS) | st.builds(Wait, until=TIMES),
}
SCHEMAS = schemas(Everything)
EVERYTHING = st.fixed_dictionaries(VALUES)
EXTREMES = {
    "flag": True,
    **{f"u{bits}": 2**bits - 1 for bits in (8, 16, 32, 64, 128, 256)},
    **{f"i{bits}": -(2 ** (bits - 1)) for bits in (8, 16, 32, 64, 128, 256)},
    "f32": struct.unpack("<f", b"\xff\xff\x7f\x7f")[0],
    "f64": -0.0,
    "text": "a\x00b\x1ac\x1a0",
    "blob": b"\x00\xff",
    "at": datetime(1, 1, 1, tzinfo=UTC),
    "duration": DURATION_MIN,
    "uuid": UUID(int=0),
    "identity": types.Identity(bytes(32)),
    "connection": types.ConnectionId(b"\xff" * 16),
    "fires": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "color": Color.SCARLET,
    "maybe_float": math.nan,
    "maybe_point": Point(x=-0.0, big=2**256 - 1, note="\x00"),
    "maybe_u64": 2**64 - 1,
    "maybe_flag": False,
    "points": FrozenList([Point(x=math.inf, big=0)]),
    "lists": FrozenList([FrozenList()]),
    "step": Wait(until=datetime(9999, 12, 31, tzinfo=UTC)),
}


def bits(value: Any) -> Any:
    """A form in which values are equal exactly when they are the same type and bits."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value) if value == value else "nan")
    if isinstance(value, datetime):
        return ("datetime", value, value.tzinfo is UTC, value.fold)
    if isinstance(value, list):
        return (type(value), [bits(item) for item in value])
    if isinstance(value, Row | Struct):
        return (type(value), [bits(getattr(value, name)) for name in value.__struct_fields__])
    return (type(value), value)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example(values=[EXTREMES])
@given(values=st.lists(EVERYTHING, min_size=1, max_size=3))
def test_every_value_comes_back_as_it_was(place: Place, values: list[dict[str, Any]]) -> None:
    rows = [Everything(id=i, **columns) for i, columns in enumerate(values)]
    storage = place.open(SCHEMAS)
    gone = {row.id: None for row in rows_of(storage, "everything")}
    storage.write(1, {"everything": {**gone, **{row.id: row for row in rows}}})
    storage.close()

    storage = place.open(SCHEMAS)
    loaded = rows_of(storage, "everything")
    storage.close()

    assert bits(loaded) == bits(rows)


SOME_KEYS: dict[str, list[Any]] = {
    "flag": [True, False],
    "u8": [0, 255],
    "u64": [0, 2**63 - 1, 2**63, 2**64 - 1],
    "u128": [0, 9, 10, 2**128 - 1],
    "i64": [-(2**63), -1, 2**63 - 1],
    "i256": [-(2**255), 0, 2**255 - 1],
    "text": ["", "a", "A", "\x00", "a\x00", "\x1a0", "\x1aa"],
    "blob": [b"", b"\x00", b"\xff"],
    "at": [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    "duration": [DURATION_MIN, timedelta(0), DURATION_MAX],
    "uuid": [UUID(int=0), UUID(int=2**128 - 1)],
    "identity": [types.Identity(bytes(32)), types.Identity.from_int(1)],
    "color": [Color.RED, Color.BLUE],
}


@pytest.mark.parametrize("column", SOME_KEYS)
def test_any_keyable_type_can_be_a_primary_key(place: Place, column: str) -> None:
    annotation = Everything.__annotations__[column]
    namespace = {"__annotations__": {"key": f"PrimaryKey[{annotation}]", "n": "int"}, "__module__": __name__}
    row_class: Any = type(Row)("Keyed", (Row,), namespace)
    tables = schemas(row_class)
    keys = list(SOME_KEYS[column])
    storage = place.open(tables)

    storage.write(1, {"keyed": {key: row_class(key=key, n=1) for key in keys}})
    storage.write(2, {"keyed": {key: row_class(key=key, n=2) for key in keys}})
    assert {row.key: row.n for row in rows_of(storage, "keyed")} == dict.fromkeys(keys, 2)

    storage.write(3, {"keyed": dict.fromkeys(keys)})
    assert rows_of(storage, "keyed") == []
    storage.close()


class Waiting(Row):
    id: PrimaryKey[types.u32]
    place: str
    note: str | None
    data: bytes
    at: datetime
    again: types.ScheduleAt


def test_rows_that_are_loaded_share_equal_texts_and_times(place: Place) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    tables = schemas(Waiting)
    rows = [Waiting(id=n, place="lobby", note=None, data=b"state", at=at, again=at) for n in range(3)]
    rows += [Waiting(id=n, place=f"room {n}", note=f"{n}", data=bytes([n]), at=at, again=timedelta(n)) for n in (3, 4)]
    storage = place.open(tables)
    storage.write(1, {"waiting": {row.id: row for row in rows}})

    loaded = rows_of(storage, "waiting")
    storage.close()

    assert loaded == rows
    assert loaded[0].place is loaded[2].place
    if place.is_sqlite:  # a driver of a server makes times by itself
        assert loaded[0].at is loaded[4].at
        assert loaded[0].data is loaded[1].data
