"""What modules declare, and what comes of it when they are put together: `Resolved`, which a `Database` is made of.

`Module` fills a `Declared`; `resolve` checks those of a module and of what it includes as a whole. Nothing here runs
what was declared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gamedb.columns import ProductType
from gamedb.errors import SchemaError
from gamedb.functions import Function, Lifecycle
from gamedb.schema import Row, TableSchema

if TYPE_CHECKING:
    from gamedb.checking import CheckReport
    from gamedb.codegen.files import Generation
    from gamedb.context import ReducerContext
    from gamedb.health_report import HealthReport
    from gamedb.jobs import WorkerJob


class Migration(msgspec.Struct, frozen=True):
    """A function that changes stored tables once, when a database that was made before it is opened."""

    name: str
    function: Callable[..., None]


class Check(msgspec.Struct, frozen=True):
    """A function that adds to the report of `gamedb check`."""

    name: str
    function: Callable[[CheckReport], None]


class RowCount(msgspec.Struct, frozen=True):
    """A table whose rows servers count by the values of some columns."""

    row: type[Row]
    by: tuple[str, ...]


class Declared(msgspec.Struct, kw_only=True):
    """What one module declares, in order."""

    name: str
    tables: list[TableSchema] = []
    functions: list[Function] = []
    migrations: list[Migration] = []
    visibility_filters: list[str] = []
    checks: list[Check] = []
    openings: list[Callable[[ReducerContext], object]] = []
    static: Path | None = None
    generators: list[Callable[[Generation], None]] = []
    row_counts: list[RowCount] = []
    describers: list[Callable[[], Mapping[str, Any]]] = []
    health_checks: list[Callable[[HealthReport], None]] = []
    workers: list[Callable[[WorkerJob], Awaitable[None]]] = []


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A module with everything that it includes, checked as a whole."""

    name: str
    tables: dict[str, TableSchema]
    functions: dict[str, Function]
    """Reducers, procedures and views by name; lifecycle reducers are in `lifecycle`, too."""
    lifecycle: dict[Lifecycle, list[Function]]
    migrations: list[Migration]
    visibility_filters: list[str]
    checks: list[Check]
    openings: list[Callable[[ReducerContext], object]]
    static: Path | None
    """The directory of its files for browsers, as declared; it may not be there."""
    generators: list[Callable[[Generation], None]]
    row_counts: list[RowCount]
    describers: list[Callable[[], Mapping[str, Any]]]
    health_checks: list[Callable[[HealthReport], None]]
    workers: list[Callable[[WorkerJob], Awaitable[None]]]

    @property
    def built_static(self) -> Path | None:
        """The directory of its files for browsers, if it is there."""
        return self.static if self.static is not None and self.static.is_dir() else None


def resolve(declared: Sequence[Declared]) -> Resolved:
    """Everything of a module, which comes last, and of those that it includes.

    `SchemaError` when the parts do not fit together.
    """
    owners: dict[str, str] = {}
    tables = _tables(declared, owners)
    functions, lifecycle = _functions(declared, owners)
    for name, function in functions.items():
        if function.kind == "view" and name in tables:
            raise SchemaError(f"view {name!r} has the name of a table; clients could not tell them apart")
    for schema in tables.values():
        if schema.scheduled is not None:
            functions[schema.scheduled] = _scheduled(schema, functions)
    for module in declared:
        for migration in module.migrations:
            _claim(owners, f"migration {migration.name!r}", module.name)
        for count in module.row_counts:
            _check_count(count, tables.values())
    return Resolved(
        name=declared[-1].name,
        tables=tables,
        functions=functions,
        lifecycle=lifecycle,
        migrations=[each for module in declared for each in module.migrations],
        visibility_filters=[each for module in declared for each in module.visibility_filters],
        checks=[each for module in declared for each in module.checks],
        openings=[each for module in declared for each in module.openings],
        static=declared[-1].static,
        generators=[each for module in declared for each in module.generators],
        row_counts=[each for module in declared for each in module.row_counts],
        describers=[each for module in declared for each in module.describers],
        health_checks=[each for module in declared for each in module.health_checks],
        workers=[each for module in declared for each in module.workers],
    )


def _tables(declared: Sequence[Declared], owners: dict[str, str]) -> dict[str, TableSchema]:
    tables: dict[str, TableSchema] = {}
    for module in declared:
        for schema in module.tables:
            _claim(owners, f"table {schema.name!r}", module.name)
            _check_row_is_new(schema, tables.values())
            tables[schema.name] = schema
    return tables


def _functions(
    declared: Sequence[Declared], owners: dict[str, str]
) -> tuple[dict[str, Function], dict[Lifecycle, list[Function]]]:
    functions: dict[str, Function] = {}
    lifecycle: dict[Lifecycle, list[Function]] = {"init": [], "client_connected": [], "client_disconnected": []}
    for module in declared:
        for function in module.functions:
            when = function.lifecycle
            if when is not None:
                if function.name in functions:  # every module may have its own `init`
                    name = f"{module.name.replace('-', '_')}_{function.name}"
                    function = msgspec.structs.replace(function, name=name)
                lifecycle[when].append(function)
            _claim(owners, f"function {function.name!r}", module.name)
            functions[function.name] = function
    return functions, lifecycle


def _claim(owners: dict[str, str], what: str, module: str) -> None:
    if what in owners:
        raise SchemaError(f"module {module!r} and module {owners[what]!r} both have a {what}; rename one")
    owners[what] = module


def _check_row_is_new(schema: TableSchema, tables: Iterable[TableSchema]) -> None:
    for other in tables:
        if other.row is schema.row:
            what = f"table {other.name!r} and table {schema.name!r}"
            raise SchemaError(f"{schema.row.__name__} is the row of both {what}; ctx.db could not tell them apart")


def _check_count(count: RowCount, tables: Iterable[TableSchema]) -> None:
    schema = next((table for table in tables if table.row is count.row), None)
    if schema is None:
        raise SchemaError(f"count_rows: {count.row.__name__} is not a table of the module")
    columns = [column.name for column in schema.columns]
    for name in count.by:
        if name not in columns:
            raise SchemaError(f"count_rows: table {schema.name!r} has no column {name!r}; it has {', '.join(columns)}")


def _scheduled(schema: TableSchema, functions: dict[str, Function]) -> Function:
    name = schema.scheduled or ""
    function = functions.get(name)
    where = f"scheduled table {schema.name!r}"
    if function is None or function.kind == "view":
        known = ", ".join(n for n, f in functions.items() if f.kind != "view") or "none"
        raise SchemaError(f"{where} fires {name!r}, which is no reducer of the module (it has: {known})")
    kinds = [p.type for p in function.parameters]
    if len(kinds) != 1 or not isinstance(kinds[0], ProductType) or kinds[0].cls is not schema.row:
        raise SchemaError(
            f"{where}: {function.kind} {name!r} must take the row alone: def {name}(ctx, timer: {schema.row.__name__})"
        )
    if function.queue is not None:
        raise SchemaError(
            f"{where}: procedure {name!r} runs in workers (queue={function.queue!r}), which nothing fires"
        )
    return msgspec.structs.replace(function, private=True)
