"""`SimulatedDatabase`: a database on a simulated disk and loop, whose process can be made to die after any commit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from gamedb import unclosed
from gamedb.clock import ManualClock
from gamedb.context import ReducerContext
from gamedb.database import Database
from gamedb.durability import Durability
from gamedb.errors import GamedbError, WriteFailed
from gamedb.functions import Function
from gamedb.module import Module
from gamedb.procedures import run_async
from gamedb.testing.disk import Disk, SimulatedDurability
from gamedb.testing.loop import LoopCalls, LoopTasks, SimulatedLoop
from gamedb.types import ConnectionId, Identity


class ProcessDied(KeyboardInterrupt):
    """Raised in the middle of whatever was running. Nothing catches it, as nothing survives the death of a process."""


class SimulatedDatabase(Database):
    """One life of the process of a simulation."""

    def __init__(self, module: Module, disk: Disk, clock: ManualClock, loop: SimulatedLoop, seed: str) -> None:
        self._disk = disk
        self.commits_left: int | None = None
        """After how many more commits the process dies."""
        self.on_commit: Callable[[], None] = lambda: None
        """Called after each commit, between transactions."""
        self.run_to_end: Callable[[Coroutine[Any, Any, Any]], Any] | None = None
        """Runs a coroutine to its end, letting simulated time pass."""
        self.looking = False
        """Whether an invariant is looking, during which nothing may change."""
        self._seen_tx_id = 0
        self._schedules_stopped = False
        super().__init__(module, clock=clock, seed=seed, quiet=True, slow_reducer=timedelta.max)
        self._seen_tx_id = self.last_tx_id
        self._scheduler.run_procedures_in(LoopCalls(loop), LoopTasks(loop))

    def _open_durability(self, quiet: bool) -> Durability:
        return SimulatedDurability(self._disk, self.module, self.store)

    def next_due_micros(self) -> int | None:
        """When the next scheduled row fires."""
        return None if self._schedules_stopped else self._scheduler.next_due()

    def fire_due(self, limit: int) -> int:
        """Fire what is due; procedures go to the loop. How many rows fired. After a failed write, schedules stop."""
        if self._schedules_stopped:
            return 0
        try:
            return self._scheduler.run_due(limit=limit, pooled=True)
        except WriteFailed as error:  # as for `drivers.drive`
            self._schedules_stopped = True
            self._scheduler.report_end(error)
            return 0

    def run_procedure(
        self,
        function: Function,
        arguments: tuple[Any, ...],
        sender: Identity | None = None,
        connection_id: ConnectionId | None = None,
    ) -> Any:
        """Run a procedure to its end, in simulated time."""
        if function.is_async and self.run_to_end is not None:
            return self.run_to_end(run_async(self, function, arguments, sender, connection_id))
        return super().run_procedure(function, arguments, sender, connection_id)

    def must_not_look(self) -> None:
        """Raise when it is an invariant that calls."""
        if self.looking:
            raise GamedbError("an invariant only looks: it must not call anything, move time, crash, or change rows")

    def _refuse(self, name: str) -> None:
        self.must_not_look()
        super()._refuse(name)

    def _commit(self, ctx: ReducerContext, name: str) -> None:
        before = self.last_tx_id
        super()._commit(ctx, name)
        if self.commits_left is not None and self.last_tx_id != before:
            self.commits_left -= 1
            if self.commits_left < 0:
                self.die()
                raise ProcessDied

    def _end(self, running: tuple[str, float, int] | None) -> None:
        super()._end(running)
        if self.last_tx_id != self._seen_tx_id and not self._closed:
            self._seen_tx_id = self.last_tx_id
            self.on_commit()

    def report_failure(self, name: str, error: BaseException) -> None:
        """What a process that has died would have said, nobody hears."""
        if not self.dead:
            super().report_failure(name, error)

    def __del__(self) -> None:
        """Nothing real is left open."""

    def die(self) -> None:
        """End without a word: nothing is written, and nothing more is accepted."""
        assert isinstance(self._durability, SimulatedDurability)
        self._durability.writer.dead = True
        self._closed = True
        self._refusal = self._closed_error()
        unclosed.databases.discard(self)

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self._closed
