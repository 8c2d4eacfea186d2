"""`gamedb describe`: what a module declares, for people, for programs, and as the code that is generated from it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from gamedb.cli.loading import Target, load_module, resolve
from gamedb.cli.output import fail, print_json, results
from gamedb.columns import ColumnType, EnumType, ListType, OptionType, ProductType, SumType, shown
from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.schema import Column, TableSchema
from gamedb.store.codegen import table_source


def describe(
    target: Target,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
    code: Annotated[bool, typer.Option("--code", help="The Python code that is generated for each table.")] = False,
) -> None:
    """Show what a module declares: tables, reducers, procedures, views, schedules, migrations.

    No database is opened and no function of the module is run; its file is imported.

    Examples:
      gamedb describe game:module
      gamedb describe arena:module --json | jq -r '.tables[].name'
      gamedb describe arena:module --code | less
    """
    if as_json and code:
        fail("--json and --code exclude each other.")
    module = resolve(load_module(target))
    if as_json:
        print_json(as_plain(module))
        return
    with results() as out:
        if code:
            _show_code(out, module)
        else:
            _show(out, module)


# --- for programs


def as_plain(module: Resolved) -> dict[str, Any]:
    """What a module declares, as JSON builtins."""
    functions = list(module.functions.values())
    return {
        "module": module.name,
        "tables": [_plain_table(t) for t in module.tables.values()],
        "reducers": [_plain_function(f) for f in functions if f.kind == "reducer" and not f.lifecycle],
        "procedures": [_plain_function(f) for f in functions if f.kind == "procedure"],
        "views": [_plain_function(f) for f in functions if f.kind == "view"],
        "lifecycle": {event: [f.name for f in found] for event, found in module.lifecycle.items() if found},
        "migrations": [m.name for m in module.migrations],
        "visibility_filters": module.visibility_filters,
    }


def _plain_table(schema: TableSchema) -> dict[str, Any]:
    return {
        "name": schema.name,
        "row": schema.row.__name__,
        "public": schema.public,
        "event": schema.event,
        "scheduled": schema.scheduled,
        "primary_key": schema.primary_key,
        "columns": [
            {
                **_plain_value(c.name, c.type, c.default),
                "primary_key": c.name == schema.primary_key,
                "unique": c.unique,
                "auto_increment": c.auto_inc,
            }
            for c in schema.columns
        ],
        "indexes": [list(columns) for columns in schema.indexes],
    }


def _plain_function(function: Function) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": function.name,
        "parameters": [_plain_value(p.name, p.type, p.default) for p in function.parameters],
    }
    if function.kind == "view":
        return {**plain, "row": function.row.__name__ if function.row else None, "many": function.many,
                "public": function.public}  # fmt: skip
    if function.kind == "procedure":
        returns = function.returns
        plain["returns"] = None if returns is None else {"type": returns.name, "definition": returns.describe()}
        if function.queue is not None:
            plain["queue"] = function.queue
    return {**plain, "private": function.private}


def _plain_value(name: str, kind: ColumnType, default: Any) -> dict[str, Any]:
    plain = {"name": name, "type": kind.name, "definition": kind.describe()}
    if default is not msgspec.NODEFAULT:
        plain["default"] = kind.to_json(default)
    return plain


# --- the generated code


def _show_code(out: Console, module: Resolved) -> None:
    parts = []
    for schema in module.tables.values():
        source, _ = table_source(schema)
        parts.append(f"# table {schema.name}, for the rows of {schema.row.__name__}\n{source}")
    text = "\n".join(parts)
    if out.is_terminal:
        out.print(Syntax(text, "python", background_color="default", word_wrap=True))
    else:
        out.print(Text(text), soft_wrap=True)


# --- for people


def _show(out: Console, module: Resolved) -> None:
    out.print(Text.assemble("module ", (module.name, "bold")))
    _section(out, "Tables", [_table(t) for t in module.tables.values()])
    _section(out, "Types", [_types(module)] if _named_types(module) else [])
    fired: dict[str, list[str]] = {}
    for schema in module.tables.values():
        if schema.scheduled is not None:
            fired.setdefault(schema.scheduled, []).append(schema.name)
    functions = list(module.functions.values())
    kinds = (("reducer", "Reducers"), ("procedure", "Procedures"), ("view", "Views"))
    for kind, title in kinds:
        found = [f for f in functions if f.kind == kind and not f.lifecycle]
        _section(out, title, [_functions(found, fired, out.width)] if found else [])
    lifecycle = [(event, f) for event, found in module.lifecycle.items() for f in found]
    _section(out, "Lifecycle", [_lines(f"{event}: {f.name}" for event, f in lifecycle)] if lifecycle else [])
    migrations = [m.name for m in module.migrations]
    _section(out, "Migrations", [_lines(migrations)] if migrations else [])
    filters = module.visibility_filters
    _section(out, "Visibility filters", [_lines(filters)] if filters else [])


def _section(out: Console, title: str, parts: list[Any]) -> None:
    if parts:
        out.print()
        out.print(Text(title, style="bold cyan"))
    for number, part in enumerate(parts):
        if number:
            out.print()
        out.print(Padding(part, (0, 0, 0, 2)))


def _lines(lines: Iterable[str]) -> Group:
    return Group(*(Text(line) for line in lines))


def _table(schema: TableSchema) -> Group:
    facts = ["public" if schema.public else "private"]
    if schema.event:
        facts.append("event (rows live for one transaction)")
    elif schema.scheduled is not None:
        facts.append(f"fires {schema.scheduled} at {schema.schedule_column}")
    elif schema.primary_key is None:
        facts.append("no primary key (a set of rows)")
    parts: list[Any] = [Text.assemble((schema.name, "bold"), ("  " + ", ".join(facts), "dim"))]
    if doc := _first_line(schema.row.__doc__):
        parts.append(Text(doc, style="italic"))
    columns = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for title in ("column", "type", "default", "constraints"):
        columns.add_column(title, overflow="fold", header_style="dim")
    for column in schema.columns:
        columns.add_row(column.name, Text(column.type.name), Text(_default(column)), _constraints(schema, column))
    parts.append(columns)
    wide = [f"({', '.join(names)})" for names in schema.indexes if len(names) > 1]
    if wide:
        parts.append(Text(f"index on {', '.join(wide)}", style="dim"))
    return Group(*parts)


def _default(column: Column) -> str:
    return "" if column.default is msgspec.NODEFAULT or column.auto_inc else _value(column.default)


def _value(value: Any) -> str:
    return str(value) if isinstance(value, enum.Enum) else shown(value)


def _constraints(schema: TableSchema, column: Column) -> str:
    facts = []
    if column.name == schema.primary_key:
        facts.append("primary key")
    elif column.unique:
        facts.append("unique")
    if column.auto_inc:
        facts.append("auto-increment")
    if (column.name,) in schema.indexes:
        facts.append("index")
    return ", ".join(facts)


def _functions(functions: list[Function], fired: dict[str, list[str]], width: int) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold", style="dim")
    for f in functions:
        signature = Text.assemble((f.name, "bold"), _signature(f, width * 3 // 5))
        notes = [f"fired by {', '.join(fired[f.name])}"] if f.name in fired else []
        if f.queue is not None:
            notes.append(f"in workers of queue {f.queue!r}")
        elif f.private and f.name not in fired:
            notes.append("private")
        if f.kind == "view" and not f.public:
            notes.append("private")
        if f.is_async:
            notes.append("async")
        if doc := _first_line(f.function.__doc__):
            notes.append(doc)
        grid.add_row(signature, Text("; ".join(notes)))
    return grid


def _signature(function: Function, width: int) -> str:
    """The parameters and the result; one parameter a line when they are longer than `width`."""
    parts = []
    for p in function.parameters:
        default = "" if p.default is msgspec.NODEFAULT else f" = {_value(p.default)}"
        parts.append(f"{p.name}: {p.type.name}{default}")
    line = f"({', '.join(parts)}){_result(function)}"
    if len(function.name) + len(line) <= width:
        return line
    listed = "".join(f"    {part},\n" for part in parts)
    return f"(\n{listed}){_result(function)}"


def _result(function: Function) -> str:
    if function.kind == "view" and function.row is not None:
        name = function.row.__name__
        return f" -> list[{name}]" if function.many else f" -> {name} | None"
    return "" if function.returns is None else f" -> {function.returns.name}"


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]


# --- types with a name of their own


def _named_types(module: Resolved) -> dict[str, ColumnType]:
    """Enums and Structs that columns and parameters use, by name; rows are shown as tables already."""
    found: dict[str, ColumnType] = {}
    rows = {schema.row for schema in module.tables.values()}

    def visit(kind: ColumnType) -> None:
        if isinstance(kind, OptionType):
            visit(kind.inner)
        elif isinstance(kind, ListType):
            visit(kind.item)
        elif isinstance(kind, SumType):
            for variant in kind.variants.values():
                visit(variant)
        elif isinstance(kind, EnumType):
            found[kind.name] = kind
        elif isinstance(kind, ProductType) and kind.cls not in rows and kind.name not in found:
            found[kind.name] = kind
            for field in kind.fields.values():
                visit(field)

    for schema in module.tables.values():
        for column in schema.columns:
            visit(column.type)
    for function in module.functions.values():
        for parameter in function.parameters:
            visit(parameter.type)
        if function.returns is not None:
            visit(function.returns)
    return found


def _types(module: Resolved) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, kind in _named_types(module).items():
        if isinstance(kind, EnumType):
            grid.add_row(name, Text(" | ".join(kind.cls.__members__)))
        elif isinstance(kind, ProductType):
            grid.add_row(name, Text(", ".join(f"{field}: {inner.name}" for field, inner in kind.fields.items())))
    return grid
