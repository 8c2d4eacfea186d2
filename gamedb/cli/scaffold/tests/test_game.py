"""The rules of the game, in simulated time: no server, no waiting. Run them with: pytest"""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from game import GEMS_MAX, Gem, Player, join, module, step

from gamedb import ReducerError
from gamedb.testing import Run, Simulation, identity
from gamedb.testing.pytest_plugin import MakesSimulations


@pytest.fixture
def sim(gamedb_sim: MakesSimulations) -> Simulation:
    """The game, at its beginning. The fixture `gamedb_sim` comes with the package."""
    return gamedb_sim(module)


def test_a_step_moves_and_picks_up(sim: Simulation) -> None:
    sim.insert(Player(identity=identity("ann"), name="ann", x=3, y=3), Gem(x=4, y=3, value=5))
    sim.caller("ann").call(step, 1, 0)
    [ann] = sim.read(Player)
    assert (ann.x, ann.y, ann.score) == (4, 3, 5)
    assert sim.read(Gem).where(x=4, y=3) == []


def test_nobody_leaves_the_meadow(sim: Simulation) -> None:
    sim.caller("ann").call(join, "ann")
    for _ in range(50):
        sim.caller("ann").call(step, -1, 0)
    [ann] = sim.read(Player)
    assert ann.x == 0


def test_who_has_not_joined_cannot_walk(sim: Simulation) -> None:
    with pytest.raises(ReducerError, match="join first"):
        sim.caller("ann").call(step, 1, 0)


def test_gems_grow_until_there_are_enough(sim: Simulation) -> None:
    sim.advance(timedelta(hours=1))  # takes no time
    assert sim.read(Gem).count() == GEMS_MAX


def test_a_page_sees_who_comes_and_a_crash_changes_nothing(sim: Simulation) -> None:
    page = sim.client("bob")
    page.subscribe(Player)
    sim.caller("ann").call(join, "ann")
    assert [player.name for player in page.rows(Player)] == ["ann"]
    sim.crash()
    assert [player.name for player in page.rows(Player)] == ["ann"]


def test_a_treasure_is_found_once(sim: Simulation) -> None:
    """Whoever is faster, and wherever the process dies: `explore` tries many orders of events."""

    def race(run: Run[Simulation]) -> None:
        run.sim.insert(
            Player(identity=identity("ann"), name="ann", x=3, y=3),
            Player(identity=identity("bob"), name="bob", x=5, y=3),
            Gem(x=4, y=3, value=100),
        )

        @run.actor
        def ann() -> Iterator[None]:
            run.sim.caller("ann").call(step, 1, 0)
            yield

        @run.actor
        def bob() -> Iterator[None]:
            run.sim.caller("bob").call(step, -1, 0)
            yield

        @run.always
        def one_treasure(sim: Simulation) -> None:
            rich = [player.name for player in sim.read(Player) if player.score >= 100]
            assert len(rich) + len(sim.read(Gem).where(value=100)) == 1

    sim.explore(race, seeds=50, linger=10)
