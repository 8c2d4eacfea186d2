"""A sale: paid, called off, or neither, with steps that fail."""

from __future__ import annotations

import pytest

from examples.post import post
from examples.sale_settlement import Sale, SaleResult, SaleState, agree, call_off, module, pay
from examples.stage import Player, Stage
from examples.world import Item
from gamedb import ReducerError
from workflow_module import WorkflowFailed, WorkflowStatus


class Scene:
    def __init__(self) -> None:
        self.stage = Stage(module)
        self.ann: Player = self.stage.join("ann")
        self.bob: Player = self.stage.join("bob", gold=500)
        self.crown = self.stage.drop("crown", self.ann.id)
        self.sale_id = self.ann.call(agree, self.crown, self.bob.id, 300)

    @property
    def sale(self) -> Sale:
        row = self.stage.db.read(Sale).get(self.sale_id)
        assert row is not None
        return row

    @property
    def result(self) -> SaleResult:
        result: SaleResult = self.stage.flows.result(self.sale.settlement)
        assert result.outcome is self.sale.state
        assert all(item.holder is None for item in self.stage.db.read(Item))
        return result


def test_paid_in_time() -> None:
    scene = Scene()
    scene.stage.wait(hours=71)
    scene.bob.call(pay, scene.sale_id)
    assert scene.bob.gold == 200
    with pytest.raises(ReducerError, match="you have paid"):
        scene.bob.call(pay, scene.sale_id)
    scene.stage.wait(seconds=1)
    assert scene.result == SaleResult(SaleState.SETTLED)
    assert (scene.ann.gold, scene.bob.things) == (300, ["crown"])
    assert list(post.letters.values()) == [f"to {scene.bob.id}: please pay within 72 hours"]


def test_not_paid_in_time() -> None:
    scene = Scene()
    scene.stage.wait(hours=72)
    assert scene.result == SaleResult(SaleState.VOID, "not paid in time")
    assert scene.ann.things == ["crown"]
    with pytest.raises(ReducerError, match="closed"):
        scene.bob.call(pay, scene.sale_id)


def test_called_off() -> None:
    scene = Scene()
    scene.stage.wait(hours=1)
    scene.bob.call(call_off, scene.sale_id, "too dear")
    scene.stage.wait(seconds=1)
    assert scene.result == SaleResult(SaleState.VOID, "too dear")
    assert (scene.ann.things, scene.bob.gold) == (["crown"], 500)


def test_what_comes_first_wins_and_the_loser_gets_the_gold_back() -> None:
    scene = Scene()
    scene.ann.call(call_off, scene.sale_id, "it was my mother's")  # the letter is not sent yet: both wait in the inbox
    scene.bob.call(pay, scene.sale_id)
    scene.stage.wait(hours=1)
    assert scene.result == SaleResult(SaleState.VOID, "it was my mother's")
    assert scene.bob.gold == 500


def test_a_failing_step_is_repeated_with_the_same_key() -> None:
    post.closed_for = 2
    scene = Scene()
    scene.stage.wait(hours=1)
    assert len(post.requests) == 3
    assert len(set(post.requests)) == 1
    assert len(post.letters) == 1
    scene.bob.call(pay, scene.sale_id)
    scene.stage.wait(seconds=1)
    assert scene.result == SaleResult(SaleState.SETTLED)


def test_after_three_attempts_the_sale_is_parked_with_everything_in_escrow() -> None:
    post.closed_for = 3
    scene = Scene()
    scene.stage.wait(hours=1)
    assert scene.stage.flows.get(scene.sale.settlement).status is WorkflowStatus.Failed
    with pytest.raises(WorkflowFailed, match=r"(?s)ProcedureFailed.*notify.*3 attempts"):
        scene.stage.flows.result(scene.sale.settlement)
    assert scene.stage.db.read(Item).get(scene.crown).holder == scene.sale.settlement  # type: ignore[union-attr]
    scene.stage.flows.cancel(scene.sale.settlement)
    assert scene.sale.state is SaleState.VOID
    assert scene.ann.things == ["crown"]
    assert scene.stage.db.read(Item).get(scene.crown).holder is None  # type: ignore[union-attr]
