"""SATS-JSON: the JSON forms of column values in the HTTP API, exact for numbers of any size.

`to_sats` and `from_sats` go between canonical values and JSON builtins, `dumps` and `loads` between builtins and
text. All that can be wrong with foreign JSON is a `WireError` that names the place. It knows no tables.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn
from uuid import UUID

import msgspec

from gamedb.columns import (
    BoolType,
    BytesType,
    ColumnType,
    DurationType,
    EnumType,
    FloatType,
    FrozenList,
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
    from_micros,
    micros_of,
    shown,
    to_micros,
)
from gamedb.errors import ColumnError, WireError
from gamedb.types import I64, Identity
from gamedb.wire.typespace import enum_names

DEPTH_MAX: Final = 256
"""How deep values may nest in JSON that comes in, counting every list, option, sum and product."""

TIMESTAMP_FIELD: Final = "__timestamp_micros_since_unix_epoch__"
DURATION_FIELD: Final = "__time_duration_micros__"
IDENTITY_FIELD: Final = "__identity__"
CONNECTION_ID_FIELD: Final = "__connection_id__"
UUID_FIELD: Final = "__uuid__"


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
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {shown(max(names, key=names.count))} stands twice in an object")
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


# --- builtins to values


def from_sats(kind: ColumnType, value: Any, path: str = "$") -> Any:
    """The canonical value of its JSON builtins, named or not; `WireError` names `path` when there is none."""
    try:
        return _read(kind, value, path, 0)
    except RecursionError:
        raise WireError(f"{_short(path)}: values nest too deep") from None


def _read(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise WireError(f"{_short(path)}: values nest deeper than {DEPTH_MAX}")
    return _READERS[type(kind)](kind, value, path, depth)


def _short(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:60]}...{path[-57:]}"


def _refuse(kind: ColumnType | str, value: Any, path: str, why: str = "") -> NoReturn:
    expected = kind if isinstance(kind, str) else kind.name
    raise WireError(f"{_short(path)}: expected {expected}, got {shown(value)}{why}")


def _canonical(kind: ColumnType, value: Any, path: str) -> Any:
    try:
        return kind.coerce(value, _short(path))
    except ColumnError as error:
        raise WireError(str(error)) from None


def _inner_field(name: str, value: Any, path: str) -> Any:
    """The one field of a special product."""
    if isinstance(value, dict) and len(value) == 1 and name in value:
        return value[name]
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    _refuse(f'{{"{name}": ...}}', value, path)


def _chosen(names: list[str], kind: str, value: Any, path: str) -> tuple[int, Any]:
    """Index and payload of a sum: by name, by index in an object, or `[index, payload]`."""
    if isinstance(value, dict) and len(value) == 1:
        (key, payload), *_ = value.items()
        if key in names:
            return names.index(key), payload
        if key in map(str, range(len(names))):
            return int(key), payload
    elif isinstance(value, list) and len(value) == 2 and type(value[0]) is int and 0 <= value[0] < len(names):
        return value[0], value[1]
    few = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    _refuse(kind, value, path, f': it is written {{"Variant": payload}} with one of {few}')


def _check_unit(payload: Any, path: str) -> None:
    if payload not in ([], {}):
        _refuse("[] (this variant has no payload)", payload, path)


_HEX_256 = re.compile(r"-?0x[0-9a-fA-F]{1,64}\Z")
_HEX_BYTES = re.compile(r"(?:[0-9a-fA-F]{2})*\Z")


def _read_int(kind: IntType, value: Any, path: str, depth: int) -> Any:
    if isinstance(value, str) and kind.name.endswith("256") and _HEX_256.match(value):
        value = int(value, 16)
    if type(value) is not int:
        why = ': 256 bits are written "0x..."' if kind.name.endswith("256") else ": a whole number"
        _refuse(kind, value, path, why)
    return _canonical(kind, value, path)


def _read_float(kind: FloatType, value: Any, path: str, depth: int) -> Any:
    if type(value) is not int and type(value) is not float:
        _refuse(kind, value, path)
    return _canonical(kind, value, path)


def _read_plain(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    return _canonical(kind, value, path)


def _read_bytes(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    if isinstance(value, str) and _HEX_BYTES.match(value):
        return bytes.fromhex(value)
    if isinstance(value, list) and all(type(item) is int and 0 <= item <= 255 for item in value):
        return bytes(value)
    _refuse(kind, value, path, ": hex text without 0x, or an array of numbers from 0 to 255")


def _micros(value: Any, path: str) -> int:
    if type(value) is not int or not I64.low <= value <= I64.high:
        _refuse("a whole number of microseconds that fits 64 bits", value, path)
    return int(value)


def _read_timestamp(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    micros = _micros(_inner_field(TIMESTAMP_FIELD, value, path), path)
    try:
        return from_micros(micros)
    except OverflowError:
        _refuse("a time in the years 1 to 9999", micros, path)


def _read_duration(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    return timedelta(microseconds=_micros(_inner_field(DURATION_FIELD, value, path), path))


def _read_schedule_at(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    index, payload = _chosen(["Interval", "Time"], kind.name, value, path)
    read = _read_timestamp if index else _read_duration
    return _canonical(kind, read(kind, payload, path, depth), path)


def _read_uuid(kind: ColumnType, value: Any, path: str, depth: int) -> Any:
    return UUID(int=_unsigned(128, _inner_field(UUID_FIELD, value, path), path))


def _unsigned(bits: int, value: Any, path: str) -> int:
    if type(value) is not int or not 0 <= value < 2**bits:
        _refuse(f"a whole number of {bits} bits", value, path)
    return int(value)


def _read_hex(kind: HexType, value: Any, path: str, depth: int) -> Any:
    if kind.cls is not Identity:
        return kind.cls.from_int(_unsigned(128, _inner_field(CONNECTION_ID_FIELD, value, path), path))
    text = _inner_field(IDENTITY_FIELD, value, path)
    if not (isinstance(text, str) and _HEX_256.match(text) and text[0] != "-"):
        _refuse('the hex text of an identity, "0x..."', text, path)
    return Identity.from_int(int(text, 16))


def _read_enum(kind: EnumType, value: Any, path: str, depth: int) -> Any:
    names = enum_names(kind)
    index, payload = _chosen(names, kind.name, value, path)
    _check_unit(payload, f"{path}.{names[index]}")
    return kind.cls[names[index]]


def _read_option(kind: OptionType, value: Any, path: str, depth: int) -> Any:
    if value is None:
        return None
    index, payload = _chosen(["some", "none"], kind.name, value, path)
    if index:
        _check_unit(payload, path)
        return None
    return _read(kind.inner, payload, path, depth + 1)


def _read_list(kind: ListType, value: Any, path: str, depth: int) -> Any:
    if not isinstance(value, list):
        _refuse(kind, value, path, ": an array")
    return FrozenList([_read(kind.item, item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)])


def _read_product(kind: ProductType, value: Any, path: str, depth: int) -> Any:
    if isinstance(value, list) and len(value) == len(kind.fields):
        given = dict(zip(kind.fields, value, strict=True))
    elif isinstance(value, dict):
        given = value
    else:
        _refuse(kind, value, path, f": an object with {', '.join(kind.fields) or 'no fields'}")
    for name in kind.fields:
        if name not in given:
            raise WireError(f"{_short(path)}: {kind.name} needs the field {name!r}")
    for name in given:
        if name not in kind.fields:
            raise WireError(
                f"{_short(path)}: {kind.name} has no field {shown(name)} (it has {', '.join(kind.fields) or 'none'})"
            )
    fields = {name: _read(kind.fields[name], item, f"{path}.{name}", depth + 1) for name, item in given.items()}
    return _made(kind.cls, fields, path)


def _made(cls: type[msgspec.Struct], fields: dict[str, Any], path: str) -> Any:
    try:
        return cls(**fields)
    except Exception as error:  # its own __post_init__, say
        raise WireError(f"{_short(path)}: {cls.__name__} cannot be made of this: {error!r}") from error


def _read_sum(kind: SumType, value: Any, path: str, depth: int) -> Any:
    tags = list(kind.variants)
    index, payload = _chosen(tags, kind.name, value, path)
    variant = kind.variants[tags[index]]
    where = f"{path}.{tags[index]}"
    if variant.fields:
        return _read(variant, payload, where, depth + 1)
    _check_unit(payload, where)
    return _made(variant.cls, {}, where)


_READERS: Final[dict[type[ColumnType], Callable[[Any, Any, str, int], Any]]] = {
    BoolType: _read_plain,
    IntType: _read_int,
    FloatType: _read_float,
    StrType: _read_plain,
    BytesType: _read_bytes,
    TimestampType: _read_timestamp,
    DurationType: _read_duration,
    ScheduleAtType: _read_schedule_at,
    UuidType: _read_uuid,
    HexType: _read_hex,
    EnumType: _read_enum,
    OptionType: _read_option,
    ListType: _read_list,
    ProductType: _read_product,
    SumType: _read_sum,
}
