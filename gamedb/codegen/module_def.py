"""The definition of a module as JSON (SATS-JSON of a RawModuleDef), for SpacetimeDB's own tools and code generators.

Version 10 says everything; version 9, which older tools ask for, has no event tables, no private reducers and no
keys of views.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gamedb.codegen.keys import constraint_name, indexes_of, unique_columns, view_key
from gamedb.functions import Function, Lifecycle
from gamedb.resolved import Resolved
from gamedb.schema import Column, TableSchema
from gamedb.wire.bsatn import codec
from gamedb.wire.typespace import UNIT, Json, Typespace, option, product

LIFECYCLES: Final[dict[Lifecycle, str]] = {
    "init": "Init",
    "client_connected": "OnConnect",
    "client_disconnected": "OnDisconnect",
}
VERSIONS: Final = (9, 10)
NONE: Final[Json] = {"none": []}


def module_def(module: Resolved) -> Json:
    """The definition with its version around it: what `spacetime generate --module-def` reads."""
    return {"V10": schema_json(module, 10)}


def schema_json(module: Resolved, version: int = 10) -> Json:
    """The bare definition in one of `VERSIONS`; `ValueError` for another."""
    if version not in VERSIONS:
        raise ValueError(
            f"there is no version {version} of module definitions; ask for {' or '.join(map(str, VERSIONS))}"
        )
    return (_V10 if version == 10 else _V9)(module).definition()


def some(value: Any) -> Json:
    """An option that is there."""
    return {"some": value}


class _Definition:
    """What both versions share."""

    name_field: str

    def __init__(self, module: Resolved) -> None:
        self.module = module
        self.types = Typespace(module)
        functions = list(module.functions.values())
        self.reducers = [f for f in functions if f.kind == "reducer"]
        self.procedures = [f for f in functions if f.kind == "procedure"]
        self.views = [f for f in functions if f.kind == "view"]
        # There is one reducer for each event over there, while each included module may have its own here.
        self.lifecycle = {found[0].name: LIFECYCLES[event] for event, found in module.lifecycle.items() if found}

    def typespace(self) -> Json:
        return {"types": [self.types.definition(entry) for entry in self.types.types]}

    def named_types(self) -> list[Json]:
        return [
            {self.name_field: {"scope": [], self.name_field: entry.name}, "ty": entry.ref, "custom_ordering": True}
            for entry in self.types.types
        ]

    def table(self, schema: TableSchema) -> Json:
        numbers = {column.name: number for number, column in enumerate(schema.columns)}
        name = self.name_field
        return {
            name: schema.name,
            "product_type_ref": self.types.row(schema).ref,
            "primary_key": [] if schema.primary_key is None else [numbers[schema.primary_key]],
            "indexes": [
                {
                    name: some(index.name),
                    "accessor_name": some(index.accessor),
                    "algorithm": {"BTree": [numbers[column] for column in index.columns]},
                }
                for index in indexes_of(schema)
            ],
            "constraints": [
                {name: some(constraint_name(schema, column)), "data": {"Unique": {"columns": [numbers[column]]}}}
                for column in unique_columns(schema)
            ],
            "sequences": [
                {
                    name: some(f"{schema.name}_{column.name}_seq"),
                    "column": numbers[column.name],
                    "start": NONE,
                    "min_value": NONE,
                    "max_value": NONE,
                    "increment": 1,
                }
                for column in schema.columns
                if column.auto_inc
            ],
            "table_type": {"User": []},
            "table_access": {"Public" if schema.public else "Private": []},
        }

    def parameters(self, function: Function) -> Json:
        return product((p.name, self.types.algebraic(p.type)) for p in function.parameters)

    def procedure(self, function: Function) -> Json:
        returns = UNIT if function.returns is None else self.types.algebraic(function.returns)
        return {self.name_field: function.name, "params": self.parameters(function), "return_type": returns}

    def view(self, function: Function, index: int) -> Json:
        assert function.returns is not None
        row = self.types.algebraic(function.returns)
        return {
            self.name_field: function.name,
            "index": index,
            "is_public": function.public,
            "is_anonymous": False,
            "params": self.parameters(function),
            "return_type": {"Array": row} if function.many else option(row),
        }

    def visibility_filters(self) -> list[Json]:
        return [{"sql": sql} for sql in self.module.visibility_filters]

    def schedules(self) -> list[tuple[TableSchema, int]]:
        """The scheduled tables with the number of the column that says when."""
        return [
            (schema, [c.name for c in schema.columns].index(schema.schedule_column))
            for schema in self.module.tables.values()
            if schema.schedule_column is not None
        ]


def _defaults(schema: TableSchema) -> list[tuple[int, str]]:
    """Number and BSATN, as hex, of each default; keys can have none over there."""
    return [
        (number, codec(column.type).encode(column.default).hex())
        for number, column in enumerate(schema.columns)
        if _has_default(column)
    ]


def _has_default(column: Column) -> bool:
    return column.default is not msgspec.NODEFAULT and not column.auto_inc and not column.unique


class _V10(_Definition):
    name_field = "source_name"

    def definition(self) -> Json:
        keys = [(view, view_key(view, self.module)) for view in self.views]
        sections: list[Json] = [
            {"Typespace": self.typespace()},
            {"Types": self.named_types()},
            {"Tables": [self._table(schema) for schema in self.module.tables.values()]},
            {"Reducers": [self._reducer(f) for f in self.reducers]},
            {"Procedures": [{**self.procedure(f), "visibility": self._visibility(f)} for f in self.procedures]},
            {"Views": [self.view(f, number) for number, f in enumerate(self.views)]},
            {"ViewPrimaryKeys": [{"view_source_name": f.name, "columns": [key]} for f, key in keys if key]},
            {"Schedules": [self._schedule(schema, column) for schema, column in self.schedules()]},
            {
                "LifeCycleReducers": [
                    {"lifecycle_spec": {event: []}, "function_name": name} for name, event in self.lifecycle.items()
                ]
            },
            {"RowLevelSecurity": self.visibility_filters()},
            {"CaseConversionPolicy": {"None": []}},
        ]
        return {"sections": [section for section in sections if [*section.values()] != [[]]]}

    def _table(self, schema: TableSchema) -> Json:
        defaults = [{"col_id": number, "value": value} for number, value in _defaults(schema)]
        return {**self.table(schema), "default_values": defaults, "is_event": schema.event}

    def _visibility(self, function: Function) -> Json:
        return {"Private" if function.private else "ClientCallable": []}

    def _reducer(self, function: Function) -> Json:
        return {
            "source_name": function.name,
            "params": self.parameters(function),
            "visibility": self._visibility(function),
            "ok_return_type": UNIT,
            "err_return_type": {"String": []},
        }

    def _schedule(self, schema: TableSchema, column: int) -> Json:
        return {
            "source_name": some(f"{schema.name}_sched"),
            "table_name": schema.name,
            "schedule_at_col": column,
            "function_name": schema.scheduled,
        }


class _V9(_Definition):
    name_field = "name"

    def definition(self) -> Json:
        schedules = {schema.name: self._schedule(schema, column) for schema, column in self.schedules()}
        tables = self.module.tables.values()
        return {
            "typespace": self.typespace(),
            "tables": [{**self.table(schema), "schedule": schedules.get(schema.name, NONE)} for schema in tables],
            "reducers": [
                {"name": f.name, "params": self.parameters(f), "lifecycle": self._lifecycle(f)} for f in self.reducers
            ],
            "types": self.named_types(),
            "misc_exports": [
                *({"Procedure": self.procedure(f)} for f in self.procedures),
                *({"View": self.view(f, number)} for number, f in enumerate(self.views)),
                *(
                    {"ColumnDefaultValue": {"table": schema.name, "col_id": number, "value": value}}
                    for schema in tables
                    for number, value in _defaults(schema)
                ),
            ],
            "row_level_security": self.visibility_filters(),
        }

    def _lifecycle(self, function: Function) -> Json:
        event = self.lifecycle.get(function.name)
        return NONE if event is None else some({event: []})

    def _schedule(self, schema: TableSchema, column: int) -> Json:
        return some(
            {
                "name": some(f"{schema.name}_sched"),
                "reducer_name": schema.scheduled,
                "scheduled_at_column": column,
            }
        )
