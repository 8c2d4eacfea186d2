"""No gold and no thing is made or lost, whatever players do and whenever the process dies.

Random scenarios against a database on disk. `save` is a flush boundary; a crash falls back to the last one, as a
killed process would, and the game goes on from there. After each commit the sums are those of the beginning, and when
all has ended, nothing is held any more.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import auction, boss_fight, production, trade
from examples.stage import Player
from examples.world import Character, HeldGold, Item, item_counts, total_gold
from gamedb import Module, ReducerError
from tests.examples.crashes import CrashStage
from workflow_module import Workflow, WorkflowStatus

SCENARIOS = int(os.environ.get("GAMEDB_FUZZ_SCENARIOS", "25"))
STEPS = 30

Draw = st.DataObject
Action = Callable[[], object]
scenario = settings(max_examples=SCENARIOS, deadline=None, suppress_health_check=list(HealthCheck))


class Play:
    """A scenario: what may happen is a list of actions that pick their arguments themselves."""

    def __init__(self, data: Draw, module: Module, folder: str) -> None:
        self.data = data
        self.stage = CrashStage(module, Path(folder))
        self.players: list[Player] = []

    def one_of(self, *choices: int) -> int:
        return self.data.draw(st.sampled_from(choices or (0,)))

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def player(self) -> Player:
        return self.data.draw(st.sampled_from(self.players))

    def item(self) -> int:
        return self.one_of(*sorted(item.id for item in self.stage.db.read(Item)))

    def workflow(self) -> int:
        return self.one_of(*sorted(row.id for row in self.stage.db.read(Workflow)))

    def run(self, *actions: Action, worth: Callable[[Counter[str]], object] = dict) -> None:
        """Let things happen, and check what must hold."""
        try:
            self._run(actions, worth)
        finally:  # also when Hypothesis gives the scenario up
            self.stage.db.close()

    def _run(self, actions: tuple[Action, ...], worth: Callable[[Counter[str]], object]) -> None:
        stage = self.stage
        stage.save()
        stage.guard(worth)
        gold, things = total_gold(stage.db), worth(item_counts(stage.db))
        common: list[Action] = [
            lambda: stage.wait(seconds=self.number(0, 70)),
            lambda: stage.clock.advance(self.number(0, 30)),  # nobody looks meanwhile
            lambda: stage.flows.cancel(self.workflow()),
            stage.save,
            stage.crash,
        ]
        every = [*actions, *actions, *common]
        for _ in range(STEPS):
            action = every[self.number(0, len(every) - 1)]
            with contextlib.suppress(ReducerError):
                action()
            assert not stage.wrong, stage.wrong
            self.escrow_belongs_to_the_living()
        stage.wait(days=1)
        for row in stage.db.read(Workflow):
            assert row.status is not WorkflowStatus.Failed, row.error
            if row.status is WorkflowStatus.Suspended:
                stage.flows.cancel(row.id)
        assert not stage.wrong, stage.wrong
        assert (total_gold(stage.db), worth(item_counts(stage.db))) == (gold, things)
        self.escrow_belongs_to_the_living()
        assert not list(stage.db.read(HeldGold))
        assert not [row for row in stage.db.read(Character) if "minion" in row.name]

    def escrow_belongs_to_the_living(self) -> None:
        live = {row.id for row in self.stage.db.read(Workflow) if row.status is WorkflowStatus.Suspended}
        assert {row.holder for row in self.stage.db.read(HeldGold)} <= live
        assert {item.holder for item in self.stage.db.read(Item)} <= live | {None}


@scenario
@given(st.data())
def test_auctions(data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play = Play(data, auction.module, folder)
        play.players = [play.stage.join(name, gold=100, items=("sword", "shield")) for name in ("ann", "bob", "cleo")]

        def lot() -> int:
            return play.one_of(*sorted(row.auction_id for row in play.stage.db.read(auction.Lot)))

        play.run(
            lambda: play.player().call(
                auction.sell,
                play.item(),
                play.number(1, 30),
                play.number(0, 60),
                play.number(20, 150),
                play.number(1, 90),
            ),
            lambda: play.player().call(auction.place_bid, lot(), play.number(1, 110)),
            lambda: play.player().call(auction.place_bid, lot(), play.number(1, 110)),
            lambda: play.stage.flows.signal(lot(), auction.Bid(play.player().id, play.number(-5, 200))),
            lambda: play.player().call(auction.buy_out, lot()),
            lambda: play.player().call(auction.withdraw, lot()),
        )


@scenario
@given(st.data())
def test_trades(data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play = Play(data, trade.module, folder)
        play.players = [play.stage.join(name, gold=50, items=("gem", "map")) for name in ("ann", "bob", "cleo")]

        def seat() -> tuple[Player, trade.Table]:
            tables = sorted(play.stage.db.read(trade.Table), key=lambda row: row.trade_id)
            if not tables:
                raise ReducerError("nobody trades")
            table = tables[play.number(0, len(tables) - 1)]
            player = play.one_of(*table.players)
            return next(p for p in play.players if p.id == player), table

        def offer() -> None:
            player, table = seat()
            player.call(
                trade.offer, table.trade_id, [play.item() for _ in range(play.number(0, 2))], play.number(0, 60)
            )

        def accept() -> None:
            player, table = seat()
            player.call(trade.accept, table.trade_id, table.revision - play.number(0, 1))

        def both_accept() -> None:
            _, table = seat()
            for player in play.players:
                if player.id in table.players:
                    player.call(trade.accept, table.trade_id, table.revision)

        def cancel() -> None:
            player, table = seat()
            player.call(trade.cancel, table.trade_id)

        play.run(
            lambda: play.player().call(trade.open_trade, play.player().id),
            offer,
            offer,
            accept,
            both_accept,
            cancel,
        )


@scenario
@given(st.data())
def test_boss_fights(data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play = Play(data, boss_fight.module, folder)
        play.players = [play.stage.join(name, hp=200, gold=10) for name in ("ann", "bob")]
        dragons = [play.stage.place("a dragon", hp=60, strength=20, gold=101) for _ in range(2)]
        for dragon in dragons:
            play.stage.drop("fang", dragon)
            play.stage.drop("scale", dragon)

        def hit(times: int) -> None:
            target = play.one_of(*sorted(row.id for row in play.stage.db.read(Character) if row.identity is None))
            player = play.player()
            for _ in range(times):
                player.call(boss_fight.hit, target)

        play.run(
            lambda: play.player().call(boss_fight.pull, play.one_of(*dragons), [player.id for player in play.players]),
            lambda: hit(2),
            lambda: hit(4),
        )


@scenario
@given(st.data())
def test_forges(data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play = Play(data, production.module, folder)
        play.players = [play.stage.join(name, items=("ore",) * 5) for name in ("ann", "bob")]
        for _ in range(5):
            play.stage.drop("ore")
        play.run(
            lambda: play.player().call(production.start_forge),
            lambda: play.player().call(production.dig, play.item()),
            lambda: play.player().call(production.halt_forge, "why not"),
            lambda: play.player().call(production.resume_forge),
            lambda: play.player().call(production.stop_forge),
            worth=lambda things: things["ore"] + 2 * things["ingot"],
        )
