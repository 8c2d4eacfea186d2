"""The whole product in one simulation: store, scheduler, engine, sessions and clients, under many seeds.

The games of the examples, played by several at a time while the process dies, the disk is slow, and messages and
procedures overtake each other. Whatever happens: no gold and no thing is made or lost, what the tables say agrees with
what the workflows did, everything comes to its end, and clients have exactly the rows that there are: one that watches
all the time, and one that comes and goes. One of the players plays over the wire.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from examples.post import post
from examples.world import Character, Item
from gamedb import ConnectionLost, Database, Identity, ReducerError
from gamedb.testing import Run, SimulatedClient
from tests.examples.games import GAMES
from tests.examples.games.base import Action, Play
from tests.simulation.wanderer import Wanderer
from workflow_module import Workflow, WorkflowError, Workflows
from workflow_module.testing import WorkflowSimulation

SEEDS = int(os.environ.get("GAMEDB_SIMULATION_SEEDS", "10"))
TURNS = 12
TRIES = 3
"""How often a player whose wish is refused thinks of another one."""


class Table:
    """A game as it is open now, over all lives of the process."""

    def __init__(self, sim: WorkflowSimulation) -> None:
        self.sim = sim

    @property
    def db(self) -> Database:
        return self.sim.db

    @property
    def flows(self) -> Workflows:
        return self.sim.flows


class WirePlay(Play):
    """Plays as clients do: each player has a connection."""

    def __init__(self, sim: WorkflowSimulation, table: Table, choices: Dice) -> None:
        super().__init__(table, choices)
        self._sim = sim
        self._clients: dict[Identity, SimulatedClient] = {}

    def call(self, player: Character, reducer: Callable[..., Any], *args: Any) -> Any:
        assert player.identity is not None
        client = self._clients.get(player.identity)
        if client is None:
            client = self._clients[player.identity] = self._sim.client(player.identity)
        client.call(reducer, *args)


class Dice:
    """Chance of one player."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


@pytest.mark.parametrize("name", GAMES)
def test_simulation_fuzz(name: str) -> None:
    game = GAMES[name]
    looks: list[int] = []

    def played(run: Run[WorkflowSimulation]) -> None:
        sim = run.sim
        post.closed_for = 0
        table = Table(sim)
        game.begin(sim.db)
        sim.settle()
        right = game.sums(sim.db)
        watcher = sim.client("watcher", confirmed=run.random.random() < 0.5)
        for row in (Character, Item, Workflow):
            watcher.subscribe(row)

        def sit_down(seat: int) -> None:
            dice = Dice(Random(f"{sim.seed}/{seat}"))
            play = Play(table, dice) if seat else WirePlay(sim, table, dice)
            actions: list[Action] = [*game.actions(play), *game.actions(play), play.cancel]

            def tries(action: Action) -> bool:
                with contextlib.suppress(ReducerError, WorkflowError):
                    sim.act(action)
                    return True
                return False

            def player() -> Iterator[None]:
                for _ in range(TURNS):
                    with contextlib.suppress(ConnectionLost):
                        any(tries(play.one_of(actions)) for _ in range(TRIES))
                    yield

            run.actor(player)

        for seat in range(3):
            sit_down(seat)
        wanderer = Wanderer(sim, Random(f"{sim.seed}/wanderer"))
        run.actor(partial(wanderer.wander, TURNS))

        @run.always
        def nothing_is_made_or_lost(sim: WorkflowSimulation) -> None:
            assert game.sums(sim.db) == right

        @run.at_end
        def all_is_well(sim: WorkflowSimulation) -> None:
            game.check(table)
            sim.advance(game.days * 86_400.0)
            game.end(Play(table, Dice(run.random)))
            sim.advance(60.0)
            game.check(table)
            game.check_end(table)
            for row in (Character, Item, Workflow):
                assert watcher.rows(row) == sorted(sim.read(row), key=lambda found: found.id), "the watcher is wrong"
            wanderer.look()
            looks.append(wanderer.looks)

    with WorkflowSimulation(game.module) as sim:
        explored = sim.explore(played, seeds=SEEDS)
    assert explored.seeds == SEEDS
    assert explored.crashes > explored.disk_errors > 0
    assert sum(looks) > 3 * SEEDS
