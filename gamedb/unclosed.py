"""Databases that nobody closed: when they are collected, at the end of the interpreter, and after a fork."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from typing import TYPE_CHECKING, Final

from gamedb.durability import Durability

if TYPE_CHECKING:
    from gamedb.database import Database

_log: Final = logging.getLogger("gamedb")

EXIT_SECONDS_MAX: Final = 5.0
"""How long the end of the interpreter waits for a transaction of a database that was not closed."""

databases: weakref.WeakSet[Database] = weakref.WeakSet()
"""All databases that are open."""
abandoned: set[Durability] = set()
"""Of databases that were collected without being closed: about to be closed."""


def close_abandoned(durability: Durability) -> None:
    """Write what a database has committed that nobody can reach any more."""
    try:
        durability.close()
    except Exception as error:
        _log.error("a database that nobody closed lost what it had not written: %s", error)
    abandoned.discard(durability)


@atexit.register
def _close_all() -> None:
    """At the end of the interpreter: write what is committed. Waits for no procedure, and for no reducer for long."""
    for db in list(databases):
        if db._durability is None or db._closed:
            continue
        db._closed = True
        db._refusal = db._closed_error()
        db._scheduler.close(wait=False)
        if db.lock.acquire(timeout=EXIT_SECONDS_MAX):
            db.lock.release()
        abandoned.add(db._durability)
    for durability in list(abandoned):
        close_abandoned(durability)


def _after_fork() -> None:
    """In a forked process: threads and file locks stayed behind, so databases with a file are closed here."""
    abandoned.clear()
    for db in list(databases):
        if db._durability is not None or db.running is not None:
            db._closed = True
            db._refusal = db._closed_error()
        db.lock = threading.RLock()
        db.running = None
        db._thread = None
        db._scheduler.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
