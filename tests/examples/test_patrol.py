"""A patrol: rounds, threats, the fight as a child, the way home."""

from __future__ import annotations

from examples.patrol import PatrolResult, module, order_attack, post_guard, report_threat, stand_down
from examples.stage import Stage
from examples.world import Point, Walk

ROUND = [Point(4, 0), Point(4, 4), Point(0, 4), Point(0, 0)]


def test_it_walks_its_round() -> None:
    stage = Stage(module)
    guard = stage.place("the guard")
    stage.db.call(post_guard, guard, ROUND)
    seen = []
    for _ in range(4):
        stage.wait(seconds=7)
        seen.append(stage.character(guard).at)
    assert seen == ROUND
    stage.wait(seconds=4)
    assert stage.character(guard).at == Point(4, 0)


def test_a_threat_on_the_way_stops_it_where_it_is() -> None:
    stage = Stage(module)
    guard, bandit = stage.place("the guard"), stage.place("the bandit")
    stage.db.call(post_guard, guard, ROUND)
    stage.wait(seconds=3)
    stage.db.call(report_threat, guard, bandit)
    assert stage.character(guard).at == Point(3, 0)
    assert not list(stage.db.read(Walk))


def test_a_threat_is_fought_and_then_the_guard_goes_home_and_on() -> None:
    stage = Stage(module)
    guard = stage.place("the guard", strength=50)
    bandit = stage.place("the bandit", hp=60, gold=3)
    run = stage.db.call(post_guard, guard, ROUND)
    stage.wait(seconds=7)
    stage.db.call(report_threat, guard, bandit)
    stage.wait(seconds=100)
    assert stage.character(guard).at == Point(4, 0), "it stands still while it fights"
    assert stage.character(guard).hp < 100
    while stage.character(bandit).hp:
        stage.db.call(order_attack, guard)
        stage.wait(seconds=1)
    stage.wait(seconds=3)
    assert stage.character(guard).at == Point(0, 0)
    assert stage.character(guard).hp == 100
    stage.wait(seconds=7)
    assert stage.character(guard).at == Point(0, 4), "the round goes on with the next waypoint"
    assert stage.character(guard).gold == 3
    assert stage.flows.view(run).fights == 1


def test_a_guard_that_falls_patrols_no_more() -> None:
    stage = Stage(module)
    guard = stage.place("the guard", hp=1)
    ogre = stage.place("the ogre", strength=50)
    run = stage.db.call(post_guard, guard, ROUND)
    stage.db.call(report_threat, guard, ogre)
    stage.wait(seconds=31)
    assert stage.flows.result(run) == PatrolResult(fights=1)


def test_a_threat_during_a_fight_waits_its_turn() -> None:
    stage = Stage(module)
    guard = stage.place("the guard", strength=1000, hp=1000)
    bandits = [stage.place("a bandit"), stage.place("a bandit")]
    run = stage.db.call(post_guard, guard, ROUND)
    for bandit in bandits:
        stage.db.call(report_threat, guard, bandit)
    stage.db.call(order_attack, guard)
    assert [stage.character(bandit).hp for bandit in bandits] == [0, 100]
    assert stage.flows.view(run).fights == 2, "home is where it stands, so the next fight begins at once"
    stage.db.call(order_attack, guard)
    assert [stage.character(bandit).hp for bandit in bandits] == [0, 0]


def test_stand_down() -> None:
    stage = Stage(module)
    guard = stage.place("the guard")
    run = stage.db.call(post_guard, guard, ROUND)
    stage.wait(seconds=7)
    stage.db.call(stand_down, guard)
    stage.wait(seconds=4)
    assert stage.flows.result(run) == PatrolResult(fights=0)
    assert stage.character(guard).at == Point(0, 0)


def test_cancelling_the_patrol_ends_its_fight() -> None:
    stage = Stage(module)
    guard, ogre = stage.place("the guard"), stage.place("the ogre", strength=50)
    run = stage.db.call(post_guard, guard, ROUND)
    stage.db.call(report_threat, guard, ogre)
    stage.flows.cancel(run)
    assert {stage.flows.get(n).status.value for n in (run, run + 1)} == {"Cancelled"}
