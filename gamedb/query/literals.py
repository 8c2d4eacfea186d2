"""The values of literals: each is read by the type of the column that it is compared with.

Pure functions from a piece of text and a `ColumnType` to a canonical value; `QueryError` says what would fit.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn
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
    OptionType,
    StrType,
    TimestampType,
    UuidType,
    shown,
)
from gamedb.errors import ColumnError, QueryError
from gamedb.query.text import Piece

DIGITS_MAX: Final = 100
"""Digits of a whole number: more than any integer type holds."""

_RFC_3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,6})0*)?([Zz]|[-+]\d\d:\d\d)\Z", re.ASCII
)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+\Z")


def base(kind: ColumnType) -> ColumnType:
    """The type of the present values."""
    return kind.inner if isinstance(kind, OptionType) else kind


def literal(piece: Piece, kind: ColumnType, where: str) -> Any:
    """The canonical value of a literal for a column of this type; `where` names the column."""
    kind = base(kind)
    try:
        return _READERS[type(kind)](piece, kind, where)
    except KeyError:
        raise QueryError(
            f"{where}: values of {kind.name} cannot be compared; declare a view for it", piece.start
        ) from None
    except ColumnError as error:
        raise QueryError(str(error), piece.start) from None


def _refuse(piece: Piece, kind: ColumnType, where: str, remedy: str) -> NoReturn:
    raise QueryError(f"{where}: {shown(piece.value)} is no {kind.name}; {remedy}", piece.start)


def whole(piece: Piece) -> int | None:
    """The whole number that is written, in plain, exponent or hex form."""
    if piece.kind == "hex":
        return int(piece.value, 16) if 0 < len(piece.value) <= DIGITS_MAX else None
    if piece.kind != "number":
        return None
    if _INTEGER.match(piece.value):
        return int(piece.value) if len(piece.value) <= DIGITS_MAX else None
    try:
        number = Decimal(piece.value)
    except InvalidOperation:  # an exponent of its own size
        return None
    if number and abs(number.adjusted()) > DIGITS_MAX:
        return None
    return int(number) if number == number.to_integral_value() else None


def _int(piece: Piece, kind: Any, where: str) -> int:
    number = whole(piece)
    if number is None:
        _refuse(piece, kind, where, f"write a whole number from {kind.low} to {kind.high}")
    return int(kind.coerce(number, where))


def _float(piece: Piece, kind: Any, where: str) -> float:
    if piece.kind != "number":
        _refuse(piece, kind, where, "write a number such as 1.5")
    number = float(piece.value)
    if number - number != 0:
        raise QueryError(f"{where}: {shown(piece.value)} is out of range for {kind.name}", piece.start)
    return float(kind.coerce(number, where))


def _bool(piece: Piece, kind: ColumnType, where: str) -> bool:
    if piece.kind != "bool":
        _refuse(piece, kind, where, "write TRUE or FALSE")
    return piece.value == "TRUE"


def _str(piece: Piece, kind: ColumnType, where: str) -> str:
    if piece.kind != "string":
        _refuse(piece, kind, where, "write a text in single quotes")
    return str(kind.coerce(piece.value, where))


def _hex(piece: Piece) -> bytes | None:
    """The bytes of `0x..`, `x'..'` or a text of hex digits."""
    if piece.kind not in ("hex", "string"):
        return None
    digits = piece.value.removeprefix("0x") if piece.kind == "string" else piece.value
    try:
        return bytes.fromhex(digits) if not re.search(r"\s", digits) else None
    except ValueError:
        return None


def _bytes(piece: Piece, kind: ColumnType, where: str) -> bytes:
    data = _hex(piece)
    if data is None:
        _refuse(piece, kind, where, "write pairs of hex digits: 0x0aff")
    return data


def _fixed(piece: Piece, kind: Any, where: str) -> Any:
    data = _hex(piece)
    if data is None or len(data) != kind.cls.size:
        remedy = f"write 0x and {kind.cls.size * 2} hex digits"
        _refuse(piece, kind, where, f"{remedy}, or :sender" if kind.name == "Identity" else remedy)
    return kind.cls(data)


def _uuid(piece: Piece, kind: ColumnType, where: str) -> UUID:
    if piece.kind == "hex" and len(piece.value) == 32:
        return UUID(hex=piece.value)
    if piece.kind == "string":
        try:
            return UUID(piece.value)
        except ValueError:
            pass
    _refuse(piece, kind, where, "write '01888d6e-5c00-7000-8000-000000000001', or 0x and 32 hex digits")


def _timestamp(piece: Piece, kind: ColumnType, where: str) -> datetime:
    found = _RFC_3339.match(piece.value) if piece.kind == "string" else None
    if found is not None:
        day, time, fraction, zone = found.groups()
        zone = "+00:00" if zone in "Zz" else zone
        try:
            moment = datetime.fromisoformat(f"{day}T{time}.{(fraction or '').ljust(6, '0')}{zone}")
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    _refuse(piece, kind, where, "write a time such as '2026-11-29T12:00:00.000000Z'")


def _duration(piece: Piece, kind: ColumnType, where: str) -> timedelta:
    number = whole(piece)
    if number is None or not -(2**63) <= number < 2**63:
        _refuse(piece, kind, where, "write it in whole microseconds")
    return timedelta(microseconds=number)


def _enum(piece: Piece, kind: Any, where: str) -> Any:
    if piece.kind != "string" or piece.value not in kind.cls.__members__:
        names = ", ".join(f"'{name}'" for name in kind.cls.__members__)
        _refuse(piece, kind, where, f"write one of {shown_list(names)}")
    return kind.cls[piece.value]


def shown_list(names: str) -> str:
    """Names for a message, cut when there are many."""
    return names if len(names) <= 300 else f"{names[:300]}..."


_READERS: Final[dict[type[ColumnType], Any]] = {
    BoolType: _bool,
    IntType: _int,
    FloatType: _float,
    StrType: _str,
    BytesType: _bytes,
    HexType: _fixed,
    UuidType: _uuid,
    TimestampType: _timestamp,
    DurationType: _duration,
    EnumType: _enum,
}


def is_comparable(kind: ColumnType) -> bool:
    """Whether values of the type can be compared at all."""
    return type(base(kind)) in _READERS
