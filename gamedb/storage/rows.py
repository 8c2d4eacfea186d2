"""Reading and writing whole rows of one table at the speed of the driver.

The code between Row objects and SQL parameters is generated for each table from the codecs of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Integer, Table, func, select, type_coerce
from sqlalchemy.sql.selectable import Select

from gamedb.columns import BytesType, OptionType, ScheduleAtType, StrType, TimestampType, shown
from gamedb.schema import Row, TableSchema
from gamedb.storage.codecs import SCOPE, codec
from gamedb.storage.digest import digest_function
from gamedb.storage.models import Models
from gamedb.storage.statements import delete_by_key, sql_text, upsert

FETCH_ROWS: Final = 10_000
"""Rows of one chunk when loading."""
SHARED_VALUES_MAX: Final = 1024
"""How many values of a column are remembered while loading, so that rows share equal ones."""
_SHARED: Final = (StrType, BytesType, TimestampType, ScheduleAtType)


@lru_cache(maxsize=4)
def stored_tables(schemas: tuple[TableSchema, ...], dialect: str) -> dict[str, StoredTable]:
    """The stored tables of these schemas by name (event tables are not stored); those of late are kept."""
    models = Models(schemas)
    return {s.name: StoredTable(s, models.table(s.name), dialect) for s in schemas if not s.event}


class StoredTable:
    """The stored side of one table."""

    def __init__(self, schema: TableSchema, table: Table, dialect: str) -> None:
        self.schema = schema
        self.name = schema.name
        self.table = table
        self._dialect = dialect
        self._upsert = upsert(table, dialect)
        self._delete = delete_by_key(table, dialect)
        self._select = sql_text(self._ordered_select(), dialect)
        self.row_key = digest_function(schema) if schema.primary_key is None else None
        self._flatten = _flattener(schema, dialect)
        self._build = builder(schema, dialect, share=True)
        key = None if schema.primary_key is None else codec(schema.column(schema.primary_key).type, dialect)
        self._encode_key = None if key is None else key.encode_function()

    def _ordered_select(self) -> Select[Any]:
        columns = [self.table.columns[c.name] for c in self.schema.columns]
        return select(*columns).order_by(*self.table.primary_key)

    def write(self, cursor: Any, rows: Mapping[Any, Row | None]) -> None:
        """Bring the rows of these keys to their final state; keys without a row are deleted.

        In a table without primary key, the key is the row itself or its digest.
        """
        digest = self.row_key
        if digest is not None:
            rows = {key if type(key) is bytes else digest(key): row for key, row in rows.items()}
        gone = [key for key, row in rows.items() if row is None]
        if gone:
            if self._encode_key is not None:
                gone = list(map(self._encode_key, gone))
            self._delete.run(cursor, gone)
        if len(gone) == len(rows):
            return
        if digest is not None:
            self._upsert.run(cursor, self._flatten([item for item in rows.items() if item[1] is not None]))
        else:
            self._upsert.run(cursor, self._flatten([row for row in rows.values() if row is not None]))

    def read(self, cursor: Any) -> Iterator[list[Row]]:
        """All rows in the order of their keys, in chunks; `UnreadableRow` names what does not fit its type."""
        cursor.execute(self._select)
        while stored := cursor.fetchmany(FETCH_ROWS):
            try:
                rows = self._build(stored)
            except Exception:
                raise self._unreadable(stored) from None
            yield rows

    def check_bounds(self, cursor: Any) -> None:
        """`UnreadableRow` when a number is out of its type's range, which only another tool can have done."""
        bounded = {c.name: codec(c.type, self._dialect).bounds for c in self.schema.columns}
        bounds = {name: low_high for name, low_high in bounded.items() if low_high is not None}
        if not bounds:
            return
        numbers = [type_coerce(self.table.columns[name], Integer()) for name in bounds]
        extremes = [extreme(number) for number in numbers for extreme in (func.min, func.max)]
        cursor.execute(sql_text(select(*extremes), self._dialect))
        found = iter(cursor.fetchone())
        for name, (low, high) in bounds.items():
            for value in (next(found), next(found)):
                if value is not None and not low <= value <= high:
                    kind = self.schema.column(name).type.name
                    raise UnreadableRow(f"column {name!r} holds {value}, out of range for {kind} ({low}..{high})")

    def _unreadable(self, stored: Sequence[tuple[Any, ...]]) -> UnreadableRow:
        for values in stored:
            for column, value in zip(self.schema.columns, values, strict=True):
                decode = codec(column.type, self._dialect).decode_function()
                if decode is None or (value is None and isinstance(column.type, OptionType)):
                    continue
                try:
                    decode(value)
                except Exception as error:
                    return UnreadableRow(f"row {shown(values)}: column {column.name!r}: {error}")
        return UnreadableRow("a row that cannot be read")


class UnreadableRow(Exception):
    """A stored row that does not fit the types of its table."""


def _flattener(schema: TableSchema, dialect: str) -> Callable[[Iterable[Any]], list[Any]]:
    """A function from rows (or pairs of hidden key and row) to the flat list of their SQL parameters."""
    scope = dict(SCOPE)
    parts = [] if schema.primary_key is not None else ["key"]
    for i, column in enumerate(schema.columns):
        how = codec(column.type, dialect)
        scope[f"x{i}"] = how.extra
        parts.append((how.encode or "{v}").format(v=f"row.{column.name}", x=f"x{i}"))
    each = "row" if schema.primary_key is not None else "key, row"
    return _compiled(f"lambda rows: [value for {each} in rows for value in ({', '.join(parts)},)]", scope)


def builder(schema: TableSchema, dialect: str, *, share: bool = False) -> Callable[[list[tuple[Any, ...]]], list[Row]]:
    """A function from stored tuples to rows. `share`: equal texts and times of late are one object."""
    scope = {**SCOPE, "Row": schema.row}
    names, arguments = [], []
    for i, column in enumerate(schema.columns):
        how = codec(column.type, dialect)
        names.append(f"v{i}")
        inner = column.type.inner if isinstance(column.type, OptionType) else column.type
        if share and isinstance(inner, _SHARED) and not column.unique and column.name != schema.primary_key:
            scope[f"x{i}"] = lru_cache(SHARED_VALUES_MAX)(how.decode_function() or _as_it_is)
            arguments.append(f"{column.name}=x{i}(v{i})")
        else:
            scope[f"x{i}"] = how.extra
            arguments.append(f"{column.name}={(how.decode or '{v}').format(v=f'v{i}', x=f'x{i}')}")
    return _compiled(f"lambda stored: [Row({', '.join(arguments)}) for {', '.join(names)}, in stored]", scope)


def _as_it_is(value: Any) -> Any:
    return value


def _compiled(source: str, scope: dict[str, Any]) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = eval(source, scope)
    return function
