"""The soak itself: it starts everything, does the deeds of the plan, looks all the time, and judges at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Final

import httpx

from tests.soak import checks
from tests.soak.crowd import Crowd
from tests.soak.office import Office, Refused
from tests.soak.plan import Deed, plan
from tests.soak.processes import DATABASE, Server, Worker
from tests.soak.report import Report
from tests.soak.scene import Scene
from tests.soak.usage import Usage
from tests.soak.visitors import read_nothing

LOOK_SECONDS: Final = 2.0
SAY_SECONDS: Final = 5.0
DOWN_SECONDS_MAX: Final = 1.5
STALLED_SECONDS_MAX: Final = 45.0
"""So long the server may confirm nothing while it is up."""

PARKED: Final = "SELECT id FROM workflow WHERE status = 'Failed'"
UNDER_WAY: Final = "SELECT id FROM workflow WHERE status = 'Suspended' AND workflow_type = 'errand'"


class Soak:
    """One run on a data directory, which it leaves as it is."""

    def __init__(self, data: Path, seed: int, seconds: float) -> None:
        self.report = Report()
        self.seed = seed
        self.plan = plan(seed, seconds)
        self.seconds = seconds
        self._rng = Random(seed)
        server = Server(data, self.report)
        worker = Worker(data, self.report, server.url)
        self._scene = Scene(self.report, server, worker, Office(server), self._rng)
        self.usage = Usage(data / f"{DATABASE}.db", self.report)
        self._crowd = Crowd(self._scene)
        self._is_deploying = False
        """Whether the worker is about to see that the server has another version, and to end."""
        self._moved = (0, 0.0)
        """How many gifts were confirmed when that had last become more, and when that was."""
        self._durable = 0.0
        """The last transaction of which we know that it was on disk."""

    @property
    def lives(self) -> int:
        """How often the server was started."""
        return self._scene.server.lives

    async def run(self) -> None:
        """Until the time is over; what was found is in the report."""
        watching = _Complaints(self.report)
        logging.getLogger("gamedb.client").addHandler(watching)
        scene, task = self._scene, asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # its children must not live on
        try:
            await self._start()
            await checks.learn(scene)
            self._crowd.enter()
            looks = ((LOOK_SECONDS, self._look), (LOOK_SECONDS, self._operate), (SAY_SECONDS, self._say))
            looking = [asyncio.create_task(self._every(*look)) for look in looks]
            try:
                for deed in self.plan:
                    await asyncio.sleep(max(0.0, deed.at_seconds - self.report.seconds))
                    await self._until_something_is_confirmed()
                    await self._do(deed)
                await asyncio.sleep(max(0.0, self.seconds - self.report.seconds))
                await self._empty()
            finally:
                for task in looking:
                    task.cancel()
                await asyncio.gather(*looking, return_exceptions=True)
            await scene.server.stop()
            self.usage.judge()
        except Exception:
            self.report.fault("the soak itself failed", traceback.format_exc())
        finally:
            await self._crowd.leave()
            await scene.worker.kill()
            await scene.server.kill()
            await scene.office.close()
            logging.getLogger("gamedb.client").removeHandler(watching)

    # --- deeds

    async def _do(self, deed: Deed) -> None:
        self.report.counts[deed.what] += 1
        deeds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "early kill": self._kill_early,
            "stop": self._stop,
            "deploy": self._deploy,
            "worker": self._kill_worker,
            "cut": self._cut,
            "slow": self._slow,
            "empty": self._empty_and_back,
        }
        await deeds[deed.what]()

    async def _until_something_is_confirmed(self) -> None:
        """A life in which nobody has had the time to do anything shows nothing."""
        until = self.report.seconds + STALLED_SECONDS_MAX
        while self.report.counts["confirmed gifts"] == self._scene.confirmed_before and self.report.seconds < until:
            await asyncio.sleep(0.05)

    async def _kill(self) -> None:
        await self._scene.server.kill()
        await self._start()

    async def _kill_early(self) -> None:
        await self._scene.server.kill()
        await self._scene.server.launch()
        await asyncio.sleep(self._rng.random() * 3)
        await self._kill()

    async def _stop(self) -> None:
        await self._scene.server.stop()
        await self._start()

    async def _deploy(self) -> None:
        scene = self._scene
        await scene.server.stop()
        scene.server.version += 1
        self._is_deploying = True
        await self._start()
        await scene.worker.refused()
        self._is_deploying = False
        scene.worker.version += 1
        await self._start()

    async def _kill_worker(self) -> None:
        await self._scene.worker.kill()
        await asyncio.sleep(self._rng.random() * DOWN_SECONDS_MAX)
        await self._scene.worker.launch()

    async def _cut(self) -> None:
        self._crowd.cut()

    async def _slow(self) -> None:
        await read_nothing(self._scene)

    async def _empty_and_back(self) -> None:
        await self._empty()
        await self._start()
        self._crowd.enter()

    async def _empty(self) -> None:
        """Everybody leaves, and nothing stays behind."""
        await self._crowd.leave()
        await self._scene.worker.stop()
        await checks.check_empty(self._scene)
        await checks.check_world(self._scene)
        self._sample(empty=True)

    async def _start(self) -> None:
        """Start what is not running."""
        scene = self._scene
        if scene.server.pid is None:
            await asyncio.sleep(self._rng.random() * DOWN_SECONDS_MAX)
            scene.confirmed_before = self.report.counts["confirmed gifts"]
            await scene.server.start()
            self._sample()
            told = (await scene.office.metrics()).of("gamedb_transactions_total")
            self.report.expect(told >= self._durable, "transactions are lost", f"{self._durable:.0f}, then {told:.0f}")
        if scene.worker.pid is None:
            await scene.worker.launch()

    # --- all the time

    async def _every(self, seconds: float, look: Callable[[], Awaitable[None]]) -> None:
        """Again and again, whatever comes of it. A server that is ended in that moment gives no answer."""
        server = self._scene.server
        while True:
            await asyncio.sleep(seconds)
            life = server.lives
            try:
                await look()
            except Exception as error:
                is_gone = not server.serving or server.lives != life
                if not (is_gone and isinstance(error, httpx.TransportError | Refused)):
                    self.report.fault(f"{look.__name__} failed", traceback.format_exc())

    async def _look(self) -> None:
        """What must hold while everything goes on."""
        scene = self._scene
        await scene.server.look()
        if not self._is_deploying:
            await scene.worker.look()
        self._crowd.look()
        self._look_for_movement()
        if scene.server.serving:
            self._sample()
            metrics = await scene.office.metrics()
            behind = metrics.of("gamedb_durable_transactions_behind")
            self._durable = metrics.of("gamedb_transactions_total") - behind
            await checks.check_world(scene)

    def _look_for_movement(self) -> None:
        confirmed, now = self.report.counts["confirmed gifts"], self.report.seconds
        if confirmed > self._moved[0] or not self._scene.server.serving or not self._crowd.is_here:
            self._moved = (confirmed, now)
        still = now - self._moved[1]
        self.report.expect(still < STALLED_SECONDS_MAX, "stalled", f"nothing was confirmed for {still:.0f} s")

    async def _operate(self) -> None:
        """An operator: what was parked goes on, and now and then an errand is cancelled."""
        office = self._scene.office
        for function, query, part in (("resume", PARKED, 1.0), ("cancel", UNDER_WAY, 0.1)):
            for (workflow_id,) in await office.sql(query) if self._scene.server.serving else ():
                if self._rng.random() < part:
                    with contextlib.suppress(Refused):  # it has ended meanwhile
                        await office.call(f"workflow_{function}", workflow_id)
                        self.report.counts[f"{function} by the operator"] += 1

    async def _say(self) -> None:
        counts, last = self.report.counts, self.usage.last
        self.report.say(
            f"life {self._scene.server.lives}, {self._scene.server.age:.0f} s old: {counts['confirmed gifts']}"
            f" gifts confirmed, {counts['other deeds']} other deeds, {counts['visits']} visits;"
            f" {last.memory_mb:.0f} MB, {last.files} files, {last.threads} threads,"
            f" WAL {last.wal_mb:.1f} MB; {len(self.report.faults)} faults"
        )

    def _sample(self, *, empty: bool = False) -> None:
        server = self._scene.server
        self.usage.take(server.pid, server.lives, server.age, empty=empty)


class _Complaints(logging.Handler):
    """What the clients log as errors: callbacks that raised, messages that they do not understand."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.ERROR)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report.fault("a client failed", self.format(record))
