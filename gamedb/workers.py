"""Threads that work off a queue, as many as are needed up to a limit.

Unlike those of `concurrent.futures` they do not hold up the end of the interpreter: a procedure that waits for
something for ever must not keep a finished program from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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
