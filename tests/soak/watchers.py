"""Watchers: clients that subscribe and compare what they are shown with what must be, all the time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from random import Random
from typing import Any, Final

from gamedb import ConnectionLost
from gamedb.client import Client
from tests.soak.scene import Actor, Scene

WORLD: Final = ("character", "held_gold", "item", "ledger", "workflow", "workflow_timer")
FOLLOWED: Final = {
    "item": (
        "SELECT item.* FROM item JOIN character ON item.owner_id = character.id WHERE character.gold > 150",
        "SELECT * FROM item WHERE owner_id = 1 AND kind <> 'herb'",
    ),
    "character": ("SELECT * FROM character WHERE hp < 100", "SELECT * FROM character WHERE gold > 140 OR hp = 120"),
}
"""Queries by the table whose rows they give: the rows of a table may come by several of them."""
LOOK_SECONDS: Final = 0.5
LOOKS_MAX: Final = 40
"""So often a cache may differ from a query that was answered a moment before or after it."""


class Watcher(Actor):
    """Compares its tables with queries that are asked afresh. Those tell the same at the moment of their answer, and
    what comes behind the answer may be there already when we look: so it looks again until both are the same."""

    def __init__(self, scene: Scene, rng: Random, *, confirmed: bool = True) -> None:
        super().__init__(scene, rng)
        self._confirmed = confirmed

    async def act(self) -> None:
        async with self.connected(confirmed=self._confirmed) as client:
            await self._subscribe(client)
            while True:
                await client.wait_connected()
                with contextlib.suppress(ConnectionLost):
                    await self._look(client)
                await asyncio.sleep(self.rng.random() * 2 * LOOK_SECONDS)

    async def _subscribe(self, client: Client) -> None:
        await client.subscribe(*[query for queries in FOLLOWED.values() for query in queries])

    async def _look(self, client: Client) -> None:
        for table, queries in FOLLOWED.items():
            await self._compare(client, table, queries)

    async def _compare(self, client: Client, table: str, queries: tuple[str, ...]) -> None:
        for _ in range(LOOKS_MAX):
            asked = {row for query in queries for row in await client.query(query)}
            there = set(client.table(table))
            if asked == there:
                self.scene.report.counts["caches compared"] += 1
                return
        self.scene.report.fault(
            "a cache differs from its query", f"{table}: {len(there - asked)} too many, such as {_some(there - asked)};"
            f" {len(asked - there)} missing, such as {_some(asked - there)}",
        )  # fmt: skip


class WorldWatcher(Watcher):
    """Watches all of the world: gold and things are the same after each transaction, and what was shown stays so."""

    def __init__(self, scene: Scene, rng: Random) -> None:
        super().__init__(scene, rng)
        self._shown: dict[Any, int] = {}
        """The highest number that each ledger was seen with."""

    async def _subscribe(self, client: Client) -> None:
        await client.subscribe(*[f"SELECT * FROM {table}" for table in WORLD])

    async def _look(self, client: Client) -> None:
        self._count(client)
        self._remember(client)
        table = self.rng.choice(WORLD)
        await self._compare(client, table, (f"SELECT * FROM {table}",))

    def _count(self, client: Client) -> None:
        report, totals = self.scene.report, self.scene.totals
        gold = sum(row.gold for row in client.table("character"))
        gold += sum(row.amount for row in client.table("held_gold"))
        things = Counter(row.kind for row in client.table("item"))
        report.expect(gold == totals.gold, "a client saw gold made or lost", f"{gold}, not {totals.gold}")
        report.expect(things == totals.things, "a client saw things made or lost", f"{things}, not {totals.things}")
        report.counts["sums of the world"] += 1

    def _remember(self, client: Client) -> None:
        ledgers = {row.identity: row.number for row in client.table("ledger")}
        for identity, number in self._shown.items():
            self.scene.report.expect(
                ledgers.get(identity, 0) >= number,
                "what was shown as confirmed was taken back", f"gift {number} of {identity}: {ledgers.get(identity)}",
            )  # fmt: skip
        self._shown = ledgers


def _some(rows: set[Any]) -> str:
    return str(next(iter(rows), None))
