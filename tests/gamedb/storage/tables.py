"""Small tables that several tests of the storage use."""

from __future__ import annotations

from gamedb.schema import AutoInc, Index, PrimaryKey, Row
from gamedb.types import u32, u64


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: str
    zone: Index[u32] = 0


class Tag(Row):
    """Without a primary key: a set of rows."""

    player: u64
    label: str


class Hit(Row):
    """An event."""

    player: u64
