"""SATS-JSON: the forms of every type, exact numbers, and foreign JSON that is refused with its place."""

from __future__ import annotations

import enum
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gamedb import ConnectionId, Identity, ScheduleAt, Struct, WireError, i256, u8, u64, u128, u256
from gamedb.columns import column_type
from gamedb.wire.sats_json import DEPTH_MAX, dumps, from_sats, loads, to_sats
from tests.gamedb.wire.random_types import column_types, typed_values


class Color(enum.Enum):
    Red = "red"
    Green = "green"


class Point(Struct):
    x: int
    y: int


class Tree(Struct):
    value: int
    children: list[Tree]


class Shape(Struct): ...


class Circle(Shape, tag=True):
    radius: float


class Nothing(Shape, tag=True): ...


ME = Identity.from_hex("c2" + "00" * 30 + "7f")
LINK = ConnectionId.from_int(7)
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOON_MICROS = 1_795_953_600_000_000

FORMS: list[tuple[Any, Any, Any, Any]] = [
    (bool, True, True, True),
    (u64, 2**64 - 1, 2**64 - 1, 2**64 - 1),
    (u128, 2**128 - 1, 2**128 - 1, 2**128 - 1),
    (u256, 255, "0xff", "0xff"),
    (i256, -255, "-0xff", "-0xff"),
    (float, 1.5, 1.5, 1.5),
    (float, math.nan, None, None),
    (float, -math.inf, None, None),
    (str, "é", "é", "é"),
    (bytes, b"\x01\xff", "01ff", "01ff"),
    (list[u8], [1, 2], [1, 2], [1, 2]),
    (datetime, NOON, {"__timestamp_micros_since_unix_epoch__": NOON_MICROS}, [NOON_MICROS]),
    (timedelta, timedelta(seconds=-1), {"__time_duration_micros__": -1_000_000}, [-1_000_000]),
    (UUID, UUID(int=2**127), {"__uuid__": 2**127}, [2**127]),
    (Identity, ME, {"__identity__": "0x" + ME.hex()}, ["0x" + ME.hex()]),
    (ConnectionId, LINK, {"__connection_id__": 7}, [7]),
    (ScheduleAt, timedelta(seconds=1), {"Interval": {"__time_duration_micros__": 1_000_000}}, [0, [1_000_000]]),
    (ScheduleAt, NOON, {"Time": {"__timestamp_micros_since_unix_epoch__": NOON_MICROS}}, [1, [NOON_MICROS]]),
    (int | None, 5, {"some": 5}, [0, 5]),
    (int | None, None, {"none": []}, [1, []]),
    (Color, Color.Green, {"Green": []}, [1, []]),
    (Point, Point(1, 2), {"x": 1, "y": 2}, [1, 2]),
    (Circle | Nothing, Circle(1.5), {"Circle": {"radius": 1.5}}, [0, [1.5]]),
    (Circle | Nothing, Nothing(), {"Nothing": []}, [1, []]),
]


@pytest.mark.parametrize(("annotation", "value", "named", "untyped"), FORMS)
def test_the_form_of_each_type(annotation: Any, value: Any, named: Any, untyped: Any) -> None:
    kind = column_type(annotation, "column")

    assert to_sats(kind, value) == named
    assert to_sats(kind, value, named=False) == untyped


READ: list[tuple[Any, Any, Any]] = [
    (u256, 7, 7),
    (bytes, [1, 2, 255], b"\x01\x02\xff"),
    (bytes, "", b""),
    (int | None, None, None),
    (int | None, {"0": 5}, 5),
    (Color, {"1": []}, Color.Green),
    (Color, {"Red": {}}, Color.Red),
    (Circle | Nothing, [1, []], Nothing()),
    (Point, {"y": 2, "x": 1}, Point(1, 2)),
    (float, 3, 3.0),
]


@pytest.mark.parametrize(("annotation", "given", "value"), READ)
def test_other_forms_that_are_read(annotation: Any, given: Any, value: Any) -> None:
    assert from_sats(column_type(annotation, "column"), given) == value


REFUSED: list[tuple[Any, Any, str]] = [
    (u8, 256, r"\$: 256 is out of range for u8"),
    (u8, 1.0, r"\$: expected u8, got 1.0"),
    (u8, True, r"\$: expected u8, got True"),
    (u256, "ff", r"256 bits are written"),
    (float, None, r"\$: expected f64, got None"),
    (float, 10**400, r"out of range for f64"),
    (str, "\ud800", r"lone surrogate"),
    (bytes, "0xff", r"hex text without 0x"),
    (bytes, [256], r"hex text without 0x"),
    (Identity, "0x" + ME.hex(), r'expected \{"__identity__"'),
    (Identity, {"__identity__": 5}, r"hex text of an identity"),
    (ConnectionId, [2**128], r"whole number of 128 bits"),
    (datetime, [2**63], r"fits 64 bits"),
    (datetime, [2**63 - 1], r"years 1 to 9999"),
    (ScheduleAt, {"Interval": [0]}, r"interval must be positive"),
    (int | None, 5, r"expected i64 \| None, got 5"),
    (int | None, {"some": 5, "none": []}, r"expected i64 \| None"),
    (Color, "Green", r'it is written \{"Variant": payload\} with one of Red, Green'),
    (Color, {"Green": 5}, r"\$\.Green: expected \[\]"),
    (Color, [2, []], r"with one of Red, Green"),
    (list[Point], [[1, 2], {"x": 1}], r"\$\[1\]: Point needs the field 'y'"),
    (list[Point], [{"x": 1, "y": 2, "z": 3}], r"\$\[0\]: Point has no field 'z' \(it has x, y\)"),
    (Point, [1], r"expected Point, got \[1\]"),
    (list[Point], [{"x": 1, "y": "a"}], r"\$\[0\]\.y: expected i64, got 'a'"),
    (Circle | Nothing, {"Circle": {"radius": "x"}}, r"\$\.Circle\.radius: expected f64"),
]


@pytest.mark.parametrize(("annotation", "given", "message"), REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(annotation: Any, given: Any, message: str) -> None:
    with pytest.raises(WireError, match=message):
        from_sats(column_type(annotation, "column"), given)


@given(typed_values(finite=True), st.booleans())
def test_property_every_value_comes_back_from_its_json(typed: tuple[Any, Any], named: bool) -> None:
    kind, value = typed

    text = dumps(to_sats(kind, value, named))

    back = from_sats(kind, loads(text))
    assert repr(back) == repr(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**130), 2**130) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["some", "none", "f0", "f1", "V0", "M0", "0", "x"]), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(column_types(), JSON)
def test_property_any_json_gives_a_value_of_the_type_or_a_wire_error(kind: Any, given: Any) -> None:
    try:
        value = from_sats(kind, given)
    except WireError:
        return
    assert kind.coerce(value, "value") is value


@given(st.binary(max_size=40) | st.text(max_size=40))
@example(b"[" * 100_000)
@example(b"9" * 5_000)
@example(b'{"a":' * 50_000)
@example(b"NaN")
@example(b"\xff")
def test_property_any_text_is_json_or_a_wire_error(text: bytes | str) -> None:
    try:
        loads(text)
    except WireError:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(text, parse_constant=int)


def test_a_field_that_stands_twice_is_refused() -> None:
    with pytest.raises(WireError, match="'x' stands twice"):
        loads('{"x": 1, "x": 2}')


def test_values_that_nest_too_deep_are_refused() -> None:
    annotation: Any = int
    for _ in range(DEPTH_MAX + 2):
        annotation = list[annotation]
    value: Any = 1
    for _ in range(DEPTH_MAX + 2):
        value = [value]

    with pytest.raises(WireError, match="nest deeper than 256"):
        from_sats(column_type(annotation, "column"), value)


def test_a_value_that_holds_itself_is_read_up_to_a_depth() -> None:
    kind = column_type(Tree, "column")
    value: Any = {"value": 0, "children": []}
    for depth in range(1, 60):
        value = {"value": depth, "children": [value]}

    assert to_sats(kind, from_sats(kind, value)) == value
    for depth in range(200):
        value = {"value": depth, "children": [value]}
    with pytest.raises(WireError, match="nest deeper than 256"):
        from_sats(kind, value)


def test_the_place_of_an_error_stays_short_however_deep_it_is() -> None:
    value: Any = {"value": "x", "children": []}
    for depth in range(100):
        value = {"value": depth, "children": [value]}

    with pytest.raises(WireError, match=r"^\$\.children\[0\].*\.\.\..*\.value: expected i64") as caught:
        from_sats(column_type(Tree, "column"), value)

    assert len(str(caught.value)) < 200


def test_a_long_object_with_a_field_twice_is_refused_at_once() -> None:
    fields = ", ".join(f'"f{number}": 0' for number in range(200_000))

    with pytest.raises(WireError, match="'f0' stands twice"):
        loads(f'{{{fields}, "f0": 1}}')
