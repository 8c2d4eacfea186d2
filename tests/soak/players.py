"""Players: they make gifts and keep a book of what was confirmed, and do all else that one can do there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from random import Random
from typing import Any, Final

import httpx

from gamedb import ConnectionLost, ReducerError
from gamedb.client import Client
from tests.soak.book import Book
from tests.soak.processes import DATABASE
from tests.soak.scene import Actor, Scene

GIFTS_MAX: Final = 12
"""How many gifts are under way at once, at most."""
PAUSE_SECONDS_MAX: Final = 0.4
LEDGER: Final = "SELECT * FROM ledger WHERE identity = :sender"
TABLES: Final = ("character", "item", "lot", "figure", '"table"')


class Giver(Actor):
    """Whoever keeps a book."""

    def __init__(self, scene: Scene, rng: Random) -> None:
        super().__init__(scene, rng)
        self.book = Book()

    def look(self, ledgers: list[tuple[int, int]]) -> None:
        """Compare the book with the number and digest of the ledger, which is not there before the first gift."""
        number, digest = ledgers[0] if ledgers else (0, 0)
        wrong = self.book.look(number, digest)
        self.scene.report.expect(wrong is None, "a confirmed transaction is lost", f"{type(self).__name__}: {wrong}")
        self.scene.report.counts["looks into ledgers"] += 1

    def confirmed(self, number: int) -> None:
        """The server said so."""
        self.book.confirm(number)
        self.scene.report.counts["confirmed gifts"] += 1


class Player(Giver):
    """A player with a client in Python."""

    async def act(self) -> None:
        async with self.connected() as client:
            await client.subscribe(*[f"SELECT * FROM {table}" for table in TABLES])
            await self._play(client)

    async def _play(self, client: Client) -> None:
        looked = False
        while True:
            try:
                if not looked:
                    self.look([(row.number, row.digest) for row in await client.query(LEDGER)])
                    looked = True
                await self._act(client)
                await asyncio.sleep(self.rng.random() ** 2 * PAUSE_SECONDS_MAX)
            except ReducerError:
                looked = False
            except ConnectionLost:
                looked = False
                await client.wait_connected()

    async def _act(self, client: Client) -> None:
        me = client.table("character").find(identity=client.identity)
        if me is None:
            await asyncio.sleep(0.1)  # the server is about to say who it is
        elif self.rng.random() < 0.6:
            await self._give(client, me)
        else:
            with contextlib.suppress(ReducerError):
                await self.rng.choice(self.deeds)(self, client, me)
                self.scene.report.counts["other deeds"] += 1

    # --- gifts

    async def _give(self, client: Client, me: Any) -> None:
        others = [row.id for row in client.table("character") if row.id != me.id and row.identity is not None]
        if others:
            many = self.rng.randint(1, GIFTS_MAX)
            gifts = [self._gift(client, self.rng.choice(others), self.rng.randint(0, 9)) for _ in range(many)]
            answers = await asyncio.gather(*gifts, return_exceptions=True)
            for error in answers:
                if isinstance(error, BaseException):
                    raise error

    async def _gift(self, client: Client, to: int, gold: int) -> None:
        number, begun = self.book.next(to, gold), time.monotonic()
        await client.call("give", number, to, gold)
        self.confirmed(number)
        self.scene.report.latencies.append(time.monotonic() - begun)

    # --- all else

    async def _wander(self, client: Client, me: Any) -> None:
        await client.call("move", self.rng.randint(0, 1000), self.rng.randint(0, 640))

    async def _say(self, client: Client, me: Any) -> None:
        await client.call("say", f"I have {me.gold} gold, \U0001f409")

    async def _drink(self, client: Client, me: Any) -> None:
        await client.call("drink", self.rng.choice(("strength", "swiftness", "healing")))

    async def _fight(self, client: Client, me: Any) -> None:
        foes = [row for row in client.table("figure") if row.opponent is None and row.bot]
        foe = client.table("character").get(self.rng.choice(foes).character_id)
        if foe is not None:
            await client.call("move", foe.at.x, foe.at.y)
            await client.call("attack", foe.id)

    async def _sell(self, client: Client, me: Any) -> None:
        things = [row.id for row in client.table("item").where(owner_id=me.id) if row.holder is None]
        if things:
            await client.call("sell", self.rng.choice(things), 5, self.rng.choice((None, 20)), 30)

    async def _buy(self, client: Client, me: Any) -> None:
        lots = list(client.table("lot"))
        if lots:
            lot = self.rng.choice(lots)
            if lot.seller == me.id:
                await client.call("withdraw", lot.auction_id)
            elif self.rng.random() < 0.2:
                await client.call("buy_out", lot.auction_id)
            else:
                await client.call("place_bid", lot.auction_id, lot.asking)

    async def _trade(self, client: Client, me: Any) -> None:
        open_trades = [row for row in client.table("table") if me.id in row.players]
        if not open_trades:
            others = [row.id for row in client.table("character") if row.id != me.id and row.identity is not None]
            await client.call("open_trade", self.rng.choice(others))
            return
        (table,) = open_trades
        chance = self.rng.random()
        if chance < 0.5:
            things = [row.id for row in client.table("item").where(owner_id=me.id) if row.holder is None]
            await client.call("offer", table.trade_id, things[:1], min(me.gold, 5))
        elif chance < 0.9:
            await client.call("accept", table.trade_id, table.revision)
        else:
            await client.call("cancel", table.trade_id)

    async def _send(self, client: Client, me: Any) -> None:
        others = [row.id for row in client.table("character") if row.id != me.id and row.identity is not None]
        await client.call("send_errand", self.rng.choice(others), min(me.gold, 10))

    async def _tell(self, client: Client, me: Any) -> None:
        await client.call("tell_errands", self.rng.random() < 0.3)

    deeds: Final = (_wander, _say, _drink, _fight, _sell, _buy, _buy, _trade, _trade, _send, _send, _tell)


class Caller(Giver):
    """A player who calls over HTTP, one call at a time."""

    async def act(self) -> None:
        async with httpx.AsyncClient(timeout=30.0) as client:
            self.look(await self._ledger(client))
            while await self._give(client):
                await asyncio.sleep(self.rng.random() * PAUSE_SECONDS_MAX)

    async def _give(self, client: httpx.AsyncClient) -> bool:
        """One gift, to the bank; says whether it was done."""
        number = self.book.next(1, 1)
        answer = await self._post(client, "call/give", json=[number, 1, 1])
        if answer.status_code == 200:
            self.confirmed(number)
        else:  # 503: it is about to end
            self.scene.report.expect(answer.status_code in (503, 530), "an HTTP call failed", f"{answer} {answer.text}")
        return answer.status_code == 200

    async def _ledger(self, client: httpx.AsyncClient) -> list[tuple[int, int]]:
        answer = await self._post(client, "sql", content=LEDGER)
        return [(row[1], row[2]) for row in answer.json()[0]["rows"]]

    async def _post(self, client: httpx.AsyncClient, path: str, **body: Any) -> httpx.Response:
        if self.token is None:
            self.token = (await client.post(f"{self.scene.server.url}/v1/identity")).json()["token"]
        url = f"{self.scene.server.url}/v1/database/{DATABASE}/{path}"
        return await client.post(url, headers={"Authorization": f"Bearer {self.token}"}, **body)
