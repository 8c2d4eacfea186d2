"""A subscription of a client, as the user holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gamedb.client.events import QuerySet, State
from gamedb.client.tables import run
from gamedb.errors import GamedbError, QueryError


class Subscription:
    """Queries whose rows are kept up to date in the client's tables. Connections may come and go under it."""

    def __init__(
        self,
        query_set: QuerySet,
        on_error: Callable[[QueryError], object] | None,
        unsubscribe: Callable[[Subscription], Awaitable[None]],
    ) -> None:
        self.query_set = query_set
        self.error: GamedbError | None = None
        """Why the server (or the client) ended it; `None` while it lives, and after `unsubscribe`."""
        self.applied: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.applied.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody need wait for it
        self._on_error = on_error
        self._unsubscribe = unsubscribe

    def __repr__(self) -> str:
        return f"<subscription {self.queries}, {'active' if self.active else 'ended'}>"

    @property
    def queries(self) -> list[str]:
        """The SQL texts."""
        return self.query_set.queries

    @property
    def active(self) -> bool:
        """Whether its rows are in the tables and kept up to date (or will be, after a loss of the connection)."""
        return self.query_set.state is State.LIVE

    async def unsubscribe(self) -> None:
        """End it; returns when its rows are gone from the tables. Twice is once."""
        await self._unsubscribe(self)

    def begin(self) -> None:
        """Its rows are there. For the client itself."""
        if not self.applied.done():
            self.applied.set_result(None)

    def finish(self, error: GamedbError | None) -> None:
        """It is over. For the client itself."""
        self.error = error
        was_applied = self.applied.done()
        if not was_applied:
            if error is None:
                self.applied.cancel()
            else:
                self.applied.set_exception(error)
        if not self.over.done():
            self.over.set_result(None)
        if was_applied and isinstance(error, QueryError) and self._on_error is not None:
            run(self._on_error, error)
