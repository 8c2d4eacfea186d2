"""The arena in one simulation, under many seeds: bots and visitors play, all of these over the wire.

Whatever happens: no gold and no thing is made or lost, no workflow fails, and clients have exactly the rows that there
are.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from examples.arena.deeds import abandon_quest, accept_quest, attack, defend, dispel, drink, flee, pick_up
from examples.arena.heroes import enter, move, rename, say
from examples.arena.market import buy_out, place_bid, sell, withdraw
from examples.arena.module import module
from examples.auction import Lot
from examples.world import Character, Item, item_counts, total_gold
from gamedb import ConnectionLost, ReducerError, Row
from gamedb.testing import Run
from tests.simulation.wanderer import Wanderer
from workflow_module import Workflow, WorkflowStatus
from workflow_module.testing import WorkflowSimulation

SEEDS = int(os.environ.get("GAMEDB_SIMULATION_SEEDS", "10"))
TURNS = 5
LINGER_SECONDS = 10.0


class Visitor:
    """Somebody who plays over the wire, and does what comes to mind."""

    def __init__(self, sim: WorkflowSimulation, number: int) -> None:
        self._sim = sim
        self._random = Random(f"{sim.seed}/visitor {number}")
        self._client = sim.client(f"visitor {number}")

    def play(self) -> Iterator[None]:
        """As an actor."""
        pick = self._random.randint
        deeds: tuple[Callable[[], None], ...] = (
            lambda: self._call(move, pick(0, 999), pick(0, 639)),
            lambda: self._call(say, "well met"),
            lambda: self._call(rename, f"visitor {pick(1, 3)}"),
            lambda: self._call(sell, self._one_of(Item), pick(1, 30), pick(31, 60), pick(30, 40)),
            lambda: self._call(place_bid, self._one_of(Lot), pick(1, 110)),
            lambda: self._call(place_bid, self._one_of(Lot), pick(1, 110)),
            lambda: self._call(buy_out, self._one_of(Lot)),
            lambda: self._call(withdraw, self._one_of(Lot)),
            lambda: self._call(attack, self._one_of(Character)),
            lambda: self._call(defend),
            lambda: self._call(flee),
            lambda: self._call(drink, self._random.choice(("strength", "haste", "wisdom"))),
            lambda: self._call(dispel, self._one_of(Character), "strength"),
            lambda: self._call(pick_up, self._one_of(Item)),
            lambda: self._call(accept_quest, self._one_of(Character)),
            lambda: self._call(abandon_quest),
            self._come_or_go,
        )
        for _ in range(TURNS):
            with contextlib.suppress(ReducerError, ConnectionLost):
                self._random.choice(deeds)()
            yield

    def _call(self, reducer: Callable[..., None], *args: object) -> None:
        self._client.call(enter)  # the connection may be a new one
        self._client.call(reducer, *args)

    def _one_of(self, table: type[Row]) -> int:
        keys = sorted(self._sim.db.tables[table].data.rows)
        return self._random.choice(keys) if keys else 0

    def _come_or_go(self) -> None:
        if self._client.connected:
            self._client.disconnect()
        else:
            self._sim.act(self._client.connect)


def test_arena_fuzz() -> None:
    looks: list[int] = []
    heroes: list[int] = []

    def played(run: Run[WorkflowSimulation]) -> None:
        sim = run.sim
        right = total_gold(sim.db), item_counts(sim.db)
        watcher = sim.client("watcher", confirmed=run.random.random() < 0.5)
        for row in (Character, Item, Workflow):
            watcher.subscribe(row)
        for number in range(2):
            run.actor(Visitor(sim, number).play)
        wanderer = Wanderer(sim, Random(f"{sim.seed}/wanderer"))
        run.actor(partial(wanderer.wander, TURNS))

        @run.always
        def nothing_is_made_or_lost(sim: WorkflowSimulation) -> None:
            assert (total_gold(sim.db), item_counts(sim.db)) == right

        @run.at_end
        def all_is_well(sim: WorkflowSimulation) -> None:
            failed = [row.error for row in sim.read(Workflow) if row.status is WorkflowStatus.Failed]
            assert not failed, failed[0]
            sim.run_until(lambda: watcher.up_to_date and wanderer.client.up_to_date)
            for row in (Character, Item, Workflow):
                assert watcher.rows(row) == sorted(sim.read(row), key=lambda found: found.id), "the watcher is wrong"
            wanderer.look()
            looks.append(wanderer.looks)
            heroes.append(sum(row.identity is not None for row in sim.read(Character)))

    with WorkflowSimulation(module) as sim:
        explored = sim.explore(played, seeds=SEEDS, linger=LINGER_SECONDS)
    assert explored.seeds == SEEDS
    assert explored.crashes > explored.disk_errors > 0
    assert sum(looks) > 2 * SEEDS
    assert sum(heroes) > SEEDS, "visitors did not play"
