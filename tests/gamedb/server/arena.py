"""The game that the tests of sessions play: every kind of table, function and failure."""

from __future__ import annotations

import asyncio
import threading

from gamedb import (
    AutoInc,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    ViewContext,
    i64,
    u32,
    u64,
)


class Player(Row):
    id: PrimaryKey[u32]
    zone: Index[u32] = 0
    hp: u32 = 100
    note: str = ""


class Level(Row):
    player_id: PrimaryKey[u32]
    level: u32


class Mark(Row):
    """No primary key."""

    zone: u32
    text: str


class Hit(Row):
    player_id: u32
    amount: u32


class Secret(Row):
    id: PrimaryKey[u32]
    text: str


class Visit(Row):
    identity: PrimaryKey[Identity]
    came: u32 = 0
    went: u32 = 0


class Reminder(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


class Gates:
    """What procedures of the game wait for."""

    def __init__(self) -> None:
        self.started = 0
        self.cancelled = 0
        self.open: asyncio.Event | None = None
        self.thread_open = threading.Event()


def arena() -> tuple[Module, Gates]:
    """A module of its own for each test, with the gates of its procedures."""
    module = Module("arena")
    gates = Gates()
    module.table(public=True)(Player)
    module.table(public=True)(Level)
    module.table(public=True)(Mark)
    module.table(public=True, event=True)(Hit)
    module.table(Secret)
    module.table(Visit)
    module.table(scheduled="remind")(Reminder)

    @module.reducer
    def spawn(ctx: ReducerContext, id: u32, zone: u32) -> None:
        ctx.db[Player].insert(Player(id=id, zone=zone))

    @module.reducer
    def move(ctx: ReducerContext, id: u32, zone: u32) -> None:
        player = ctx.db[Player].get(id)
        if player is None:
            raise ReducerError(f"no player {id}")
        ctx.db[Player].update(player.replace(zone=zone))

    @module.reducer
    def kill(ctx: ReducerContext, id: u32) -> None:
        ctx.db[Player].delete(id)

    @module.reducer
    def hit(ctx: ReducerContext, id: u32, amount: u32) -> None:
        ctx.db[Hit].insert(Hit(player_id=id, amount=amount))

    @module.reducer
    def mark(ctx: ReducerContext, zone: u32, text: str) -> None:
        ctx.db[Mark].insert(Mark(zone=zone, text=text))

    @module.reducer
    def note(ctx: ReducerContext, id: u32, text: str) -> None:
        ctx.db[Player].update(ctx.db[Player].get(id).replace(note=text))  # type: ignore[union-attr]

    @module.reducer
    def nothing(ctx: ReducerContext) -> None:
        pass

    @module.reducer
    def refuse(ctx: ReducerContext, text: str) -> None:
        ctx.db[Player].insert(Player(id=99))
        raise ReducerError(text)

    @module.reducer
    def crash(ctx: ReducerContext) -> None:
        ctx.db[Player].insert(Player(id=99))
        raise RuntimeError("password=hunter2")

    @module.reducer
    def leave(ctx: ReducerContext) -> None:
        raise SystemExit(3)

    @module.reducer(private=True)
    def secret(ctx: ReducerContext) -> None:
        ctx.db[Secret].insert(Secret(id=1, text="hidden"))

    @module.reducer
    def remind(ctx: ReducerContext, timer: Reminder) -> None:
        ctx.db[Mark].insert(Mark(zone=0, text="reminded"))

    @module.client_connected
    def came(ctx: ReducerContext) -> None:
        visit = ctx.db[Visit].get(ctx.sender) or Visit(identity=ctx.sender)
        ctx.db[Visit].upsert(visit.replace(came=visit.came + 1))
        if ctx.db[Secret].get(666) is not None:
            raise ReducerError("the arena is closed")

    @module.client_disconnected
    def went(ctx: ReducerContext) -> None:
        visit = ctx.db[Visit].get(ctx.sender) or Visit(identity=ctx.sender)
        ctx.db[Visit].upsert(visit.replace(went=visit.went + 1))

    @module.procedure
    async def add(ctx: ProcedureContext, a: i64, b: i64) -> i64:
        with ctx.transaction() as tx:
            tx.db[Mark].insert(Mark(zone=0, text=f"{a}+{b}"))
        return a + b

    @module.procedure
    async def wait(ctx: ProcedureContext) -> u32:
        gates.started += 1
        if gates.open is None:
            gates.open = asyncio.Event()
        try:
            await gates.open.wait()
        except asyncio.CancelledError:
            gates.cancelled += 1
            raise
        return 7

    @module.procedure
    def wait_in_thread(ctx: ProcedureContext) -> u32:
        gates.started += 1
        gates.thread_open.wait(10)
        return 8

    @module.procedure
    async def break_down(ctx: ProcedureContext) -> None:
        raise RuntimeError("password=hunter2")

    @module.procedure
    async def decline(ctx: ProcedureContext) -> None:
        raise ReducerError("not today")

    @module.view
    def strong(ctx: ViewContext) -> list[Player]:
        found = [player for player in ctx.db[Player] if player.hp >= 100]
        if any(player.note == "break the view" for player in found):
            raise RuntimeError("password=hunter2")
        return found

    return module, gates
