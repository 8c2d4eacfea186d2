"""How a value of each column type stands in the database: its SQL type, and the way there and back.

A `Codec` is given as expressions, from which both single functions (for SQLModel columns) and the generated code
of whole rows (for the writer and the loader) are made, so that the two cannot differ. Nothing here knows tables.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import BigInteger, Boolean, Dialect, Integer, LargeBinary, Numeric, Text, Uuid
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION, REAL, TIMESTAMP
from sqlalchemy.sql.sqltypes import NullType
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

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
    ScheduleAtType,
    StrType,
    TimestampType,
    UuidType,
    micros_of,
    round_f32,
)
from gamedb.columns.base import Described
from gamedb.errors import ColumnError
from gamedb.types import I64, ConnectionId, Identity


class AnyNumber(UserDefinedType[Any]):
    """SQLite's ANY: keeps a float as it is (REAL would lose the sign of -0.0) and has room for the text `nan`."""

    cache_ok = True

    def get_col_spec(self, **_kw: Any) -> str:
        return "ANY"


class Codec(msgspec.Struct, frozen=True):
    """One column type in one kind of database.

    `encode` and `decode` are expressions over `{v}`, the value, and `{x}`, the name under which `extra` is
    reachable; None where the value passes unchanged. `bounds` are what the SQL type alone does not hold.
    """

    sql: TypeEngine[Any]
    encode: str | None = None
    decode: str | None = None
    extra: Any = None
    bounds: tuple[int, int] | None = None

    def encode_function(self) -> Callable[[Any], Any] | None:
        """`encode` as a function of the value."""
        return None if self.encode is None else _function(self.encode, self.extra)

    def decode_function(self) -> Callable[[Any], Any] | None:
        """`decode` as a function of the stored value."""
        return None if self.decode is None else _function(self.decode, self.extra)


def _function(expression: str, extra: Any) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = eval(f"lambda v: {expression.format(v='v', x='x')}", {**SCOPE, "x": extra})
    return function


def _read_nan(stored: Any) -> float:
    if stored == "nan":
        return float("nan")
    raise ValueError(f"{stored!r} is not a float")


def _read_int(kind: ColumnType, text: str) -> Any:
    return kind.coerce(int(text), "the stored number")


def _read_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not UTC:
        raise ValueError(f"{text!r} is not a time of UTC, like 2026-11-29T12:00:00.000000Z")
    return moment


def _write_time(moment: datetime) -> str:
    text = _json(moment)  # a quarter of the time of `isoformat`, which formats the offset, too
    return text[1:-1].decode() if len(text) == _JSON_TIME_LENGTH else f"{text[1:-2].decode()}.000000Z"


def _write_schedule(value: datetime | timedelta) -> str:
    if isinstance(value, datetime):
        return _write_time(value)
    seconds, micros = divmod(micros_of(value), 1_000_000)
    return f"PT{seconds}.{micros:06d}S"


def _read_hex(cls: type[Identity] | type[ConnectionId], text: str) -> Identity | ConnectionId:
    data = bytes.fromhex(text)
    if len(data) != cls.size:
        raise ValueError(f"{text!r} is not the hex text of a {cls.__name__}")
    return bytes.__new__(cls, data)  # three times as fast as its constructor


def _read_schedule(text: str) -> datetime | timedelta:
    if not text.startswith("PT"):
        return _read_time(text)
    seconds, _, micros = text[2:-1].partition(".")
    return timedelta(0, int(seconds), int(micros))


_json: Final = msgspec.json.Encoder().encode
_JSON_TIME_LENGTH: Final = len('"2026-11-29T12:00:00.000001Z"')
"""Of a time that is not a whole second; others have no fraction in JSON."""
_ESCAPE: Final = str.maketrans({"\x00": "\x1a0", "\x1a": "\x1aa"})


def _escape_nul(text: str) -> str:
    return text.translate(_ESCAPE) if "\x00" in text or "\x1a" in text else text


def _restore_nul(text: str) -> str:
    return text.replace("\x1a0", "\x00").replace("\x1aa", "\x1a") if "\x1a" in text else text


class _Json:
    """A nested value as JSON text."""

    def __init__(self, kind: ColumnType) -> None:
        self.kind = kind

    def write(self, value: Any) -> str:
        return msgspec.json.encode(self.kind.to_json(value)).decode()

    def read(self, text: str) -> Any:
        return self.kind.from_json(msgspec.json.decode(text), self.kind.name)


SCOPE: Final[dict[str, Any]] = {
    "UTC": UTC,
    "UUID": UUID,
    "timedelta": timedelta,
    "micros_of": micros_of,
    "round_f32": round_f32,
    "read_nan": _read_nan,
    "read_hex": _read_hex,
    "read_int": _read_int,
    "read_time": _read_time,
    "write_time": _write_time,
    "read_schedule": _read_schedule,
    "write_schedule": _write_schedule,
    "escape_nul": _escape_nul,
    "restore_nul": _restore_nul,
}


def codec(kind: ColumnType, dialect: str) -> Codec:
    """The codec of a column type for `sqlite` or `postgresql`."""
    if isinstance(kind, OptionType):
        inner = codec(kind.inner, dialect)
        return msgspec.structs.replace(
            inner,
            encode=None if inner.encode is None else f"(None if {{v}} is None else {inner.encode})",
            decode=None if inner.decode is None else f"(None if {{v}} is None else {inner.decode})",
        )
    return (_postgres if dialect == "postgresql" else _sqlite)(kind) or _common(kind)


def _sqlite(kind: ColumnType) -> Codec | None:
    match kind:
        case BoolType():
            return Codec(Integer(), "+{v}", "{v} == 1", bounds=(0, 1))
        case IntType(low=low, high=high) if I64.low <= low and high <= I64.high:
            return Codec(Integer(), bounds=None if low == I64.low else (low, high))
        case IntType(name="u64"):  # two's complement, so that ordinary ids read as they are
            return Codec(
                Integer(),
                f"({{v}} if {{v}} < {2**63} else {{v}} - {2**64})",
                f"({{v}} if {{v}} >= 0 else {{v}} + {2**64})",
            )
        case IntType():
            return Codec(Text(), "str({v})", "read_int({x}, {v})", kind)
        case FloatType():
            return Codec(
                AnyNumber(),
                "({v} if {v} == {v} else 'nan')",
                "({v} if type({v}) is float else read_nan({v}))",
            )
        case TimestampType():
            return Codec(Text(), "write_time({v})", "read_time({v})")
        case UuidType():
            return Codec(Text(), "str({v})", "UUID({v})")
        case StrType():
            return Codec(Text())
        case BytesType():  # the driver binds a bytearray three times as fast as bytes
            return Codec(LargeBinary(), "bytearray({v})")
    return None


def _postgres(kind: ColumnType) -> Codec | None:
    match kind:
        case BoolType():
            return Codec(Boolean())
        case IntType(low=low, high=high) if low >= -(2**31) and high < 2**31:
            return Codec(Integer(), bounds=None if low == -(2**31) else (low, high))
        case IntType(low=low, high=high) if I64.low <= low and high <= I64.high:
            return Codec(BigInteger(), bounds=None if low == I64.low else (low, high))
        case IntType(low=low, high=high):
            return Codec(Numeric(len(str(high)), 0), decode="int({v})", bounds=(low, high))
        case FloatType(name="f32"):
            return Codec(REAL(), decode="round_f32({v})")
        case FloatType():
            return Codec(DOUBLE_PRECISION())
        case TimestampType():
            return Codec(TIMESTAMP(timezone=True), decode="{v}.astimezone(UTC)")
        case UuidType():
            return Codec(Uuid())
        case StrType():
            return Codec(Text(), "escape_nul({v})", "restore_nul({v})")
    return None


def _common(kind: ColumnType) -> Codec:
    match kind:
        case BytesType():
            return Codec(LargeBinary())
        case DurationType():
            return Codec(BigInteger().with_variant(Integer(), "sqlite"), "micros_of({v})", "timedelta(0, 0, {v})")
        case HexType(cls=cls):
            return Codec(Text(), "{v}.hex()", "read_hex({x}, {v})", cls)
        case EnumType(cls=cls):
            return Codec(Text(), "{v}._name_", "{x}[{v}]", dict(cls.__members__))  # `name` is slow to get at
        case ScheduleAtType():
            return Codec(Text(), "write_schedule({v})", "read_schedule({v})")
    return Codec(Text(), "{x}.write({v})", "{x}.read({v})", _Json(kind))


class Stored(TypeDecorator[Any]):
    """The SQLAlchemy type of a column: its Python side is the column type's values, in every database."""

    impl = NullType
    cache_ok = True

    def __init__(self, kind: ColumnType) -> None:
        super().__init__()
        self.kind = kind

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        described: TypeEngine[Any] = dialect.type_descriptor(codec(self.kind, dialect.name).sql)
        return described

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        coerce, encode = self.kind.coerce, codec(self.kind, dialect.name).encode_function()
        name = self.kind.name

        def process(value: Any) -> Any:
            if value is None:
                return None
            value = coerce(value, name)
            return value if encode is None else encode(value)

        return process

    def result_processor(self, dialect: Dialect, _coltype: object) -> Callable[[Any], Any] | None:
        decode = codec(self.kind, dialect.name).decode_function()
        return None if decode is None else lambda stored: None if stored is None else decode(stored)

    def coerce_compared_value(self, _op: Any, value: Any) -> TypeEngine[Any]:
        try:
            self.kind.coerce(value, self.kind.name)
        except ColumnError:
            other: TypeEngine[Any] = super().coerce_compared_value(_op, value)
            return other
        return self


def stored_type(description: Any) -> ColumnType:
    """The column type of a stored description; enum members are their names, nested values plain JSON."""
    if isinstance(description, str):
        return _SCALARS[description]
    if "option" in description:
        return OptionType(stored_type(description["option"]))
    return StoredMember(description) if "enum" in description else StoredJson(description)


class StoredMember(StrType):
    """An enum column of which only the member names are known."""

    def __init__(self, description: Any) -> None:
        self.description = description

    def describe(self, described: Described | None = None) -> Any:
        return self.description


class StoredJson(ColumnType):
    """A nested column of which only the description is known: values are plain JSON."""

    name = "JSON"

    def __init__(self, description: Any) -> None:
        self.description = description

    def coerce(self, value: Any, path: str) -> Any:
        return value

    def describe(self, described: Described | None = None) -> Any:
        return self.description


def _scalars() -> dict[str, ColumnType]:
    from gamedb import types
    from gamedb.columns import column_type

    hints: list[Any] = [bool, float, types.f32, str, bytes, datetime, timedelta, UUID]
    hints += [types.Identity, types.ConnectionId, types.ScheduleAt]
    hints += [getattr(types, f"{sign}{bits}") for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)]
    return {kind.name: kind for kind in (column_type(hint, "a stored column") for hint in hints)}


_SCALARS: Final = _scalars()
