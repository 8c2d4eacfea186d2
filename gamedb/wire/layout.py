"""How much room each column type takes on the wire, and how the types of one fixed size are written and read.

Only facts about types; `encoding` and `decoding` make code of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

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
    from_micros,
    micros_of,
    shown,
    to_micros,
)
from gamedb.errors import SchemaError
from gamedb.types import ConnectionId, Identity

VARIANTS_MAX: Final = 256
"""Members of an enum, variants of a union: their number is one byte."""

NATIVE: Final = {
    **{f"u{bits}": code for bits, code in zip((8, 16, 32, 64), "BHIQ", strict=True)},
    **{f"i{bits}": code for bits, code in zip((8, 16, 32, 64), "bhiq", strict=True)},
}
"""The integers that the struct module knows."""


class Scalar(NamedTuple):
    """A type that is always of the same size, as formats of the struct module.

    `encode` has an expression over `{v}`, the value, for each format; `decode` is one over `{0}`, `{1}`..., what was
    read. `{x}` is the name under which `extra` is reachable. An expression that raises means bad input.
    """

    formats: tuple[str, ...]
    encode: tuple[str, ...]
    decode: str
    extra: Any = None


class Members(NamedTuple):
    """The members of an enum by number, and back."""

    by_number: tuple[Any, ...]
    numbers: dict[str, int]


def scalar(kind: ColumnType) -> Scalar | None:
    """The layout of a type of one value and fixed size; `None` for all others."""
    match kind:
        case BoolType():
            return Scalar(("B",), ("{v}",), "booleans[{0}]")
        case IntType(name=name) if name in NATIVE:
            return Scalar((NATIVE[name],), ("{v}",), "{0}")
        case IntType(name=name):
            size, signed = int(name[1:]) // 8, name[0] == "i"
            tail = f"'little', signed={signed}"
            return Scalar((f"{size}s",), (f"{{v}}.to_bytes({size}, {tail})",), f"from_bytes({{0}}, {tail})")
        case FloatType(name=name):
            code = "f" if name == "f32" else "d"  # one nan: the bytes of a row tell rows apart
            return Scalar((code,), ("({v} if {v} == {v} else nan)",), "({0} if {0} == {0} else nan)")
        case TimestampType():
            return Scalar(("q",), ("to_micros({v})",), "from_micros({0})")
        case DurationType():
            return Scalar(("q",), ("micros_of({v})",), "timedelta(0, 0, {0})")
        case ScheduleAtType():
            return Scalar(("B", "q"), ("(type({v}) is datetime)", "schedule_micros({v})"), "read_schedule({0}, {1})")
        case UuidType():
            return Scalar(("16s",), ("{v}.int.to_bytes(16, 'little')",), "UUID(int=from_bytes({0}, 'little'))")
        case HexType(cls=cls):
            return Scalar((f"{cls.size}s",), ("{v}[::-1]",), f"new_bytes({cls.__name__}, {{0}}[::-1])")
        case EnumType(cls=cls):
            members = tuple(cls)
            check_variants(kind, len(members))
            numbers = {member.name: number for number, member in enumerate(members)}
            extra = Members(members, numbers)
            return Scalar(("B",), ("{x}.numbers[{v}._name_]",), "{x}.by_number[{0}]", extra)
    return None


def check_variants(kind: ColumnType, count: int) -> None:
    """`SchemaError` for a type with more variants than one byte can number."""
    if count > VARIANTS_MAX:
        raise SchemaError(f"{kind.name} has {count} variants; the wire has room for {VARIANTS_MAX}")


_SCALAR_SIZES: Final = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "Q": 8, "q": 8, "d": 8}


def _format_size(code: str) -> int:
    return int(code[:-1]) if code.endswith("s") else _SCALAR_SIZES[code]


def fixed_size(kind: ColumnType, _open: tuple[ColumnType, ...] = ()) -> int | None:
    """The bytes that every value of the type takes; `None` when they differ (or may)."""
    layout = scalar(kind)
    if layout is not None:
        return sum(map(_format_size, layout.formats))
    if not isinstance(kind, ProductType) or kind in _open:
        return None
    total = 0
    for field in kind.fields.values():
        size = fixed_size(field, (*_open, kind))
        if size is None:
            return None
        total += size
    return total


def size_min(kind: ColumnType, _open: tuple[ColumnType, ...] = ()) -> int:
    """The fewest bytes that a value of the type takes (a lower bound where a type contains itself)."""
    if isinstance(kind, StrType | BytesType | ListType):
        return 4
    if isinstance(kind, OptionType):
        return 1
    if kind in _open:
        return 0
    if isinstance(kind, ProductType):
        return sum(size_min(field, (*_open, kind)) for field in kind.fields.values())
    if isinstance(kind, SumType):
        return 1
    size = fixed_size(kind)
    if size is None:
        raise SchemaError(f"{kind.name} ({type(kind).__name__}) has no form on the wire")
    return size


def _schedule_micros(value: datetime | timedelta) -> int:
    return to_micros(value) if isinstance(value, datetime) else micros_of(value)


def _read_schedule(tag: int, micros: int) -> datetime | timedelta:
    if tag == 1:
        return from_micros(micros)
    if tag != 0:
        raise ValueError(f"a ScheduleAt has variant 0 or 1, not {tag}")
    if micros <= 0:
        raise ValueError(f"an interval must be positive, not {shown(timedelta(microseconds=micros))}")
    return timedelta(0, 0, micros)


HELPERS: Final[Mapping[str, Any]] = {
    "booleans": (False, True),
    "from_bytes": int.from_bytes,
    "nan": float("nan"),
    "to_micros": to_micros,
    "from_micros": from_micros,
    "micros_of": micros_of,
    "timedelta": timedelta,
    "datetime": datetime,
    "schedule_micros": _schedule_micros,
    "read_schedule": _read_schedule,
    "UUID": UUID,
    "new_bytes": bytes.__new__,
    "Identity": Identity,
    "ConnectionId": ConnectionId,
}
"""The names that the expressions of `scalar` use."""
