"""A small game for tests of simulations."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from gamedb import (
    AutoInc,
    Identity,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    Unique,
    u32,
    u64,
)

module = Module("arena")


@module.table(public=True)
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    identity: Unique[Identity]
    name: str
    hp: u32 = 100


@module.table
class Secret(Row):
    id: PrimaryKey[u64]
    text: str


@module.table
class Tick(Row):
    at: datetime


@module.table(scheduled="regenerate")
class Regeneration(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@module.table(scheduled="ring")
class Bell(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    seconds: u32


@module.init
def init(ctx: ReducerContext) -> None:
    ctx.db[Regeneration].insert(Regeneration(scheduled_at=timedelta(seconds=10)))


@module.reducer
def regenerate(ctx: ReducerContext, timer: Regeneration) -> None:
    for player in ctx.db[Player]:
        if player.hp < 100:
            ctx.db[Player].update(player.replace(hp=player.hp + 1))


@module.procedure
async def ring(ctx: ProcedureContext, bell: Bell) -> None:
    await asyncio.sleep(bell.seconds)
    with ctx.transaction() as tx:
        tx.db[Tick].insert(Tick(at=tx.now))


@module.reducer
def join(ctx: ReducerContext, name: str) -> None:
    ctx.db[Player].insert(Player(identity=ctx.sender, name=name))


@module.reducer
def hit(ctx: ReducerContext, player_id: u64, damage: u32) -> None:
    player = ctx.db[Player].get(player_id)
    if player is None:
        raise ReducerError(f"no player {player_id}")
    ctx.db[Player].update(player.replace(hp=max(0, player.hp - damage)))


@module.reducer
def roll(ctx: ReducerContext) -> int:
    return ctx.random.randrange(1_000_000)


@module.reducer
def soon_again(ctx: ReducerContext) -> None:
    ctx.db[Bell].insert(Bell(scheduled_at=ctx.now, seconds=0))


@module.procedure
async def wait(ctx: ProcedureContext, seconds: u32) -> u32:
    await asyncio.sleep(seconds)
    return seconds


@module.procedure
def double(ctx: ProcedureContext, n: u32) -> u32:
    return 2 * n


later = Module("arena")
"""The next version: players have levels, and one regenerates faster."""
later.init(init)


@later.table(public=True, name="player")
class LaterPlayer(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    identity: Unique[Identity]
    name: str
    hp: u32 = 100
    level: u32 = 1


later.table(Secret)
later.table(Tick)
later.table(scheduled="regenerate_fast")(Regeneration)
later.table(scheduled="ring")(Bell)
later.procedure(ring)


@later.reducer
def regenerate_fast(ctx: ReducerContext, timer: Regeneration) -> None:
    for player in ctx.db[LaterPlayer]:
        ctx.db[LaterPlayer].update(player.replace(hp=min(100, player.hp + 10)))
