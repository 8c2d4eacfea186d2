"""The hidden key of a row in a table without primary key: 16 bytes that equal rows have in common.

Rows are equal here as the store sees them: -0.0 is not 0.0, and nan is nan. The digest does not depend on the kind
of database or on the version of Python, since it is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from gamedb.columns import ColumnType, FloatType, ListType, OptionType, ProductType, SumType
from gamedb.schema import Row, TableSchema
from gamedb.storage.codecs import SCOPE, codec


def digest_function(schema: TableSchema) -> Callable[[Row], bytes]:
    """The function from a row to its hidden key."""
    scope = {**SCOPE, "hex": float.hex, "encode": msgspec.json.encode, "hash": hashlib.blake2b}
    parts = []
    for i, column in enumerate(schema.columns):
        expression, scope[f"x{i}"] = _expression(column.type)
        parts.append(expression.format(v=f"row.{column.name}", x=f"x{i}"))
    source = f"lambda row: hash(encode(({', '.join(parts)},)), digest_size=16).digest()"
    function: Callable[[Row], bytes] = eval(source, scope)
    return function


def _expression(kind: ColumnType) -> tuple[str, Any]:
    if isinstance(kind, FloatType):
        return "hex({v})", None
    if isinstance(kind, OptionType):
        inner, extra = _expression(kind.inner)
        return f"(None if {{v}} is None else {inner})", extra
    if isinstance(kind, ListType | ProductType | SumType):
        return "{x}({v})", lambda value: _exact(kind.to_json(value))
    how = codec(kind, "sqlite")
    return how.encode or "{v}", how.extra


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    return value
