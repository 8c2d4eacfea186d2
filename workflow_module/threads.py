"""Threads for sync procedures: one that comes back is used again, one that never does is simply missing.

Daemon threads, unlike those of `concurrent.futures`: a procedure that waits for ever holds up neither the others nor
the end of the interpreter. It knows no procedures.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import Context
from queue import Empty, SimpleQueue
from typing import Final

IDLE_SECONDS_MAX: Final = 5.0
"""How long a thread waits for more work before it ends."""

Work = Callable[[], None]


class Threads:
    """Runs work, each at once and in a thread where nothing else runs meanwhile."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = os.getpid()
        self._idle: list[SimpleQueue[Work]] = []

    def run(self, work: Work) -> None:
        """Run `work()`, which must not raise."""
        if self._process != os.getpid():  # after a fork the threads are not in this process
            self._process, self._idle = os.getpid(), []
        try:
            queue = self._idle.pop()
        except IndexError:
            queue = SimpleQueue()
            threading.Thread(target=self._serve, args=(queue,), name=self._name, daemon=True).start()
        queue.put(work)

    def _serve(self, queue: SimpleQueue[Work]) -> None:
        while True:
            try:
                work = queue.get(timeout=IDLE_SECONDS_MAX)
            except Empty:
                try:
                    self._idle.remove(queue)
                except ValueError:  # somebody has taken it, and is about to give it work
                    work = queue.get()
                else:
                    return
            Context().run(work)  # as in a new thread: nothing of what ran here before
            del work
            self._idle.append(queue)
