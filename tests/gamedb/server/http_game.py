"""A small game, and HTTP requests to it without a network."""

from __future__ import annotations

import asyncio
import enum
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from gamedb import (
    AutoInc,
    Database,
    Identity,
    ManualClock,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    Struct,
    Unique,
    ViewContext,
    u32,
    u64,
    u256,
)
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.http import routes
from gamedb.server.keys import Keys
from gamedb.server.logs import Logs
from gamedb.server.server import Server


class Mood(enum.Enum):
    CALM = 1
    ANGRY = 2


class Point(Struct):
    x: float
    y: float


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    hp: u32 = 100
    mood: Mood = Mood.CALM
    at: Point | None = None


class Secret(Row):
    id: PrimaryKey[u64]
    text: str


class Visitor(Row):
    identity: PrimaryKey[Identity]
    calls: u32 = 0
    here: bool = False


class Big(Row):
    id: PrimaryKey[u64]
    huge: u256 = 0
    data: bytes = b""


class Tick(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


class Flash(Row):
    what: str


def game(name: str = "arena") -> Module:
    """A module of its own, as each test may change it."""
    module = Module(name)
    module.table(public=True)(Player)
    module.table(Secret)
    module.table(public=True)(Visitor)
    module.table(public=True)(Big)
    module.table(scheduled="tick")(Tick)
    module.table(public=True, event=True)(Flash)

    @module.reducer
    def join(ctx: ReducerContext, name: str, hp: u32 = 100, mood: Mood = Mood.CALM, at: Point | None = None) -> None:
        ctx.db[Player].insert(Player(name=name, hp=hp, mood=mood, at=at))
        ctx.log.info("%s joined", name)

    @module.reducer
    def hurt(ctx: ReducerContext, id: u64, amount: u32) -> None:
        player = ctx.db[Player].get(id)
        if player is None:
            raise ReducerError(f"no player {id}")
        ctx.db[Player].update(player.replace(hp=max(0, player.hp - amount)))

    @module.reducer
    def bug(ctx: ReducerContext) -> None:
        ctx.db[Secret].insert(Secret(id=1, text="half done"))
        raise ZeroDivisionError("the secret is 42")

    @module.reducer
    def leave(ctx: ReducerContext) -> None:
        raise SystemExit(3)

    @module.reducer(private=True)
    def reset(ctx: ReducerContext) -> None:
        ctx.db[Player].clear()

    @module.reducer
    def tick(ctx: ReducerContext, timer: Tick) -> None: ...

    @module.reducer
    def hide(ctx: ReducerContext, id: u64, text: str) -> None:
        ctx.db[Secret].insert(Secret(id=id, text=text))

    @module.procedure
    async def price(ctx: ProcedureContext, item: str) -> u64:
        return len(item)

    @module.procedure
    def wounded(ctx: ProcedureContext, below: u32) -> list[str]:
        with ctx.transaction() as tx:
            return [p.name for p in tx.db[Player] if p.hp < below]

    @module.procedure
    async def nowhere(ctx: ProcedureContext) -> None: ...

    @module.procedure
    async def failing(ctx: ProcedureContext) -> u64:
        raise ReducerError("out of stock")

    @module.procedure
    async def leaving(ctx: ProcedureContext) -> u64:
        raise SystemExit(3)

    @module.procedure
    async def hang(ctx: ProcedureContext) -> None:
        with ctx.transaction() as tx:
            tx.db[Player].insert(Player(name="hanging"))
        await asyncio.get_running_loop().create_future()

    @module.view
    def angry(ctx: ViewContext) -> list[Player]:
        return [p for p in ctx.db[Player] if p.mood is Mood.ANGRY]

    return module


def with_visitors(module: Module) -> Module:
    """The game noting who is there."""

    @module.client_connected
    def joined(ctx: ReducerContext) -> None:
        if ctx.db[Player].find(name="the end") is not None:
            raise ReducerError("the arena is closed")
        before = ctx.db[Visitor].get(ctx.sender) or Visitor(identity=ctx.sender)
        ctx.db[Visitor].upsert(before.replace(calls=before.calls + 1, here=True))

    @module.client_disconnected
    def left(ctx: ReducerContext) -> None:
        visitor = ctx.db[Visitor].get(ctx.sender)
        assert visitor is not None
        ctx.db[Visitor].update(visitor.replace(here=False))

    return module


class Client:
    """Requests to an app, each answered in a loop of its own."""

    def __init__(self, app: Starlette) -> None:
        self.app = app

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def options(self, path: str, **options: Any) -> httpx.Response:
        return self.request("OPTIONS", path, **options)


class Served:
    """One game behind HTTP, its owner, and somebody else."""

    def __init__(
        self, db: Database, clock: ManualClock, *, static: Path | None = None, logs: Logs | None = None
    ) -> None:
        self.db = db
        self.auth = Authenticator(Keys(None), clock=clock)
        owner, self.owner_token = self.auth.issue()
        self.somebody, self.token = self.auth.issue()
        self.hosted = Hosted(db, owner=owner.identity, logs=logs)
        self.server = Server([self.hosted], self.auth)
        self.client = Client(Starlette(routes=routes(self.server, static=static)))
        self.owner = {"authorization": f"Bearer {self.owner_token}"}
        self.stranger = {"authorization": f"Bearer {self.token}"}

    def close(self) -> None:
        self.hosted.logs.close()
        self.db.close()

    def call(self, function: str, arguments: Any, who: dict[str, str] | None = None) -> Any:
        return self.client.post(f"/v1/database/arena/call/{function}", json=arguments, headers=who or {})

    def sql(self, query: str, who: dict[str, str] | None = None) -> Any:
        return self.client.post("/v1/database/arena/sql", content=query, headers=self.owner if who is None else who)
