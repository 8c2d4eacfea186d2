"""`Hosted`: one database as a server has it, with all that belongs to it there."""

from __future__ import annotations

from gamedb.database import Database
from gamedb.server.limits import Limits
from gamedb.types import Identity


class Hosted:
    """A database under the name by which clients ask for it."""

    def __init__(
        self, db: Database, *, name: str | None = None, owner: Identity | None = None, limits: Limits | None = None
    ) -> None:
        self.db = db
        self.name = name if name is not None else db.module.name
        self.identity = db.identity
        self.owner = owner
        """Who may read its logs and call what is private; `None`: nobody but operators."""
        self.limits = limits if limits is not None else Limits()
        if owner is not None:
            db.operators.add(owner)

    def may_operate(self, identity: Identity) -> bool:
        """Whether somebody is an operator of this database."""
        return identity in self.db.operators
