"""The game that the tests of queries ask: every column type, both kinds of keys, an event table, views."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from gamedb import (
    AutoInc,
    Commit,
    ConnectionId,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    Struct,
    Unique,
    ViewContext,
    f32,
    i32,
    u8,
    u32,
    u64,
    u256,
)
from gamedb.columns import from_micros
from gamedb.query import Catalog, Delta, LiveQuery, Matcher
from gamedb.store import ReadTables

ANN = Identity.from_int(1)
BOB = Identity.from_int(2)
NOBODY = Identity.from_int(0)


class Mode(enum.Enum):
    IDLE = "idle"
    BUSY = "busy"


class Point(Struct):
    x: u8
    y: u8


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    owner: Index[Identity] = NOBODY
    zone: Index[u32] = 0
    hp: i32 = 100
    online: bool = True
    mode: Mode = Mode.IDLE
    speed: float = 0.0
    guild: Index[u32 | None] = None


class Item(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    player_id: Index[u64]
    kind: str = ""
    count: u32 = 1


class Mark(Row):
    """Without a primary key."""

    zone: Index[u32]
    text: str = ""
    weight: float = 0.0


class Everything(Row):
    id: PrimaryKey[u64]
    wide: u256 = 0
    small: u8 = 0
    real: float = 0.0
    single: f32 = 0.0
    text: str = ""
    data: bytes = b""
    at: datetime = from_micros(0)
    lasts: timedelta = timedelta()
    uuid: UUID = UUID(int=0)
    who: Identity = NOBODY
    over: ConnectionId = ConnectionId.from_int(0)
    mode: Mode = Mode.IDLE
    flag: bool = False
    maybe: u32 | None = None
    maybe_text: str | None = None
    maybe_who: Identity | None = None
    many: list[u32] = []  # copied by msgspec
    point: Point = Point(0, 0)
    when: ScheduleAt = timedelta(seconds=1)


class Hit(Row):
    """An event."""

    player_id: Index[u64]
    amount: u32


class Secret(Row):
    id: PrimaryKey[u64]


class Rank(Row):
    """No table: the rows of a view."""

    name: str
    hp: i32


def a_module(*filters: str) -> Module:
    module = Module("asked")
    for row in (Player, Item, Mark, Everything):
        module.table(public=True)(row)
    module.table(public=True, event=True)(Hit)
    module.table(Secret)
    for text in filters:
        module.client_visibility_filter(text)

    @module.view
    def ranks(ctx: ViewContext) -> list[Rank]:
        return [Rank(name=p.name, hp=p.hp) for p in ctx.db[Player] if p.online]

    @module.view
    def mine(ctx: ViewContext) -> list[Player]:
        return ctx.db[Player].where(owner=ctx.sender)

    @module.view
    def fragile(ctx: ViewContext) -> list[Player]:
        players = list(ctx.db[Player])
        if any(p.hp == 13 for p in players):
            raise LookupError("thirteen")
        return players

    @module.view(public=False)
    def hidden(ctx: ViewContext) -> list[Player]:
        return list(ctx.db[Player])

    @module.view
    def in_zone(ctx: ViewContext, zone: u32) -> list[Player]:
        return ctx.db[Player].where(zone=zone)

    return module


class Asked:
    """A database with a matcher, and the deltas that it gave."""

    def __init__(self, module: Module) -> None:
        self.db = Database(module, slow_reducer=timedelta(hours=1))  # a busy machine fills no log
        self.catalog = Catalog(self.db.module)
        self.matcher = Matcher(self.catalog, ReadTables(self.db.module.name, self.db.game_tables))
        self.deltas: list[Delta] = []
        self.db.observe(self._take)

    def _take(self, commit: Commit) -> None:
        self.deltas += self.matcher.commit(commit)

    def open(self, sql: str, sender: Identity = ANN, *, operator: bool = False) -> LiveQuery:
        return self.matcher.open(self.catalog.parse(sql, operator=operator), sender)

    def ask(self, sql: str, sender: Identity = ANN, *, operator: bool = False) -> list[Row]:
        return self.matcher.answer(self.catalog.parse(sql, operator=operator), sender)

    @contextmanager
    def write(self) -> Iterator[ReducerContext]:
        """A transaction; `deltas` then holds what came of it, and nothing else."""
        self.deltas.clear()
        with self.db.transaction() as ctx:
            yield ctx

    def add(self, *rows: Row) -> list[Row]:
        with self.write() as ctx:
            return [ctx.db[type(row)].insert(row) for row in rows]

    def of(self, live: LiveQuery) -> tuple[list[Row], list[Row]]:
        """(deleted, inserted) of the last commit; two empty lists without a delta."""
        found = [delta for delta in self.deltas if delta.live is live]
        assert len(found) <= 1
        assert all(d.deleted or d.inserted or d.error for d in found)
        return (found[0].deleted, found[0].inserted) if found else ([], [])
