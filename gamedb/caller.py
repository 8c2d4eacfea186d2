"""A database as one identity uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from gamedb.errors import NotAllowed
from gamedb.types import ConnectionId, Identity

if TYPE_CHECKING:
    from gamedb.database import Database

P = ParamSpec("P")
T = TypeVar("T")


class Caller:
    """A database as one identity uses it: what is private is refused."""

    def __init__(self, db: Database, sender: Identity, connection_id: ConnectionId | None = None) -> None:
        if not isinstance(sender, Identity):
            raise TypeError(
                f"a caller is an Identity, not {sender!r}; a player's is what ctx.sender was when they called"
            )
        self._db = db
        self.sender = sender
        """Who this is: `ctx.sender` in what is called."""
        self.connection_id = connection_id
        """`ctx.connection_id` in what is called; `None` when it comes over no connection."""

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As `Database.call`, with this identity as `ctx.sender`. `NotAllowed` for private reducers."""
        function = self._db.callables.find(reducer, "reducer")
        self._db.callables.allow(function, self.sender)
        arguments = function.arguments_from(args, kwargs)
        return self._db.execute(function.name, function.invoke, arguments, self.sender, self.connection_id)

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """As `Database.call_procedure`, with this identity as `ctx.sender`."""
        function = self._db.callables.find(procedure, "procedure")
        self._db.callables.allow(function, self.sender)
        arguments = function.arguments_from(args, kwargs)
        return self._db.run_procedure(function, arguments, self.sender, self.connection_id)

    def view(self, view: Callable[..., Any] | str, /, *args: Any) -> Any:
        """As `Database.view`, seen by this identity. `NotAllowed` for views that are not public."""
        function = self._db.callables.find(view, "view")
        if not function.public and self.sender not in self._db.operators:
            raise NotAllowed(f"view {function.name!r} is not public; only the database itself and operators may see it")
        return self._db.view(view, *args, sender=self.sender)
