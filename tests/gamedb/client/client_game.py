"""A small game, and a server's frames for it, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gamedb import (
    ConnectionId,
    Identity,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    u8,
    u32,
    u64,
)
from gamedb.client.core import Core
from gamedb.client.remote import Remote
from gamedb.codegen.module_def import schema_json
from gamedb.schema import TableSchema
from gamedb.wire import messages
from gamedb.wire.bsatn import row_codec
from gamedb.wire.rows import encode_row_list

module = Module("duel")


@module.table(public=True)
class Player(Row):
    id: PrimaryKey[u64]
    name: str = ""
    hp: u32 = 100


@module.table(public=True)
class Tile(Row):
    x: u8
    height: float = 0.0


@module.table(public=True, event=True)
class Hit(Row):
    player_id: u64


@module.table
class Secret(Row):
    id: PrimaryKey[u64]


@module.reducer
def join(ctx: ReducerContext, player_id: u64, name: str = "ann") -> None:
    if not name:
        raise ReducerError("a player needs a name")
    ctx.db[Player].insert(Player(id=player_id, name=name))
    ctx.db[Hit].insert(Hit(player_id=player_id))


@module.reducer
def damage(ctx: ReducerContext, player_id: u64, amount: u32) -> None:
    player = ctx.db[Player].get(player_id)
    if player is None:
        raise ReducerError(f"no player {player_id}")
    ctx.db[Player].update(player.replace(hp=player.hp - amount))


@module.reducer
def leave(ctx: ReducerContext, player_id: u64) -> None:
    ctx.db[Player].delete(player_id)


@module.procedure
async def count_letters(ctx: ProcedureContext, text: str) -> u64:
    return len(text)


RESOLVED = module.resolve()
DEFINITION = schema_json(RESOLVED)
IDENTITY = Identity.from_int(7)
CONNECTION = ConnectionId.from_int(9)
GREETING = messages.initial_connection(IDENTITY, CONNECTION, "token-of-7")


def row_list(rows: Sequence[Any]) -> bytes:
    """The row list of rows of one table."""
    if not rows:
        return encode_row_list([], None)
    codec = row_codec(schema_of(rows[0]))
    return encode_row_list([codec.encode(row) for row in rows], codec.fixed_size)


def schema_of(row: Row) -> TableSchema:
    return next(schema for schema in RESOLVED.tables.values() if schema.row is type(row))


def rows_of(*rows: Any) -> list[bytes]:
    """The tables of an answer that holds these rows."""
    names = dict.fromkeys(schema_of(row).name for row in rows)
    return [messages.table_rows(name, row_list([row for row in rows if schema_of(row).name == name])) for name in names]


def update(query_set_id: int, inserts: Sequence[Any] = (), deletes: Sequence[Any] = ()) -> bytes:
    """A query set's update with changes of one table."""
    schema = schema_of([*inserts, *deletes][0])
    if schema.event:
        table = messages.event_update(schema.name, row_list(inserts))
    else:
        table = messages.table_update(schema.name, row_list(inserts), row_list(deletes))
    return messages.query_set_update(query_set_id, [table])


def new_core(*, with_module: bool = True) -> Core:
    """A core that was greeted."""
    core = Core(Remote(DEFINITION, module if with_module else None))
    feed(core, GREETING)
    return core


def feed(core: Core, *encoded: bytes) -> list[Any]:
    """All events of one WebSocket message."""
    return [event for events in core.receive(messages.frame(encoded)) for event in events]


def sent(core: Core) -> list[messages.ClientMessage]:
    """What the core wants to be sent."""
    payloads, core.output[:] = list(core.output), []
    return [message for payload in payloads for message in messages.decode_client(payload)]
