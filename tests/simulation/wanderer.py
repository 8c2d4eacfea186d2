"""A client that comes and goes: it subscribes to this and that, reads or not, is cut off, hangs up, and comes back.

Whenever nothing is under way to it, its rows must be exactly those that its queries give. What they give is worked out
here from the tables, without the product's own evaluation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from examples.world import Character, HeldGold, Item
from gamedb import ConnectionLost, Row
from gamedb.client.events import QuerySet
from gamedb.testing import SimulatedClient, Simulation
from workflow_module import Workflow, WorkflowStatus

QUERY_SETS_MAX = 3


class Watched(NamedTuple):
    """A query, and the rows that it gives."""

    sql: str
    table: type[Row]
    rows: Callable[[Simulation], list[Any]]


def poor(sim: Simulation) -> set[int]:
    """The ids of characters without much gold."""
    return {row.id for row in sim.read(Character) if row.gold < 60}


QUERIES = (
    Watched("SELECT * FROM character", Character, lambda sim: list(sim.read(Character))),
    Watched(
        "SELECT * FROM character WHERE gold >= 90 OR hp < 100",
        Character,
        lambda sim: [row for row in sim.read(Character) if row.gold >= 90 or row.hp < 100],
    ),
    Watched("SELECT * FROM item WHERE owner_id = 1", Item, lambda sim: list(sim.read(Item).where(owner_id=1))),
    Watched(
        "SELECT * FROM item WHERE holder <> 1",
        Item,
        lambda sim: [row for row in sim.read(Item) if row.holder not in (None, 1)],
    ),
    Watched(
        "SELECT h.* FROM held_gold AS h JOIN character AS c ON h.owner_id = c.id WHERE c.gold < 60",
        HeldGold,
        lambda sim: [row for row in sim.read(HeldGold) if row.owner_id in poor(sim)],
    ),
    Watched(
        "SELECT * FROM workflow WHERE status = 'Suspended' OR status = 'Failed'",
        Workflow,
        lambda sim: [
            row for row in sim.read(Workflow) if row.status in (WorkflowStatus.Suspended, WorkflowStatus.Failed)
        ],
    ),
)


class Wanderer:
    """One such client, whose chance is `random`."""

    def __init__(self, sim: Simulation, random: Random) -> None:
        self.client: SimulatedClient = sim.client("wanderer", confirmed=random.random() < 0.5)
        self.looks = 0
        """How often its rows could be compared."""
        self._sim = sim
        self._random = random
        self._live: dict[QuerySet, tuple[Watched, ...]] = {}

    def wander(self, turns: int) -> Iterator[None]:
        """As an actor: look, and then do something or other."""
        deeds = (self._subscribe, self._subscribe, self._unsubscribe, self._read, self._hang_up, self._come_back)
        for _ in range(turns):
            self.look()
            with contextlib.suppress(ConnectionLost):
                self._random.choice(deeds)()
            yield
        self.client.read_on()
        self._come_back()

    def look(self) -> None:
        """Compare, when nothing is under way."""
        if not self.client.up_to_date:
            return
        self.looks += 1
        wanted: dict[type[Row], dict[int, Row]] = {watched.table: {} for watched in QUERIES}
        for queries in self._live.values():
            for watched in queries:
                wanted[watched.table].update({row.id: row for row in watched.rows(self._sim)})
        for table, rows in wanted.items():
            assert {row.id: row for row in self.client.rows(table)} == rows, f"the wanderer sees other rows of {table}"

    def _subscribe(self) -> None:
        if len(self._live) < QUERY_SETS_MAX and self.client.connected and self.client.reading:
            queries = tuple(self._random.sample(QUERIES, self._random.randint(1, 2)))
            self._live[self.client.subscribe(*(watched.sql for watched in queries))] = queries

    def _unsubscribe(self) -> None:
        if self._live and self.client.connected and self.client.reading:
            query_set = self._random.choice(list(self._live))
            del self._live[query_set]
            self.client.unsubscribe(query_set)

    def _read(self) -> None:
        if self.client.reading:
            self.client.stop_reading()
        else:
            self.client.read_on()

    def _hang_up(self) -> None:
        self.client.disconnect()

    def _come_back(self) -> None:
        if not self.client.connected:
            self._sim.act(self.client.connect)
