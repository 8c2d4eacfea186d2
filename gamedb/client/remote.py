"""What a server has: its tables, reducers, procedures and views, from its module definition or from the game's module.

With the game's own module, rows are the game's Row classes, and the server's description is only compared. Without
one, classes are made of the description.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from gamedb.client.remote_types import RemoteTypes
from gamedb.columns import ColumnType, ProductType, has_float
from gamedb.errors import ArgumentError, ColumnError, SchemaError, UnknownName
from gamedb.functions import Parameter
from gamedb.module import Module
from gamedb.resolved import Resolved
from gamedb.schema import Column, Row, TableSchema
from gamedb.wire.bsatn import Codec, codec, parameters_codec, row_codec
from gamedb.wire.typespace import UNIT, Json, anonymous

VERSION: Final = 10
"""Of the module definition."""


class RemoteTable(msgspec.Struct, frozen=True, eq=False):
    """A table or view as the client needs it."""

    schema: TableSchema
    codec: Codec

    @property
    def name(self) -> str:
        """The name in queries."""
        return self.schema.name


class RemoteFunction(msgspec.Struct, frozen=True, eq=False):
    """A reducer or a procedure."""

    name: str
    kind: str
    bind: Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, ...]]
    """Arguments as given to canonical ones; `ArgumentError` names what does not fit."""
    arguments: Codec
    returns: Codec | None


class Remote:
    """The module of a server."""

    def __init__(self, definition: Json, module: Module | None = None) -> None:
        sections = _sections(definition)
        own = None if module is None else module.resolve()
        names = {entry["ty"]: _joined(entry["source_name"]) for entry in sections.get("Types", [])}
        self._types = RemoteTypes(sections.get("Typespace", {}).get("types", []), names)
        self.tables: dict[str, RemoteTable] = {}
        self.functions: dict[str, RemoteFunction] = {}
        self.by_row: dict[type[Row], RemoteTable] = {}
        self.by_function: dict[Callable[..., Any], RemoteFunction] = {}
        self.by_view: dict[Callable[..., Any], RemoteTable] = {}
        self.shapes: dict[str, Any] = {}
        """What all is made of, by name: what must stay the same while a client is connected again and again."""
        for table in sections.get("Tables", []):
            self._add_table(table, own)
        keys = {key["view_source_name"]: key["columns"] for key in sections.get("ViewPrimaryKeys", [])}
        for view in sections.get("Views", []):
            self._add_view(view, keys.get(view["source_name"], []), own)
        for reducer in sections.get("Reducers", []):
            self._add_function(reducer, "reducer", own)
        for procedure in sections.get("Procedures", []):
            self._add_function(procedure, "procedure", own)

    def table(self, table: type[Row] | Callable[..., Any] | str) -> RemoteTable:
        """A table by its Row class or name, or a view by its function or name; `UnknownName` when there is none."""
        if isinstance(table, str):
            found = self.tables.get(table)
        else:
            found = self.by_row.get(table) if isinstance(table, type) else self.by_view.get(table)
        if found is None:
            name = table if isinstance(table, str) else getattr(table, "__name__", repr(table))
            known = ", ".join(sorted(self.tables)) or "none"
            hint = "" if isinstance(table, str) else "; Row classes and views are known by connect(..., module=...)"
            raise UnknownName(f"the server has no table {name!r} for this client (it has {known}){hint}")
        return found

    def function(self, function: Callable[..., Any] | str, kind: str) -> RemoteFunction:
        """A reducer or procedure by name, or by the function of the game's module."""
        found = self.functions.get(function) if isinstance(function, str) else self.by_function.get(function)
        if found is None or found.kind != kind:
            name = function if isinstance(function, str) else getattr(function, "__name__", repr(function))
            known = ", ".join(sorted(f.name for f in self.functions.values() if f.kind == kind)) or "none"
            hint = "" if isinstance(function, str) else "; functions are known by connect(..., module=...)"
            raise UnknownName(f"the server has no {kind} {name!r} for this client (it has {known}){hint}")
        return found

    def differences(self, other: Remote) -> list[str]:
        """What of this another description has no more, or has otherwise."""
        return sorted(name for name, shape in self.shapes.items() if other.shapes.get(name) != shape)

    def _add_table(self, table: Json, own: Resolved | None) -> None:
        name = table["source_name"]
        product = self._types.row(table["product_type_ref"])
        columns = list(product.fields)
        keys = [columns[number] for number in table["primary_key"]]
        unique = [[columns[number] for number in each["data"]["Unique"]["columns"]] for each in table["constraints"]]
        schema = _schema(
            name,
            product,
            keys[0] if len(keys) == 1 else None,
            unique={only for only, *others in unique if not others},
            event=table.get("is_event", False),
        )
        mine = None if own is None else own.tables.get(name)
        if mine is not None:
            _compare(f"table {name!r}", product, _product_of(mine))
            schema = mine
        found = self._add(schema, product)
        if mine is not None:
            self.by_row[mine.row] = found

    def _add_view(self, view: Json, keys: list[str], own: Resolved | None) -> None:
        returned = view["return_type"]
        row = returned["Array"] if "Array" in returned else returned["Sum"]["variants"][0]["algebraic_type"]
        product = self._types.row(row["Ref"])
        name = view["source_name"]
        function = None if own is None else own.functions.get(name)
        shown = product
        if function is not None and isinstance(function.returns, ProductType):
            _compare(f"view {name!r}", product, function.returns)
            shown = function.returns
        key = keys[0] if len(keys) == 1 and keys[0] in shown.fields else None
        found = self._add(_schema(name, shown, key), product)
        if function is not None:
            self.by_view[function.function] = found

    def _add(self, schema: TableSchema, product: ProductType) -> RemoteTable:
        found = self.tables[schema.name] = RemoteTable(schema, row_codec(schema))
        self.by_row.setdefault(schema.row, found)
        self.shapes[f"table {schema.name}"] = (schema.primary_key, schema.event, anonymous(product))
        return found

    def _add_function(self, described: Json, kind: str, own: Resolved | None) -> None:
        name = described["source_name"]
        given = self._types.parameters(described["params"])
        returned = described.get("return_type", UNIT)
        result = None if returned == UNIT else self._types.read(returned)
        self.shapes[f"{kind} {name}"] = [(n, anonymous(k)) for n, k in given], result and anonymous(result)
        mine = None if own is None else own.functions.get(name)
        if mine is None:
            parameters = tuple(Parameter(name=n, type=k, default=msgspec.NODEFAULT) for n, k in given)
            bind = _binder(kind, name, parameters)
        else:
            parameters, bind = mine.parameters, mine.arguments_from
            ours = [(p.name, anonymous(p.type)) for p in parameters]
            if ours != self.shapes[f"{kind} {name}"][0]:
                raise _differs(f"the parameters of {kind} {name!r}")
            if (mine.returns and anonymous(mine.returns)) != (result and anonymous(result)):
                raise _differs(f"the result of {kind} {name!r}")
            result = mine.returns
        found = RemoteFunction(
            name, kind, bind, parameters_codec(parameters), None if result is None else codec(result)
        )
        self.functions[name] = found
        if mine is not None:
            self.by_function[mine.function] = found


def _sections(definition: Json) -> dict[str, Any]:
    definition = definition.get("V10", definition)
    if "sections" not in definition:
        raise SchemaError(f"the server's schema is not a module definition of version {VERSION}")
    return {name: content for section in definition["sections"] for name, content in section.items()}


def _joined(name: Json) -> str:
    return "".join([*name["scope"], name["source_name"]])


def _product_of(schema: TableSchema) -> ProductType:
    return ProductType(schema.row, {c.name: c.type for c in schema.columns}, set())


def _schema(
    name: str, product: ProductType, key: str | None, *, unique: Collection[str] = (), event: bool = False
) -> TableSchema:
    columns = tuple(
        Column(name=column, type=kind, unique=column == key or column in unique, default=msgspec.NODEFAULT)
        for column, kind in product.fields.items()
    )
    row = cast("type[Row]", product.cls)
    return TableSchema(name, row, columns, key, (), True, event, None, None, has_float(product))


def _compare(what: str, theirs: ColumnType, ours: ColumnType) -> None:
    if anonymous(theirs) != anonymous(ours):
        raise _differs(what)


def _differs(what: str) -> SchemaError:
    return SchemaError(
        f"{what} differs between the server and the module that was given; run the client with the server's version"
    )


def _binder(
    kind: str, name: str, parameters: tuple[Parameter, ...]
) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, ...]]:
    names = [p.name for p in parameters]
    signature = ", ".join(f"{p.name}: {p.type.name}" for p in parameters)

    def bind(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & kwargs.keys() or {*given, *kwargs} != set(names):
            raise ArgumentError(f"{kind} {name!r} takes ({signature}), got {len(args)} values and {sorted(kwargs)}")
        given.update(kwargs)
        try:
            return tuple(p.type.coerce(given[p.name], p.name) for p in parameters)
        except ColumnError as error:
            raise ArgumentError(f"{kind} {name!r}: {error}") from None

    return bind
