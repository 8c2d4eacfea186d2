"""Random column types and values of them, for property tests of everything that goes over the wire."""

from __future__ import annotations

import enum
import itertools
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from gamedb import ConnectionId, Identity, ScheduleAt, types
from gamedb.columns import (
    DURATION_MAX,
    DURATION_MIN,
    EPOCH,
    ColumnType,
    EnumType,
    FloatType,
    HexType,
    IntType,
    ListType,
    OptionType,
    ProductType,
    SumType,
    column_type,
    round_f32,
    to_micros,
)

_numbers = itertools.count()

PLAIN = [
    column_type(annotation, "column")
    for annotation in (
        *(bool, float, str, bytes, datetime, timedelta, UUID, Identity, ConnectionId, ScheduleAt, types.f32),
        *(types.u8, types.u16, types.u32, types.u64, types.u128, types.u256),
        *(types.i8, types.i16, types.i32, types.i64, types.i128, types.i256),
    )
]


def _enum(size: int) -> EnumType:
    name = f"Enum{next(_numbers)}"
    return EnumType(enum.Enum(name, {f"M{i}": i * 7 for i in range(size)}))  # type: ignore[arg-type]


def _product(kinds: list[ColumnType], tag: str | None = None) -> ProductType:
    name = f"Struct{next(_numbers)}"
    cls = msgspec.defstruct(name, [f"f{i}" for i in range(len(kinds))], frozen=True, tag=tag)
    return ProductType(cls, {f"f{i}": kind for i, kind in enumerate(kinds)}, {f"f{i}" for i in range(len(kinds))})


def _sum(variants: list[list[ColumnType]]) -> SumType:
    return SumType({f"V{i}": _product(kinds, f"V{i}") for i, kinds in enumerate(variants)}, "type")


def column_types() -> st.SearchStrategy[ColumnType]:
    """Any type that a column can have, nested up to some depth."""
    leaves = st.sampled_from(PLAIN) | st.integers(1, 256).map(_enum)

    def deeper(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
        fields = st.lists(inner, max_size=4)
        return (
            inner.map(OptionType)
            | inner.map(ListType)
            | fields.map(_product)
            | st.lists(fields, min_size=2, max_size=4).map(_sum)
        )

    return st.recursive(leaves, deeper, max_leaves=8)


_MICROS_FIRST = to_micros(datetime.min.replace(tzinfo=EPOCH.tzinfo))
_MICROS_LAST = to_micros(datetime.max.replace(tzinfo=EPOCH.tzinfo))
_TIMES = st.integers(_MICROS_FIRST, _MICROS_LAST).map(lambda micros: EPOCH + timedelta(microseconds=micros))
_INTERVALS = st.integers(1, 2**63 - 1).map(lambda micros: timedelta(microseconds=micros))
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "str": _TEXTS,
    "bytes": st.binary(max_size=12),
    "datetime": _TIMES,
    "timedelta": st.timedeltas(DURATION_MIN, DURATION_MAX),
    "UUID": st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number)),
    "ScheduleAt": _TIMES | _INTERVALS,
}


def values(kind: ColumnType, *, finite: bool = False) -> st.SearchStrategy[Any]:
    """Canonical values of a type; `finite`: without nan and infinities."""
    if isinstance(kind, IntType):
        return st.sampled_from([kind.low, kind.high, 0]) | st.integers(kind.low, kind.high)
    if isinstance(kind, FloatType):
        floats = st.floats(allow_nan=not finite, allow_infinity=not finite, width=32 if kind.name == "f32" else 64)
        return floats.map(round_f32) if kind.name == "f32" else floats
    if isinstance(kind, HexType):
        return st.binary(min_size=kind.cls.size, max_size=kind.cls.size).map(kind.cls)
    if isinstance(kind, EnumType):
        return st.sampled_from(list(kind.cls))
    if isinstance(kind, OptionType):
        return st.none() | values(kind.inner, finite=finite)
    if isinstance(kind, ListType):
        return st.lists(values(kind.item, finite=finite), max_size=3).map(lambda items: kind.coerce(items, "list"))
    if isinstance(kind, ProductType):
        return st.builds(kind.cls, **{name: values(k, finite=finite) for name, k in kind.fields.items()})
    if isinstance(kind, SumType):
        return st.one_of([values(variant, finite=finite) for variant in kind.variants.values()])
    return _VALUES[kind.name]


@st.composite
def typed_values(draw: st.DrawFn, *, finite: bool = False) -> tuple[ColumnType, Any]:
    """A type and a value of it."""
    kind = draw(column_types())
    return kind, draw(values(kind, finite=finite))
