"""The SQLModel class of each table, derived from its schema: the DDL of the storage and typed queries for people.

`models_for` is public, for notebooks and admin pages; the storage itself uses the tables below the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Column as SQLColumn
from sqlalchemy import LargeBinary, MetaData, Table
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from gamedb.columns import (
    BoolType,
    BytesType,
    ColumnType,
    DurationType,
    EnumType,
    FloatType,
    HexType,
    IntType,
    OptionType,
    StrType,
    TimestampType,
    UuidType,
)
from gamedb.module import Module
from gamedb.schema import TableSchema
from gamedb.storage.codecs import Stored

ROW_KEY: Final = "_row_key"
"""The hidden primary key of tables that declare none: a digest of the whole row. No column can have this name."""


class Models:
    """SQLModel classes: by Row class name as attributes (`models.Player`), by table name as items."""

    def __init__(self, schemas: Iterable[TableSchema]) -> None:
        self.metadata = MetaData()
        """SQLAlchemy's own view of the tables, for `select` and `create_all`."""
        self._by_table: dict[str, Any] = {}
        self._by_class: dict[str, list[Any]] = {}
        for schema in schemas:
            if schema.event:
                continue
            model = _model(_base(self.metadata), schema)
            self._by_table[schema.name] = model
            self._by_class.setdefault(schema.row.__name__, []).append(model)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_by_class", {}).get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            tables = ", ".join(f"models[{m.__tablename__!r}]" for m in found)
            raise AttributeError(f"several tables have a Row class {name}; write {tables}")
        raise AttributeError(f"no stored table has the Row class {name!r} (there are {', '.join(self._by_class)})")

    def __getitem__(self, table: str) -> Any:
        return self._by_table[table]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._by_table.values())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._by_class]

    def table(self, name: str) -> Table:
        """The SQLAlchemy table below a model."""
        return self.metadata.tables[name]


def models_for(source: Module | Mapping[str, TableSchema]) -> Models:
    """A SQLModel class for each stored table of a module (or of a mapping of schemas).

    Each call makes classes of its own with a registry of their own, so that two modules may both have a `Player`.
    A column whose name SQLModel or pydantic needs for itself (`metadata`, `json`, `model_...`) gets a trailing
    underscore in the model; in the database it keeps its name. Event tables are not stored and have no model.
    """
    tables = source if isinstance(source, Mapping) else source.resolve().tables
    return Models(tables.values())


def plain_table(
    metadata: MetaData, name: str, columns: Iterable[tuple[str, ColumnType]], primary_key: str | None
) -> Table:
    """A SQLAlchemy table of these columns, for tables that have no Row class (any more)."""
    parts = [sql_column(column, kind, column == primary_key) for column, kind in columns]
    return Table(name, metadata, *_with_row_key(parts, primary_key), **_options(parts, primary_key))


def sql_column(name: str, kind: ColumnType, primary_key: bool) -> SQLColumn[Any]:
    """One SQL column of a column type."""
    nullable = isinstance(kind, OptionType)
    return SQLColumn(name, Stored(kind), primary_key=primary_key, nullable=nullable, autoincrement=False)


def _row_key() -> SQLColumn[Any]:
    return SQLColumn(ROW_KEY, LargeBinary(), primary_key=True)


def _with_row_key(columns: list[SQLColumn[Any]], primary_key: str | None) -> list[SQLColumn[Any]]:
    return columns if primary_key is not None else [_row_key(), *columns]


def _options(columns: Iterable[SQLColumn[Any]], primary_key: str | None) -> dict[str, Any]:
    """An integer key is SQLite's own rowid; with any other key a rowid would be a second B-tree."""
    kinds = {c.name: c.type.kind for c in columns if isinstance(c.type, Stored)}
    kind = None if primary_key is None else kinds[primary_key]
    rowid = isinstance(kind, IntType) and kind.high < 2**64
    return {"sqlite_strict": True, "sqlite_with_rowid": rowid}


def _base(metadata: MetaData) -> type[SQLModel]:
    class Base(SQLModel, registry=registry(metadata=metadata)):
        pass

    Base.metadata = metadata
    return Base


def _model(base: type[SQLModel], schema: TableSchema) -> Any:
    columns = {c.name: sql_column(c.name, c.type, c.name == schema.primary_key) for c in schema.columns}
    annotations: dict[str, Any] = {}
    namespace: dict[str, Any] = {
        "__module__": schema.row.__module__,
        "__qualname__": schema.row.__qualname__,
        "__doc__": schema.row.__doc__,
        "__tablename__": schema.name,
        "__table_args__": _options(columns.values(), schema.primary_key),
        "__annotations__": annotations,
        "model_config": {"arbitrary_types_allowed": True, "protected_namespaces": ()},
    }
    if schema.primary_key is None:
        attribute = _free("row_key", base, schema)
        annotations[attribute] = bytes
        namespace[attribute] = Field(sa_column=_row_key())
    for column in schema.columns:
        attribute = _attribute(column.name, base, schema)
        annotations[attribute] = _python_type(column.type)
        namespace[attribute] = Field(sa_column=columns[column.name])
    metaclass: Any = type(base)
    return metaclass(schema.row.__name__, (base,), namespace, table=True)


_DECLARATIVE_NAMES: Final = {"metadata", "registry"}


def _attribute(column: str, base: type[SQLModel], schema: TableSchema) -> str:
    if column in _DECLARATIVE_NAMES or column.startswith("model_") or hasattr(base, column):
        return _free(f"{column}_", base, schema)
    return column


def _free(name: str, base: type[SQLModel], schema: TableSchema) -> str:
    taken = {c.name for c in schema.columns}
    while name in taken or hasattr(base, name):
        name += "_"
    return name


_PYTHON_TYPES: Final[dict[type[ColumnType], type]] = {
    BoolType: bool,
    IntType: int,
    FloatType: float,
    StrType: str,
    BytesType: bytes,
    TimestampType: datetime,
    DurationType: timedelta,
    UuidType: UUID,
}


def _python_type(kind: ColumnType) -> Any:
    if isinstance(kind, OptionType):
        return _python_type(kind.inner) | None
    if isinstance(kind, EnumType | HexType):
        return kind.cls
    return _PYTHON_TYPES.get(type(kind), Any)
