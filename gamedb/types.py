"""Column types that Python does not have: sized integers, `f32`, `Identity`, `ConnectionId`, `ScheduleAt`.

Values and annotations only; what a type accepts and how it is checked is in `gamedb.columns`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Self, TypeAlias

import msgspec


class IntRange(msgspec.Struct, frozen=True):
    """The marker inside `u8`, `i64`...: the type's name and its inclusive bounds."""

    name: str
    low: int
    high: int


class F32Marker(msgspec.Struct, frozen=True):
    """The marker inside `f32`."""


def _unsigned(bits: int) -> IntRange:
    return IntRange(f"u{bits}", 0, 2**bits - 1)


def _signed(bits: int) -> IntRange:
    return IntRange(f"i{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


u8 = Annotated[int, _unsigned(8)]
"""A whole number from 0 to 255."""
u16 = Annotated[int, _unsigned(16)]
"""A whole number from 0 to 65,535."""
u32 = Annotated[int, _unsigned(32)]
"""A whole number from 0 to 4,294,967,295."""
u64 = Annotated[int, _unsigned(64)]
"""A whole number from 0 to 2^64 - 1."""
u128 = Annotated[int, _unsigned(128)]
"""A whole number from 0 to 2^128 - 1."""
u256 = Annotated[int, _unsigned(256)]
"""A whole number from 0 to 2^256 - 1."""
i8 = Annotated[int, _signed(8)]
"""A whole number from -128 to 127."""
i16 = Annotated[int, _signed(16)]
"""A whole number from -32,768 to 32,767."""
i32 = Annotated[int, _signed(32)]
"""A whole number from -2,147,483,648 to 2,147,483,647."""
i64 = Annotated[int, _signed(64)]
"""A whole number from -2^63 to 2^63 - 1. `int` means this."""
i128 = Annotated[int, _signed(128)]
"""A whole number from -2^127 to 2^127 - 1."""
i256 = Annotated[int, _signed(256)]
"""A whole number from -2^255 to 2^255 - 1."""
f32 = Annotated[float, F32Marker()]
"""A `float` that is stored in 32 bits: it is rounded to what these can hold."""

I64: Final = _signed(64)

ScheduleAt: TypeAlias = datetime | timedelta
"""When a scheduled row fires: an aware `datetime` = once, a positive `timedelta` = again and again."""


class _FixedBytes(bytes):
    """An opaque number kept as its bytes, most significant first (the order of its hex text)."""

    __slots__ = ()
    size: int

    def __new__(cls, data: bytes) -> Self:
        if not isinstance(data, bytes | bytearray):
            raise TypeError(
                f"{cls.__name__} takes {cls.size} bytes, not {data!r}; from text use {cls.__name__}.from_hex"
            )
        if len(data) != cls.size:
            raise ValueError(f"{cls.__name__} takes {cls.size} bytes, got {len(data)}")
        return super().__new__(cls, data)

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Parse hex text, with or without a leading `0x`."""
        try:
            data = bytes.fromhex(text.removeprefix("0x"))
        except (ValueError, AttributeError, TypeError):
            raise ValueError(f"{text!r} is not the hex text of a {cls.__name__}") from None
        return cls(data)

    @classmethod
    def from_int(cls, number: int) -> Self:
        """The value with this unsigned number."""
        try:
            return cls(number.to_bytes(cls.size, "big"))
        except OverflowError:
            raise ValueError(f"{number} does not fit the {cls.size} bytes of a {cls.__name__}") from None

    def to_int(self) -> int:
        """The value as an unsigned number."""
        return int.from_bytes(self, "big")

    def __repr__(self) -> str:
        return f"{type(self).__name__}.from_hex({self.hex()!r})"

    def __str__(self) -> str:
        return self.hex()

    def __format__(self, spec: str) -> str:
        return format(self.hex(), spec)

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (bytes(self),)


class Identity(_FixedBytes):
    """Who somebody is, the same over all connections and sessions: 32 bytes, written as 64 hex digits."""

    __slots__ = ()
    size = 32
    """Bytes."""


class ConnectionId(_FixedBytes):
    """One connection of a client: 16 bytes, written as 32 hex digits."""

    __slots__ = ()
    size = 16
    """Bytes."""
