"""A trade: both accept the same table, or nothing moves."""

from __future__ import annotations

import pytest

from examples.stage import Player, Stage
from examples.trade import Outcome, Table, TradeResult, accept, cancel, module, offer, open_trade
from examples.world import HeldGold, Item
from gamedb import ReducerError


class Scene:
    """Ann has a sword, bob has gold, and they sit at a table."""

    def __init__(self) -> None:
        self.stage = Stage(module)
        self.ann: Player = self.stage.join("ann")
        self.bob: Player = self.stage.join("bob", gold=100)
        self.sword = self.stage.drop("sword", self.ann.id)
        self.deal = self.ann.call(open_trade, self.bob.id)

    @property
    def table(self) -> Table:
        row = self.stage.db.read(Table).get(self.deal)
        assert row is not None
        return row

    def result(self) -> TradeResult:
        result: TradeResult = self.stage.flows.result(self.deal)
        assert not list(self.stage.db.read(Table))
        assert not list(self.stage.db.read(HeldGold))
        assert all(item.holder is None for item in self.stage.db.read(Item))
        return result

    def nothing_has_moved(self) -> bool:
        return (self.ann.gold, self.ann.things, self.bob.gold, self.bob.things) == (0, ["sword"], 100, [])


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_both_accept(scene: Scene) -> None:
    scene.ann.call(offer, scene.deal, [scene.sword])
    scene.bob.call(offer, scene.deal, [], 60)
    assert scene.bob.gold == 40, "what lies on the table cannot be spent"
    scene.ann.call(accept, scene.deal, scene.table.revision)
    assert scene.table.accepted == [scene.ann.id]
    scene.bob.call(accept, scene.deal, scene.table.revision)
    assert scene.result() == TradeResult(Outcome.COMPLETED)
    assert (scene.ann.gold, scene.ann.things, scene.bob.gold, scene.bob.things) == (60, [], 40, ["sword"])


def test_a_new_offer_replaces_the_old_one_and_voids_what_was_accepted(scene: Scene) -> None:
    scene.bob.call(offer, scene.deal, [], 60)
    scene.ann.call(accept, scene.deal, scene.table.revision)
    scene.bob.call(offer, scene.deal, [], 10)
    assert (scene.table.accepted, scene.bob.gold) == ([], 90)


def test_an_accept_of_what_has_changed_since_does_not_count(scene: Scene) -> None:
    scene.ann.call(offer, scene.deal, [scene.sword])
    seen = scene.table.revision
    scene.ann.call(offer, scene.deal, [])
    scene.bob.call(accept, scene.deal, seen)
    assert scene.table.accepted == []


def test_one_cannot_accept_for_two(scene: Scene) -> None:
    for _ in range(2):
        scene.ann.call(accept, scene.deal, scene.table.revision)
    assert scene.table.accepted == [scene.ann.id]


def test_an_offer_beyond_ones_means_changes_nothing(scene: Scene) -> None:
    scene.bob.call(offer, scene.deal, [], 60)
    scene.bob.call(offer, scene.deal, [scene.sword], 10)
    assert scene.bob.gold == 40, "the offer that stood before still stands"
    assert scene.bob.heard == [f"You cannot offer that: bob does not have item {scene.sword}."]
    scene.bob.call(offer, scene.deal, [], 101)
    assert (scene.bob.gold, scene.table.revision) == (40, 2)


@pytest.mark.parametrize("way", ["cancel", "timeout", "from outside"])
def test_otherwise_everything_goes_back(scene: Scene, way: str) -> None:
    scene.ann.call(offer, scene.deal, [scene.sword])
    scene.bob.call(offer, scene.deal, [], 60)
    scene.ann.call(accept, scene.deal, scene.table.revision)
    if way == "cancel":
        scene.bob.call(cancel, scene.deal)
        assert scene.result() == TradeResult(Outcome.CANCELLED, cancelled_by=scene.bob.id)
    elif way == "timeout":
        scene.stage.wait(seconds=60)
        assert scene.result() == TradeResult(Outcome.TIMED_OUT)
    else:
        scene.stage.flows.cancel(scene.deal)
    assert scene.nothing_has_moved()


def test_who_may_sit_down(scene: Scene) -> None:
    cleo = scene.stage.join("cleo")
    with pytest.raises(ReducerError, match="ann is trading already"):
        cleo.call(open_trade, scene.ann.id)
    with pytest.raises(ReducerError, match="no seat"):
        cleo.call(accept, scene.deal, 1)
    with pytest.raises(ReducerError, match="nobody there but you"):
        cleo.call(open_trade, cleo.id)
