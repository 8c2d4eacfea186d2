"""The table `gamedb_meta`: what the database knows about itself, as key and value.

Everything that a flush writes besides rows (the last transaction, the sequences) stands here, so that it costs one
statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from sqlalchemy import Column, Connection, MetaData, Table, Text, delete, insert, inspect, select

from gamedb.storage.shape import Shape, decode_shapes, encode_shapes
from gamedb.storage.statements import upsert

FORMAT: Final = "1"
TABLE: Final = Table(
    "gamedb_meta",
    MetaData(),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
LAST_TX_ID: Final = "last_tx_id"
SEQUENCE: Final = "sequence/"
_FORMAT: Final = "format"
_SHAPES: Final = "tables"
_MIGRATIONS: Final = "migrations"


class Meta:
    """The contents of `gamedb_meta`, read once at open."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.format = values.get(_FORMAT, FORMAT)
        self.last_tx_id = int(values.get(LAST_TX_ID, "0"))
        self.shapes: dict[str, Shape] = decode_shapes(values.get(_SHAPES, "[]"))
        self.migrations: list[str] = msgspec.json.decode(values.get(_MIGRATIONS, "[]"), type=list[str])
        self.sequences = {name: int(value) for name, value in _with_prefix(values, SEQUENCE).items()}


def _with_prefix(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def exists(connection: Connection) -> bool:
    """Whether the database has our meta table."""
    return inspect(connection).has_table(TABLE.name)


def read(connection: Connection) -> Meta:
    """Read everything."""
    found = connection.execute(select(TABLE.c.key, TABLE.c.value))
    return Meta({row.key: row.value for row in found})


def move_sequence(connection: Connection, old: str, new: str) -> None:
    """Let a renamed table count on; where a table of the new name has been before, from the higher number."""
    numbers = read(connection).sequences
    if old in numbers:
        number = max(numbers[old], numbers.get(new, 0))
        connection.execute(delete(TABLE).where(TABLE.c.key.in_([SEQUENCE + old, SEQUENCE + new])))
        connection.execute(insert(TABLE).values(key=SEQUENCE + new, value=str(number)))


def write_schema(connection: Connection, shapes: Mapping[str, Shape], migrations: list[str]) -> None:
    """Record what the stored tables are now and which migrations have run."""
    texts = [
        *(_FORMAT, FORMAT),
        *(_SHAPES, encode_shapes(shapes.values())),
        *(_MIGRATIONS, msgspec.json.encode(migrations).decode()),
    ]
    upsert(TABLE, connection.dialect.name).run(connection.connection.cursor(), texts)
