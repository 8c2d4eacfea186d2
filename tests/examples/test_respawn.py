"""A creature that comes back."""

from __future__ import annotations

from examples.respawn import module, respawn, strike
from examples.stage import Stage
from examples.world import Character, Point


def test_it_comes_back_as_it_was() -> None:
    stage = Stage(module)
    ann = stage.join("ann")
    rat = stage.place("the rat", hp=15, strength=3, gold=2, at=Point(3, 4))
    ann.call(strike, rat)
    assert stage.character(rat).hp == 5
    ann.call(strike, rat)
    assert ann.gold == 2
    assert len(stage.db.read(Character)) == 1
    stage.wait(seconds=59)
    assert len(stage.db.read(Character)) == 1
    stage.wait(seconds=1)
    back = stage.character(stage.flows.result_of(respawn, 1))
    assert (back.name, back.hp, back.strength, back.at, back.gold) == ("the rat", 15, 3, Point(3, 4), 0)
    ann.call(strike, back.id)
    ann.call(strike, back.id)
    stage.wait(minutes=1)
    assert stage.db.read(Character).count(name="the rat") == 1
