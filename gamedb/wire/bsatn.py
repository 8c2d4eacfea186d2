"""Values as the bytes of the client protocol (BSATN), and back.

`codec` gives the codec of a column type, `row_codec` that of a table's rows, `parameters_codec` that of a function's
arguments. Their code is generated for each type; `Codec.source` shows it. Bytes carry neither names nor types, so
that both sides must agree on the type. Everything that is wrong with bytes is a `WireError`.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from gamedb.columns import ColumnType, ProductType, shown
from gamedb.errors import WireError
from gamedb.functions import Parameter
from gamedb.schema import TableSchema
from gamedb.wire.decoding import HELPERS, write_decoder
from gamedb.wire.encoding import write_encoder
from gamedb.wire.layout import fixed_size, size_min
from gamedb.wire.source import Source


class Codec(msgspec.Struct, frozen=True, eq=False):
    """The way of one type to bytes and back."""

    name: str
    encode: Callable[[Any], bytes]
    """The bytes of a canonical value, the same for the same value always."""
    decode: Callable[..., tuple[Any, int]]
    """`decode(data, at=0)`: the canonical value that begins at `at`, and where it ends; `WireError` if none does."""
    fixed_size: int | None
    """The bytes that every value takes; `None` when they differ."""
    source: str

    def decode_whole(self, data: bytes) -> Any:
        """The value that is all of `data`; `WireError` when bytes are left over."""
        value, end = self.decode(data)
        if end != len(data):
            raise WireError(f"{self.name}: {len(data) - end} bytes follow the value, which ends at {end}")
        return value


@lru_cache(maxsize=4096)
def codec(kind: ColumnType) -> Codec:
    """The codec of a column type; `SchemaError` for a type that the wire has no form for."""
    return _compile(kind.name, kind)


@lru_cache(maxsize=1024)
def row_codec(schema: TableSchema) -> Codec:
    """The codec of a table's rows."""
    return _compile(schema.name, ProductType(schema.row, {c.name: c.type for c in schema.columns}, set()))


def parameters_codec(parameters: Sequence[Parameter]) -> Codec:
    """The codec of a function's arguments: the value is the tuple of them in parameter order."""
    return _arguments_codec(tuple(parameters))


@lru_cache(maxsize=4096)
def _arguments_codec(parameters: tuple[Parameter, ...]) -> Codec:
    names = [p.name for p in parameters]
    fields = [(name, Any) for name in names]
    made = msgspec.defstruct("Arguments", fields, kw_only=True, frozen=True)
    whole = _compile("arguments", ProductType(made, {p.name: p.type for p in parameters}, set()))
    encode_made, decode_made = whole.encode, whole.decode
    astuple = msgspec.structs.astuple

    def encode(arguments: Sequence[Any]) -> bytes:
        try:
            value = made(**dict(zip(names, arguments, strict=True)))
        except ValueError:
            raise WireError(f"{len(names)} arguments ({', '.join(names)}), not {len(arguments)}") from None
        return encode_made(value)

    def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
        value, end = decode_made(data, at)
        return astuple(value), end

    return msgspec.structs.replace(whole, encode=encode, decode=decode)


def _compile(name: str, kind: ColumnType) -> Codec:
    size_min(kind)  # refuses what has no form
    source = Source()
    source.scope.update(HELPERS)
    to_bytes = source.function("encode", kind, lambda made: write_encoder(source, made, kind))
    from_bytes = source.function("decode", kind, lambda made: write_decoder(source, made, kind))
    text = source.text()
    filename = f"<gamedb wire {name}>"
    scope = source.scope
    exec(compile(text, filename, "exec"), scope)  # the text above, made of field names of classes
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return Codec(name, _encoder(name, scope[to_bytes]), _decoder(name, scope[from_bytes]), fixed_size(kind), text)


def _encoder(name: str, function: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def encode(value: Any) -> bytes:
        try:
            return function(value)
        except Exception as error:
            raise WireError(f"{name}: {shown(value)} has no form on the wire: {_reason(error)}") from error

    return encode


def _decoder(name: str, function: Callable[..., tuple[Any, int]]) -> Callable[..., tuple[Any, int]]:
    def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
        try:
            return function(data, at, len(data), 0)
        except Exception as error:  # a Struct of the game may refuse values with any error
            raise WireError(f"{name}: {_reason(error)} (in {len(data)} bytes, from {at})") from error

    return decode


def _reason(error: Exception) -> str:
    match error:
        case WireError():
            return str(error)
        case struct.error():
            return "the bytes end in the middle of a value"
        case UnicodeDecodeError():
            return f"text is not UTF-8 ({error.reason})"
        case IndexError():
            return "a bool or an enum has a number that it does not know"
        case OverflowError():
            return "a time lies outside the years 1 to 9999"
        case RecursionError():
            return "it is nested too deep"
        case AttributeError() | TypeError():
            return f"it does not fit the type ({error})"
    return str(error) or type(error).__name__
