"""The reading half of SATS-JSON: JSON builtins, named or not, to canonical values.

`from_sats` is for foreign JSON: all that can be wrong with it is a `WireError` that names the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
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
    shown,
)
from gamedb.errors import ColumnError, WireError
from gamedb.types import I64, Identity
from gamedb.wire.typespace import (
    CONNECTION_ID_FIELD,
    DURATION_FIELD,
    IDENTITY_FIELD,
    TIMESTAMP_FIELD,
    UUID_FIELD,
    enum_names,
)

DEPTH_MAX: Final = 256
"""How deep values may nest in JSON that comes in, counting every list, option, sum and product."""


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
