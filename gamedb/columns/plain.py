"""The types of single values: bools, numbers, text, bytes, ids, and the members of an enum."""

from __future__ import annotations

import enum
import struct
from typing import Any
from uuid import UUID

from gamedb.columns.base import ColumnType, Described, shown
from gamedb.errors import ColumnError
from gamedb.types import ConnectionId, Identity, IntRange


class BoolType(ColumnType):
    name = "bool"

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        return f"({var} is True or {var} is False)"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        return "5"

    def coerce(self, value: Any, path: str) -> Any:
        if value is True or value is False:
            return value
        self.refuse(value, path)


class IntType(ColumnType):
    orderable = True

    def __init__(self, bounds: IntRange) -> None:
        self.name = bounds.name
        self.low = bounds.low
        self.high = bounds.high

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_int"] = type, int
        return f"(_type({var}) is _int and {self.low} <= {var} <= {self.high})"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        return str(len(str(self.high)))

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(value, path)
        number = int(value)
        if not self.low <= number <= self.high:
            raise ColumnError(f"{path}: {shown(number)} is out of range for {self.name} ({self.low}..{self.high})")
        return number


_F32 = struct.Struct("<f")


def round_f32(value: float) -> float:
    """The nearest 32-bit float; `OverflowError` when it is too large for one."""
    return float(_F32.unpack(_F32.pack(value))[0])


def _is_f32(value: float) -> bool:
    try:
        return round_f32(value) == value
    except OverflowError:
        return False


class FloatType(ColumnType):
    orderable = True

    def __init__(self, name: str) -> None:
        self.name = name

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_float"] = type, float
        if self.name == "f64":
            return f"_type({var}) is _float"
        scope["_is_f32"] = _is_f32
        return f"(_type({var}) is _float and _is_f32({var}))"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        scope["_repr"] = repr
        return f"({var} if {var} and {var} == {var} else _repr({var}))"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse(value, path)
        try:
            number = float(value)
            return number if self.name == "f64" else round_f32(number)
        except OverflowError:
            raise ColumnError(f"{path}: {shown(value)} is out of range for {self.name}") from None

    def to_json(self, value: Any) -> Any:
        return value if value - value == 0 else repr(value)  # JSON has no nan, inf and -inf

    def from_json(self, value: Any, path: str) -> Any:
        return float(value) if value in ("nan", "inf", "-inf") else self.coerce(value, path)


def is_utf8(text: str) -> bool:
    """Whether the text has a UTF-8 form (a lone surrogate has none)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class StrType(ColumnType):
    name = "str"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_str"], scope["_is_utf8"] = type, str, is_utf8
        return f"(_type({var}) is _str and ({var}.isascii() or _is_utf8({var})))"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        scope["_len"] = len
        return f"_len({var})"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            self.refuse(value, path)
        text = str.__str__(value)
        if not is_utf8(text):
            self.refuse(value, path, ": it holds a lone surrogate, which has no UTF-8 form")
        return text


class BytesType(ColumnType):
    name = "bytes"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_bytes"] = type, bytes
        return f"_type({var}) is _bytes"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        scope["_len"] = len
        return f"_len({var})"

    def coerce(self, value: Any, path: str) -> Any:
        if type(value) is bytes:
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.hex()

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return bytes.fromhex(value)
        except (TypeError, ValueError):
            self.refuse(value, path, ": bytes are written as hex text")


class UuidType(ColumnType):
    name = "UUID"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_UUID"] = type, UUID
        return f"_type({var}) is _UUID"

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, UUID):
            return value if type(value) is UUID else UUID(int=value.int)
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return str(value)

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return UUID(value)
        except (TypeError, ValueError, AttributeError):
            self.refuse(value, path)


class HexType(ColumnType):
    """`Identity` and `ConnectionId`."""

    orderable = True

    def __init__(self, cls: type[Identity] | type[ConnectionId]) -> None:
        self.name = cls.__name__
        self.cls = cls

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope[f"_{self.name}"] = type, self.cls
        return f"_type({var}) is _{self.name}"

    def coerce(self, value: Any, path: str) -> Any:
        if type(value) is self.cls:
            return value
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.hex()

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return self.cls.from_hex(value)
        except ValueError:
            self.refuse(value, path)


class EnumType(ColumnType):
    def __init__(self, cls: type[enum.Enum]) -> None:
        self.name = cls.__name__
        self.cls = cls

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        alias = f"_Enum{len(scope)}"
        scope["_type"], scope[alias] = type, self.cls
        return f"_type({var}) is {alias}"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        return str(max(map(len, self.cls.__members__)))

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, self.cls):
            return value
        self.refuse(value, path)

    def to_json(self, value: Any) -> Any:
        return value.name

    def from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in self.cls.__members__:
            self.refuse(value, path, f": one of {', '.join(self.cls.__members__)}")
        return self.cls[value]

    def describe(self, described: Described | None = None) -> Any:
        return {"enum": list(self.cls.__members__)}
