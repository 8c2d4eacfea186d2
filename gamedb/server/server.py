"""`Server`: the databases that are served together on one port, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gamedb.errors import SchemaError
from gamedb.server.admission import Admission
from gamedb.server.hosted import Hosted
from gamedb.server.limits import Limits
from gamedb.server.session import Session
from gamedb.server.turns import Turns

if TYPE_CHECKING:
    from gamedb.server.auth import Authenticator


class Server:
    """Several hosted databases, and who may come in."""

    def __init__(
        self,
        hosted: Iterable[Hosted],
        authenticator: Authenticator,
        *,
        limits: Limits | None = None,
        proxies: Iterable[str] = (),
    ) -> None:
        self.authenticator = authenticator
        self.limits = limits if limits is not None else Limits()
        self.admission = Admission(self.limits, proxies)
        """How much may come from one address."""
        self.asking = asyncio.Lock()
        """Held by the client whose SQL by HTTP is being answered; the others wait, as each one blocks its database."""
        self.hosted: dict[str, Hosted] = {}
        """The databases by name."""
        self._by_identity: dict[str, Hosted] = {}
        self.closing = False
        """Whether it is shutting down: nothing new is accepted."""
        self.goodbye = "the server is shutting down"
        """What clients are told at the end."""
        self.websockets: set[object] = set()
        """The open connections, those that are still being opened among them."""
        for one in hosted:
            if one.name in self.hosted:
                raise SchemaError(f"two databases are to be served as {one.name!r}; give one of them another name")
            if not one.has_own_limits:
                one.limits = self.limits
            self.hosted[one.name] = one
            self._by_identity[one.identity.hex()] = one

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Be ready for clients, in this loop."""
        turns = Turns(loop.call_soon)
        for one in self.hosted.values():
            one.begin(loop, turns)

    def end(self) -> None:
        """No clients any more."""
        for one in self.hosted.values():
            one.end(self.goodbye)

    def sessions(self) -> list[Session]:
        """The connected clients of all databases."""
        return [session for one in self.hosted.values() for session in one.sessions]

    def find(self, name_or_identity: str) -> Hosted | None:
        """The database with this name, or with this identity as 64 hex digits."""
        return self.hosted.get(name_or_identity) or self._by_identity.get(name_or_identity)
