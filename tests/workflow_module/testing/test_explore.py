"""`explore` finds the bugs that only an unlucky order of events shows, shortens the run, and says how to repeat it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from buggy_games import (
    Amount,
    Purse,
    Renew,
    Shield,
    careful_shield,
    careful_wage,
    careful_work,
    careless_shield,
    careless_wage,
    careless_work,
    gold,
    module,
)

from gamedb import ConnectionLost
from gamedb.testing import ExplorationFailed, Run
from gamedb.testing.decisions import Act, Die
from gamedb.testing.shrinking import shortened, simplified
from workflow_module import WorkflowError
from workflow_module.testing import WorkflowSimulation

SEEDS = 200
WorkflowRun = Run[WorkflowSimulation]


def wealth(sim: WorkflowSimulation) -> int:
    with sim.db.transaction() as ctx:
        return gold(ctx)


def two_workers(definition: Any) -> Callable[[WorkflowRun], None]:
    def all_are_paid(run: WorkflowRun) -> None:
        run.sim.insert(Purse(id=1, gold=0))
        started = 0

        def worker() -> Iterator[None]:
            nonlocal started
            for _ in range(2):
                run.sim.start(definition, Amount(gold=10))
                started += 1
                yield

        run.actor(worker)
        run.actor(worker)

        @run.at_end
        def paid(sim: WorkflowSimulation) -> None:
            assert wealth(sim) >= 10 * started, f"{started} have worked, and there are {wealth(sim)} gold"

    return all_are_paid


def renewed_shield(definition: Any) -> Callable[[WorkflowRun], None]:
    def the_shield_holds(run: WorkflowRun) -> None:
        shield = run.sim.start(definition, Amount(gold=0))

        @run.actor
        def hero() -> Iterator[None]:
            for _ in range(3):
                yield
                try:
                    run.sim.signal(shield, Renew())
                except WorkflowError:  # it is down
                    return

        @run.always
        def holds(sim: WorkflowSimulation) -> None:
            row = sim.read(Shield).get(1)
            assert row is None or row.up or row.until_seconds <= sim.now.timestamp(), "the shield fell too early"

    return the_shield_holds


def one_wage(definition: Any) -> Callable[[WorkflowRun], None]:
    def paid_once(run: WorkflowRun) -> None:
        run.sim.insert(Purse(id=1, gold=0))

        @run.actor
        def boss() -> Iterator[None]:
            run.sim.start(definition, Amount(gold=10), correlation_id="wage")
            yield

        @run.always
        def not_twice(sim: WorkflowSimulation) -> None:
            purse = sim.read(Purse).get(1)
            assert purse is None or purse.gold <= 10, "paid twice"

    return paid_once


BUGS = {
    "a lost update across a wait": (two_workers, careless_work, careful_work, "gold"),
    "a timer that was not cancelled": (renewed_shield, careless_shield, careful_shield, "fell too early"),
    "a procedure that is not exactly-once": (one_wage, careless_wage, careful_wage, "paid twice"),
}


@pytest.fixture
def sim() -> Iterator[WorkflowSimulation]:
    with WorkflowSimulation(module) as sim:
        yield sim


@pytest.mark.parametrize("bug", BUGS)
def test_it_finds_and_shortens(sim: WorkflowSimulation, bug: str) -> None:
    scenario, careless, _, complaint = BUGS[bug]
    with pytest.raises(ExplorationFailed, match=complaint) as found:
        sim.explore(scenario(careless), seeds=SEEDS)
    assert found.value.seed < SEEDS
    assert len(found.value.decisions) <= 5
    assert f"seeds=[{found.value.seed}]" in str(found.value)


@pytest.mark.parametrize("bug", BUGS)
def test_it_has_nothing_against_the_corrected_game(sim: WorkflowSimulation, bug: str) -> None:
    scenario, _, careful, _ = BUGS[bug]
    explored = sim.explore(scenario(careful), seeds=SEEDS)
    assert explored.seeds == SEEDS
    assert explored.crashes > SEEDS // 4


def test_a_seed_repeats_its_run(sim: WorkflowSimulation) -> None:
    scenario = one_wage(careless_wage)
    with pytest.raises(ExplorationFailed) as first:
        sim.explore(scenario, seeds=SEEDS)
    with pytest.raises(ExplorationFailed) as again:
        sim.explore(scenario, seeds=[first.value.seed])
    assert str(again.value) == str(first.value)


def test_it_tells_the_shortest_run_in_few_words(sim: WorkflowSimulation) -> None:
    def both_are_paid(run: WorkflowRun) -> None:
        run.sim.insert(Purse(id=1, gold=0))

        @run.actor
        def ann() -> Iterator[None]:
            run.sim.start(careless_work, Amount(gold=10))
            yield

        @run.actor
        def bob() -> Iterator[None]:
            run.sim.start(careless_work, Amount(gold=7))
            yield

        @run.at_end
        def paid(sim: WorkflowSimulation) -> None:
            assert wealth(sim) == 17, f"{wealth(sim)} gold\nof 17"

    with pytest.raises(ExplorationFailed) as found:
        sim.explore(both_are_paid, seeds=[0])
    headline, place, *rest = str(found.value).splitlines()
    assert headline == "both_are_paid fails with seed 0: AssertionError: 7 gold"
    assert place.startswith(f"  at {__file__}:")
    assert rest == [
        "the shortest run that was found:",
        "  ann, bob go on to the end, and 3600 s pass",
        "repeat it with explore(both_are_paid, seeds=[0])",
    ]


def test_actors_come_to_their_end_also_in_a_shortened_run(sim: WorkflowSimulation) -> None:
    """Or a run that leaves them out would fail what is asked at the end, whatever the bug is."""

    def waits(run: WorkflowRun) -> None:
        steps: list[int] = []

        @run.actor
        def ann() -> Iterator[None]:
            for number in range(5):
                yield
                steps.append(number)

        @run.at_end
        def all_done(sim: WorkflowSimulation) -> None:
            assert len(steps) == 5
            assert sim.lives == 1

    with pytest.raises(ExplorationFailed) as found:
        sim.explore(waits, seeds=20, disk_errors=0)
    assert [type(decision) for decision in found.value.decisions] == [Die]
    assert "ann goes on to the end" in str(found.value)


def test_shortening_keeps_to_the_failure_that_was_found(sim: WorkflowSimulation) -> None:
    def two_complaints(run: WorkflowRun) -> None:
        steps: list[int] = []

        @run.actor
        def ann() -> Iterator[None]:
            for number in range(4):
                yield
                steps.append(number)
                assert len(steps) < 3, "too many"

        @run.at_end
        def never(sim: WorkflowSimulation) -> None:
            raise AssertionError("another")

    with pytest.raises(ExplorationFailed, match="too many"):
        sim.explore(two_complaints, seeds=[0], crashes=0, disk_errors=0)


def test_what_is_needed_for_the_failure_stays(sim: WorkflowSimulation) -> None:
    with pytest.raises(ExplorationFailed) as found:
        sim.explore(one_wage(careless_wage), seeds=SEEDS)
    kinds = [type(decision) for decision in found.value.decisions]
    assert kinds.count(Die) == 1
    assert kinds.count(Act) <= 1


def test_invariants_can_be_given(sim: WorkflowSimulation) -> None:
    def poor(sim: WorkflowSimulation) -> bool:
        return sum(purse.gold for purse in sim.read(Purse)) < 10

    with pytest.raises(ExplorationFailed, match="poor does not hold"):
        sim.explore(one_wage(careful_wage), seeds=3, invariants=[poor])


def test_a_scenario_can_be_one_actor(sim: WorkflowSimulation) -> None:
    def alone(run: WorkflowRun) -> Iterator[None]:
        run.sim.insert(Purse(id=1, gold=0))
        yield
        run.sim.start(careful_work, Amount(gold=1))

    assert sim.explore(alone, seeds=5).seeds == 5


def test_an_actor_may_try_again_what_met_a_crash(sim: WorkflowSimulation) -> None:
    def stubborn(run: WorkflowRun) -> None:
        paid: list[int] = []
        run.sim.insert(Purse(id=1, gold=0))

        @run.actor
        def boss() -> Iterator[None]:
            while True:
                try:
                    run.sim.start(careful_wage, Amount(gold=10), correlation_id="wage")
                    paid.append(10)
                    return
                except ConnectionLost:
                    yield

        run.at_end(lambda sim: wealth(sim) == sum(paid))

    assert sim.explore(stubborn, seeds=50).crashes > 0


def test_clients_take_part(sim: WorkflowSimulation) -> None:
    def watching(run: WorkflowRun) -> None:
        client = run.sim.client("ann")
        client.subscribe("SELECT * FROM workflow")

        @run.actor
        def boss() -> Iterator[None]:
            for _ in range(3):
                run.sim.start(careful_work, Amount(gold=1))
                yield

        run.sim.insert(Purse(id=1, gold=0))
        run.at_end(lambda sim: len(client.table("workflow")) == len(workflows(sim)))

    assert sim.explore(watching, seeds=30).seeds == 30


def workflows(sim: WorkflowSimulation) -> list[Any]:
    from workflow_module import Workflow

    return list(sim.read(Workflow))


def test_a_list_is_shortened_to_what_fails() -> None:
    def fails(items: Any) -> bool:
        return 3 in items and 7 in items

    assert shortened(list(range(20)), fails, replays_max=300) == [3, 7]


def test_what_is_left_of_a_list_is_simplified() -> None:
    def fails(items: Any) -> bool:
        return sum(items) > 20

    assert simplified([9, 9, 9], lambda number: range(number), fails) == [3, 9, 9]
