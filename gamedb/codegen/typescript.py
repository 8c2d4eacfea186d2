"""Bindings for SpacetimeDB's TypeScript SDK (npm `spacetimedb`), in the shape that its own generator gives them.

One file for each table, view, reducer and procedure, `types.ts` for named types, and `index.ts` with the classes that
an application uses. The order of columns and parameters in them is the order of bytes on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gamedb.codegen.files import Generation
from gamedb.codegen.keys import constraint_name, indexes_of, unique_columns, view_key
from gamedb.codegen.names import camel, check_distinct, pascal, snake
from gamedb.codegen.ts_types import CLASSES, Builder, TypeScriptTypes
from gamedb.columns import BytesType, ColumnType, EnumType, FloatType, ListType, OptionType, ProductType, SumType
from gamedb.errors import SchemaError
from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.schema import TableSchema
from gamedb.wire.typespace import Typespace, client_functions, client_tables, row_type

SDK_VERSION: Final = "2.10.1"
"""The version of the SDK whose bindings these are; it refuses those of a version that it does not know."""

_LINT: Final = "/* eslint-disable */\n/* tslint:disable */\n"


def typescript(module: Resolved, *, include_private: bool = False) -> dict[str, str]:
    """The files of the bindings, by path below the output directory.

    Without `include_private`, only what clients may use. Raises `SchemaError` for names that collide.
    """
    generation = Generation(module, "typescript", include_private=include_private)
    _Bindings(generation).add_all()
    for generator in module.generators:
        generator(generation)
    return generation.files


class _Bindings:
    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        module, public_only = generation.module, not generation.include_private
        self.module = module
        self.types = TypeScriptTypes(Typespace(module, public_only=public_only))
        self.tables = sorted(client_tables(module, public_only), key=lambda schema: schema.name)
        functions = sorted(client_functions(module, public_only), key=lambda function: function.name)
        self.reducers = [f for f in functions if f.kind == "reducer" and f.lifecycle is None]
        self.procedures = [f for f in functions if f.kind == "procedure"]
        self.views = [f for f in functions if f.kind == "view" and not f.parameters]
        names = [schema.name for schema in self.tables] + [view.name for view in self.views]
        check_distinct("tables and views", [(name, camel(name)) for name in names])
        check_distinct("reducers", [(f.name, camel(f.name)) for f in self.reducers])
        check_distinct("procedures", [(f.name, camel(f.name)) for f in self.procedures])
        for function in (*self.reducers, *self.procedures):
            if function.name.endswith("_"):
                raise SchemaError(
                    f"{function.kind} {function.name!r}: the SDK would call it {camel(function.name)!r} and have types "
                    f"for {camel(function.name.rstrip('_'))!r}; register it as @module.{function.kind}(name=...)"
                )

    def add_all(self) -> None:
        for schema in self.tables:
            self._add(f"{snake(schema.name)}_table.ts", self._table_file(schema))
        for view in self.views:
            self._add(f"{snake(view.name)}_table.ts", self._view_file(view))
        for function in self.reducers:
            self._add(f"{snake(function.name)}_reducer.ts", self._reducer_file(function))
        for function in self.procedures:
            self._add(f"{snake(function.name)}_procedure.ts", self._procedure_file(function))
        self._add("types.ts", self._types_file())
        self._add("types/reducers.ts", self._parameter_types())
        self._add("types/procedures.ts", self._procedure_types())
        self._add("index.ts", self._index_file())

    def _add(self, path: str, text: str) -> None:
        self.generation.add(path, _LINT + text)

    # --- tables and views

    def _table_file(self, schema: TableSchema) -> str:
        indexed = {index.columns[0] for index in indexes_of(schema) if len(index.columns) == 1}
        unique = set(unique_columns(schema))
        return self._row_file(f"table {schema.name!r}", row_type(schema), schema.primary_key, unique, indexed)

    def _view_file(self, view: Function) -> str:
        assert isinstance(view.returns, ProductType)
        key = view_key(view, self.module)
        return self._row_file(f"view {view.name!r}", view.returns, key, set(), set())

    def _row_file(self, where: str, row: ProductType, key: str | None, unique: set[str], indexed: set[str]) -> str:
        check_distinct(where, [(name, camel(name)) for name in row.fields])
        lines: list[str] = []
        uses: set[str] = set()
        helpers: set[str] = set()
        for name, kind in row.fields.items():
            column, helper = self._column(name, kind, name == key, name in unique, name in indexed)
            lines.append(column.as_property(camel(name)))
            uses.update(column.uses)
            helpers.update(helper)
        imports = ["t as __t", *(f"{helper} as __{helper}" for helper in sorted(helpers))]
        head = f"import {{ {', '.join(imports)} }} from 'spacetimedb';\n{_type_import(uses, '.')}\n"
        return f"{head}export default __t.row({{\n{''.join(lines)}}});\n"

    def _column(
        self, name: str, kind: ColumnType, is_key: bool, is_unique: bool, is_indexed: bool
    ) -> tuple[Builder, list[str]]:
        """The builder of a column with what is declared of it, and the classes that it takes from the SDK."""
        built = self.types.builder(kind)
        facts = {}
        if is_key:
            facts["isPrimaryKey"] = "true"
        elif is_unique:
            facts["isUnique"] = "true"
        elif is_indexed and camel(name) != name:
            facts["indexType"] = "'btree'"
        if camel(name) != name:
            facts["name"] = f"'{name}'"
        methods = {"isPrimaryKey": "primaryKey()", "isUnique": "unique()", "indexType": "index()", "name": None}
        if facts.keys() <= self._methods(kind):
            calls = "".join(f".{methods[fact] or f'name({value})'}" for fact, value in facts.items())
            return Builder(built.text + calls, built.uses), []
        # Builders of this type lack a method for it; the class of columns takes the same facts.
        helper = "OptionColumnBuilder" if isinstance(kind, OptionType) else "ColumnBuilder"
        listed = ", ".join(f"{fact}: {value}" for fact, value in facts.items())
        return Builder(f"new __{helper}({built.text}, {{ {listed} }} as const)", built.uses), [helper]

    def _methods(self, kind: ColumnType) -> set[str]:
        """What can be said of a column of this type by methods of its builder."""
        if self.types.is_recursive(kind):
            return set()
        if isinstance(kind, EnumType):
            return {"isPrimaryKey", "indexType", "name"}
        plain = isinstance(kind, FloatType | BytesType | OptionType | ListType | ProductType | SumType)
        return {"name"} if plain or kind.name == "ScheduleAt" else {"isPrimaryKey", "isUnique", "indexType", "name"}

    # --- functions

    def _parameters(self, function: Function) -> tuple[str, set[str]]:
        fields = [(p.name, p.type) for p in function.parameters]
        uses = {name for _, kind in fields for name in self.types.builder(kind).uses}
        return self.types.properties(fields, f"{function.kind} {function.name!r}"), uses

    def _reducer_file(self, function: Function) -> str:
        properties, uses = self._parameters(function)
        head = f"import {{ t as __t }} from 'spacetimedb';\n{_type_import(uses, '.')}\n" if properties else ""
        return f"{head}export default {{\n{properties}}};\n"

    def _procedure_file(self, function: Function) -> str:
        properties, uses = self._parameters(function)
        returns = Builder("__t.unit()") if function.returns is None else self.types.builder(function.returns)
        head = f"import {{ t as __t }} from 'spacetimedb';\n{_type_import(uses | set(returns.uses), '.')}\n"
        return f"{head}export const params = {{\n{properties}}};\nexport const returnType = {returns.text};\n"

    # --- types

    def _types_file(self) -> str:
        body = "\n".join(self.types.definitions())
        wanted = [name for name in (*CLASSES, "TypeBuilder", "AlgebraicTypeType", "Infer") if f"__{name}" in body]
        imports = ["t as __t", *(f"type {name} as __{name}" for name in wanted)]
        if not body:
            return "export {};\n"
        return f"import {{ {', '.join(imports)} }} from 'spacetimedb';\n\n{body}"

    def _parameter_types(self) -> str:
        if not self.reducers:
            return "export {};\n"
        imports = "".join(f"import {pascal(f.name)}Reducer from '../{snake(f.name)}_reducer';\n" for f in self.reducers)
        types = "".join(
            f"export type {pascal(f.name)}Params = __Infer<typeof {pascal(f.name)}Reducer>;\n" for f in self.reducers
        )
        return f"import {{ type Infer as __Infer }} from 'spacetimedb';\n{imports}\n{types}"

    def _procedure_types(self) -> str:
        if not self.procedures:
            return "export {};\n"
        imports = "".join(
            f"import * as {pascal(f.name)}Procedure from '../{snake(f.name)}_procedure';\n" for f in self.procedures
        )
        types = "".join(
            f"export type {pascal(f.name)}Args = __Infer<typeof {pascal(f.name)}Procedure.params>;\n"
            f"export type {pascal(f.name)}Result = __Infer<typeof {pascal(f.name)}Procedure.returnType>;\n"
            for f in self.procedures
        )
        return f"import {{ type Infer as __Infer }} from 'spacetimedb';\n{imports}\n{types}"

    # --- index.ts

    def _index_file(self) -> str:
        rows = [schema.name for schema in self.tables] + [view.name for view in self.views]
        imports = "".join(
            [
                *(f"import {pascal(f.name)}Reducer from './{snake(f.name)}_reducer';\n" for f in self.reducers),
                *(
                    f"import * as {pascal(f.name)}Procedure from './{snake(f.name)}_procedure';\n"
                    for f in self.procedures
                ),
                *(f"import {pascal(name)}Row from './{snake(name)}_table';\n" for name in rows),
            ]
        )
        tables = "".join([*map(self._table, self.tables), *(_table(v.name, [], [], False) for v in self.views)])
        reducers = _lines(f"__reducerSchema('{f.name}', {pascal(f.name)}Reducer)" for f in self.reducers)
        procedures = _lines(
            f"__procedureSchema('{f.name}', {pascal(f.name)}Procedure.params, {pascal(f.name)}Procedure.returnType)"
            for f in self.procedures
        )
        schemas = _SCHEMAS % (tables, reducers, procedures, SDK_VERSION)
        used = imports + schemas + _CLASSES
        head = _imports(used)
        return f"{head}{imports}{schemas}{_CLASSES}"

    def _table(self, schema: TableSchema) -> str:
        indexes = [
            f"{{ accessor: '{index.accessor}', name: '{index.name}', algorithm: 'btree', "
            f"columns: [{_quoted(index.columns)}] }}"
            for index in sorted(indexes_of(schema), key=lambda index: index.name)
        ]
        constraints = [
            f"{{ name: '{constraint_name(schema, column)}', constraint: 'unique', columns: ['{camel(column)}'] }}"
            for column in sorted(unique_columns(schema))
        ]
        return _table(schema.name, indexes, constraints, schema.event)


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f"'{camel(column)}'" for column in columns)


def _table(name: str, indexes: list[str], constraints: list[str], event: bool) -> str:
    def listed(title: str, items: list[str]) -> str:
        inside = "".join(f"      {item},\n" for item in items)
        return f"    {title}: [\n{inside}    ],\n" if items else f"    {title}: [],\n"

    flag = "    event: true,\n" if event else ""
    options = f"    name: '{name}',\n{listed('indexes', indexes)}{listed('constraints', constraints)}{flag}"
    return f"  {camel(name)}: __table({{\n{options}  }}, {pascal(name)}Row),\n"


def _lines(items: Iterable[str]) -> str:
    text = "".join(f"\n  {item}," for item in items)
    return f"{text}\n" if text else ""


def _type_import(names: Iterable[str], directory: str) -> str:
    listed = ", ".join(sorted(names))
    return f"import {{ {listed} }} from '{directory}/types';\n" if listed else ""


_VALUES: Final = (
    *("DbConnectionBuilder", "DbConnectionImpl", "SubscriptionBuilderImpl", "convertToAccessorMap", "makeQueryBuilder"),
    *("procedureSchema", "procedures", "reducerSchema", "reducers", "schema", "table"),
)
_TYPES: Final = (
    *("DbConnectionConfig", "ErrorContextInterface", "EventContextInterface", "QueryBuilder"),
    *("ReducerEventContextInterface", "RemoteModule", "SubscriptionEventContextInterface", "SubscriptionHandleImpl"),
)


def _imports(text: str) -> str:
    values = "".join(f"  {name} as __{name},\n" for name in _VALUES if f"__{name}" in text)
    types = "".join(f"  type {name} as __{name},\n" for name in _TYPES)
    return f"import {{\n{values}{types}}} from 'spacetimedb';\n\n"


_SCHEMAS: Final = """
/** All tables and views, with their columns and indexes. */
const tablesSchema = __schema({
%s});

/** All reducers, with their parameters. */
const reducersSchema = __reducers(%s);

/** All procedures, with their parameters and results. */
const proceduresSchema = __procedures(%s);

const REMOTE_MODULE = {
  versionInfo: {
    cliVersion: '%s' as const,
  },
  tables: tablesSchema.schemaType.tables,
  reducers: reducersSchema.reducersType.reducers,
  ...proceduresSchema,
} satisfies __RemoteModule<
  typeof tablesSchema.schemaType,
  typeof reducersSchema.reducersType,
  typeof proceduresSchema
>;
"""

_CLASSES: Final = """
/** The tables, to build queries from: `tables.player.where(player => player.hp.lt(10))`. */
export const tables: __QueryBuilder<typeof tablesSchema.schemaType> = __makeQueryBuilder(tablesSchema.schemaType);

/** The reducers by name, for hooks such as `useReducer`. */
export const reducers = __convertToAccessorMap(reducersSchema.reducersType.reducers);

/** The procedures by name, for hooks such as `useProcedure`. */
export const procedures = __convertToAccessorMap(proceduresSchema.procedures);

/** What callbacks of rows get. */
export type EventContext = __EventContextInterface<typeof REMOTE_MODULE>;
/** What callbacks of reducers get. */
export type ReducerEventContext = __ReducerEventContextInterface<typeof REMOTE_MODULE>;
/** What callbacks of subscriptions get. */
export type SubscriptionEventContext = __SubscriptionEventContextInterface<typeof REMOTE_MODULE>;
/** What callbacks of errors get. */
export type ErrorContext = __ErrorContextInterface<typeof REMOTE_MODULE>;
/** A subscription that was made; it can be ended. */
export type SubscriptionHandle = __SubscriptionHandleImpl<typeof REMOTE_MODULE>;

/** Makes subscriptions: `conn.subscriptionBuilder().onApplied(...).subscribe(tables.player)`. */
export class SubscriptionBuilder extends __SubscriptionBuilderImpl<typeof REMOTE_MODULE> {}

/** Makes connections: `DbConnection.builder().withUri(...).withDatabaseName(...).build()`. */
export class DbConnectionBuilder extends __DbConnectionBuilder<DbConnection> {}

/** A connection to a database of this module: `db` has the rows, `reducers` and `procedures` the functions. */
export class DbConnection extends __DbConnectionImpl<typeof REMOTE_MODULE> {
  /** Where a connection begins. */
  static builder = (): DbConnectionBuilder => {
    return new DbConnectionBuilder(
      REMOTE_MODULE,
      (config: __DbConnectionConfig<typeof REMOTE_MODULE>) => new DbConnection(config)
    );
  };

  /** Where a subscription begins. */
  override subscriptionBuilder = (): SubscriptionBuilder => {
    return new SubscriptionBuilder(this);
  };
}
"""
