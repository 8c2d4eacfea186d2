"""A raid boss: four phases, one enrage, minions that go when the fight goes."""

from __future__ import annotations

import pytest

from examples.boss_fight import BossFightResult, Outcome, RaidMember, hit, module, pull
from examples.stage import Player, Stage
from examples.world import Character, Effect, item_counts, total_gold
from gamedb import ReducerError
from workflow_module import Workflow, WorkflowStatus


class Scene:
    def __init__(self, *, heroes: int = 2, hp: int = 10_000, dragon_strength: int = 20) -> None:
        self.stage = Stage(module)
        self.heroes: list[Player] = [self.stage.join(f"hero {n}", hp=hp) for n in range(heroes)]
        self.dragon = self.stage.place("the dragon", hp=100, strength=dragon_strength, gold=101)
        self.stage.drop("fang", self.dragon)
        self.fight = self.heroes[0].call(pull, self.dragon, [hero.id for hero in self.heroes])

    def hit(self, target: int, times: int) -> None:
        for _ in range(times):
            self.heroes[0].call(hit, target)

    @property
    def phase(self) -> int:
        phase: int = self.stage.flows.view(self.fight).phase
        return phase

    @property
    def minions(self) -> list[int]:
        return [row.id for row in self.stage.db.read(Character) if "minion" in row.name]

    def to_phase(self, phase: int) -> None:
        if phase >= 2:
            self.hit(self.dragon, 3)
        if phase >= 3:
            for minion in self.minions:
                self.hit(minion, 3)
        if phase >= 4:
            self.hit(self.dragon, 4)
        assert self.phase == phase


def test_victory() -> None:
    scene = Scene()
    scene.to_phase(2)
    assert len(scene.minions) == 2
    with pytest.raises(ReducerError, match="immune"):
        scene.hit(scene.dragon, 1)
    scene.hit(scene.minions[0], 3)
    assert scene.phase == 2, "all minions must die"
    scene.hit(scene.minions[0], 3)
    assert scene.phase == 3
    assert not scene.minions
    assert not list(scene.stage.db.read(Effect))
    scene.hit(scene.dragon, 4)
    assert scene.phase == 4
    assert scene.stage.character(scene.dragon).strength == 30
    scene.hit(scene.dragon, 3)
    scene.stage.db.run_due()
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.VICTORY, phase=4)
    assert sorted(hero.gold for hero in scene.heroes) == [50, 51]
    assert sorted(thing for hero in scene.heroes for thing in hero.things) == ["fang"]
    assert total_gold(scene.stage.db) == 101
    assert item_counts(scene.stage.db) == {"fang": 1}
    assert not list(scene.stage.db.read(RaidMember))


def test_fire_is_breathed_every_fifteen_seconds_whatever_comes_in_between() -> None:
    scene = Scene()
    scene.to_phase(3)
    before = scene.heroes[1].hp
    scene.stage.wait(seconds=10)
    scene.hit(scene.dragon, 1)
    scene.stage.wait(seconds=4)
    assert scene.heroes[1].hp == before
    scene.stage.wait(seconds=1)
    assert scene.heroes[1].hp == before - 20
    scene.stage.wait(seconds=45)
    assert scene.heroes[1].hp == before - 80


@pytest.mark.parametrize("phase", [1, 2, 3, 4])
def test_the_enrage_is_the_same_in_every_phase(phase: int) -> None:
    scene = Scene()
    scene.stage.wait(minutes=4)
    scene.to_phase(phase)
    scene.stage.wait(minutes=3, seconds=59)
    assert all(hero.hp for hero in scene.heroes)
    scene.stage.wait(seconds=1)
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.ENRAGED, phase)
    assert not any(hero.hp for hero in scene.heroes)
    assert not scene.minions, "the minions leave with the fight"
    assert not list(scene.stage.db.read(Effect))
    statuses = {row.status for row in scene.stage.db.read(Workflow).where(parent_id=scene.fight)}
    assert statuses <= {WorkflowStatus.Cancelled, WorkflowStatus.Completed}


def test_a_wipe_by_hitting_back() -> None:
    scene = Scene(heroes=1, hp=7)
    scene.hit(scene.dragon, 2)
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.WIPE, phase=1)
    with pytest.raises(ReducerError, match="not fighting"):
        scene.hit(scene.dragon, 1)


def test_a_wipe_by_minions() -> None:
    scene = Scene(hp=30)
    scene.to_phase(2)
    scene.stage.wait(minutes=2)
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.WIPE, phase=2)
    assert not scene.minions


def test_a_wipe_by_fire() -> None:
    scene = Scene(hp=60)
    scene.to_phase(3)
    scene.stage.wait(minutes=2)
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.WIPE, phase=3)


def test_a_great_blow_skips_what_it_can_skip() -> None:
    scene = Scene()
    with scene.stage.db.transaction() as ctx:
        hero = ctx.db[Character].get(scene.heroes[0].id)
        assert hero is not None
        ctx.db[Character].update(hero.replace(strength=100))
    scene.hit(scene.dragon, 1)
    assert scene.phase == 2
    for minion in scene.minions:
        scene.hit(minion, 1)
    scene.stage.db.run_due()
    assert scene.stage.flows.result(scene.fight) == BossFightResult(Outcome.VICTORY, phase=4)


def test_a_minion_that_is_cancelled_is_gone() -> None:
    scene = Scene()
    scene.to_phase(2)
    minion = scene.stage.db.read(Workflow).where(parent_id=scene.fight)[0]
    scene.stage.flows.cancel(minion.id)
    scene.hit(scene.minions[0], 3)
    assert scene.phase == 3


def test_one_fight_at_a_time() -> None:
    scene = Scene()
    with pytest.raises(ReducerError, match="busy"):
        scene.heroes[0].call(pull, scene.dragon, [scene.heroes[0].id])
    other = scene.stage.place("the other dragon")
    with pytest.raises(ReducerError, match="in a fight already"):
        scene.heroes[0].call(pull, other, [scene.heroes[0].id])
    scene.stage.flows.cancel(scene.fight)
    scene.heroes[0].call(pull, other, [scene.heroes[0].id])
