"""What a `@module.migration` function gets: the stored tables as they are, and ways to change them.

Everything happens in the transaction of the open, before the tables are compared with the module's; a migration
that raises changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import msgspec
from sqlalchemy import Connection, MetaData, Table, select, text
from sqlalchemy.schema import CreateTable, DropTable

from gamedb.errors import ColumnError, StorageError
from gamedb.schema import Row, TableSchema, unknown_column
from gamedb.storage import meta
from gamedb.storage.codecs import codec, stored_type
from gamedb.storage.compare import sql_table
from gamedb.storage.models import Models
from gamedb.storage.rows import FETCH_ROWS, StoredTable
from gamedb.storage.shape import Shape, shape_of
from gamedb.storage.statements import sql_text


class StoredTables:
    """The stored tables during an open: their shapes, and the changes of DDL that keep the two in step."""

    def __init__(self, connection: Connection, shapes: Mapping[str, Shape]) -> None:
        self.connection = connection
        self.shapes = dict(shapes)
        self.stale_keys: set[str] = set()
        """Tables without primary key whose hidden keys do not fit their columns any more."""

    def drop(self, name: str) -> None:
        """Drop a table and its rows."""
        self.connection.execute(DropTable(sql_table(self.shapes.pop(name))))
        self.stale_keys.discard(name)

    def rename(self, old: str, new: str) -> None:
        """Rename a table; its sequence moves along."""
        self._alter(old, f"RENAME TO {self._quoted(new)}")
        self.shapes[new] = msgspec.structs.replace(self.shapes.pop(old), name=new)
        meta.move_sequence(self.connection, old, new)
        if old in self.stale_keys:
            self.stale_keys.remove(old)
            self.stale_keys.add(new)

    def rename_column(self, table: str, old: str, new: str) -> None:
        """Rename a column, also where indexes and the primary key name it."""
        self._alter(table, f"RENAME COLUMN {self._quoted(old)} TO {self._quoted(new)}")
        shape = self.shapes[table]
        renamed = {old: new}
        self.shapes[table] = msgspec.structs.replace(
            shape,
            columns=[msgspec.structs.replace(c, name=renamed.get(c.name, c.name)) for c in shape.columns],
            primary_key=new if shape.primary_key == old else shape.primary_key,
            indexes=sorted([renamed.get(name, name) for name in index] for index in shape.indexes),
        )

    def drop_column(self, table: str, column: str) -> None:
        """Drop a column that is not the primary key, and the indexes that name it."""
        self._alter(table, f"DROP COLUMN {self._quoted(column)}")
        shape = self.shapes[table]
        self.shapes[table] = msgspec.structs.replace(
            shape,
            columns=[c for c in shape.columns if c.name != column],
            indexes=[index for index in shape.indexes if column not in index],
        )
        if shape.primary_key is None:
            self.stale_keys.add(table)

    @contextmanager
    def rebuilt(self, schema: TableSchema) -> Iterator[Table]:
        """A new, empty table of this schema to fill, which then takes the place of the stored one."""
        table = Models([schema]).table(schema.name)
        building = table.to_metadata(MetaData(), name=f"gamedb_new_{schema.name}")
        self.connection.execute(CreateTable(building))
        yield building
        self.connection.execute(DropTable(sql_table(self.shapes[schema.name])))
        self._alter(building.name, f"RENAME TO {self._quoted(schema.name)}")
        self.shapes[schema.name] = shape_of(schema)
        self.stale_keys.discard(schema.name)

    def replace(self, schema: TableSchema, chunks: Iterator[list[Row]], remedy: str) -> None:
        """Put these rows, of this schema, in the place of a stored table's."""
        with self.rebuilt(schema) as building, closing(self.connection.connection.cursor()) as cursor:
            target = StoredTable(schema, building, self.connection.dialect.name)
            key_of = target.row_key or _attribute(schema.primary_key)
            seen: set[Any] = set()
            for rows in chunks:
                keyed = {}
                for row in rows:
                    key = key_of(row)
                    if key in seen:
                        what = repr(row) if schema.primary_key is None else f"{schema.primary_key} {key!r}"
                        raise StorageError(f"table {schema.name!r}: two rows would have {what}; {remedy}")
                    seen.add(key)
                    keyed[key] = row
                target.write(cursor, keyed)

    def raw(self, name: str) -> Iterator[list[tuple[Any, ...]]]:
        """The stored values of a table in chunks."""
        shape = self.shapes[name]
        table = sql_table(shape)
        columns = [table.columns[c.name] for c in shape.columns]
        query = select(*columns).order_by(*table.primary_key)
        cursor = self.connection.connection.cursor()  # not closed here: a loop left early may outlive the connection
        cursor.execute(sql_text(query, self.connection.dialect.name))
        while chunk := cursor.fetchmany(FETCH_ROWS):
            yield list(chunk)

    def _alter(self, table: str, action: str) -> None:
        self.connection.execute(text(f"ALTER TABLE {self._quoted(table)} {action}"))

    def _quoted(self, name: str) -> str:
        return self.connection.dialect.identifier_preparer.quote(name)


class MigrationContext:
    """The stored tables, for a migration to read and change. Tables and columns go by their stored names."""

    def __init__(self, stored: StoredTables, schemas: Mapping[str, TableSchema]) -> None:
        self._stored = stored
        self._schemas = schemas

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The stored tables and their columns."""
        shapes = self._stored.shapes
        return {name: tuple(c.name for c in s.columns) for name, s in shapes.items() if not s.event}

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a stored table as dicts: enum members as their names, nested values as plain JSON.

        Finish (or leave) the loop before changing the table.
        """
        shape = self._shape(table)
        names = [c.name for c in shape.columns]
        dialect = self._stored.connection.dialect.name
        decoders = [codec(stored_type(c.type), dialect).decode_function() for c in shape.columns]
        for chunk in self._stored.raw(table):
            for values in chunk:
                yield {
                    name: value if value is None or decode is None else decode(value)
                    for name, value, decode in zip(names, values, decoders, strict=True)
                }

    def rename_table(self, old: str, new: str) -> None:
        """Rename a stored table; its rows and its auto-increment number stay."""
        self._shape(old)
        self._check_free(new, self.tables, "there is a table")
        self._stored.rename(old, new)

    def rename_column(self, table: str, old: str, new: str) -> None:
        """Rename a column of a stored table."""
        self._column(table, old)
        self._check_free(new, self.tables[table], f"table {table!r} has a column")
        self._stored.rename_column(table, old, new)

    def drop_column(self, table: str, column: str) -> None:
        """Drop a column and its values."""
        self._column(table, column)
        if column == self._shape(table).primary_key:
            raise StorageError(
                f"column {column!r} is the primary key of table {table!r}; use ctx.rewrite({table!r}, function)"
            )
        if len(self.tables[table]) == 1:
            raise StorageError(f"column {column!r} is the only one of table {table!r}; use ctx.drop_table")
        self._stored.drop_column(table, column)

    def drop_table(self, table: str) -> None:
        """Drop a stored table and its rows."""
        self._shape(table)
        self._stored.drop(table)

    def rewrite(self, table: str, function: Callable[[dict[str, Any]], Row | dict[str, Any] | None]) -> None:
        """Rebuild a table as the module declares it, each row (a dict as from `rows`) through `function`.

        It gives back a row of the module's class, or a dict of its columns (those with a default may be left
        out; enum members by name and nested values as plain JSON are fine), or None to drop the row. Values are
        checked as in `insert`; two rows with one primary key are refused.
        """
        self._shape(table)
        schema = self._schemas.get(table)
        if schema is None or schema.event:
            raise StorageError(f"the module has no stored table {table!r} to rewrite this one for")

        def chunks() -> Iterator[list[Row]]:
            chunk: list[Row] = []
            for values in self.rows(table):
                result = function(values)
                if result is None:
                    continue
                chunk.append(checked_row(schema, result))
                if len(chunk) == FETCH_ROWS:
                    yield chunk
                    chunk = []
            if chunk:
                yield chunk

        self._stored.replace(schema, chunks(), "return None for the rows to drop")

    def _shape(self, table: str) -> Shape:
        if table not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise StorageError(f"there is no stored table {table!r} (there are: {known})")
        return self._stored.shapes[table]

    def _column(self, table: str, column: str) -> None:
        if self._shape(table).column(column) is None:
            known = ", ".join(self.tables[table])
            raise StorageError(f"stored table {table!r} has no column {column!r} (it has {known})")

    @staticmethod
    def _check_free(name: str, taken: Any, what: str) -> None:
        if name in taken:
            raise StorageError(f"{what} {name!r} already")


def _attribute(name: str | None) -> Callable[[Row], Any]:
    assert name is not None
    return lambda row: getattr(row, name)


def checked_row(schema: TableSchema, result: Row | dict[str, Any]) -> Row:
    """The row of this schema with canonical values that a migration gave back."""
    if isinstance(result, dict):
        values = result
    elif type(result) is schema.row:
        values = msgspec.structs.asdict(result)
    else:
        raise ColumnError(f"table {schema.name!r}: expected a {schema.row.__name__} or a dict, got {result!r}")
    for name in values:
        if all(c.name != name for c in schema.columns):
            raise ColumnError(unknown_column(schema, name))
    canonical = {}
    for column in schema.columns:
        path = f"{schema.name}.{column.name}"
        if column.name in values:
            value = values[column.name]
            try:
                canonical[column.name] = column.type.coerce(value, path)
            except ColumnError:  # nested values and enum members may come as plain JSON
                canonical[column.name] = column.type.from_json(value, path)
        elif column.default is msgspec.NODEFAULT:
            raise ColumnError(f"{path} is missing and has no default")
        else:
            canonical[column.name] = column.default
    return schema.row(**canonical)
