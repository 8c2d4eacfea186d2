"""Writes the code that changes one table: the row check, insert, update, remove and the index upkeep.

A loop over a schema for every row costs several times more than straight-line code, so each table gets its own.
`gamedb describe --code` prints it. The names that the code uses (`rows`, `table`, `unique_0`, `index_0`...) are
the containers of one `gamedb.store.table.TableData`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any, Final

import msgspec

from gamedb.columns import shown, weight_function
from gamedb.errors import ColumnError, ConstraintError, RowNotFound
from gamedb.schema import Column, Row, TableSchema

ROW_BYTES_MAX: Final = 64 << 20
"""How large a row may be, with a character for a byte. In JSON it may take six times that, which is well below what
SQLite and PostgreSQL can hold in a value: one that they could not take would end the writing of all others."""


class _Writer:
    """Collects lines of source."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str, indent: int = 1) -> None:
        self.lines.append("    " * indent + text)


def table_source(schema: TableSchema) -> tuple[str, dict[str, Any]]:
    """The source of a table's functions, and the helpers that its row check calls."""
    scope: dict[str, Any] = {}
    emit = _Writer()
    canonical = _canonical(schema, scope)
    emit("def check(row):", 0)
    emit(f"return row if {canonical} else repair(row)")
    _emit_insert(emit, schema, canonical)
    if schema.primary_key is not None:
        _emit_update(emit, schema, _canonical_change(schema, scope))
    _emit_remove(emit, schema)
    emit("def index(key, row):", 0)
    _emit_index(emit, schema, 1)
    emit("def unindex(key, row):", 0)
    _emit_unindex(emit, schema, 1)
    return "\n".join(emit.lines) + "\n", scope


def _canonical(schema: TableSchema, scope: dict[str, Any]) -> str:
    """The expression that is true when a row needs no repair."""
    return " and ".join(["type(row) is Row", *(_test(column, scope) for column in schema.columns)])


def _test(column: Column, scope: dict[str, Any]) -> str:
    """The expression that is true when a value is canonical and light: rows with others are weighed by `repair`.

    It reads the column where it first needs the value.
    """
    fast, light = column.type.fast("\0", scope), column.type.light("\0", scope)
    test = f"({fast} and {light})" if light else fast
    if test.count("\0") == 1:
        return test.replace("\0", f"row.{column.name}")
    return test.replace("\0", f"(v := row.{column.name})", 1).replace("\0", "v")


def _canonical_change(schema: TableSchema, scope: dict[str, Any]) -> str:
    """The same for a row that replaces `old`: what is the very object that stood there needs no look."""
    return " and ".join(f"(row.{c.name} is old.{c.name} or {_test(c, scope)})" for c in schema.columns)


def _emit_start(emit: _Writer, name: str, argument: str, canonical: str | None = None) -> None:
    emit(f"def {name}({argument}):", 0)
    if canonical is not None:
        emit(f"if not ({canonical}):")
        emit("row = repair(row)", 2)
    emit("journal = table.journal")
    emit("if journal is None or not owned():")
    emit("journal = touch(table)", 2)


def _emit_insert(emit: _Writer, schema: TableSchema, canonical: str) -> None:
    pk = schema.primary_key
    auto = next((c.name for c in schema.columns if c.auto_inc), None)
    _emit_start(emit, "insert", "row", canonical)
    if auto is not None:
        emit(f"if row.{auto} == 0:")
        emit(f"row = {_numbered(auto)}", 2)
    emit(f"key = row.{pk}" if pk else "key = key_of(row)")
    emit("if key in rows:")
    emit("raise taken_key(row)" if pk else "return rows[key]", 2)
    for number, name in enumerate(schema.unique_columns):
        emit(f"if row.{name} in unique_{number}.keys:")
        emit(f"raise taken(row, {name!r})", 2)
    if auto is not None:
        emit(f"if row.{auto} >= sequence.next:")
        emit(f"skip_numbers(row.{auto})", 2)
    with _mutation(emit):
        emit("journal.setdefault(key, None)", 2)
        emit("rows[key] = row", 2)
        _emit_index(emit, schema, 2)
    emit("return row")


def _numbered(auto: str) -> str:
    return f"replace(row, {auto}=sequence.take())"


def _emit_update(emit: _Writer, schema: TableSchema, canonical: str) -> None:
    auto = next((c.name for c in schema.columns if c.auto_inc), None)
    _emit_start(emit, "update", "row")
    emit("if type(row) is not Row:")
    emit("row = repair(row)", 2)
    emit(f"key = row.{schema.primary_key}")
    emit("try:")
    emit("old = rows.get(key)", 2)
    emit("except TypeError:")
    emit("old = None", 2)
    emit("if old is None:")
    emit("raise missing(check(row))", 2)
    emit(f"if not ({canonical}):")
    emit("row = repair(row)", 2)
    if auto is not None and auto != schema.primary_key:
        emit(f"if row.{auto} == 0:")
        emit(f"row = {_numbered(auto)}", 2)
    emit("if same(old, row):")
    emit("return old", 2)
    for number, name in enumerate(schema.unique_columns):
        emit(f"if row.{name} != old.{name} and row.{name} in unique_{number}.keys:")
        emit(f"raise taken(row, {name!r})", 2)
    if auto is not None and auto != schema.primary_key:
        emit(f"if row.{auto} >= sequence.next:")
        emit(f"skip_numbers(row.{auto})", 2)
    with _mutation(emit):
        emit("if key not in journal:", 2)
        emit("journal[key] = old", 3)
        emit("rows[key] = row", 2)
        for index, columns in _indexes(schema):
            moved = " or ".join(f"row.{c} is not old.{c} and row.{c} != old.{c}" for c in columns)
            emit(f"if {moved}:", 2)
            emit(f"{index}.remove({_value('old', columns)}, key)", 3)
            emit(f"{index}.add({_value('row', columns)}, key)", 3)
    emit("return row")


def _emit_remove(emit: _Writer, schema: TableSchema) -> None:
    _emit_start(emit, "remove", "key")
    emit("row = rows.get(key)")
    emit("if row is None:")
    emit("return False", 2)
    with _mutation(emit):
        emit("journal.setdefault(key, row)", 2)  # before the change, which an interrupt may leave half done
        emit("del rows[key]", 2)
        _emit_unindex(emit, schema, 2)
    emit("return True")


@contextmanager
def _mutation(emit: _Writer) -> Iterator[None]:
    """The part that changes the table. It only fails when cut short from outside; `try` costs nothing otherwise."""
    emit("try:")
    yield
    emit("except BaseException:")
    emit("table.damaged = True", 2)
    emit("raise", 2)


def _emit_index(emit: _Writer, schema: TableSchema, indent: int) -> None:
    emit("if table.order is not None:", indent)
    emit("table.order.add(key)", indent + 1)
    for index, columns in _indexes(schema):
        emit(f"{index}.add({_value('row', columns)}, key)", indent)


def _emit_unindex(emit: _Writer, schema: TableSchema, indent: int) -> None:
    emit("if table.order is not None:", indent)
    emit("table.order.discard(key)", indent + 1)
    for index, columns in _indexes(schema):
        emit(f"{index}.remove({_value('row', columns)}, key)", indent)


def _indexes(schema: TableSchema) -> list[tuple[str, tuple[str, ...]]]:
    unique = [(f"unique_{n}", (name,)) for n, name in enumerate(schema.unique_columns)]
    return unique + [(f"index_{n}", columns) for n, columns in enumerate(schema.indexes)]


def _value(var: str, columns: Iterable[str]) -> str:
    names = [f"{var}.{name}" for name in columns]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def compile_table(schema: TableSchema, names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Compile the functions of a table over its containers; returns them by name."""
    source, scope = table_source(schema)
    filename = f"<gamedb table {schema.name}>"
    namespace = {**scope, **names, **_errors(schema), "Row": schema.row, "repair": _repairer(schema)}
    namespace["replace"] = msgspec.structs.replace
    exec(_compiled(source, filename), namespace)  # the source above, made of checked identifiers
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return namespace


@lru_cache(maxsize=1024)
def _compiled(source: str, filename: str) -> CodeType:
    """Tests open databases of one module thousands of times, and compiling is most of what that takes."""
    return compile(source, filename, "exec")


def _repairer(schema: TableSchema) -> Callable[[Any], Row]:
    """What `check` falls back on: bring each column to its canonical form, or say which one cannot be; and weigh it."""
    weigh = _weigher(schema)

    def repair(row: Any) -> Row:
        if type(row) is not schema.row:
            raise ColumnError(
                f"table {schema.name!r} holds {schema.row.__name__} rows, got {shown(row)} ({type(row).__name__})"
            )
        changes = {}
        for column in schema.columns:
            before = getattr(row, column.name)
            after = column.type.coerce(before, f"{schema.name}.{column.name}")
            if after is not before:
                changes[column.name] = after
        whole = msgspec.structs.replace(row, **changes)
        weigh(whole)
        return whole

    return repair


def _weigher(schema: TableSchema) -> Callable[[Row], None]:
    """A function that raises `ColumnError` for a row that is too large. What it grows by light values is no matter."""
    weights = {c.name: weight for c in schema.columns if (weight := weight_function(c.type)) is not None}

    def weigh(row: Row) -> None:
        total = sum([weight(getattr(row, name)) for name, weight in weights.items()])
        if total > ROW_BYTES_MAX:
            heaviest = max(weights, key=lambda name: weights[name](getattr(row, name)))
            raise ColumnError(
                f"{schema.name}: a row of about {total} bytes is too large (at most {ROW_BYTES_MAX}), most of it in "
                f"{heaviest!r}; spread it over several rows, or keep it elsewhere and here only where that is"
            )

    return weigh


def _errors(schema: TableSchema) -> dict[str, Callable[..., Exception]]:
    """The makers of the errors for a taken key, a taken unique value and a missing row."""
    table, pk = schema.name, schema.primary_key or ""

    def taken(row: Row, column: str) -> ConstraintError:
        value = getattr(row, column)
        remedy = f"look at it with find({column}=...)"
        text = f"{table}.{column}: another row has the unique value {shown(value)} already; {remedy}"
        return ConstraintError(table, column, value, text)

    def taken_key(row: Row) -> ConstraintError:
        value = getattr(row, pk)
        remedy = "use update or upsert to change it"
        text = f"{table}.{pk}: a row with the primary key {shown(value)} is there already; {remedy}"
        return ConstraintError(table, pk, value, text)

    def missing(row: Row) -> RowNotFound:
        value = getattr(row, pk)
        return RowNotFound(f"{table}: no row has {pk} = {shown(value)}; use insert or upsert to make one")

    return {"taken": taken, "taken_key": taken_key, "missing": missing}
