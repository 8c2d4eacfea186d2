"""Notices reducers that take too long: logs where they are while they run. How long they took, the database logs.

One thread watches all databases of the process. It never stops anything.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import Final, Protocol

POLL_SECONDS: Final = 0.05
_TRANSACTIONS: Final = str(Path(__file__).with_name("transactions.py"))


class Watched(Protocol):
    """What the watchdog looks at: a database."""

    log: logging.Logger
    slow_seconds: float
    running: tuple[str, float, int] | None
    """The name, start (`time.perf_counter`) and thread of the running transaction."""


_databases: weakref.WeakSet[Watched] = weakref.WeakSet()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def watch(database: Watched) -> None:
    """Look after a database for as long as it lives."""
    global _thread
    with _lock:
        _databases.add(database)
        if _thread is None or not _thread.is_alive():  # a fork copies no threads
            _thread = threading.Thread(target=_run, name="gamedb-watchdog", daemon=True)
            _thread.start()


def _run() -> None:
    reported: weakref.WeakKeyDictionary[Watched, tuple[str, float, int]] = weakref.WeakKeyDictionary()
    while _look(reported):
        time.sleep(POLL_SECONDS)


def _look(reported: weakref.WeakKeyDictionary[Watched, tuple[str, float, int]]) -> bool:
    """One round; False, and the thread may end, when no database is left."""
    global _thread
    with _lock:
        databases = list(_databases)
        if not databases:
            _thread = None
            return False
    for database in databases:
        current = database.running
        if current is not None and reported.get(database) is not current and _report(database, current):
            reported[database] = current
    return True


def _report(database: Watched, current: tuple[str, float, int]) -> bool:
    name, started, thread = current
    seconds = time.perf_counter() - started
    frame = sys._current_frames().get(thread)
    if seconds <= database.slow_seconds or frame is None or database.running is not current:
        return False
    stack = "".join(traceback.format_list(_inside(traceback.extract_stack(frame))))
    database.log.warning("%s has been running for %.3f s; it is at:\n%s", name or "a transaction", seconds, stack)
    return True


def _inside(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """What the transaction itself does, without how it came to be called; all of it where that cannot be told."""
    for number in range(len(frames) - 1, 0, -1):
        if frames[number - 1].name == "execute" and frames[number - 1].filename == _TRANSACTIONS:
            return frames[number:]
    return frames
