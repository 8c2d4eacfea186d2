"""Hypothesis strategies for the values of columns, parameters and payloads. Needs Hypothesis."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from functools import lru_cache, singledispatch
from typing import Any, Final

from hypothesis import strategies as st

from gamedb.columns import (
    BoolType,
    BytesType,
    ColumnType,
    DurationType,
    EnumType,
    FloatType,
    HexType,
    IntType,
    ListType,
    OptionType,
    ProductType,
    ScheduleAtType,
    StrType,
    SumType,
    TimestampType,
    UuidType,
    column_type,
    inside,
)

SMALL: Final = 10
"""Half of all numbers are at most so large: games meet in small numbers."""
ITEMS_MAX: Final = 4
"""The most items of a list, letters of a text and bytes of bytes."""

Values = st.SearchStrategy[Any]


def values(annotation: Any) -> Values:
    """Values of a type as columns and parameters have them: `u32`, `str | None`, `list[Item]`, an enum, a Struct."""
    return of_type(annotation if isinstance(annotation, ColumnType) else column_type(annotation, "values"))


@singledispatch
def of_type(kind: ColumnType) -> Values:
    """Values of a column type."""
    raise NotImplementedError(f"there are no values for {kind.name}; give a strategy of your own")


@of_type.register
def _(kind: BoolType) -> Values:
    return st.booleans()


@of_type.register
def _(kind: IntType) -> Values:
    return st.integers(max(kind.low, -SMALL), SMALL) | st.integers(kind.low, kind.high)


@of_type.register
def _(kind: FloatType) -> Values:
    floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
    return floats.map(lambda number: float(struct.unpack("<f", struct.pack("<f", number))[0]))


@of_type.register
def _(kind: StrType) -> Values:
    return st.text(max_size=ITEMS_MAX, alphabet=st.characters(codec="utf-8", exclude_characters="\0"))


@of_type.register
def _(kind: BytesType) -> Values:
    return st.binary(max_size=ITEMS_MAX)


@of_type.register
def _(kind: UuidType) -> Values:
    return st.uuids()


@of_type.register
def _(kind: HexType) -> Values:
    return st.integers(0, SMALL).map(kind.cls.from_int)


@of_type.register
def _(kind: EnumType) -> Values:
    return st.sampled_from(list(kind.cls))


@of_type.register
def _(kind: OptionType) -> Values:
    return st.none() | of_type(kind.inner)


@of_type.register
def _(kind: ListType) -> Values:
    recurs = any(isinstance(part, ProductType) and part.recursive for part in (kind.item, *inside(kind.item)))
    return st.deferred(lambda: st.lists(of_type(kind.item), max_size=1 if recurs else ITEMS_MAX))  # or it had no end


@of_type.register
def _(kind: ProductType) -> Values:
    return _product(kind)


@lru_cache(maxsize=1024)
def _product(kind: ProductType) -> Values:
    """One for each, by which Hypothesis knows again those that contain themselves."""
    return st.deferred(lambda: st.builds(kind.cls, **{name: of_type(field) for name, field in kind.fields.items()}))


@of_type.register
def _(kind: SumType) -> Values:
    return st.one_of([of_type(variant) for variant in kind.variants.values()])


@of_type.register
def _(kind: TimestampType) -> Values:
    return st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@of_type.register
def _(kind: DurationType) -> Values:
    return st.timedeltas(timedelta(0), timedelta(days=2)) | st.integers(0, 120).map(lambda n: timedelta(seconds=n))


@of_type.register
def _(kind: ScheduleAtType) -> Values:
    return st.integers(1, 120).map(lambda n: timedelta(seconds=n))
