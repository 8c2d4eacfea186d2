"""What a worker process is given by `gamedb worker`: where its work is, how much of it to take, and when to stop.

Libraries that leave work in rows get it by `module.on_worker`. It knows no library.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from gamedb.client import Client  # slow to import
    from gamedb.module import Module

CONCURRENCY: Final = 10
LEASE_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 20.0


class WorkerJob(msgspec.Struct, kw_only=True, eq=False):
    """What a `Module.on_worker` function gets: the work of one process."""

    client: Client
    """Connected to the database, as an operator."""
    module: Module
    """The game's code in this process."""
    queues: list[str]
    """Whence it takes work."""
    name: str
    """How logs and rows call it; no other worker that lives has the same."""
    stopping: asyncio.Event
    """Set when the process shall end: take no more."""
    concurrency: int = CONCURRENCY
    """How many pieces of work it does at once."""
    lease_seconds: float = LEASE_SECONDS
    """For how long it has a piece of work before it must say that it lives."""
    drain_seconds: float = DRAIN_SECONDS
    """How long what runs may go on after `stopping`."""
    hurry: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when even that is too long."""
