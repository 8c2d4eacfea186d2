"""Where scheduled procedures run beside the scheduler: sync ones in threads, async ones on a loop of their own.

Unlike the threads of `concurrent.futures` these do not hold up the end of the interpreter: a procedure that waits for
something for ever must not keep a finished program from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as _wait
from queue import SimpleQueue
from typing import Any

Task = tuple[Callable[..., None], tuple[Any, ...]]


class Workers:
    """Runs tasks in daemon threads, started when they are first needed."""

    def __init__(self, threads_max: int, name: str) -> None:
        self._threads_max = threads_max
        self._name = name
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def submit(self, task: Callable[..., None], *arguments: Any) -> None:
        """Run `task(*arguments)`, which must not raise. From one thread at a time."""
        self._queue.put((task, arguments))
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._threads_max:
            thread = threading.Thread(target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self) -> None:
        while (queued := self._queue.get()) is not None:
            task, arguments = queued
            task(*arguments)
            self._idle.release()

    def stop(self, *, wait: bool = True) -> None:
        """End the threads when all that was submitted has ended; a worker that calls this waits for none."""
        for _ in self._threads:
            self._queue.put(None)
        if wait and threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()


class LoopWorkers:
    """Runs coroutines on an event loop in a daemon thread, so many at once."""

    def __init__(self, running_max: int, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._room = asyncio.Semaphore(running_max)
        self._submitted: set[Future[None]] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def submit(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work()`, which must not raise."""
        future = asyncio.run_coroutine_threadsafe(self._bounded(work), self._loop)
        self._submitted.add(future)
        future.add_done_callback(self._submitted.discard)

    async def _bounded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._room:
            await work()

    def stop(self, *, wait: bool = True) -> None:
        """End the loop when all that was submitted has ended; a coroutine that calls this waits for none."""
        if threading.current_thread() is self._thread or not wait:
            return
        _wait(list(self._submitted))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
