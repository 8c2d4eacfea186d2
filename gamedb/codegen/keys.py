"""Indexes and unique constraints of a table under the names that clients know, and the keys of views."""

from __future__ import annotations

from typing import Final

import msgspec

from gamedb.codegen.names import camel
from gamedb.errors import SchemaError
from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.schema import TableSchema, table_schema

TAKEN: Final = frozenset(
    {
        *("count", "iter", "insert", "update", "delete", "constructor"),
        *("onInsert", "onUpdate", "onDelete", "removeOnInsert", "removeOnUpdate", "removeOnDelete"),
        *("rows", "emitter", "tableDef", "hasPrimaryKey", "applyOperations"),
    }
)
"""Names that the tables of the client SDKs use themselves; an index under one of them would hide it."""


class IndexDef(msgspec.Struct, frozen=True):
    """One index: the columns, the name under which client code reaches it, and its name in the database."""

    columns: tuple[str, ...]
    accessor: str
    name: str


def indexes_of(schema: TableSchema) -> list[IndexDef]:
    """All indexes: of the primary key, of unique columns, and those that are declared."""
    found: list[IndexDef] = []
    for columns in [*((c,) for c in unique_columns(schema)), *schema.indexes]:
        accessor = columns[0]
        if len(columns) > 1 or (_is_taken(accessor) and accessor not in unique_columns(schema)):
            accessor = f"by_{'_'.join(columns)}"
        if _is_taken(accessor):
            raise SchemaError(
                f"table {schema.name!r}: clients look rows up by the unique column {accessor!r}, "
                "which hides something of that name in their tables; rename the column"
            )
        index = IndexDef(columns, accessor, f"{schema.name}_{'_'.join(columns)}_idx_btree")
        for other in found:
            if other.columns != columns and accessor == other.accessor:
                raise SchemaError(
                    f"table {schema.name!r}: the indexes on {other.columns} and {columns} would both be called "
                    f"{accessor!r}; rename a column"
                )
        if all(other.columns != columns for other in found):
            found.append(index)
    return found


def _is_taken(name: str) -> bool:
    return name in TAKEN or camel(name) in TAKEN


def unique_columns(schema: TableSchema) -> list[str]:
    """The primary key and the other unique columns."""
    return [c.name for c in schema.columns if c.unique]


def constraint_name(schema: TableSchema, column: str) -> str:
    """The name of the unique constraint on a column."""
    return f"{schema.name}_{column}_key"


def view_key(function: Function, module: Resolved) -> str | None:
    """The primary key of the rows of a view: what the Row class marks as one."""
    assert function.row is not None
    for schema in module.tables.values():
        if schema.row is function.row:
            return schema.primary_key
    try:
        return table_schema(function.row).primary_key
    except SchemaError:  # a Row that is no table need not be fit for one
        return None
