"""`Outside`: where things live that are not of the simulated process, and go on when that ends, as workers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gamedb.errors import ConnectionLost, DatabaseClosed, WriteFailed
from gamedb.testing.database import ProcessDied
from gamedb.testing.loop import SimulatedLoop

if TYPE_CHECKING:
    from gamedb.testing.simulation import Simulation

T = TypeVar("T")


class Outside(SimulatedLoop):
    """A loop beside that of the process, over all its lives, with ways for its tasks to reach the process."""

    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim.clock, sim.context)
        self._sim = sim
        self._unconfirmed: list[asyncio.Future[None]] = []

    def reach(self, work: Callable[[], T]) -> T:
        """Let the process do something. `ConnectionLost` when it dies of it, or takes nothing."""
        try:
            return work()
        except (ProcessDied, DatabaseClosed, WriteFailed) as error:
            raise ConnectionLost(f"the process did not answer: {error or 'it died'}") from None

    async def confirmed(self) -> None:
        """Return when all that is committed by now is on disk; `ConnectionLost` when the process ends before that."""
        future = self.create_future()

        def settle(error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(ConnectionLost(str(error)))

        self._unconfirmed.append(future)
        self._sim.db.when_durable(settle)
        try:
            await future
        finally:
            self._unconfirmed.remove(future)

    def died(self) -> None:
        """The process has ended. For the simulation."""
        for future in self._unconfirmed:
            if not future.done():
                future.set_exception(ConnectionLost("the process died"))
