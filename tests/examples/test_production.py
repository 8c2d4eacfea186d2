"""A forge: cycles, halts, resumes, stops."""

from __future__ import annotations

import pytest

from examples.production import ProductionResult, dig, halt_forge, module, resume_forge, start_forge, stop_forge
from examples.stage import Player, Stage
from examples.world import Item
from gamedb import ReducerError


@pytest.fixture
def stage() -> Stage:
    return Stage(module)


@pytest.fixture
def ann(stage: Stage) -> Player:
    return stage.join("ann", items=("ore",) * 5)


def test_it_works_as_long_as_there_is_ore(stage: Stage, ann: Player) -> None:
    forge = ann.call(start_forge)
    assert sum(item.holder == forge for item in stage.db.read(Item)) == 2
    stage.wait(seconds=60)
    assert ann.things == ["ingot", "ore", "ore", "ore"]
    stage.wait(hours=1)
    assert ann.things == ["ingot", "ingot", "ore"]
    ann.call(dig, stage.drop("ore"))
    stage.wait(seconds=60)
    assert ann.things == ["ingot"] * 3
    ann.call(stop_forge)
    assert stage.flows.result(forge) == ProductionResult(cycles=3)


def test_a_halt_keeps_the_time_that_is_left(stage: Stage, ann: Player) -> None:
    ann.call(start_forge)
    stage.wait(seconds=40)
    ann.call(halt_forge, "a leak")
    stage.wait(days=2)
    assert "ingot" not in ann.things
    ann.call(resume_forge)
    stage.wait(seconds=19)
    assert "ingot" not in ann.things
    stage.wait(seconds=1)
    assert ann.things.count("ingot") == 1


def test_an_idle_forge_halts_too(stage: Stage) -> None:
    bob = stage.join("bob", items=("ore",))
    bob.call(start_forge)
    bob.call(halt_forge, "lunch")
    bob.call(dig, stage.drop("ore"))
    stage.wait(minutes=5)
    assert bob.things == ["ore", "ore"]
    bob.call(resume_forge)
    stage.wait(minutes=1)
    assert bob.things == ["ingot"]


def test_a_resume_of_what_runs_does_not_undo_the_next_halt(stage: Stage, ann: Player) -> None:
    ann.call(start_forge)
    ann.call(resume_forge)
    ann.call(halt_forge, "a leak")
    ann.call(halt_forge, "another leak")
    stage.wait(minutes=5)
    assert "ingot" not in ann.things
    assert stage.announced == ["The forge halts: a leak.", "The forge halts: another leak."]
    ann.call(resume_forge)
    stage.wait(minutes=1)
    assert ann.things.count("ingot") == 1


@pytest.mark.parametrize("halted", [False, True])
@pytest.mark.parametrize("way", ["stop", "cancel"])
def test_when_it_ends_the_ore_in_it_comes_back(stage: Stage, ann: Player, way: str, halted: bool) -> None:
    forge = ann.call(start_forge)
    stage.wait(seconds=90)
    if halted:
        ann.call(halt_forge, "enough")
    if way == "stop":
        ann.call(stop_forge)
        assert stage.flows.result(forge) == ProductionResult(cycles=1)
    else:
        stage.flows.cancel(forge)
    assert ann.things == ["ingot", "ore", "ore", "ore"]
    assert all(item.holder is None for item in stage.db.read(Item))


def test_one_forge_each(ann: Player) -> None:
    with pytest.raises(ReducerError, match="cold"):
        ann.call(stop_forge)
    ann.call(start_forge)
    with pytest.raises(ReducerError, match="running"):
        ann.call(start_forge)
