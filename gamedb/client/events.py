"""What the core of a client tells its shell, and the query sets that it keeps."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from gamedb.client.cache import Change
from gamedb.errors import GamedbError, QueryError
from gamedb.types import ConnectionId, Identity


class State(enum.Enum):
    """Where a query set is in its life."""

    WAITING = enum.auto()
    LIVE = enum.auto()
    ENDING = enum.auto()
    ENDED = enum.auto()


class QuerySet:
    """Queries that are subscribed to together."""

    def __init__(self, queries: Sequence[str]) -> None:
        self.queries = list(queries)
        self.state = State.WAITING
        self.id: int | None = None
        """On this connection; `None` when it was not asked for on it."""


class Opened(msgspec.Struct, frozen=True):
    """The server has greeted the client."""

    identity: Identity
    connection_id: ConnectionId
    token: str


class Settled(msgspec.Struct, frozen=True):
    """A call or a one-off query has its answer: `value`, or `error`."""

    request_id: int
    value: Any = None
    error: GamedbError | None = None


class Applied(msgspec.Struct, frozen=True):
    """The rows of a query set are there for the first time."""

    query_set: QuerySet


class Ended(msgspec.Struct, frozen=True):
    """A query set is over: as it was asked for, or with an error."""

    query_set: QuerySet
    error: QueryError | None = None


Event = Change[Any] | Opened | Settled | Applied | Ended
