"""Workflows as games write them: patrol with combat, auction, boss fight, quest, retry loops."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from compiler_harness import Context, define
from compiler_support import SECOND

from workflow_module import Handle
from workflow_module.outcome import Completed, Throw, Value

GAMES = """
class Waypoint(Struct):
    x: float
    y: float
    travel: timedelta

class PatrolTimer(Timer):
    ARRIVAL = "arrival"
    WAIT = "wait"

class Threat(Signal):
    enemy: int

class PatrolInit(Struct):
    waypoints: list[Waypoint]
    home: Waypoint
    rounds: int

class CombatInit(Struct):
    enemy: int

class CombatResult(Struct):
    won: bool
    damage: int

def move_to(ctx: WorkflowContext, where: Waypoint) -> None:
    emit("move", where.x, where.y)

async def damage_of(ctx: Any, enemy: int) -> int: ...

@workflow
async def combat(ctx: WorkflowContext, init: CombatInit) -> CombatResult:
    hp = 10
    while hp > 0:
        hp -= await call(damage_of, init.enemy, attempts=3)
        await sleep(SECOND)
    return CombatResult(True, 10 - hp)

@subroutine
async def go(ctx: WorkflowContext, to: Waypoint) -> int | None:
    "Walk; gives the enemy that was met."
    move_to(ctx, to)
    match await select(timer(PatrolTimer.ARRIVAL, after=to.travel), Threat):
        case Threat(enemy):
            return enemy
        case _:
            return None

@workflow
async def patrol(ctx: WorkflowContext, init: PatrolInit) -> int:
    fights = 0
    for _ in range(init.rounds):
        for waypoint in init.waypoints:
            enemy = await go(ctx, waypoint)
            if enemy is not None:
                result = await spawn(combat, CombatInit(enemy))
                fights += 1 if result.won else 0
                move_to(ctx, init.home)
                await timer(PatrolTimer.ARRIVAL, after=init.home.travel)
                continue
            await timer(PatrolTimer.WAIT, after=SECOND * 3)
    return fights

class AuctionTimer(Timer):
    END = "end"

class Bid(Signal):
    bidder: int
    amount: int

class Buyout(Signal):
    bidder: int

class CancelAuction(Signal): ...

class AuctionInit(Struct):
    price: int
    duration: timedelta
    buyout: int | None = None

class Sold(Struct):
    winner: int
    price: int

class NoBids(Struct): ...

@workflow
async def auction(ctx: WorkflowContext, init: AuctionInit) -> Sold | NoBids:
    price = init.price
    winner: int | None = None
    history: list[Bid] = []
    ends = ctx.now + init.duration
    while True:
        match await select(timer(AuctionTimer.END, at=ends), Bid, Buyout, CancelAuction, name="bidding"):
            case AuctionTimer.END:
                break
            case Bid(bidder, amount) as bid if amount > price:
                if winner is not None:
                    emit("outbid", winner)
                winner, price = bidder, amount
                history.append(bid)
                ends = max(ends, ctx.now + timedelta(seconds=10))
            case Bid(bidder):
                emit("too low", bidder)
            case Buyout(bidder) if init.buyout is not None:
                return Sold(bidder, init.buyout)
            case CancelAuction() if winner is None:
                return NoBids()
    return NoBids() if winner is None else Sold(winner, price)

class BossTimer(Timer):
    ENRAGE = "enrage"
    BREATH = "breath"

class Health(Signal):
    percent: int

class Wipe(Signal): ...

class AddInit(Struct):
    side: str

@workflow
async def boss_add(ctx: WorkflowContext, init: AddInit) -> str:
    await sleep(SECOND)
    return init.side

@workflow
async def boss(ctx: WorkflowContext) -> str:
    subscribe(Health, 7)
    enrage = ctx.now + timedelta(minutes=8)
    breaths = 0
    for phase, limit in enumerate((70, 30, 0), start=1):
        emit("phase", phase)
        if phase == 2:
            left, right = await gather(spawn(boss_add, AddInit("left")), spawn(boss_add, AddInit("right")))
            emit(left, right)
        hp = 100
        next_breath = ctx.now + SECOND * 15
        while hp > limit:
            match await select(
                timer(BossTimer.ENRAGE, at=enrage), timer(BossTimer.BREATH, at=next_breath), Health, Wipe
            ):
                case BossTimer.ENRAGE | Wipe():
                    return "wipe"
                case BossTimer.BREATH:
                    breaths += 1
                    next_breath += SECOND * 15
                case Health(percent):
                    hp = percent
    return f"victory after {breaths} breaths"

class Killed(Signal):
    kind: str

class QuestInit(Struct):
    goals: dict[str, int]

@workflow
async def quest(ctx: WorkflowContext, init: QuestInit) -> dict[str, int]:
    progress: dict[str, int] = {}
    for kind in init.goals:
        subscribe(Killed, kind)
    while any(progress.get(kind, 0) < goal for kind, goal in init.goals.items()):
        killed = await signal(Killed)
        progress[killed.kind] = progress.get(killed.kind, 0) + 1
        ctx.set_attribute("kills", sum(progress.values()))
    return progress

class Paid(Signal):
    by: str

@workflow
async def sale(ctx: WorkflowContext, init: AuctionInit) -> str:
    last_error: str | None = None
    handles: list[Handle[str]] = []
    for attempt in range(3):
        try:
            await call(damage_of, attempt, attempts=1)
            break
        except ProcedureFailed as error:
            last_error = error.error
            await sleep(SECOND * 2**attempt)
    else:
        raise GameError(last_error)
    for side in ("a", "b"):
        handles.append(start(boss_add, AddInit(side)))
    results = [*await gather(*handles)]
    paid = await signal(Paid, timeout=timedelta(hours=72))
    return "void" if paid is None else paid.by + "".join(results)
"""


class Game:
    """Plays one workflow."""

    def __init__(self, name: str, init: Any = None) -> None:
        self.names = NAMES
        self.names["LOG"].clear()
        self.definition = NAMES[name]
        self.ctx: Any = Context()
        self.ctx.set_attribute = lambda name, value: self.ctx.done.append((name, value))
        self.outcome: Any = self.definition.start(self.ctx, init)

    def send(self, *values: Any) -> Game:
        for value in values:
            event = Throw(value) if isinstance(value, BaseException) else Value(value)
            self.outcome = self.definition.resume(self.ctx, self.outcome.state, event)
        return self

    @property
    def result(self) -> Any:
        assert isinstance(self.outcome, Completed), self.outcome
        return self.outcome.result


NAMES = define(GAMES)


def make(name: str, *args: Any, **fields: Any) -> Any:
    return NAMES[name](*args, **fields)


def test_patrol_goes_on_after_a_fight() -> None:
    points = [make("Waypoint", 1, 2, SECOND), make("Waypoint", 3.5, 4, SECOND)]
    game = Game("patrol", make("PatrolInit", points, make("Waypoint", 0, 0, SECOND), 1))
    arrival, wait = NAMES["PatrolTimer"].ARRIVAL, NAMES["PatrolTimer"].WAIT
    game.send(arrival, wait)
    assert game.outcome.label == "go > select(ARRIVAL, Threat)"
    game.send(make("Threat", 9))
    assert game.outcome.wait.workflow == "combat"
    game.send(make("CombatResult", True, 5), arrival)
    assert game.result == 1
    assert NAMES["LOG"] == ["('move', 1, 2)", "('move', 3.5, 4)", "('move', 0, 0)"]


def test_auction_extends_and_sells_to_the_highest() -> None:
    game = Game("auction", make("AuctionInit", 10, timedelta(seconds=5)))
    game.send(make("Bid", 1, 5), make("Bid", 1, 15), make("Bid", 2, 20), NAMES["CancelAuction"]())
    view = game.definition.view(game.outcome.state)
    assert (view.winner, view.price, len(view.history)) == (2, 20, 2)
    assert view.ends == game.ctx.now + timedelta(seconds=10)
    assert game.outcome.label == "bidding"
    assert game.send(NAMES["AuctionTimer"].END).result == make("Sold", 2, 20)
    assert NAMES["LOG"] == ["('too low', 1)", "('outbid', 1)"]


def test_auction_buyout_and_cancel() -> None:
    game = Game("auction", make("AuctionInit", 10, SECOND, buyout=99))
    assert game.send(make("Buyout", 4)).outcome.data == b'{"$type":"Sold","value":{"winner":4,"price":99}}'
    assert Game("auction", make("AuctionInit", 10, SECOND)).send(NAMES["CancelAuction"]()).result == make("NoBids")


def test_boss_runs_through_its_phases_under_one_deadline() -> None:
    game = Game("boss")
    deadline = game.outcome.wait.arms[0].at
    breath, health = NAMES["BossTimer"].BREATH, NAMES["Health"]
    game.send(breath, health(65), ("left", "right"), breath, health(20))
    assert game.outcome.wait.arms[0].at == deadline
    assert game.send(health(0)).result == "victory after 2 breaths"
    assert Game("boss").send(NAMES["BossTimer"].ENRAGE).result == "wipe"


def test_quest_counts_what_it_subscribed_to() -> None:
    game = Game("quest", make("QuestInit", {"wolf": 2, "bear": 1}))
    killed = NAMES["Killed"]
    game.send(killed("wolf"), killed("bear"), killed("wolf"))
    assert game.result == {"wolf": 2, "bear": 1}
    assert game.ctx.done == [
        ("subscribe", "Killed", "wolf"), ("subscribe", "Killed", "bear"), ("kills", 1), ("kills", 2), ("kills", 3)
    ]  # fmt: skip


def test_sale_retries_and_gathers_stored_handles() -> None:
    from workflow_module import ProcedureFailed

    game = Game("sale", make("AuctionInit", 1, SECOND))
    game.send(ProcedureFailed("damage_of", 1, "OSError", "down"), None, 5)
    assert [type(arm) for arm in game.outcome.wait.arms] == [Handle, Handle]
    assert game.send(("x", "y"), NAMES["Paid"]("ada")).result == "adaxy"
