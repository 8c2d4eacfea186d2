"""A trade between two players: both lay things and gold on the table, and both accept, or nothing moves.

    python -m examples.trade

What it shows: two parties and one workflow that both talk to. What lies on the table is in escrow, so nobody can
spend it meanwhile; a changed offer voids what was accepted. An accept names the revision of the table that the player
saw: whoever changes the offer in the last moment finds that the other's click does not count for it.

The lines that matter are the `match`. There are five ways out of this loop, and one `finally` that makes them all
safe: completed, cancelled by either, timed out, and cancelled from outside.
"""

from __future__ import annotations

import enum
from datetime import timedelta

from gamedb import Module, PrimaryKey, ReducerContext, ReducerError, Row, u32, u64
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow

from .stage import Stage
from .world import (
    character,
    give_back,
    hand_over,
    hold_gold,
    hold_item,
    me,
    tell,
    world,
)

PATIENCE = timedelta(seconds=60)

module = Module("trade")
module.include(world)


@module.table(public=True)
class Table(Row):
    """An open trade, as its two players see it. What lies on it is what the trade holds of theirs."""

    trade_id: PrimaryKey[u64]
    players: list[u64]
    accepted: list[u64]
    revision: u32


class TradeTimer(Timer):
    TIMEOUT = "timeout"


class Offer(Signal):
    """Replaces what this player has on the table."""

    player: int
    items: list[int]
    gold: int


class Accept(Signal):
    player: int
    revision: int


class Cancel(Signal):
    player: int


class TradeInit(Struct):
    initiator: int
    target: int


class Outcome(enum.Enum):
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class TradeResult(Struct):
    outcome: Outcome
    cancelled_by: int | None = None


@workflow
async def trade(ctx: WorkflowContext, init: TradeInit) -> TradeResult:
    a, b = init.initiator, init.target
    ends = ctx.now + PATIENCE
    revision = 1
    accepted: set[int] = set()
    try:
        while accepted != {a, b}:
            show_table(ctx, init, revision, accepted)
            match await select(timer(TradeTimer.TIMEOUT, at=ends), Offer, Accept, Cancel):
                case TradeTimer.TIMEOUT:
                    return TradeResult(Outcome.TIMED_OUT)
                case Cancel(player):
                    return TradeResult(Outcome.CANCELLED, cancelled_by=player)
                case Offer(player, items, gold):
                    if lay_on_table(ctx, player, items, gold):
                        revision += 1
                        accepted = set()
                case Accept(player, seen) if seen == revision:
                    accepted.add(player)
        hand_over(ctx, ctx.workflow_id, a, b)
        hand_over(ctx, ctx.workflow_id, b, a)
        return TradeResult(Outcome.COMPLETED)
    finally:
        give_back(ctx, ctx.workflow_id)
        close_table(ctx, a, b)


def lay_on_table(ctx: WorkflowContext, player: int, items: list[int], gold: int) -> bool:
    """Put a new offer on the table instead of the old one; all of it, or nothing changes."""
    try:
        with ctx.savepoint():
            give_back(ctx, ctx.workflow_id, player)
            hold_gold(ctx, ctx.workflow_id, player, gold)
            for item in items:
                hold_item(ctx, ctx.workflow_id, player, item)
    except ReducerError as error:
        tell(ctx, player, f"You cannot offer that: {error}.")
        return False
    return True


def show_table(ctx: WorkflowContext, init: TradeInit, revision: int, accepted: set[int]) -> None:
    """Write what both players see."""
    players = [init.initiator, init.target]
    row = Table(trade_id=ctx.workflow_id, players=players, accepted=sorted(accepted), revision=revision)
    ctx.db[Table].upsert(row)


def close_table(ctx: WorkflowContext, a: int, b: int) -> None:
    """Nothing to see any more."""
    ctx.db[Table].delete(ctx.workflow_id)
    for player in (a, b):
        tell(ctx, player, "The trade is over.")


engine = install(module, [trade], testing=True)


@module.reducer
def open_trade(ctx: ReducerContext, with_player: u64) -> int:
    """Begin to trade. One trade at a time."""
    initiator, target = me(ctx), character(ctx, with_player)
    if initiator.id == target.id:
        raise ReducerError("there is nobody there but you")
    for table in ctx.db[Table]:
        for player in (initiator, target):
            if player.id in table.players:
                raise ReducerError(f"{player.name} is trading already")
    return engine.start(ctx, trade, TradeInit(initiator=initiator.id, target=target.id))


@module.reducer
def offer(ctx: ReducerContext, trade_id: u64, items: list[u64], gold: u64 = 0) -> None:
    """Lay these things and this much gold on the table, instead of what lies there."""
    engine.signal(ctx, trade_id, Offer(player=_seat(ctx, trade_id), items=list(items), gold=gold))


@module.reducer
def accept(ctx: ReducerContext, trade_id: u64, revision: u32) -> None:
    """Agree to the table as it was at this revision."""
    engine.signal(ctx, trade_id, Accept(player=_seat(ctx, trade_id), revision=revision))


@module.reducer
def cancel(ctx: ReducerContext, trade_id: u64) -> None:
    """Leave the table."""
    engine.signal(ctx, trade_id, Cancel(player=_seat(ctx, trade_id)))


def _seat(ctx: ReducerContext, trade_id: int) -> int:
    table, player = ctx.db[Table].get(trade_id), me(ctx).id
    if table is None or player not in table.players:
        raise ReducerError("you have no seat at this table")
    return player


def main() -> None:
    """A sword for gold, with an attempt at a trick."""
    stage = Stage(module)
    stage.narrate()
    ann, bob = stage.join("ann", gold=5), stage.join("bob", gold=80)
    sword, stick = stage.drop("sword", ann.id), stage.drop("stick", ann.id)
    deal = ann.call(open_trade, bob.id)
    ann.call(offer, deal, [sword])
    bob.call(offer, deal, [], 60)
    ann.call(accept, deal, 3)
    ann.call(offer, deal, [stick])  # the trick: a stick instead of the sword, while bob clicks
    bob.call(accept, deal, 3)
    print(f"{'':12}bob saw revision 3, now it is {stage.db.read(Table).get(deal)}")
    ann.call(offer, deal, [sword])
    ann.call(accept, deal, 5)
    bob.call(accept, deal, 5)
    print(f"{'':12}{stage.flows.result(deal)}; ann has {ann.gold} gold, bob {bob.things}")


if __name__ == "__main__":
    main()
