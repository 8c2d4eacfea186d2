"""A quest: objectives in any order, only one's own deeds, and every ending."""

from __future__ import annotations

import pytest

from examples.quest import Outcome, QuestResult, abandon_quest, accept_quest, module, pick_up, strike, walk
from examples.stage import Player, Stage
from examples.world import Point
from gamedb import ReducerError
from workflow_module import WorkflowSubscription


class Scene:
    def __init__(self) -> None:
        self.stage = Stage(module)
        self.ann: Player = self.stage.join("ann")
        self.miller = self.stage.place("the miller", gold=60)
        self.quest = self.ann.call(accept_quest, self.miller)

    def kill(self, who: Player, name: str = "goblin") -> None:
        who.call(strike, self.stage.place(name, hp=1), 1)

    @property
    def progress(self) -> list[int]:
        progress: list[int] = self.stage.flows.view(self.quest).progress
        return progress


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_all_objectives_bring_the_reward(scene: Scene) -> None:
    assert scene.stage.character(scene.miller).gold == 10, "the reward is set aside"
    scene.kill(scene.ann)
    scene.ann.call(walk, Point(9, 9))
    assert scene.progress == [1, 0, 1]
    scene.kill(scene.ann)
    scene.kill(scene.ann)
    assert scene.progress == [2, 0, 1]
    scene.ann.call(pick_up, scene.stage.drop("herb"))
    assert scene.stage.flows.result(scene.quest) == QuestResult(Outcome.COMPLETED)
    assert scene.ann.gold == 50
    assert scene.ann.things == ["herb"]
    assert not list(scene.stage.db.read(WorkflowSubscription))


def test_the_deeds_of_others_do_not_wake_it(scene: Scene) -> None:
    bob = scene.stage.join("bob")
    steps = scene.stage.flows.get(scene.quest).steps
    scene.kill(bob)
    bob.call(walk, Point(9, 9))
    scene.kill(scene.ann, "wolf")
    scene.ann.call(walk, Point(9, 8))
    scene.ann.call(pick_up, scene.stage.drop("goblin"))
    assert scene.progress == [0, 0, 0]
    assert scene.stage.flows.get(scene.quest).steps == steps


@pytest.mark.parametrize("way", ["abandon", "expire", "cancel"])
def test_otherwise_the_giver_keeps_the_reward(scene: Scene, way: str) -> None:
    scene.kill(scene.ann)
    if way == "abandon":
        scene.ann.call(abandon_quest, scene.quest)
        assert scene.stage.flows.result(scene.quest) == QuestResult(Outcome.ABANDONED)
    elif way == "expire":
        scene.stage.wait(hours=1)
        assert scene.stage.flows.result(scene.quest) == QuestResult(Outcome.EXPIRED)
    else:
        scene.stage.flows.cancel(scene.quest)
    assert (scene.ann.gold, scene.stage.character(scene.miller).gold) == (0, 60)


def test_a_giver_without_gold_has_no_quest(scene: Scene) -> None:
    with pytest.raises(ReducerError, match="has nothing for you"):
        scene.ann.call(accept_quest, scene.miller)
