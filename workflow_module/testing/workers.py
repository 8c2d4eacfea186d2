"""A worker elsewhere, in a simulation: it takes the calls of queues that have a fake, under leases, as `Worker` does.

It lives outside of the simulated process and goes on when that dies. What it was given counts once it is on disk, and
what came of it is told until somebody answers. It can die, or be cut off until its lease has run out.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Container
from random import Random
from typing import TYPE_CHECKING, Any, Final

from gamedb import ConnectionLost, ReducerError
from workflow_module.local import Rooms
from workflow_module.procedures import AttemptAbandoned, Procedures, found_reducer, is_final
from workflow_module.refusals import WorkflowError
from workflow_module.tables import PendingProcedure
from workflow_module.tracebacks import error_text
from workflow_module.worker import BEATS_A_LEASE, RETRY_SECONDS, RemoteContext

if TYPE_CHECKING:
    from workflow_module.testing.simulation import WorkflowSimulation

NAME: Final = "simulated worker"
LEASE_SECONDS: Final = 60.0


class WorkerDies(Exception):
    """As the outcome of a fake: the worker dies in this attempt, and nobody hears of it before its lease is over."""


class Fate(enum.Enum):
    """What becomes of an attempt."""

    LIVES = enum.auto()
    DIES_BEFORE = enum.auto()
    DIES_AFTER = enum.auto()
    CUT_OFF = enum.auto()
    """It does its work, and can tell only when its lease is over."""


FATES: Final = (*[Fate.LIVES] * 7, Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.CUT_OFF)


class SimulatedContext(RemoteContext):
    """What a fake gets as its context."""

    __slots__ = ("_worker",)

    def __init__(self, worker: SimulatedWorker, pending: PendingProcedure, unwanted: asyncio.Event) -> None:
        self._worker = worker
        self.name = pending.procedure
        self.sender = worker.sim.db.identity
        self.connection_id = None
        self.begin(pending, unwanted)

    async def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> None:
        name = found_reducer(self._worker.sim.db.module.functions, reducer).name
        await self._worker.ask(name, *args, **kwargs)

    @property
    def log(self) -> logging.Logger:
        return self._worker.sim.db.log


class Attempt:
    """One attempt that the worker has."""

    def __init__(self, pending: PendingProcedure) -> None:
        self.pending = pending
        self.unwanted = asyncio.Event()
        self.silent = False
        """Whether it is not heard of, so that its lease runs out."""


class SimulatedWorker:
    """All workers of all queues in one."""

    def __init__(self, sim: WorkflowSimulation, faked: Container[str]) -> None:
        self.sim = sim
        self.chance: object = None
        """With it, attempts have other fates than to live."""
        self._faked = faked
        self._attempts: dict[int, Attempt] = {}
        self._looks = False
        self._beats = False

    def opened(self) -> None:
        """A process has begun."""
        self.sim.db.subscribe(PendingProcedure, lambda _commit: self._heard())
        self.wake()

    def _heard(self) -> None:
        if self._attempts or any(row.queue is not None for row in self.sim.read(PendingProcedure)):
            self.wake()

    def wake(self) -> None:
        """There may be something to do."""
        if not self._looks:
            self._looks = True
            self.sim.outside.spawn(self._look())

    async def _look(self) -> None:
        """Begin what it was given, drop what it has no more, and take what there is."""
        self._looks = False
        await self._latency()
        try:
            self._take()
            await self.sim.outside.confirmed()
            mine = {row.id: row for row in self._rows() if row.worker == NAME}
        except ConnectionLost:
            return  # the next process wakes it
        for key, attempt in list(self._attempts.items()):
            row = mine.get(key)
            if row is None or row.attempt != attempt.pending.attempt:
                attempt.unwanted.set()
                del self._attempts[key]
        for key in sorted(mine.keys() - self._attempts.keys()):
            attempt = self._attempts[key] = Attempt(mine[key])
            self.sim.outside.spawn(self._run(attempt))
        if self._attempts and not self._beats:
            self._beats = True
            self.sim.outside.spawn(self._beat())

    def _take(self) -> None:
        """Take all that is offered, and give back at once what has no fake."""
        offered = [row for row in self._rows() if row.offered is not None]
        for queue in sorted({row.offered or "" for row in offered if row.procedure in self._faked}):
            count = sum(row.offered == queue for row in offered)
            for row in self._call("workflow_procedure_take", queue, NAME, LEASE_SECONDS, count):
                if row.procedure not in self._faked:
                    self._call("workflow_procedure_release", row.id, row.attempt, worker=NAME)

    async def _beat(self) -> None:
        """Say now and then that its attempts are alive."""
        while any(not attempt.silent for attempt in self._attempts.values()):
            await asyncio.sleep(LEASE_SECONDS / BEATS_A_LEASE)
            for attempt in [attempt for attempt in self._attempts.values() if not attempt.silent]:
                arguments = (attempt.pending.id, attempt.pending.attempt, LEASE_SECONDS)
                try:
                    self._call("workflow_procedure_heartbeat", *arguments, worker=NAME)
                except (ConnectionLost, WorkflowError):  # the rows tell of that
                    continue
        self._beats = False

    async def _run(self, attempt: Attempt) -> None:
        pending = attempt.pending
        step = SimulatedContext(self, pending, attempt.unwanted)
        fate = self._fate(step)
        attempt.silent = fate is not Fate.LIVES
        if fate is Fate.DIES_BEFORE:
            return
        try:
            result = await Procedures(self.sim.flows.engine).call(step, pending, attempt.unwanted, Rooms())
        except WorkerDies:
            attempt.silent = True
        except AttemptAbandoned:
            return
        except Exception as error:
            final = is_final(pending, error)
            await self._tell(attempt, fate, "fail", type(error).__name__, error_text(error), final=final)
        else:
            await self._tell(attempt, fate, "complete", result)

    async def _tell(self, attempt: Attempt, fate: Fate, what: str, *arguments: Any, **options: Any) -> None:
        if fate is Fate.DIES_AFTER:
            return
        if fate is Fate.CUT_OFF:
            await asyncio.sleep(2 * LEASE_SECONDS)
        pending = attempt.pending
        try:
            await self.ask(
                f"workflow_procedure_{what}", pending.id, pending.attempt, *arguments, worker=NAME, **options
            )
        except (ReducerError, WorkflowError) as error:
            self.sim.db.log.info("what came of attempt %d does not count: %s", pending.attempt, error)

    def _fate(self, step: SimulatedContext) -> Fate:
        return Fate.LIVES if self.chance is None else Random(f"{self.chance}/{step.attempt_key}").choice(FATES)

    # --- reaching the process

    def _rows(self) -> list[PendingProcedure]:
        """The pending calls; `ConnectionLost` when the process has died, and nobody has noticed yet."""
        return self.sim.outside.reach(lambda: list(self.sim.read(PendingProcedure)))

    async def ask(self, reducer: str, *args: Any, **kwargs: Any) -> None:
        """Call a reducer until it is known what came of it."""
        while True:
            await self._latency()
            try:
                self._call(reducer, *args, **kwargs)
                await self.sim.outside.confirmed()
            except ConnectionLost:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _call(self, reducer: str, *args: Any, **kwargs: Any) -> Any:
        return self.sim.outside.reach(lambda: self.sim.db.call(reducer, *args, **kwargs))

    async def _latency(self) -> None:
        if (seconds := self.sim.latency()) > 0:
            await asyncio.sleep(seconds)
