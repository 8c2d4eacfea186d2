"""A stage that can lose its process: what was not saved lately is gone, the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from examples.stage import Stage
from gamedb import Database, Module
from workflow_module.testing import WorkflowSimulation

DISK_SECONDS = 5.0
"""How long the disk takes: a crash loses the commits of so many seconds."""


class CrashStage(Stage):
    """A stage in a simulation. `save` is a flush boundary; `crash` falls back to what the disk has."""

    def __init__(self, module: Module) -> None:
        self.sim = WorkflowSimulation(module, seed=1)
        self.sim.disk.delay_seconds = DISK_SECONDS
        super().__init__(module, clock=self.sim.clock)
        self.save()

    def open(self, path: Any = None) -> None:
        """Show the process of now."""
        self.db, self.flows = self.sim.db, self.sim.flows

    def wait(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass."""
        self.sim.advance(timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days))

    def save(self) -> None:
        """Everything until now is on disk, and survives."""
        self.sim.flush()

    def crash(self) -> None:
        """The process dies, and another one goes on with what was written."""
        self.sim.crash(settle=False)
        self.open()

    def guard(self, sums: Callable[[Database], object]) -> None:
        """From now on, no commit may change these sums of the world: the action that does so raises."""
        right = sums(self.db)

        @self.sim.always
        def unchanged(sim: WorkflowSimulation) -> None:
            self.looked += 1
            now = sums(sim.db)
            assert now == right, f"{now} instead of {right}"

    looked = 0
    """How often the sums were looked at."""
