"""What the engine keeps in memory for one database, beside its tables. None of it is missed after a crash.

The engine itself belongs to a module, and several databases of one module may run in a process: whatever is of one of
them alone stands here.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gamedb import ReducerContext

from .waiting import Held

if TYPE_CHECKING:
    from .engine import Engine

SYNC_ATTEMPTS_MAX: Final = 32
"""How many sync procedures of a database (or a worker) run at once; more wait for their turn."""


class Rooms:
    """The bound on sync procedures, for each event loop that runs some."""

    def __init__(self) -> None:
        self._rooms: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._rooms = weakref.WeakKeyDictionary()

    def here(self) -> asyncio.Semaphore:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._rooms:
            self._rooms[loop] = asyncio.Semaphore(SYNC_ATTEMPTS_MAX)
        return self._rooms[loop]


class LocalState:
    """Made at the first use, and gone with the database."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """The engine that works there."""
        self.held = Held()
        self.rooms = Rooms()
        self.attempts: dict[int, Callable[[], object]] = {}
        """For each attempt that runs in this process, by its pending procedure: look whether it is still wanted."""
        self._queues: dict[str, str] | None = None

    def declared_queue(self, ctx: ReducerContext, name: str) -> str | None:
        """The queue that `@module.procedure(queue=...)` gave a procedure; None: it runs in this process."""
        if self._queues is None:
            declared = {f.function: f.queue for f in ctx.functions.values() if f.queue is not None}
            self._queues = {}
            for key, procedure in self.engine.procedures.items():
                queue = declared.get(getattr(procedure, "function", procedure))
                if queue is not None:
                    self._queues[key] = queue
        return self._queues.get(name)
