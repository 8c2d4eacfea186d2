"""`Hosted`: one database as a server has it, with all that belongs to it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident

from gamedb.database import Database
from gamedb.identity import identity_of_database
from gamedb.query import Catalog, Matcher
from gamedb.server.endpoints import Endpoints
from gamedb.server.framing import to_frame
from gamedb.server.hub import Hub
from gamedb.server.limits import Limits
from gamedb.server.logs import Logs
from gamedb.server.measures import Measures
from gamedb.server.session import GOING_AWAY, Caller, Channel, Session
from gamedb.server.turns import Turns
from gamedb.store import ReadTables
from gamedb.types import Identity


class Hosted:
    """A database under the name by which clients ask for it."""

    def __init__(
        self,
        db: Database,
        *,
        name: str | None = None,
        owner: Identity | None = None,
        limits: Limits | None = None,
        logs: Logs | None = None,
    ) -> None:
        self.db = db
        self.name = name if name is not None else db.module.name
        self.identity = identity_of_database(self.name)
        """As clients know it; two databases of one module differ in it."""
        self.owner = owner
        """Who may read its logs and call what is private; `None`: nobody but operators."""
        self.limits = limits if limits is not None else Limits()
        self.has_own_limits = limits is not None
        """Otherwise those of the server apply."""
        self.logs = logs if logs is not None else Logs()
        """What the database and its game log, from now on."""
        self.logs.attach(db, self.name)
        if owner is not None:
            db.operators.add(owner)
        self.catalog = Catalog(db.module)
        """What clients can ask of it."""
        self.endpoints = Endpoints(db.module)
        """What clients can call."""
        self.served_since_micros = db.clock.micros()
        """Since when clients and workers can come."""
        self.measures: Measures | None = None
        """What is counted of it, while it is served."""
        self._hub: Hub | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns: Turns | None = None

    # --- while it is served

    def begin(self, loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
        """Be ready for clients, in this loop."""
        self._loop, self._turns = loop, turns
        self._thread = get_ident()
        self.served_since_micros = self.db.clock.micros()
        matcher = Matcher(self.catalog, ReadTables(self.name, self.db.game_tables), log=self.db.log)
        self.measures = Measures(self.db)
        self._hub = Hub(self.db, matcher, schedule=self._schedule, encode_frame=to_frame)

    def end(self, goodbye: str = "the server is shutting down") -> None:
        """No clients any more; those that are left are told. Twice is once."""
        for session in self.sessions:
            session.end(GOING_AWAY, goodbye)
        hub, self._hub = self._hub, None
        if hub is not None:
            hub.close()
        if self.measures is not None:
            self.measures.close()

    @property
    def is_served(self) -> bool:
        """Whether clients can come."""
        return self._hub is not None

    @property
    def hub(self) -> Hub:
        """What commits mean to its clients, while it is served."""
        if self._hub is None:
            raise RuntimeError(f"{self.name!r} is not being served")
        return self._hub

    @property
    def sessions(self) -> list[Session]:
        """The connected clients."""
        return [] if self._hub is None else list(self._hub.sessions)

    def session(self, caller: Caller, channel: Channel) -> Session:
        """A session for a client that has just come; `open` lets it in."""
        assert self._loop is not None
        assert self._turns is not None
        return Session(
            self.hub,
            self.catalog,
            self.endpoints,
            caller,
            channel,
            turns=self._turns,
            spawn=self._loop.create_task,
            limits=self.limits,
        )

    def delivery_lag_seconds(self) -> float:
        """For how long updates have been waiting for the loop or for the disk; 0 when none are."""
        return 0.0 if self._hub is None else self._hub.delivery_lag_seconds()

    def _schedule(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's thread, from whichever thread this is."""
        loop = self._loop
        if loop is None:
            return
        if get_ident() == self._thread:
            loop.call_soon(callback)
        else:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(callback)

    # --- who may what

    def may_operate(self, identity: Identity) -> bool:
        """Whether somebody is an operator of this database."""
        return identity in self.db.operators
