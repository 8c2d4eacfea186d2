"""A game as users write it, for `test_typing.py`: mypy --strict must accept it, and must see the types that it names.

A line that ends in a comment of an E, a colon and a text must be an error with that text. Nothing runs this file.
"""

from datetime import timedelta
from typing import assert_type

from gamedb import (
    AutoInc,
    Commit,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReadTable,
    ReducerContext,
    ReducerError,
    Row,
    ScheduleAt,
    Struct,
    Table,
    Unique,
    ViewChange,
    ViewContext,
    u32,
    u64,
)
from gamedb.client import Client, ClientTable

module = Module("arena")


class Position(Struct):
    x: float
    y: float = 0.0


@module.table(public=True, indexes=[("zone", "hp")])
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    identity: Unique[Identity]
    name: str
    zone: Index[u32]
    hp: u32 = 100
    at: Position | None = None
    items: list[u32] = []


@module.table
class Plain(Row):
    a: u32


@module.table(public=True, event=True)
class DamageEvent(Row):
    player_id: u64
    amount: u32


@module.reducer
def damage(ctx: ReducerContext, player_id: u64, amount: u32) -> int:
    player = ctx.db[Player].get(player_id)
    assert_type(player, Player | None)
    print(player.hp)  # E: "None" of "Player | None"
    if player is None:
        raise ReducerError(f"no player {player_id}")
    assert_type(player.id, int)
    assert_type(player.hp, int)
    assert_type(player.identity, Identity)
    assert_type(player.at, Position | None)
    player.hp = 5  # E: is read-only
    after = ctx.db[Player].update(player.replace(hp=max(0, player.hp - amount)))
    assert_type(after, Player)
    assert_type(ctx.db[DamageEvent].insert(DamageEvent(player_id=player_id, amount=amount)), DamageEvent)
    return after.hp


@module.table(scheduled="regenerate")
class RegenerateTimer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    zone: u32


@module.reducer
def regenerate(ctx: ReducerContext, timer: RegenerateTimer) -> None:
    players = ctx.db[Player]
    assert_type(players, Table[Player])
    for p in players.where(zone=timer.zone):
        assert_type(p, Player)
        players.update(p.replace(hp=min(100, p.hp + 1)))
    assert_type(players.find(name="ann"), Player | None)
    assert_type(players.between("hp", 1, None), list[Player])
    assert_type(players.upsert(Player(identity=ctx.sender, name="x", zone=1)), Player)
    assert_type(players.delete(1), bool)
    assert_type(players.delete_where(zone=1), int)
    assert_type(next(iter(players)), Player)
    players.insert(Plain(a=1))  # E: incompatible type "Plain"
    Player(identity=ctx.sender, name="x")  # E: Missing named argument "zone"
    Player(identity=ctx.sender, name=5, zone=1)  # E: has incompatible type "int"; expected "str"
    damage(ctx, 1, "much")  # E: incompatible type "str"
    with ctx.savepoint():
        damage(ctx, 1, 1)


@module.init
def init(ctx: ReducerContext) -> None:
    ctx.db[RegenerateTimer].insert(RegenerateTimer(scheduled_at=timedelta(seconds=1), zone=1))
    RegenerateTimer(scheduled_at=5, zone=1)  # E: incompatible type "int"


@module.procedure
async def fetch_price(ctx: ProcedureContext, item: str) -> u64:
    with ctx.transaction() as tx:
        assert_type(tx, ReducerContext)
        return damage(tx, 1, 1)


@module.view
def richest(ctx: ViewContext) -> list[Player]:
    assert_type(ctx.db[Player], ReadTable[Player])
    ctx.db[Player].insert(Player(identity=ctx.sender, name="x", zone=1))  # E: has no attribute "insert"
    return ctx.db[Player].where(zone=1)


def use(db: Database) -> None:
    assert_type(db.call(damage, 1, 5), int)
    assert_type(db.call(damage, player_id=1, amount=5), int)
    db.call("damage", 1, 5)
    db.call(damage, 1)  # E: No overload variant
    db.call(damage, player_id="x", amount=5)  # E: No overload variant
    db.call(damage, 1, 5, 6)  # E: No overload variant
    db.caller(Identity.from_int(1)).call(damage, 1, "x")  # E: No overload variant
    assert_type(db.read(Player), ReadTable[Player])
    assert_type(db.read(Player).get(1), Player | None)
    print(db.read(Player).insert)  # E: has no attribute "insert"
    db.read(int)  # E: Value of type variable "R"

    def committed(commit: Commit) -> None:
        changes = commit.of(Player)
        if changes is not None:
            assert_type(changes.inserted, list[Player])
            assert_type(changes.updated, list[tuple[Player, Player]])

    def changed(change: ViewChange) -> None:
        assert_type(change.deleted, list[Row])

    db.subscribe(Player, committed)
    db.subscribe([Player, Plain], committed)
    db.subscribe(richest, changed)


async def play(client: Client) -> None:
    await client.call(damage, 1, 5)
    await client.call(damage, player_id=1, amount=5)
    await client.call("damage", 1, 5)
    await client.call(damage, 1)  # E: No overload variant
    await client.call(damage, player_id="x", amount=5)  # E: No overload variant
    assert_type(await client.procedure(fetch_price, "sword"), int)
    await client.procedure(fetch_price, 1)  # E: No overload variant
    assert_type(client.table(Player), ClientTable[Player])
    assert_type(client.table(Player).get(1), Player | None)
    client.table(Player).on_update(lambda old, new: print(old.name, new.name))
    client.table(Player).on_insert(lambda row: print(row.nmae))  # E: has no attribute "nmae"
    async for change in client.table(Player).changes():
        assert_type(change.new, Player | None)
    subscription = await client.subscribe(Player, "SELECT * FROM player")
    await subscription.unsubscribe()
