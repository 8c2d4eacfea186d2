"""The auction house for players: the auction of the examples, with what the arena allows."""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, ReducerError, u32, u64

from .. import auction
from ..auction import AuctionInit, Lot
from ..world import Item, me, owned_item

LOTS_MAX = 3
"""How many lots one seller may have at a time."""
SECONDS_MIN, SECONDS_MAX = 30, 120
PRICE_MAX = 10_000

market = Module("market")


@market.reducer
def sell(ctx: ReducerContext, item_id: u64, starting_price: u64, buyout_price: u64 | None, seconds: u32) -> None:
    """Put one's own thing up for auction."""
    seller = me(ctx)
    item = owned_item(ctx, item_id, seller.id)
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise ReducerError(f"an auction takes {SECONDS_MIN} to {SECONDS_MAX} seconds, not {seconds}")
    if not 1 <= starting_price <= PRICE_MAX:
        raise ReducerError(f"ask for 1 to {PRICE_MAX} gold, not {starting_price}")
    if buyout_price is not None and not starting_price < buyout_price <= PRICE_MAX:
        raise ReducerError(f"the buyout price is more than the starting price, and {PRICE_MAX} at most")
    if sum(lot.seller == seller.id for lot in ctx.db[Lot]) >= LOTS_MAX:
        raise ReducerError(f"{LOTS_MAX} lots at a time; wait until one is sold")
    put_up(ctx, item, seller.id, starting_price, buyout_price, seconds)


def put_up(
    ctx: ReducerContext, item: Item, seller: int, starting_price: int, buyout_price: int | None, seconds: int
) -> int:
    """Begin an auction, of a player or of one that the game plays."""
    init = AuctionInit(
        item=item.id,
        seller=seller,
        duration=timedelta(seconds=seconds),
        starting_price=starting_price,
        buyout_price=buyout_price,
    )
    return auction.put_up(ctx, init)


@market.reducer
def place_bid(ctx: ReducerContext, auction_id: u64, amount: u64) -> None:
    """Bid for a lot. The gold is set aside, and comes back when somebody bids more."""
    _need_open(ctx, auction_id)
    auction.place_bid(ctx, auction_id, amount)


@market.reducer
def buy_out(ctx: ReducerContext, auction_id: u64) -> None:
    """Buy a lot at once."""
    lot, buyer = ctx.db[Lot].get(auction_id), me(ctx)
    if lot is not None and lot.buyout_price is not None:
        held = lot.asking - 1 if lot.leader == buyer.id else 0
        if buyer.gold + held < lot.buyout_price:
            raise ReducerError(f"it costs {lot.buyout_price} gold; you have {buyer.gold}")
    _need_open(ctx, auction_id)
    auction.buy_out(ctx, auction_id)


def _need_open(ctx: ReducerContext, auction_id: int) -> None:
    """Refuse what comes after the end, also when nobody has looked yet."""
    lot = ctx.db[Lot].get(auction_id)
    if lot is None or lot.ends_at <= ctx.now:
        raise ReducerError("this auction is over")


@market.reducer
def withdraw(ctx: ReducerContext, auction_id: u64) -> None:
    """Take one's lot back, as long as nobody has bid."""
    lot = ctx.db[Lot].get(auction_id)
    if lot is not None and lot.leader is not None and lot.seller == me(ctx).id:
        raise ReducerError("there are bids: it is too late to withdraw")
    auction.withdraw(ctx, auction_id)
