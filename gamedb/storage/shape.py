"""What a database remembers of its tables: `Shape`, kept as JSON beside them, and compared with the module's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gamedb.schema import TableSchema


class ColumnShape(msgspec.Struct, frozen=True):
    """One column as stored."""

    name: str
    type: Any
    """`ColumnType.describe()`."""
    auto_inc: bool = False
    unique: bool = False
    default: list[Any] = []
    """Empty without a default, else its plain-JSON form."""


class Shape(msgspec.Struct, frozen=True):
    """One table as stored."""

    name: str
    columns: list[ColumnShape]
    primary_key: str | None
    indexes: list[list[str]]
    public: bool
    event: bool
    scheduled: str | None

    def column(self, name: str) -> ColumnShape | None:
        """The column of this name."""
        return next((c for c in self.columns if c.name == name), None)


def shape_of(schema: TableSchema) -> Shape:
    """The shape that a table of this schema has when stored."""
    columns = [
        ColumnShape(
            name=c.name,
            type=c.type.describe(),
            auto_inc=c.auto_inc,
            unique=c.unique,
            default=[] if c.default is msgspec.NODEFAULT else [c.type.to_json(c.default)],
        )
        for c in schema.columns
    ]
    indexes = sorted(list(names) for names in schema.indexes)
    return Shape(schema.name, columns, schema.primary_key, indexes, schema.public, schema.event, schema.scheduled)


def encode_shapes(shapes: Iterable[Shape]) -> str:
    """Shapes as JSON text."""
    return msgspec.json.encode(sorted(shapes, key=lambda shape: shape.name)).decode()


def decode_shapes(text: str) -> dict[str, Shape]:
    """Shapes by table name, from JSON text."""
    return {shape.name: shape for shape in msgspec.json.decode(text, type=list[Shape])}


def shapes_of(tables: Mapping[str, TableSchema]) -> dict[str, Shape]:
    """The shape of each table of a module."""
    return {name: shape_of(schema) for name, schema in tables.items()}
