"""A talk: options, what they do, silence."""

from __future__ import annotations

import pytest

from examples.npc_dialog import TALK, DialogWindow, Outcome, choose, module, talk_to, walk_away
from examples.stage import Player, Stage
from gamedb import ReducerError


class Scene:
    def __init__(self, gold: int = 50) -> None:
        self.stage = Stage(module)
        self.ann: Player = self.stage.join("ann", gold=gold)
        self.smith = self.stage.place("the smith")
        self.stage.drop("sword", self.smith)
        self.dialog = self.ann.call(talk_to, self.smith)

    @property
    def text(self) -> str:
        window = self.stage.db.read(DialogWindow).get(self.ann.id)
        return window.text if window is not None else ""


def test_a_purchase() -> None:
    scene = Scene()
    assert scene.text == TALK["greeting"].text
    scene.ann.call(choose, 1)
    assert scene.text == TALK["story"].text
    for option in (0, 0, 0):
        scene.ann.call(choose, option)
    assert scene.stage.flows.result(scene.dialog) is Outcome.BOUGHT
    assert (scene.ann.gold, scene.ann.things, scene.stage.character(scene.smith).gold) == (10, ["sword"], 40)
    assert scene.text == ""


def test_without_gold_the_talk_goes_on_elsewhere() -> None:
    scene = Scene(gold=39)
    scene.ann.call(choose, 0)
    scene.ann.call(choose, 0)
    assert scene.text == TALK["poor"].text
    assert scene.ann.gold == 39
    scene.ann.call(choose, 0)
    assert scene.stage.flows.result(scene.dialog) is Outcome.ENDED


def test_a_minute_of_silence_ends_it_and_an_answer_starts_the_minute_anew() -> None:
    scene = Scene()
    scene.stage.wait(seconds=59)
    scene.ann.call(choose, 1)
    scene.stage.wait(seconds=59)
    assert scene.text
    scene.stage.wait(seconds=1)
    assert scene.text == ""
    assert scene.stage.flows.result(scene.dialog) is Outcome.ABANDONED


def test_walking_away() -> None:
    scene = Scene()
    with pytest.raises(ReducerError, match="talking already"):
        scene.ann.call(talk_to, scene.smith)
    with pytest.raises(ReducerError, match="there are 3 options"):
        scene.ann.call(choose, 3)
    scene.ann.call(walk_away)
    assert scene.stage.flows.result(scene.dialog) is Outcome.ABANDONED
    with pytest.raises(ReducerError, match="nobody talks"):
        scene.ann.call(choose, 0)
