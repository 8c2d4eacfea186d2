"""The tables that the database keeps for itself, beside the game's: stored and rolled back like any other.

They are private, and not in `ctx.db` of a game.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from gamedb.schema import PrimaryKey, Row, TableSchema, table_schema
from gamedb.types import ConnectionId, Identity


class ScheduleState(Row):
    """The next nominal time of an interval row; this is what keeps its phase."""

    key: PrimaryKey[str]
    """`table/scheduled_id`."""
    next_at: datetime


class ClientConnection(Row):
    """A connection whose `client_disconnected` has not run yet."""

    connection_id: PrimaryKey[ConnectionId]
    identity: Identity
    connected_at: datetime


class Setting(Row):
    """A fact about the database itself."""

    key: PrimaryKey[str]
    value: str


def _system(row: type[Row], name: str) -> TableSchema:
    return msgspec.structs.replace(table_schema(row, name=name), name=f"gamedb_{name}")


SYSTEM_TABLES: dict[str, TableSchema] = {
    schema.name: schema
    for schema in (_system(ScheduleState, "schedule"), _system(ClientConnection, "client"), _system(Setting, "setting"))
}
