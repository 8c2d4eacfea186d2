"""What `Matcher` hands out: running queries, what a commit did to them, and counts of the work done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from gamedb.commit import Commit
from gamedb.query.code import Predicate
from gamedb.query.conditions import Condition, Route
from gamedb.query.plan import Query
from gamedb.schema import Row
from gamedb.types import Identity

Touched = dict["LiveQuery", None]
"""The queries that were looked at for a commit, in that order."""


class Follower(Protocol):
    """One way to keep queries up to date. It fills `deleted` and `inserted` (or `error`) of those it looks at."""

    def add(self, live: LiveQuery) -> None:
        """Follow a query from now on."""

    def remove(self, live: LiveQuery) -> None:
        """Forget it."""

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        """Its answer now."""

    def commit(self, commit: Commit, touched: Touched) -> None:
        """Take a commit in."""


class LiveQuery:
    """A query that is being followed, by everybody who asked the same."""

    __slots__ = (
        "bag",
        "condition",
        "deleted",
        "error",
        "exact",
        "follower",
        "inserted",
        "key",
        "on_right",
        "query",
        "result",
        "routes",
        "sender",
        "stamp",
        "test",
        "users",
    )

    def __init__(self, key: Any, query: Query, sender: Identity, condition: Condition, follower: Follower) -> None:
        self.key = key
        self.query = query
        self.sender = sender
        """Who asked first; the only one, if the answer depends on it."""
        self.condition = condition
        self.follower = follower
        self.users = 0
        """How many have opened it and not closed it yet."""
        self.routes: tuple[Route, ...] | None = None
        self.test: Predicate | None = None
        self.on_right = False
        self.stamp = 0
        self.result: Any = None
        self.bag: list[Row] = []
        self.exact: Callable[[Any], Any] | None = None
        self.deleted: list[Row] = []
        self.inserted: list[Row] = []
        self.error: str | None = None

    def rows(self, rows_max: int | None = None) -> list[Row]:
        """The answer as of the last commit, each row as often as it is in it; `QueryError` for more than `rows_max`."""
        return self.follower.rows(self, rows_max)

    def __repr__(self) -> str:
        return f"<live {self.query!r} of {self.users}>"


class Delta(msgspec.Struct, frozen=True):
    """How a commit changed the answer of a query. Never empty."""

    live: LiveQuery
    deleted: list[Row]
    inserted: list[Row]
    """For an event table, its events."""
    error: str | None = None
    """Why the answer is not known (a view that failed). The commit stands, and other queries go on."""


class Counters(msgspec.Struct):
    """What a matcher has done since it was made."""

    commits: int = 0
    queries_evaluated: int = 0
    """Queries that were looked at for a commit, each once a commit however many follow it."""
    queries_skipped: int = 0
    """Queries that a commit could not have changed, and that cost it nothing."""
    tests: int = 0
    """Rows (or pairs of joined rows) that were tested against a query."""
    rows_matched: int = 0
    """Rows in the changes that were handed out."""
    views_run: int = 0
    queries_reevaluated: int = 0
    """Queries that were answered from scratch for a commit: JOINs under a visibility filter with a JOIN."""


def cancel(live: LiveQuery) -> None:
    """Leave out what was both deleted and inserted: the same row object, once for once."""
    if not live.deleted or not live.inserted:
        return
    both = Counter(map(id, live.deleted)) & Counter(map(id, live.inserted))
    if both:
        live.deleted, live.inserted = _less(live.deleted, both.copy()), _less(live.inserted, both)


def _less(rows: list[Row], taken: Counter[int]) -> list[Row]:
    result = []
    for row in rows:
        if taken[id(row)] > 0:
            taken[id(row)] -= 1
        else:
            result.append(row)
    return result
