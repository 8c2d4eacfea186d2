"""Codecs of values without parts: numbers, text, times, enums."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid
from typing import Any

from .base import Codec, Unstorable, always, bad_value

MSGSPEC_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    str: "str",
    bytes: "str",
    dt.date: "str",
    dt.timedelta: "str",
    uuid.UUID: "str",
    decimal.Decimal: "str",
}


def exact(cls: type, kind: str) -> Codec:
    """Values of exactly this class, in msgspec's own form."""

    def pack(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, "None" if cls is type(None) else cls.__qualname__)
        return value

    return Codec(cls, pack, None, None, frozenset({kind}), (cls,), cls, always)


def _fixed_offset(value: dt.datetime | dt.time) -> bool:
    zone = value.tzinfo
    if value.fold:
        return False
    if zone is None or zone is dt.UTC:
        return True
    return type(zone) is dt.timezone and zone.utcoffset(None).total_seconds() % 60 == 0


def _has_no_zone_but_utc(value: dt.datetime | dt.time) -> bool:
    return value.tzinfo is None or value.tzinfo is dt.UTC  # others may have names, which are not stored


def moment(cls: type[dt.datetime] | type[dt.time]) -> Codec:
    """Naive or with a fixed offset of whole minutes: text keeps no zone rules."""

    def pack(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, cls.__qualname__)
        if not _fixed_offset(value):
            raise bad_value(value, path, cls.__qualname__, "its zone is not kept: use .astimezone(timezone.utc)")
        return value

    return Codec(cls, pack, None, None, frozenset({"str"}), (cls,), None, _has_no_zone_but_utc)


def _pack_float(value: Any, path: str) -> Any:
    if type(value) is float:
        return value if math.isfinite(value) else repr(value)
    if type(value) is int:
        return value
    raise bad_value(value, path, "float")


def _unpack_float(stored: Any) -> Any:
    return float(stored) if type(stored) is str else stored


# An int is allowed where a float is declared, and stays an int; inf and nan are the strings "inf", "-inf", "nan".
FLOAT = Codec(
    float | int | str,
    _pack_float,
    _unpack_float,
    None,
    frozenset({"float", "int", "str"}),
    (float, int),
    keeps=always,
)


def _pack_range(value: Any, path: str) -> Any:
    if type(value) is not range:
        raise bad_value(value, path, "range")
    return (value.start, value.stop, value.step)


RANGE = Codec(
    tuple[int, int, int], _pack_range, lambda s: range(*s), None, frozenset({"array"}), (range,), keeps=always
)


def _kind_of_values(cls: type[enum.Enum]) -> str | None:
    """The kind that the values of all members are of, where msgspec stores members by value."""
    types = {type(member.value) for member in cls}
    if types == {int} and all(-(2**63) <= member.value < 2**63 for member in cls):
        return "int"
    return "str" if types == {str} else None


def stored_members(cls: type[enum.Enum]) -> list[Any]:
    """What each member is stored as: its value, or its name where the values are of other or several types, or huge."""
    return [member.name if _kind_of_values(cls) is None else member.value for member in cls]


def enum_codec(cls: type[enum.Enum]) -> Codec:
    """As `stored_members` says; flags by their number."""

    def check(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, cls.__qualname__)
        return value

    if issubclass(cls, enum.Flag):
        return Codec(int, lambda value, path: check(value, path).value, cls, None, frozenset({"int"}), (cls,))
    kind = _kind_of_values(cls)
    if kind is not None:
        return Codec(cls, check, None, None, frozenset({kind}), (cls,), cls, always)
    if not len(cls):
        raise Unstorable(f"{cls.__qualname__} has no members")
    return Codec(str, lambda value, path: check(value, path).name, cls.__getitem__, None, frozenset({"str"}), (cls,))
