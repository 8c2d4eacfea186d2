"""Where scheduled procedures run beside the scheduler: sync ones in threads, async ones on a loop of their own.

Made at the first use; both are bounded. What they run reports its own failures.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

PROCEDURE_THREADS_MAX: Final = 32
"""How many sync procedures run at once."""
ASYNC_PROCEDURES_MAX: Final = 1_000
"""How many async procedures run at once."""


class ProcedureWorkers:
    """A pool of threads and an event loop, each made when it is needed."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread: threading.Thread | None = None
        self._room: asyncio.Semaphore | None = None
        self._running: set[Future[None]] = set()

    def submit(self, work: Callable[[], None]) -> None:
        """Run something in a thread, soon."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(PROCEDURE_THREADS_MAX, thread_name_prefix="gamedb-procedure")
        self._threads.submit(work)

    def submit_async(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something on the loop, soon."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._room = asyncio.Semaphore(ASYNC_PROCEDURES_MAX)
            self._loop_thread = threading.Thread(target=self._run_loop, name="gamedb-procedures", daemon=True)
            self._loop_thread.start()
        future = asyncio.run_coroutine_threadsafe(self._bounded(work), self._loop)
        self._running.add(future)
        future.add_done_callback(self._running.discard)

    async def _bounded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        assert self._room is not None
        async with self._room:
            await work()

    def _run_loop(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def close(self) -> None:
        """Wait for what is running, and let the threads go."""
        if self._threads is not None:
            self._threads.shutdown()
        if self._loop is None or self._loop_thread is None:
            return
        for future in list(self._running):
            future.exception()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join()
        self._loop.close()
        self._loop = None
