"""A village to look at with the console. The tests start it, steer it there, and mend its mill.

It has what a console must be able to show: workflows that wait for signals, timers by hand, children and procedures,
one that fails, columns of all kinds, private tables, reducers that refuse.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

import msgspec

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
    Struct,
    f32,
    u8,
    u32,
    u64,
)
from workflow_module import (
    Signal,
    Timer,
    WorkflowContext,
    call,
    gather,
    install,
    select,
    signal,
    spawn,
    timer,
    workflow,
)
from workflow_module import Struct as State

module = Module("village")


class Colour(enum.Enum):
    RED = "red"
    WHITE = "white"


class Point(Struct):
    x: int
    y: int


@module.table(public=True)
class House(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Index[str]
    colour: Colour
    at: Point
    rooms: list[u8]
    rent: f32
    owner: Identity | None = None
    built_at: datetime
    warranty: timedelta
    deed: bytes = b""


@module.table
class Secret(Row):
    id: PrimaryKey[u64]
    text: str


@module.table(public=True, event=True)
class Rumour(Row):
    text: str


@module.table(public=True)
class Grain(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    bag: Index[u32]
    weight: u32


@module.reducer
def build(ctx: ReducerContext, name: str, colour: Colour, at: Point, rooms: list[u8], rent: f32 | None) -> None:
    """Build a house."""
    if not name:
        raise ReducerError("a house needs a name")
    ctx.db[House].insert(
        House(
            name=name,
            colour=colour,
            at=at,
            rooms=rooms,
            rent=10.0 if rent is None else rent,
            owner=ctx.sender,
            built_at=ctx.now,
            warranty=timedelta(days=2),
            deed=b"\x00\xff",
        )
    )
    ctx.db[Rumour].insert(Rumour(text=f"somebody built {name}"))
    ctx.log.info("%s was built", name)


@module.reducer
def harvest(ctx: ReducerContext, bags: u32) -> None:
    """Many rows."""
    for bag in range(bags):
        ctx.db[Grain].insert(Grain(bag=bag, weight=bag % 97))


@module.reducer
def grumble(ctx: ReducerContext) -> None:
    """A bug."""
    ctx.log.warning("somebody grumbles")
    raise RuntimeError("the well is dry")


class Clouds(Exception):
    """The sky cannot be seen."""


@module.procedure
async def forecast(ctx: ProcedureContext, day: u32) -> str:
    if day % 2:
        raise Clouds(f"the sky of day {day} is covered")
    return "sun"


class BakeryTimer(Timer):
    RISE = "rise"
    BAKED = "baked"


class Order(Signal):
    customer: str
    loaves: int
    note: str | None = None


class Shut(Signal): ...


class Flour(enum.Enum):
    RYE = "rye"
    WHEAT = "wheat"


class Recipe(State):
    flour: Flour = Flour.RYE
    loaves: int = 4
    rise: timedelta = timedelta(hours=2)
    seeds: list[str] = msgspec.field(default_factory=list)


@workflow
async def bakery(ctx: WorkflowContext, init: Recipe) -> int:
    """Bake, and sell what was ordered."""
    orders: list[Order] = []
    sold = 0
    left = init.loaves
    await timer(BakeryTimer.RISE, after=init.rise)
    while left:
        match await select(timer(BakeryTimer.BAKED, after=timedelta(hours=1)), Order, Shut):
            case BakeryTimer.BAKED:
                left += init.loaves
            case Order(customer, loaves) as order:
                if loaves > left:
                    ctx.log.warning("%s wants %d loaves, and there are %d", customer, loaves, left)
                    continue
                orders.append(order)
                left -= loaves
                sold += loaves
            case Shut():
                break
    return sold


class MillInit(State):
    grain: int
    stones: int


class Grind(Signal):
    bags: int


@workflow
async def mill(ctx: WorkflowContext, init: MillInit) -> int:
    ground = 0
    while True:
        order = await signal(Grind)
        ground += order.bags * init.grain // init.stones
        if ground > 100:
            return ground


class Stall(State):
    goods: str


class Sale(Signal): ...


@workflow
async def stall(ctx: WorkflowContext, init: Stall) -> str:
    await signal(Sale)
    return init.goods


class FerryTimer(Timer):
    LEAVES = "leaves"


class Ferry(State):
    waits: timedelta


@workflow
async def ferry(ctx: WorkflowContext, init: Ferry) -> None:
    await timer(FerryTimer.LEAVES, after=init.waits)


@workflow
async def market_day(ctx: WorkflowContext) -> list[str]:
    return await gather(*[spawn(stall, Stall(goods)) for goods in ("cheese", "wool", "honey")])


@workflow
async def almanac(ctx: WorkflowContext) -> str:
    day = 1
    return await call(forecast, day, attempts=9, backoff=timedelta(seconds=30))


engine = install(module, [bakery, mill, stall, ferry, market_day, almanac], testing=True)


@module.reducer
def crowd(ctx: ReducerContext, count: u32) -> None:
    """Many workflows: of a hundred, four wait for a timer, and one of these an hour."""
    for number in range(count):
        entity_id = 1000 + number % 50
        if number % 25:
            engine.start(ctx, stall, Stall(f"goods {number}"), entity_id=entity_id)
        else:
            engine.start(ctx, ferry, Ferry(waits=timedelta(hours=1 + number % 100)), entity_id=entity_id)


@module.reducer
def knock(ctx: ReducerContext, workflow_id: u64) -> None:
    """A step of one mill."""
    engine.signal(ctx, workflow_id, Grind(0))


@module.init
def settle(ctx: ReducerContext) -> None:
    """The first day."""
    ctx.db[Secret].insert(Secret(id=1, text="the treasure lies below the mill"))
    engine.start(ctx, bakery, Recipe(seeds=["poppy"]), entity_id=7, test_mode=True)
    engine.start(ctx, mill, MillInit(grain=12, stones=0), correlation_id="the mill")
    engine.start(ctx, market_day, None)
    engine.start(ctx, almanac, None)
