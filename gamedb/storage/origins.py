"""Which column of which table a column of a query's result is: the one way to know its type.

SQLite tells only values, so the query's text is read. What is not a plain column, or cannot be read, has no origin;
the query itself is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from gamedb.columns import ColumnType
from gamedb.schema import TableSchema

DEPTH_MAX = 20
"""How deep subqueries are followed."""


def column_types(sql: str, tables: Mapping[str, TableSchema], dialect: str) -> list[ColumnType | None]:
    """For each column of the result its type, `None` where it is computed; nothing when the text cannot be read."""
    kinds = {
        name.lower(): {column.name.lower(): column.type for column in schema.columns} for name, schema in tables.items()
    }
    try:
        tree = qualify(
            parse_one(sql, dialect=dialect),
            dialect=dialect,
            schema={table: dict.fromkeys(columns, "TEXT") for table, columns in kinds.items()},
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
        )
        scope = build_scope(tree)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError):
        return []
    return [] if scope is None else _selected(scope, kinds, 0)


def tables_in(sql: str, known: Mapping[str, TableSchema], dialect: str) -> list[str]:
    """The known tables that a query may read; all of them when its text cannot be read."""
    try:
        named = {table.name.lower() for table in parse_one(sql, dialect=dialect).find_all(exp.Table)}
    except (SqlglotError, RecursionError):
        return list(known)
    return [name for name in known if name.lower() in named]


def _selected(scope: Scope, kinds: Mapping[str, Mapping[str, ColumnType]], depth: int) -> list[ColumnType | None]:
    expression = scope.expression
    if isinstance(expression, exp.SetOperation):
        parts = [_selected(part, kinds, depth + 1) for part in scope.set_operation_scopes]
        same = len({len(part) for part in parts}) == 1
        return [c[0] if all(k is c[0] for k in c) else None for c in zip(*parts, strict=True)] if same else []
    if not isinstance(expression, exp.Select) or any(s.is_star for s in expression.selects):
        return []
    return [_type_of(projection, scope, kinds, depth) for projection in expression.selects]


def _type_of(
    projection: exp.Expr, scope: Scope, kinds: Mapping[str, Mapping[str, ColumnType]], depth: int
) -> ColumnType | None:
    while isinstance(projection, exp.Alias | exp.Paren):
        projection = projection.this
    if not isinstance(projection, exp.Column) or depth > DEPTH_MAX:
        return None
    source = scope.sources.get(projection.table)
    name = projection.name.lower()
    if isinstance(source, exp.Table):
        return kinds.get(source.name.lower(), {}).get(name)
    if isinstance(source, Scope):
        types = _selected(source, kinds, depth + 1)
        names = [each.lower() for each in getattr(source.expression, "named_selects", ())]
        return types[names.index(name)] if len(types) == len(names) and names.count(name) == 1 else None
    return None
