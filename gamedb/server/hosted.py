"""`Hosted`: one database as a server has it, with all that belongs to it there."""

from __future__ import annotations

from gamedb.database import Database
from gamedb.identity import identity_of_database
from gamedb.server.limits import Limits
from gamedb.server.logs import Logs
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
        self.logs = logs if logs is not None else Logs()
        """What the database and its game log, from now on."""
        self.logs.attach(db, self.name)
        if owner is not None:
            db.operators.add(owner)

    def delivery_lag_seconds(self) -> float:
        """For how long the oldest update has been waiting for its client; 0 when all are delivered."""
        return 0.0

    def may_operate(self, identity: Identity) -> bool:
        """Whether somebody is an operator of this database."""
        return identity in self.db.operators
