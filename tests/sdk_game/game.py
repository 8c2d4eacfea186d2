"""The game that the tests with the official SDK play: every type, and one of everything that can be asked for."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

from gamedb import (
    AutoInc,
    ConnectionId,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    Unique,
    ViewContext,
    f32,
    i8,
    i16,
    i32,
    i64,
    i128,
    i256,
    u8,
    u16,
    u32,
    u64,
    u128,
    u256,
)
from tests.sdk_game.types import (
    Circle,
    Color,
    Empty,
    Negated,
    Nowhere,
    Number,
    Path,
    Point,
    Polygon,
    Sum,
    Tree,
    Zero,
)

module = Module("sdk-game")


# --- every type


@module.table(public=True)
class Everything(Row):
    id: PrimaryKey[u64]
    flag: bool
    n_u8: u8
    n_u16: u16
    n_u32: u32
    n_u64: u64
    n_u128: u128
    n_u256: u256
    n_i8: i8
    n_i16: i16
    n_i32: i32
    n_i64: i64
    n_i128: i128
    n_i256: i256
    n_f32: f32
    n_f64: float
    text: str
    data: bytes
    small: list[u8]
    moment: datetime
    span: timedelta
    when: ScheduleAt
    uid: UUID
    who: Identity
    link: ConnectionId
    color: Color
    colors: list[Color]
    point: Point
    path: Path
    empty: Empty
    shape: Circle | Polygon | Nowhere
    shapes: list[Circle | Polygon | Nowhere]
    tree: Tree
    expr: Number | Sum | Negated | Zero
    maybe_number: u32 | None
    maybe_text: str | None
    maybe_point: Point | None
    maybe_color: Color | None
    maybe_list: list[str | None] | None
    matrix: list[list[i64]]
    numbers: list[u256]
    names: list[str]


@module.reducer
def put(ctx: ReducerContext, row: Everything) -> None:
    """Insert the row, or change the one with its id."""
    ctx.db[Everything].upsert(row)


@module.reducer
def put_simple(
    ctx: ReducerContext,
    id: u64,
    tree: Tree,
    expr: Number | Sum | Negated | Zero,
    shape: Circle | Polygon | Nowhere,
    color: Color | None,
    moment: datetime,
    span: timedelta,
    when: ScheduleAt,
    uid: UUID,
    who: Identity,
    link: ConnectionId,
    big: i256,
    points: list[Point],
) -> None:
    """Change these columns of a row: each type as a parameter of its own."""
    row = ctx.db[Everything].get(id)
    if row is None:
        raise ReducerError(f"no row {id}")
    path = Path(title="parameters", points=points, next_stop=None)
    ctx.db[Everything].update(
        row.replace(
            tree=tree,
            expr=expr,
            shape=shape,
            maybe_color=color,
            moment=moment,
            span=span,
            when=when,
            uid=uid,
            who=who,
            link=link,
            n_i256=big,
            path=path,
        )
    )


@module.procedure
async def echo(ctx: ProcedureContext, row: Everything) -> Everything:
    return row


# --- keys of every type that can be one


@module.table(public=True)
class ByBool(Row):
    key: PrimaryKey[bool]
    n: u32


@module.table(public=True)
class ByI8(Row):
    key: PrimaryKey[i8]
    n: u32


@module.table(public=True)
class ByU256(Row):
    key: PrimaryKey[u256]
    n: u32


@module.table(public=True)
class ByText(Row):
    key: PrimaryKey[str]
    n: u32


@module.table(public=True)
class ByBytes(Row):
    key: PrimaryKey[bytes]
    n: u32


@module.table(public=True)
class ByMoment(Row):
    key: PrimaryKey[datetime]
    n: u32


@module.table(public=True)
class BySpan(Row):
    key: PrimaryKey[timedelta]
    n: u32


@module.table(public=True)
class ByUuid(Row):
    key: PrimaryKey[UUID]
    n: u32


@module.table(public=True)
class ByIdentity(Row):
    key: PrimaryKey[Identity]
    n: u32


@module.table(public=True)
class ByConnectionId(Row):
    key: PrimaryKey[ConnectionId]
    n: u32


@module.table(public=True)
class ByColor(Row):
    key: PrimaryKey[Color]
    n: u32


KEYED = {
    ByBool: True,
    ByI8: -7,
    ByU256: 2**255,
    ByText: "käse",
    ByBytes: b"\x00\xff",
    ByMoment: datetime.fromisoformat("2026-11-29T12:00:00.000001Z"),
    BySpan: timedelta(microseconds=-5),
    ByUuid: UUID(int=2**127 + 1),
    ByIdentity: Identity.from_hex("c2" * 32),
    ByConnectionId: ConnectionId.from_int(2**127),
    ByColor: Color.Green,
}


@module.reducer
def set_keyed(ctx: ReducerContext, n: u32) -> None:
    """Put `n` into the one row of each keyed table."""
    for row, key in KEYED.items():
        ctx.db[row].upsert(row(key=key, n=n))  # type: ignore[call-arg]


# --- players


@module.table(public=True, indexes=[("team_id", "hp")])
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    team_id: Index[u32]
    hp: i32 = 100


@module.table(public=True)
class Score(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    player_id: Index[u64]
    points: i32


@module.table(public=True)
class Note(Row):  # no primary key
    text: str
    n: Index[u32]


@module.table(public=True, event=True)
class Damage(Row):
    player_id: u64
    amount: u32


@module.table
class Secret(Row):
    id: PrimaryKey[u64]
    word: str


@module.table(public=True)
class Mail(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    to: Index[Identity]
    text: str


module.client_visibility_filter("SELECT * FROM mail WHERE to = :sender")


@module.table(public=True)
class Session(Row):
    connection: PrimaryKey[ConnectionId]
    identity: Index[Identity]


@module.table(public=True, scheduled="ring")
class Alarm(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    text: str


@module.table(public=True)
class Counter(Row):
    id: PrimaryKey[u32]
    n: u64


@module.client_connected
def joined(ctx: ReducerContext) -> None:
    if ctx.connection_id is not None:
        ctx.db[Session].insert(Session(connection=ctx.connection_id, identity=ctx.sender))


@module.client_disconnected
def left(ctx: ReducerContext) -> None:
    if ctx.connection_id is not None and ctx.db[Session].get(ctx.connection_id) is not None:
        ctx.db[Session].delete(ctx.connection_id)


@module.reducer
def add_player(ctx: ReducerContext, name: str, team_id: u32, hp: i32) -> None:
    ctx.db[Player].insert(Player(name=name, team_id=team_id, hp=hp))


@module.reducer
def set_hp(ctx: ReducerContext, name: str, hp: i32) -> None:
    player = _player(ctx, name)
    ctx.db[Player].update(player.replace(hp=hp))


@module.reducer
def set_team(ctx: ReducerContext, name: str, team_id: u32) -> None:
    player = _player(ctx, name)
    ctx.db[Player].update(player.replace(team_id=team_id))


@module.reducer
def remove_player(ctx: ReducerContext, name: str) -> None:
    ctx.db[Player].delete(_player(ctx, name).id)


@module.reducer
def replace_player(ctx: ReducerContext, name: str, hp: i32) -> None:
    """Delete and insert the same key in one transaction."""
    player = _player(ctx, name)
    ctx.db[Player].delete(player.id)
    ctx.db[Player].insert(player.replace(hp=hp))


@module.reducer
def add_score(ctx: ReducerContext, name: str, points: i32) -> None:
    ctx.db[Score].insert(Score(player_id=_player(ctx, name).id, points=points))


@module.reducer
def remove_scores(ctx: ReducerContext, name: str) -> None:
    ctx.db[Score].delete_where(player_id=_player(ctx, name).id)


@module.reducer
def hit(ctx: ReducerContext, name: str, amount: u32) -> None:
    player = _player(ctx, name)
    ctx.db[Player].update(player.replace(hp=player.hp - amount))
    ctx.db[Damage].insert(Damage(player_id=player.id, amount=amount))


def _player(ctx: ReducerContext, name: str) -> Player:
    player = ctx.db[Player].find(name=name)
    if player is None:
        raise ReducerError(f"no player {name!r}")
    return player


@module.reducer
def add_note(ctx: ReducerContext, text: str, n: u32) -> None:
    ctx.db[Note].insert(Note(text=text, n=n))


@module.reducer
def remove_notes(ctx: ReducerContext, n: u32) -> None:
    ctx.db[Note].delete_where(n=n)


@module.reducer
def move_notes(ctx: ReducerContext, n: u32, to: u32) -> None:
    for note in list(ctx.db[Note].where(n=n)):
        ctx.db[Note].delete(note)
        ctx.db[Note].insert(note.replace(n=to))


@module.reducer
def post(ctx: ReducerContext, to: Identity, text: str) -> None:
    ctx.db[Mail].insert(Mail(to=to, text=text))


@module.reducer
def set_alarm(ctx: ReducerContext, milliseconds: u32, text: str) -> None:
    at = ctx.now + timedelta(milliseconds=milliseconds)
    ctx.db[Alarm].insert(Alarm(scheduled_at=at, text=text))


@module.reducer
def ring(ctx: ReducerContext, alarm: Alarm) -> None:
    ctx.db[Note].insert(Note(text=alarm.text, n=9))


@module.reducer
def count(ctx: ReducerContext, id: u32) -> None:
    counter = ctx.db[Counter].get(id)
    if counter is None:
        ctx.db[Counter].insert(Counter(id=id, n=1))
    else:
        ctx.db[Counter].update(counter.replace(n=counter.n + 1))


@module.reducer
def add_notes(ctx: ReducerContext, n: u32, many: u32) -> None:
    for number in range(many):
        ctx.db[Note].insert(Note(text=f"note {number}", n=n))


@module.reducer
def nothing(ctx: ReducerContext) -> None: ...


@module.reducer
def fail(ctx: ReducerContext, text: str) -> None:
    ctx.db[Note].insert(Note(text="must not be seen", n=0))
    raise ReducerError(text)


@module.reducer
def panic(ctx: ReducerContext) -> None:
    ctx.db[Note].insert(Note(text="must not be seen", n=0))
    raise RuntimeError("the inside of the server")


@module.reducer
def twice(ctx: ReducerContext, name: str) -> None:
    """Break a unique constraint."""
    ctx.db[Player].insert(Player(name=name, team_id=0))
    ctx.db[Player].insert(Player(name=name, team_id=0))


@module.reducer(private=True)
def hidden(ctx: ReducerContext) -> None: ...


@module.reducer
def hide(ctx: ReducerContext, id: u64, word: str) -> None:
    ctx.db[Secret].upsert(Secret(id=id, word=word))


# --- views


class Standing(Row):
    team_id: PrimaryKey[u32]
    players: u32


@module.view
def standings(ctx: ViewContext) -> list[Standing]:
    teams: dict[int, int] = {}
    for player in ctx.db[Player]:
        teams[player.team_id] = teams.get(player.team_id, 0) + 1
    return [Standing(team_id=team, players=number) for team, number in sorted(teams.items())]


@module.view
def weak_players(ctx: ViewContext) -> list[Player]:
    return [player for player in ctx.db[Player] if player.hp < 10]


@module.view
def my_session(ctx: ViewContext) -> Session | None:
    found = list(ctx.db[Session].where(identity=ctx.sender))
    return found[0] if found else None


# --- procedures


@module.procedure
async def add(ctx: ProcedureContext, a: u32, b: u32) -> u64:
    return a + b


@module.procedure
def multiply(ctx: ProcedureContext, a: u32, b: u32) -> u64:
    return a * b


@module.procedure
async def note_it(ctx: ProcedureContext, text: str, n: u32) -> None:
    with ctx.transaction() as tx:
        tx.db[Note].insert(Note(text=text, n=n))


_gates: dict[str, asyncio.Event] = {}


@module.procedure
async def wait_for(ctx: ProcedureContext, gate: str) -> str:
    await _gates.setdefault(gate, asyncio.Event()).wait()
    return f"{gate} is open"


@module.procedure
async def open_gate(ctx: ProcedureContext, gate: str) -> None:
    _gates.setdefault(gate, asyncio.Event()).set()


@module.procedure
async def refuse(ctx: ProcedureContext, text: str) -> u32:
    raise ReducerError(text)


@module.procedure
async def crash(ctx: ProcedureContext) -> u32:
    raise RuntimeError("the inside of the server")


@module.procedure
async def maybe(ctx: ProcedureContext, wanted: bool) -> Point | None:
    return Point(x=1, y=2) if wanted else None
