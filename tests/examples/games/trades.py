"""Trades: what lies on the table is what was offered last, and only what both accepted changes hands."""

from __future__ import annotations

from collections import Counter, defaultdict

from examples.trade import (
    Accept,
    Cancel,
    Offer,
    Outcome,
    Table,
    TradeResult,
    accept,
    cancel,
    module,
    offer,
    open_trade,
    trade,
)
from examples.world import Character
from tests.examples.games.base import Action, Game, Ledger, Moment, Play, Running, held, live, things_held, timeline


class Trades(Game):
    """Four players with two tables."""

    module = module
    players = ("ann", "bob", "cleo", "dora")
    purse = 50
    bag = ("gem", "map")

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Open a table, offer, accept, leave."""

        def seat() -> tuple[Character, Table]:
            table = play.row(Table)
            return play.row(Character, id=play.one_of(table.players)), table

        def lay() -> None:
            player, table = seat()
            items = [play.item() for _ in range(play.number(0, 2))]
            play.call(player, offer, table.trade_id, items, play.number(0, 60))

        def agree() -> None:
            player, table = seat()
            play.call(player, accept, table.trade_id, table.revision - play.number(0, 1))

        def both_agree() -> None:
            _, table = seat()
            for player in table.players:
                play.call(play.row(Character, id=player), accept, table.trade_id, table.revision)

        def leave() -> None:
            player, table = seat()
            play.call(player, cancel, table.trade_id)

        return (
            lambda: play.call(play.player(), open_trade, play.player().id),
            lay,
            lay,
            agree,
            both_agree,
            leave,
        )

    def check(self, running: Running) -> None:
        """The tables are what the workflows know; who owns what follows from what was accepted."""
        super().check(running)
        db = running.db
        tables = {table.trade_id: table for table in db.read(Table)}
        states = live(running, trade)
        assert tables.keys() == states.keys()
        for id, state in states.items():
            assert (tables[id].revision, set(tables[id].accepted)) == (state.revision, state.accepted)

        ledger = Ledger(self, db)
        laid: defaultdict[int, dict[int, Offer]] = defaultdict(dict)
        for moment in timeline(running, trade):
            if moment.kind == "step":
                _check_turn(moment, laid[moment.id])
            elif moment.kind == "completed":
                result = trade.decode_result(moment.detail)
                _check_result(moment, result)
                if result.outcome is Outcome.COMPLETED:
                    a, b = moment.after.a, moment.after.b
                    for giver, taker in ((a, b), (b, a)):
                        given = laid[moment.id].get(giver, Offer(giver, [], 0))
                        ledger.move_gold(giver, taker, given.gold)
                        ledger.owners.update(dict.fromkeys(given.items, taker))
        ledger.check()
        for id in states:
            offers = laid[id].values()
            assert held(db, id) == Counter({offer.player: offer.gold for offer in offers})
            assert things_held(db, id) == {item for offer in offers for item in offer.items}


def _check_turn(moment: Moment, laid: dict[int, Offer]) -> None:
    """One offer, which counts or does not; or an accept."""
    before, after = moment.before, moment.after
    assert before is not None
    assert moment.at < before.ends == after.ends, "it went on after its end"
    got = moment.got(Offer, Accept, Cancel)
    match got:
        case Offer(player) if after.revision != before.revision:
            assert (after.revision, after.accepted) == (before.revision + 1, set())
            laid[player] = got
        case Accept(player, seen) if seen == before.revision:
            assert (after.revision, after.accepted) == (before.revision, before.accepted | {player})
        case _:
            assert (after.revision, after.accepted) == (before.revision, before.accepted)


def _check_result(moment: Moment, result: TradeResult) -> None:
    state = moment.after
    match result.outcome:
        case Outcome.COMPLETED:
            assert len(state.accepted) == 1, "one of them had not accepted"
            assert moment.at < state.ends
        case Outcome.CANCELLED:
            assert result.cancelled_by in (state.a, state.b)
        case Outcome.TIMED_OUT:
            assert moment.at >= state.ends, "it ended too early"
