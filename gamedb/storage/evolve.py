"""Bringing the stored tables to the module's schema when a database is opened, in one SQL transaction.

Migrations run first, then what is left of differences is compared and either applied as a whole or refused as a
whole. `plan` goes the same way and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, insert, literal, select
from sqlalchemy.schema import CreateTable

from gamedb.errors import SchemaChangeRefused, StorageError
from gamedb.resolved import Migration
from gamedb.schema import Row, TableSchema
from gamedb.storage import meta
from gamedb.storage.codecs import codec
from gamedb.storage.compare import Plan, Step, compare, sql_table
from gamedb.storage.migration import MigrationContext, StoredTables
from gamedb.storage.rows import builder, stored_tables
from gamedb.storage.shape import shapes_of
from gamedb.system import SYSTEM_TABLES

ANOTHER_GAME: Final = "; perhaps this is the database of another game: choose another path (--data-dir). If it is not"


def create(connection: Connection, tables: Mapping[str, TableSchema], migrations: Sequence[Migration]) -> None:
    """Create all tables of a new database; its migrations count as done."""
    connection.execute(CreateTable(meta.TABLE))
    for table in stored_tables(tuple(tables.values()), connection.dialect.name).values():
        connection.execute(CreateTable(table.table))
    meta.write_schema(connection, shapes_of(tables), [m.name for m in migrations])


def creation_plan(tables: Mapping[str, TableSchema]) -> Plan:
    """The plan for a database that does not exist yet."""
    steps = [Step("create table", name, f"create table {name!r}", False) for name in tables]
    return Plan(steps, [])


class Evolution:
    """One attempt to bring a database to a module's schema, inside a transaction that the caller holds."""

    def __init__(
        self,
        connection: Connection,
        label: str,
        tables: Mapping[str, TableSchema],
        migrations: Sequence[Migration],
    ) -> None:
        self._connection = connection
        self._label = label
        self._tables = tables
        self._meta = meta.read(connection)
        if self._meta.format != meta.FORMAT:
            raise StorageError(
                f"{label} was written by another version of gamedb (format {self._meta.format}, this one knows "
                f"{meta.FORMAT}); upgrade gamedb"
            )
        self._stored = StoredTables(connection, self._meta.shapes)
        self.pending = [m for m in migrations if m.name not in self._meta.migrations]

    def migrate(self) -> list[Step]:
        """Run the migrations that this database has not seen."""
        context = MigrationContext(self._stored, self._tables)
        for migration in self.pending:
            try:
                migration.function(context)
            except Exception as error:
                raise StorageError(
                    f"{self._label}: migration {migration.name!r} failed, nothing was changed: "
                    f"{type(error).__name__}: {error}"
                ) from error
        return [Step("migration", "", f"run migration {m.name!r}", True) for m in self.pending]

    def compare(self) -> Plan:
        """What is still different."""
        return compare(self._connection, self._stored.shapes, self._tables)

    def apply(self) -> None:
        """Migrate, then take every step; `SchemaChangeRefused` when one cannot be taken."""
        self.migrate()
        plan = self.compare()
        if plan.refusals:
            listed = "\n".join(f"  - {refusal}" for refusal in plan.refusals)
            raise SchemaChangeRefused(
                f"{self._label}: the stored tables do not fit the module; nothing was changed"
                f"{ANOTHER_GAME if self._of_another_game() else ''}:\n{listed}",
                plan.refusals,
            )
        for step in plan.steps:
            if step.kind == "drop table":
                self._stored.drop(step.table)
        for name in dict.fromkeys(step.table for step in plan.steps if step.kind == "add column"):
            self._add_columns(self._tables[name])
        for name in list(self._stored.stale_keys):
            self._rekey(self._tables[name])
        tables = stored_tables(tuple(self._tables.values()), self._connection.dialect.name)
        for step in plan.steps:
            if step.kind == "create table" and step.table in tables:
                self._connection.execute(CreateTable(tables[step.table].table))
        if plan.steps or self.pending:
            done = [*self._meta.migrations, *(m.name for m in self.pending)]
            meta.write_schema(self._connection, shapes_of(self._tables), done)

    def _of_another_game(self) -> bool:
        """Whether most of the stored tables are not in the module: a renamed table or two are no such thing."""
        own = self._stored.shapes.keys() - SYSTEM_TABLES.keys()
        return 2 * len(own - self._tables.keys()) > len(own)

    def _add_columns(self, schema: TableSchema) -> None:
        if schema.primary_key is None:
            self._rekey(schema)
            return
        old = sql_table(self._stored.shapes[schema.name])
        with self._stored.rebuilt(schema) as target:
            values = [
                old.columns[c.name] if c.name in old.columns else literal(c.default, target.columns[c.name].type)
                for c in schema.columns
            ]
            copy = insert(target).from_select([c.name for c in schema.columns], select(*values))
            self._connection.execute(copy)

    def _rekey(self, schema: TableSchema) -> None:
        """Rows without primary key get new hidden keys with their new columns."""
        stored = [c.name for c in self._stored.shapes[schema.name].columns]
        defaults = []
        for column in schema.columns[len(stored) :]:
            encode = codec(column.type, self._connection.dialect.name).encode_function()
            defaults.append(column.default if encode is None else encode(column.default))
        build = builder(schema, self._connection.dialect.name)

        def chunks() -> Iterator[list[Row]]:
            for chunk in self._stored.raw(schema.name):
                yield build([(*values, *defaults) for values in chunk])

        remedy = f"merge or drop them with ctx.rewrite({schema.name!r}, function) in the migration"
        self._stored.replace(schema, chunks(), remedy)
