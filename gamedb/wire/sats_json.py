"""SATS-JSON: the JSON forms of column values in the HTTP API, exact for numbers of any size.

`to_sats` and `from_sats` go between canonical values and JSON builtins, `dumps` and `loads` between builtins and
text. All that can be wrong with foreign JSON is a `WireError` that names the place. It knows no tables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

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
    micros_of,
    shown,
    to_micros,
)
from gamedb.errors import WireError
from gamedb.types import Identity
from gamedb.wire.sats_reading import DEPTH_MAX, from_sats
from gamedb.wire.typespace import (
    CONNECTION_ID_FIELD,
    DURATION_FIELD,
    IDENTITY_FIELD,
    TIMESTAMP_FIELD,
    UUID_FIELD,
    enum_names,
)

__all__ = ["DEPTH_MAX", "dumps", "from_sats", "loads", "to_sats"]


# --- text


def dumps(value: Any) -> bytes:
    """Compact JSON text, with all digits of every number."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def loads(text: bytes | str) -> Any:
    """The builtins of a JSON text; `WireError` when it is none, names a field twice or nests too deep."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        why = "it nests too deep" if isinstance(error, RecursionError) else error
        raise WireError(f"this is no JSON: {why}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the field {shown(twice)} stands twice in an object")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON; a number that is not finite has no form")


# --- values to builtins


def to_sats(kind: ColumnType, value: Any, named: bool = True) -> Any:
    """A canonical value as JSON builtins.

    `named`: products are objects by field name and sums objects by variant name; otherwise products are arrays and
    sums `[index, payload]`, as in results of queries and procedures.
    """
    return _WRITERS[type(kind)](kind, value, named)


def _field(name: str, value: Any, named: bool) -> Any:
    return {name: value} if named else [value]


def _variant(index: int, name: str, payload: Any, named: bool) -> Any:
    return {name: payload} if named else [index, payload]


def _write_int(kind: IntType, value: int, named: bool) -> Any:
    return hex(value) if kind.name.endswith("256") else value


def _write_float(kind: FloatType, value: float, named: bool) -> Any:
    return value if math.isfinite(value) else None


def _write_duration(kind: ColumnType, value: timedelta, named: bool) -> Any:
    return _field(DURATION_FIELD, micros_of(value), named)


def _write_timestamp(kind: ColumnType, value: datetime, named: bool) -> Any:
    return _field(TIMESTAMP_FIELD, to_micros(value), named)


def _write_schedule_at(kind: ColumnType, value: datetime | timedelta, named: bool) -> Any:
    if isinstance(value, datetime):
        return _variant(1, "Time", _write_timestamp(kind, value, named), named)
    return _variant(0, "Interval", _write_duration(kind, value, named), named)


def _write_hex(kind: HexType, value: Any, named: bool) -> Any:
    if kind.cls is Identity:
        return _field(IDENTITY_FIELD, f"0x{value.hex()}", named)
    return _field(CONNECTION_ID_FIELD, value.to_int(), named)


def _write_enum(kind: EnumType, value: Any, named: bool) -> Any:
    return _variant(0 if named else enum_names(kind).index(value.name), value.name, [], named)


def _write_option(kind: OptionType, value: Any, named: bool) -> Any:
    if value is None:
        return _variant(1, "none", [], named)
    return _variant(0, "some", to_sats(kind.inner, value, named), named)


def _write_list(kind: ListType, value: Any, named: bool) -> Any:
    return [to_sats(kind.item, item, named) for item in value]


def _write_product(kind: ProductType, value: Any, named: bool) -> Any:
    fields = [(name, to_sats(inner, getattr(value, name), named)) for name, inner in kind.fields.items()]
    return dict(fields) if named else [item for _, item in fields]


def _write_sum(kind: SumType, value: Any, named: bool) -> Any:
    for index, (tag, variant) in enumerate(kind.variants.items()):
        if type(value) is variant.cls:
            payload = _write_product(variant, value, named) if variant.fields else []
            return _variant(index, tag, payload, named)
    raise TypeError(f"{shown(value)} is no {kind.name}")


_WRITERS: Final[dict[type[ColumnType], Callable[[Any, Any, bool], Any]]] = {
    BoolType: lambda kind, value, named: value,
    IntType: _write_int,
    FloatType: _write_float,
    StrType: lambda kind, value, named: value,
    BytesType: lambda kind, value, named: value.hex(),
    TimestampType: _write_timestamp,
    DurationType: _write_duration,
    ScheduleAtType: _write_schedule_at,
    UuidType: lambda kind, value, named: _field(UUID_FIELD, value.int, named),
    HexType: _write_hex,
    EnumType: _write_enum,
    OptionType: _write_option,
    ListType: _write_list,
    ProductType: _write_product,
    SumType: _write_sum,
}
