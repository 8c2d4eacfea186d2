"""An auction: bids, a buyout, a reserve price, and an end that last-second bids push away.

    python -m examples.auction

What it shows: one loop that is the whole auction, and property that cannot get lost in it.

- `ends` is a deadline in a variable. A bid in the last seconds moves it (anti-snipe); no timer has to be found and
  changed, the next turn of the loop waits for the new one. A bid that came before the end counts, one that came after
  it does not, however late the process gets to look.
- Gold moves when a bid is **accepted**, in the step that accepts it, from the bidder's purse into escrow. The bid that
  it beats gets its gold back in the same transaction. A bid that nobody ever read has moved nothing.
- The `finally` gives back whatever is still held: the item and the gold when it was not sold, and both when somebody
  cancels the workflow. In the case of a sale nothing is left to give back.

The lines that matter are from the `try` to the end of the workflow. `place_bid` only checks early what the workflow
decides, so that the bidder gets an answer; `Lot` is the public table that clients watch.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from gamedb import Module, PrimaryKey, ReducerContext, ReducerError, Row, u32, u64
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow

from .stage import Stage
from .world import (
    Character,
    HeldGold,
    announce,
    give_back,
    hand_over,
    hold_gold,
    hold_item,
    kind_of,
    me,
    name_of,
    owned_item,
    tell,
    world,
)

SNIPE_WINDOW = timedelta(seconds=10)
"""A bid keeps the auction open for at least this long."""

module = Module("auction")
module.include(world)


@module.table(public=True)
class Lot(Row):
    """A running auction, as clients see it."""

    auction_id: PrimaryKey[u64]
    item_id: u64
    seller: u64
    asking: u64
    """What the next bid must be at least."""
    buyout_price: u64 | None
    leader: u64 | None
    ends_at: datetime


class AuctionTimer(Timer):
    END = "end"


class Bid(Signal):
    bidder: int
    amount: int


class Buyout(Signal):
    buyer: int


class Withdraw(Signal): ...


class AuctionInit(Struct):
    item: int
    seller: int
    duration: timedelta
    starting_price: int = 1
    reserve_price: int = 0
    """Below it, the item is not sold."""
    buyout_price: int | None = None


class Outcome(enum.Enum):
    SOLD = "sold"
    NO_BIDS = "no_bids"
    RESERVE_NOT_MET = "reserve_not_met"
    WITHDRAWN = "withdrawn"


class AuctionResult(Struct):
    outcome: Outcome
    winner: int | None = None
    price: int | None = None


@workflow
async def auction(ctx: WorkflowContext, init: AuctionInit) -> AuctionResult:
    price = init.starting_price - 1
    leader: int | None = None
    ends = ctx.now + init.duration
    hold_item(ctx, ctx.workflow_id, init.seller, init.item)
    try:
        while True:
            show_lot(ctx, init, price, leader, ends)
            match await select(timer(AuctionTimer.END, at=ends), Bid, Buyout, Withdraw):
                case AuctionTimer.END:
                    break
                case Bid(bidder, amount):
                    if amount <= price or bidder in (init.seller, leader) or not can_pay(ctx, bidder, amount):
                        tell(ctx, bidder, f"Your bid of {amount} does not count.")
                        continue
                    outbid(ctx, leader, bidder)
                    hold_gold(ctx, ctx.workflow_id, bidder, amount)
                    price, leader = amount, bidder
                    ends = max(ends, ctx.now + SNIPE_WINDOW)
                    announce(ctx, f"{name_of(ctx, bidder)} bids {amount} for the {kind_of(ctx, init.item)}.")
                case Buyout(buyer):
                    if init.buyout_price is None or buyer == init.seller or not can_pay(ctx, buyer, init.buyout_price):
                        tell(ctx, buyer, "You cannot buy this.")
                        continue
                    outbid(ctx, leader, buyer)
                    hold_gold(ctx, ctx.workflow_id, buyer, init.buyout_price)
                    price, leader = init.buyout_price, buyer
                    break
                case Withdraw():
                    if leader is None:
                        return AuctionResult(Outcome.WITHDRAWN)
                    tell(ctx, init.seller, "There are bids: it is too late to withdraw.")
        if leader is None:
            return AuctionResult(Outcome.NO_BIDS)
        if price < init.reserve_price:
            tell(ctx, leader, "The reserve price was not met.")
            return AuctionResult(Outcome.RESERVE_NOT_MET, leader, price)
        hand_over(ctx, ctx.workflow_id, leader, init.seller)
        hand_over(ctx, ctx.workflow_id, init.seller, leader)
        announce(ctx, f"The {kind_of(ctx, init.item)} is sold to {name_of(ctx, leader)} for {price}.")
        return AuctionResult(Outcome.SOLD, leader, price)
    finally:
        give_back(ctx, ctx.workflow_id)
        ctx.db[Lot].delete(ctx.workflow_id)


def can_pay(ctx: WorkflowContext, who: int, amount: int) -> bool:
    """Whether somebody has this much gold, with what the auction holds of it already."""
    purse = ctx.db[Character].get(who)
    held = ctx.db[HeldGold].where(holder=ctx.workflow_id, owner_id=who)
    return purse is not None and purse.gold + sum(row.amount for row in held) >= amount


def outbid(ctx: WorkflowContext, leader: int | None, by: int) -> None:
    """Give the one who led so far their gold back, and tell them."""
    if leader is not None:
        give_back(ctx, ctx.workflow_id, leader)
        if leader != by:
            tell(ctx, leader, f"{name_of(ctx, by)} has outbid you.")


def show_lot(ctx: WorkflowContext, init: AuctionInit, price: int, leader: int | None, ends: datetime) -> None:
    """Write what clients see."""
    ctx.db[Lot].upsert(
        Lot(
            auction_id=ctx.workflow_id,
            item_id=init.item,
            seller=init.seller,
            asking=price + 1,
            buyout_price=init.buyout_price,
            leader=leader,
            ends_at=ends,
        )
    )


engine = install(module, [auction], testing=True)


@module.reducer
def sell(
    ctx: ReducerContext,
    item_id: u64,
    starting_price: u64 = 1,
    reserve_price: u64 = 0,
    buyout_price: u64 | None = None,
    seconds: u32 = 60,
) -> int:
    """Put one's own thing up for auction."""
    return put_up(
        ctx,
        AuctionInit(
            item=item_id,
            seller=me(ctx).id,
            duration=timedelta(seconds=seconds),
            starting_price=starting_price,
            reserve_price=reserve_price,
            buyout_price=buyout_price,
        ),
    )


def put_up(ctx: ReducerContext, init: AuctionInit) -> int:
    """Begin an auction, of a player or of one that the game plays."""
    owned_item(ctx, init.item, init.seller)
    if init.starting_price < 1:
        raise ReducerError("ask for one gold at least")
    return engine.start(ctx, auction, init, entity_id=init.item)


@module.reducer
def place_bid(ctx: ReducerContext, auction_id: u64, amount: u64) -> None:
    """Bid for a lot."""
    bid(ctx, me(ctx), auction_id, amount)


def bid(ctx: ReducerContext, bidder: Character, auction_id: int, amount: int) -> None:
    """Bid, as a player or as one that the game plays."""
    lot = _lot(ctx, auction_id)
    if bidder.id == lot.seller:
        raise ReducerError("this lot is yours")
    if bidder.id == lot.leader:
        raise ReducerError("you lead already")
    if amount < lot.asking:
        raise ReducerError(f"bid at least {lot.asking}")
    if bidder.gold < amount:
        raise ReducerError(f"you have {bidder.gold} gold")
    engine.signal(ctx, auction_id, Bid(bidder=bidder.id, amount=amount))


@module.reducer
def buy_out(ctx: ReducerContext, auction_id: u64) -> None:
    """Buy a lot at once, for its buyout price."""
    lot, buyer = _lot(ctx, auction_id), me(ctx)
    if lot.buyout_price is None:
        raise ReducerError("this lot goes to the highest bidder")
    if buyer.id == lot.seller:
        raise ReducerError("this lot is yours")
    engine.signal(ctx, auction_id, Buyout(buyer=buyer.id))


@module.reducer
def withdraw(ctx: ReducerContext, auction_id: u64) -> None:
    """Take one's lot back, as long as nobody has bid."""
    if _lot(ctx, auction_id).seller != me(ctx).id:
        raise ReducerError("this lot is not yours")
    engine.signal(ctx, auction_id, Withdraw())


def _lot(ctx: ReducerContext, auction_id: int) -> Lot:
    lot = ctx.db[Lot].get(auction_id)
    if lot is None:
        raise ReducerError("this auction is over")
    return lot


def main() -> None:
    """A sword is auctioned, with a bid in the last second."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    bob = stage.join("bob", gold=100)
    cleo = stage.join("cleo", gold=100)
    sword = stage.drop("sword", ann.id)
    lot = ann.call(sell, sword, 10)
    bob.call(place_bid, lot, 20)
    stage.wait(seconds=59)
    cleo.call(place_bid, lot, 35)
    print(f"{'':12}one second before the end, and bob has his {bob.gold} gold back")
    stage.wait(seconds=8)
    bob.call(place_bid, lot, 50)
    stage.wait(seconds=10)
    print(f"{'':12}{stage.flows.result(lot)}; ann has {ann.gold} gold, bob {bob.gold} and {bob.things}")


if __name__ == "__main__":
    main()
