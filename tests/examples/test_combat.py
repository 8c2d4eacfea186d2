"""A fight: turns, timers, damage, outcomes."""

from __future__ import annotations

import pytest

from examples.combat import CombatResult, Outcome, attack, combat, defend, fight, flee, module
from examples.stage import Stage
from gamedb import ReducerError


def test_victory_takes_the_purse() -> None:
    stage = Stage(module)
    ann = stage.join("ann")
    wolf = stage.place("the wolf", hp=20, gold=7)
    run = ann.call(fight, wolf)
    while stage.character(wolf).hp:
        ann.call(attack)
        stage.wait(seconds=1)
    assert stage.flows.result_of(combat, run).outcome is Outcome.VICTORY
    assert ann.gold == 7
    assert stage.character(wolf).gold == 0


def test_defeat_loses_it() -> None:
    stage = Stage(module)
    ann = stage.join("ann", hp=10, gold=9)
    ogre = stage.place("the ogre", strength=50)
    run = ann.call(fight, ogre)
    ann.call(attack)
    stage.wait(seconds=1)
    assert stage.flows.result(run) == CombatResult(Outcome.DEFEAT, turns=1)
    assert (ann.hp, ann.gold, stage.character(ogre).gold) == (0, 0, 9)


def test_who_does_not_decide_defends() -> None:
    stage = Stage(module)
    ann, wolf = stage.join("ann"), stage.place("the wolf", strength=12)
    ann.call(fight, wolf)
    stage.wait(seconds=30.3)
    assert ann.hp == 96
    ann.call(defend)
    stage.wait(seconds=0.3)
    assert ann.hp == 92
    assert stage.character(wolf).hp == 100


def test_a_turn_decided_during_the_animation_counts() -> None:
    stage = Stage(module)
    ann, wolf = stage.join("ann"), stage.place("the wolf")
    run = ann.call(fight, wolf)
    ann.call(defend)
    ann.call(flee)
    assert stage.flows.get(run).result is None
    stage.wait(seconds=0.3)
    assert stage.flows.result(run) == CombatResult(Outcome.FLED, turns=2)


def test_what_is_no_fight() -> None:
    stage = Stage(module)
    ann, wolf = stage.join("ann"), stage.place("the wolf")
    with pytest.raises(ReducerError, match="you are in no fight"):
        ann.call(attack)
    ann.call(fight, wolf)
    with pytest.raises(ReducerError, match="in a fight already"):
        ann.call(fight, wolf)
    ann.call(flee)
    ann.call(fight, wolf)
