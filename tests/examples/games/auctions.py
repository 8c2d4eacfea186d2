"""Auctions: what is sold for how much follows from the timelines, and from nothing else."""

from __future__ import annotations

from collections import Counter

from examples.auction import (
    SNIPE_WINDOW,
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
from tests.examples.games.base import Action, Game, Ledger, Moment, Play, Running, held, live, things_held, timeline


class Auctions(Game):
    """Three players sell their things to each other."""

    module = module
    bag = ("sword", "shield")

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Sell, bid, buy, withdraw; and signals that no reducer has looked at."""

        def lot() -> int:
            return play.row(Lot).auction_id

        def bid() -> None:
            play.call(play.player(), place_bid, lot(), play.number(1, 110))

        return (
            lambda: play.call(
                play.player(),
                sell,
                play.item(),
                play.number(1, 30),
                play.number(0, 60),
                play.number(20, 150),
                play.number(1, 90),
            ),
            bid,
            bid,
            lambda: play.running.flows.signal(lot(), Bid(play.player().id, play.number(-5, 200))),
            lambda: play.call(play.player(), buy_out, lot()),
            play.rarely(lambda: play.call(play.player(), withdraw, lot())),
        )

    def check(self, running: Running) -> None:
        """The lots are what the workflows know; who owns what is what they decided."""
        super().check(running)
        db = running.db
        lots = {lot.auction_id: lot for lot in db.read(Lot)}
        states = live(running, auction)
        assert lots.keys() == states.keys()
        for id, state in states.items():
            lot = lots[id]
            assert (lot.asking, lot.leader, lot.ends_at) == (state.price + 1, state.leader, state.ends)
            assert held(db, id) == Counter({} if state.leader is None else {state.leader: state.price})
            assert things_held(db, id) == {state.init.item}

        ledger = Ledger(self, db)
        for moment in timeline(running, auction):
            if moment.kind == "step":
                _check_turn(moment)
            elif moment.kind == "completed":
                result = auction.decode_result(moment.detail)
                _check_result(moment, result)
                if result.outcome is Outcome.SOLD:
                    ledger.move_gold(result.winner, moment.after.init.seller, result.price)
                    ledger.owners[moment.after.init.item] = result.winner
        ledger.check()


def _check_turn(moment: Moment) -> None:
    """One bid, which counts or does not; or a signal that changes nothing."""
    before, after = moment.before, moment.after
    assert before is not None
    assert moment.at < before.ends, "it went on after its end"
    if (after.leader, after.price) == (before.leader, before.price):
        assert after.ends == before.ends
        return
    assert moment.got(Bid) == Bid(after.leader, after.price), "the leader has not bid this"
    assert after.price > before.price
    assert after.ends == max(before.ends, moment.at + SNIPE_WINDOW)


def _check_result(moment: Moment, result: AuctionResult) -> None:
    """The result is what was reached: by a buyout or a withdrawal, or at the end and not before."""
    state = moment.after
    if result.outcome is Outcome.WITHDRAWN:
        assert state.leader is None
        return
    if result.winner is not None and result.price == state.init.buyout_price:
        return
    assert moment.at >= state.ends, "it ended too early"
    if result.outcome is Outcome.NO_BIDS:
        assert state.leader is None
    else:
        assert (result.winner, result.price) == (state.leader, state.price)
        assert (result.outcome is Outcome.SOLD) == (state.price >= state.init.reserve_price)
