"""Notices reducers that take too long: logs where they are while they run, and how long they took in the end.

One thread watches all databases of the process. It never stops anything.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from typing import Final

POLL_SECONDS: Final = 0.05


class Watch:
    """The running function of one database: set `current` at its start, `None` at its end."""

    def __init__(self, log: logging.Logger, limit_seconds: float) -> None:
        self.log = log
        self.limit_seconds = limit_seconds
        self.current: tuple[str, float, int] | None = None  # name, start, thread
        self._reported: tuple[str, float, int] | None = None
        _watch(self)

    def start(self, name: str) -> float:
        """A function begins; gives the moment, for `stop`."""
        started = time.perf_counter()
        self.current = (name, started, threading.get_ident())
        return started

    def stop(self, name: str, started: float) -> None:
        """It ended."""
        self.current = None
        seconds = time.perf_counter() - started
        if seconds > self.limit_seconds:
            self.log.warning("%s took %.3f s (the limit for this warning is %g s)", name, seconds, self.limit_seconds)

    def check(self) -> None:
        """Log the stack of the running function once, if it is over the limit."""
        current = self.current
        if current is None or current is self._reported:
            return
        name, started, thread = current
        seconds = time.perf_counter() - started
        frame = sys._current_frames().get(thread)
        if seconds > self.limit_seconds and frame is not None and self.current is current:
            self._reported = current
            stack = "".join(traceback.format_stack(frame))
            self.log.warning("%s has been running for %.3f s; it is at:\n%s", name, seconds, stack)


_watches: weakref.WeakSet[Watch] = weakref.WeakSet()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def _watch(watch: Watch) -> None:
    global _thread
    with _lock:
        _watches.add(watch)
        if _thread is None or not _thread.is_alive():  # also after a fork, which copies no threads
            _thread = threading.Thread(target=_run, name="gamedb-watchdog", daemon=True)
            _thread.start()


def _run() -> None:
    global _thread
    while True:
        with _lock:
            watches = list(_watches)
            if not watches:
                _thread = None
                return
        for watch in watches:
            watch.check()
        del watches
        if "watch" in locals():
            del watch
        time.sleep(POLL_SECONDS)
