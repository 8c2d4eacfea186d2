"""An auction: every way in which it ends, and what moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from examples.auction import (
    AuctionInit,
    AuctionResult,
    Bid,
    Lot,
    Outcome,
    auction,
    buy_out,
    module,
    place_bid,
    sell,
    withdraw,
)
from examples.stage import Player, Stage
from examples.world import HeldGold, Item
from gamedb import ReducerError


@pytest.fixture
def stage() -> Stage:
    return Stage(module)


@pytest.fixture
def ann(stage: Stage) -> Player:
    return stage.join("ann")


@pytest.fixture
def bob(stage: Stage) -> Player:
    return stage.join("bob", gold=100)


@pytest.fixture
def cleo(stage: Stage) -> Player:
    return stage.join("cleo", gold=100)


@pytest.fixture
def sword(stage: Stage, ann: Player) -> int:
    return stage.drop("sword", ann.id)


def test_the_highest_bid_wins(stage: Stage, ann: Player, bob: Player, cleo: Player, sword: int) -> None:
    lot = ann.call(sell, sword, 10)
    bob.call(place_bid, lot, 20)
    assert (bob.gold, cleo.gold) == (80, 100)
    cleo.call(place_bid, lot, 30)
    assert (bob.gold, cleo.gold) == (100, 70)
    assert bob.heard == ["cleo has outbid you."]
    stage.wait(seconds=60)
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, cleo.id, 30)
    assert (ann.gold, bob.gold, cleo.gold) == (30, 100, 70)
    assert (ann.things, cleo.things) == ([], ["sword"])
    assert not list(stage.db.read(HeldGold))
    assert not list(stage.db.read(Lot))


def test_a_bid_in_the_last_seconds_moves_the_end(
    stage: Stage, ann: Player, bob: Player, cleo: Player, sword: int
) -> None:
    lot = ann.call(sell, sword)
    bob.call(place_bid, lot, 20)
    stage.wait(seconds=55)
    cleo.call(place_bid, lot, 30)
    stage.wait(seconds=9)
    bob.call(place_bid, lot, 40)
    stage.wait(seconds=9.9)
    assert stage.flows.get(lot).result is None
    stage.wait(seconds=0.1)
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, bob.id, 40)


def test_an_early_bid_does_not_move_it(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword)
    stage.wait(seconds=50)
    bob.call(place_bid, lot, 20)
    stage.wait(seconds=10)
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, bob.id, 20)


def test_a_bid_that_comes_after_the_end_does_not_count(
    stage: Stage, ann: Player, bob: Player, cleo: Player, sword: int
) -> None:
    lot = ann.call(sell, sword)
    bob.call(place_bid, lot, 20)
    stage.clock.advance(61)  # the server was busy: the end has passed, and nobody has looked yet
    cleo.call(place_bid, lot, 90)
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, bob.id, 20)
    assert cleo.gold == 100


def test_a_buyout_ends_it_at_once(stage: Stage, ann: Player, bob: Player, cleo: Player, sword: int) -> None:
    lot = ann.call(sell, sword, buyout_price=90)
    bob.call(place_bid, lot, 80)
    bob.call(buy_out, lot)
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, bob.id, 90)
    assert (ann.gold, bob.gold, bob.things) == (90, 10, ["sword"])


def test_a_buyout_needs_the_gold(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword, buyout_price=101)
    bob.call(buy_out, lot)
    assert bob.heard == ["You cannot buy this."]
    assert stage.flows.get(lot).result is None


def test_below_the_reserve_nothing_moves(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword, reserve_price=50)
    bob.call(place_bid, lot, 49)
    stage.wait(seconds=60)
    assert stage.flows.result(lot) == AuctionResult(Outcome.RESERVE_NOT_MET, bob.id, 49)
    assert (ann.things, bob.gold) == (["sword"], 100)
    assert stage.db.read(Item).get(sword).holder is None  # type: ignore[union-attr]


def test_without_bids_the_seller_keeps_it(stage: Stage, ann: Player, sword: int) -> None:
    lot = ann.call(sell, sword)
    with pytest.raises(ReducerError, match="promised elsewhere"):
        ann.call(sell, sword)
    stage.wait(seconds=60)
    assert stage.flows.result(lot) == AuctionResult(Outcome.NO_BIDS)
    ann.call(sell, sword)


def test_withdrawing_works_until_there_is_a_bid(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword)
    with pytest.raises(ReducerError, match="not yours"):
        bob.call(withdraw, lot)
    ann.call(withdraw, lot)
    assert stage.flows.result(lot) == AuctionResult(Outcome.WITHDRAWN)
    lot = ann.call(sell, sword)
    bob.call(place_bid, lot, 5)
    ann.call(withdraw, lot)
    assert stage.flows.get(lot).result is None
    assert ann.heard == ["There are bids: it is too late to withdraw."]


def test_a_cancelled_auction_gives_everything_back(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword)
    bob.call(place_bid, lot, 20)
    stage.flows.cancel(lot)
    assert (bob.gold, ann.things) == (100, ["sword"])
    ann.call(sell, sword)


@pytest.mark.parametrize(
    ("amount", "refusal"), [(9, "bid at least 10"), (101, "you have 100 gold"), (0, "bid at least 10")]
)
def test_refusals(stage: Stage, ann: Player, bob: Player, sword: int, amount: int, refusal: str) -> None:
    lot = ann.call(sell, sword, 10)
    with pytest.raises(ReducerError, match=refusal):
        bob.call(place_bid, lot, amount)
    with pytest.raises(ReducerError, match="this lot is yours"):
        ann.call(place_bid, lot, 10)
    with pytest.raises(ReducerError, match="this auction is over"):
        bob.call(place_bid, lot + 1, 10)
    with pytest.raises(ReducerError, match="highest bidder"):
        bob.call(buy_out, lot)


def test_the_workflow_decides_whatever_signals_it_gets(stage: Stage, ann: Player, bob: Player, sword: int) -> None:
    lot = ann.call(sell, sword)
    for bid in (Bid(bob.id, 1000), Bid(ann.id, 5), Bid(4711, 5), Bid(bob.id, -5)):
        stage.flows.signal(lot, bid)
    stage.wait(seconds=60)
    assert stage.flows.result(lot) == AuctionResult(Outcome.NO_BIDS)


def test_by_hand(stage: Stage, ann: Player, bob: Player, cleo: Player, sword: int) -> None:
    init = AuctionInit(item=sword, seller=ann.id, duration=timedelta(seconds=60))
    lot = stage.flows.start_test(auction, init)
    stage.wait(hours=1)
    assert stage.flows.get(lot).result is None, "in manual mode no timer fires by itself"
    stage.db.call("debug_send_signal", lot, "Bid", f'{{"bidder": {bob.id}, "amount": 50}}')
    stage.db.call("debug_send_signal", lot, "Bid", f'{{"bidder": {cleo.id}, "amount": 75}}')
    stage.db.call("debug_fire_timer", lot, "end")
    assert stage.flows.result(lot) == AuctionResult(Outcome.SOLD, cleo.id, 75)
    assert stage.flows.get(lot).result == f'{{"outcome":"sold","winner":{cleo.id},"price":75}}'
