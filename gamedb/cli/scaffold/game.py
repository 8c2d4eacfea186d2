"""The game: players walk over a meadow and pick up gems."""

from datetime import timedelta

from gamedb import (
    AutoInc,
    Identity,
    Module,
    PrimaryKey,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    i8,
    u32,
    u64,
)

WIDTH, HEIGHT = 16, 10
GEMS_MAX = 12
NAME_CHARACTERS_MAX = 16

module = Module("my-game")


@module.table(public=True)
class Player(Row):
    """Somebody on the meadow."""

    identity: PrimaryKey[Identity]
    name: str
    x: u32
    y: u32
    score: u32 = 0


@module.table(public=True, indexes=[("x", "y")])
class Gem(Row):
    """Something to pick up."""

    id: PrimaryKey[AutoInc[u64]] = 0
    x: u32
    y: u32
    value: u32


@module.table(scheduled="grow")
class GrowTimer(Row):
    """When the next gem grows."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@module.init
def init(ctx: ReducerContext) -> None:
    """Runs once, when the database is new."""
    ctx.db[GrowTimer].insert(GrowTimer(scheduled_at=timedelta(seconds=1)))


@module.reducer
def join(ctx: ReducerContext, name: str) -> None:
    """Enter the meadow, or change your name."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_CHARACTERS_MAX:
        raise ReducerError(f"a name has 1 to {NAME_CHARACTERS_MAX} characters")
    player = ctx.db[Player].get(ctx.sender)
    if player is None:
        x, y = ctx.random.randrange(WIDTH), ctx.random.randrange(HEIGHT)
        ctx.db[Player].insert(Player(identity=ctx.sender, name=name, x=x, y=y))
        ctx.log.info("%s joined", name)
    else:
        ctx.db[Player].update(player.replace(name=name))


@module.reducer
def step(ctx: ReducerContext, dx: i8, dy: i8) -> None:
    """Walk one field in a direction; pick up what lies there."""
    player = ctx.db[Player].get(ctx.sender)
    if player is None:
        raise ReducerError("join first")
    if abs(dx) + abs(dy) != 1:
        raise ReducerError("one step at a time")
    x = min(max(player.x + dx, 0), WIDTH - 1)
    y = min(max(player.y + dy, 0), HEIGHT - 1)
    found = ctx.db[Gem].where(x=x, y=y)
    for gem in found:
        ctx.db[Gem].delete(gem)
    ctx.db[Player].update(player.replace(x=x, y=y, score=player.score + sum(gem.value for gem in found)))


@module.reducer
def grow(ctx: ReducerContext, timer: GrowTimer) -> None:
    """Called by the timer: a gem grows, unless there are enough."""
    if ctx.db[Gem].count() < GEMS_MAX:
        x, y = ctx.random.randrange(WIDTH), ctx.random.randrange(HEIGHT)
        ctx.db[Gem].insert(Gem(x=x, y=y, value=ctx.random.choice([1, 1, 1, 5])))
