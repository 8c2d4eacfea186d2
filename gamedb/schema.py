"""How a table is declared: `Row`, its markers, and the `TableSchema` that is read from a Row class.

Everything below works from `TableSchema`; nothing looks at annotations again. It knows no module and no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self, TypeVar, dataclass_transform

import msgspec

from gamedb.columns import (
    ColumnType,
    FloatType,
    IntType,
    OptionType,
    ScheduleAtType,
    check_equality,
    column_type,
    has_float,
    resolve_hints,
    struct_defaults,
)
from gamedb.errors import ColumnError, SchemaError

T = TypeVar("T")

_replace = msgspec.structs.replace


class Marker(msgspec.Struct, frozen=True):
    """What `PrimaryKey`, `AutoInc`, `Unique` and `Index` leave in an annotation."""

    name: str


PrimaryKey = Annotated[T, Marker("PrimaryKey")]
"""`PrimaryKey[T]`: the column that identifies a row. At most one a table; it is unique and indexed by itself.

Not for floats, nor for `T | None`.
"""
AutoInc = Annotated[T, Marker("AutoInc")]
"""`AutoInc[T]`: an integer column in which 0 means that the database assigns the next number. At most one a table.

Often `PrimaryKey[AutoInc[u64]]`. `Table.insert` gives the row with its number.
"""
Unique = Annotated[T, Marker("Unique")]
"""`Unique[T]`: no two rows share a value (`None` may stand in many). `ReadTable.find` looks rows up by it."""
Index = Annotated[T, Marker("Index")]
"""`Index[T]`: `ReadTable.where` and `ReadTable.between` on this column use an index."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class RowMeta(msgspec.StructMeta):
    """Makes rows frozen and keyword-only, and keeps them out of the cyclic garbage collector."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> RowMeta:
        for option, value in (("frozen", True), ("kw_only", True), ("gc", False), ("eq", True)):
            if config.setdefault(option, value) is not value:
                raise SchemaError(f"{name}: a Row is always {option}={value}")
        return super().__new__(mcls, name, bases, namespace, **config)


# Type checkers read the class first, and treat a class as neither frozen nor not only if its metaclass says so, too.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Row(msgspec.Struct, metaclass=RowMeta):
    """Base class of the rows of a table: frozen, keyword-only, compared by value.

    Subclass it with annotated columns and register the class with `@module.table`. A wrong value is a `ColumnError`
    when the row is written, not when it is made.

    ```python
    class Player(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        name: Unique[str]
        hp: u32 = 100

    print(Player(name="ann").replace(hp=70))  # Player(id=0, name='ann', hp=70)
    ```
    """

    def replace(self, /, **changes: Any) -> Self:
        """A copy of this row with some columns changed; `TypeError` for a column that it does not have."""
        return _replace(self, **changes)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _StructMeta(msgspec.StructMeta):
    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> _StructMeta:
        config.setdefault("frozen", True)
        return super().__new__(mcls, name, bases, namespace, **config)


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, metaclass=_StructMeta):
    """A msgspec Struct that is frozen unless `frozen=False` is given: nested values of columns, states and payloads.

    >>> class Point(Struct):
    ...     x: float
    ...     y: float
    """

    def replace(self, /, **changes: Any) -> Self:
        """A copy with some fields changed; `TypeError` for a field that it does not have."""
        return _replace(self, **changes)


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name, its type and what is declared of it."""

    name: str
    type: ColumnType
    auto_inc: bool = False
    unique: bool = False
    default: Any  # msgspec cannot have NODEFAULT as a default
    """The canonical default value; `msgspec.NODEFAULT` when the column must be given."""


class TableSchema(msgspec.Struct, frozen=True):
    """One table: the name, the Row class, the columns in order and the constraints."""

    name: str
    row: type[Row]
    columns: tuple[Column, ...]
    primary_key: str | None
    indexes: tuple[tuple[str, ...], ...]
    """Column names of each equality index; single ones and those of `indexes=`."""
    public: bool
    event: bool
    scheduled: str | None
    """The name of the reducer or procedure that fires, for a scheduled table."""
    schedule_column: str | None
    has_float: bool
    """Whether equal rows may differ bit by bit (nan, -0.0)."""

    def column(self, name: str) -> Column:
        """The column of this name; `SchemaError` when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(unknown_column(self, name))

    @property
    def unique_columns(self) -> tuple[str, ...]:
        """Unique columns other than the primary key."""
        return tuple(c.name for c in self.columns if c.unique and c.name != self.primary_key)


def unknown_column(schema: TableSchema, name: str) -> str:
    """The text that says which columns there are."""
    return f"table {schema.name!r} has no column {name!r} (it has {', '.join(c.name for c in schema.columns)})"


def snake_case(name: str) -> str:
    """`DamageEvent` to `damage_event`, `HTTPServer` to `http_server`."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_RESERVED_PREFIXES = ("gamedb_", "sqlite_", "pg_", "st_")


def check_table_name(name: str) -> None:
    """`SchemaError` unless the name can be a table's."""
    if not _NAME.match(name):
        raise SchemaError(f"table name {name!r}: use lower-case letters, digits and underscores")
    if name.startswith(_RESERVED_PREFIXES):
        raise SchemaError(f"table name {name!r}: the prefix {name.split('_')[0]}_ is reserved; choose another name")


def table_schema(
    cls: type[Row],
    *,
    name: str | None = None,
    public: bool = False,
    event: bool = False,
    scheduled: str | None = None,
    indexes: Iterable[Sequence[str]] = (),
    scope: dict[str, Any] | None = None,
) -> TableSchema:
    """Read the schema of a Row class; `SchemaError` says what cannot work and what to write instead."""
    if not (isinstance(cls, type) and issubclass(cls, Row)):
        raise SchemaError(f"{cls!r} is not a table: declare it as class {getattr(cls, '__name__', 'Name')}(Row)")
    check_equality(cls, cls.__name__)
    table = name if name is not None else snake_case(cls.__name__)
    check_table_name(table)
    hints = resolve_hints(cls, cls.__name__, scope)
    columns: list[Column] = []
    primary: list[str] = []
    single: list[tuple[str, ...]] = []
    for column_name, default in struct_defaults(cls).items():
        where = f"{cls.__name__}.{column_name}"
        markers = _markers(hints[column_name], where)
        kind = column_type(hints[column_name], where, scope)
        columns.append(_column(column_name, default, kind, markers, where))
        if "PrimaryKey" in markers:
            primary.append(column_name)
        elif "Index" in markers:
            single.append((column_name,))
    if not columns:
        raise SchemaError(f"{cls.__name__} has no columns")
    if len(primary) > 1:
        raise SchemaError(
            f"{cls.__name__} has {len(primary)} primary keys ({', '.join(primary)}); keep one, and declare "
            f"the combination with @module.table(indexes=[({', '.join(map(repr, primary))})])"
        )
    if sum(c.auto_inc for c in columns) > 1:
        raise SchemaError(f"{cls.__name__} has more than one AutoInc column; keep one and number the others yourself")
    schema = TableSchema(
        name=table,
        row=cls,
        columns=tuple(columns),
        primary_key=primary[0] if primary else None,
        indexes=_indexes(cls, columns, single, indexes),
        public=public,
        event=event,
        scheduled=scheduled,
        schedule_column=None,
        has_float=any(has_float(c.type) for c in columns),
    )
    _check_names(schema)
    return schema if scheduled is None else _as_scheduled(schema)


def _markers(hint: Any, where: str) -> set[str]:
    names = [m.name for m in getattr(hint, "__metadata__", ()) if isinstance(m, Marker)]
    if len(names) != len(set(names)):
        raise SchemaError(f"{where}: {max(names, key=names.count)} is given twice")
    if "PrimaryKey" in names and ("Unique" in names or "Index" in names):
        raise SchemaError(f"{where}: a primary key is unique and indexed by itself; write PrimaryKey alone")
    return set(names)


def _column(name: str, default: Any, kind: ColumnType, markers: set[str], where: str) -> Column:
    base = kind.inner if isinstance(kind, OptionType) else kind
    if "AutoInc" in markers and not isinstance(kind, IntType):
        raise SchemaError(f"{where}: AutoInc needs an integer column, not {kind.name}")
    if markers & {"PrimaryKey", "Unique", "Index"} and not kind.keyable:
        raise SchemaError(f"{where}: {kind.name} cannot be a key or an index; index a plain column")
    if markers & {"PrimaryKey", "Unique"} and isinstance(base, FloatType):
        raise SchemaError(f"{where}: {kind.name} cannot be unique (nan is not equal to itself); use an integer")
    if "PrimaryKey" in markers and isinstance(kind, OptionType):
        raise SchemaError(f"{where}: a primary key cannot be None; drop the '| None'")
    if default is not msgspec.NODEFAULT:
        try:
            default = kind.coerce(default, where)
        except ColumnError as error:
            raise SchemaError(f"the default of {error}") from None
    return Column(
        name=name,
        type=kind,
        auto_inc="AutoInc" in markers,
        unique=bool(markers & {"PrimaryKey", "Unique"}),
        default=default,
    )


def _indexes(
    cls: type[Row], columns: list[Column], single: list[tuple[str, ...]], given: Iterable[Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    kinds = {c.name: c.type for c in columns}
    result = list(single)
    for index in given:
        names = (index,) if isinstance(index, str) else tuple(index)
        for name in names:
            if name not in kinds:
                raise SchemaError(f"{cls.__name__}: index {names} names {name!r}, which is not a column")
            if not kinds[name].keyable:
                raise SchemaError(f"{cls.__name__}: index {names}: {kinds[name].name} cannot be indexed")
        if not names or len(set(names)) != len(names):
            raise SchemaError(f"{cls.__name__}: index {names} must name different columns, at least one")
        if names in result:
            raise SchemaError(f"{cls.__name__}: index {names} is declared twice")
        result.append(names)
    return tuple(result)


def _check_names(schema: TableSchema) -> None:
    seen: dict[str, str] = {}
    for column in schema.columns:
        name = column.name
        if hasattr(Row, name) or name.startswith("_"):
            raise SchemaError(f"{schema.row.__name__}.{name}: this name is taken by Row itself; choose another")
        if seen.setdefault(name.lower(), name) != name:
            raise SchemaError(f"{schema.row.__name__}: {seen[name.lower()]} and {name} differ only by case")


def _as_scheduled(schema: TableSchema) -> TableSchema:
    where = f"scheduled table {schema.row.__name__}"
    if schema.event:
        raise SchemaError(f"{where} cannot be an event table: its rows must live until they fire")
    times = [c.name for c in schema.columns if isinstance(c.type, ScheduleAtType)]
    if len(times) != 1:
        raise SchemaError(f"{where} needs exactly one column of type ScheduleAt, it has {len(times)}")
    if schema.primary_key is None or schema.column(schema.primary_key).type.name != "u64":
        raise SchemaError(f"{where} needs a key: scheduled_id: PrimaryKey[AutoInc[u64]] = 0")
    return msgspec.structs.replace(schema, schedule_column=times[0])
