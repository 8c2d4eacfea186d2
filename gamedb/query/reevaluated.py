"""Follows queries with a JOIN under client visibility filters with one: answers them again when what they read changes.

That is always right and never cheap, so a commit waits for it no longer than `COMMIT_SECONDS_MAX`, and the query that
is not answered by then ends. Such queries on one table are followed by `retested`, and filters without a JOIN become
part of a query's condition.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from gamedb.bags import without
from gamedb.commit import Commit
from gamedb.errors import QueryError
from gamedb.query import access
from gamedb.query.access import Reader, check_count
from gamedb.query.by_table import ByTable
from gamedb.query.live import Counters, LiveQuery, Touched
from gamedb.schema import Row

LEAST_SECONDS: Final = 0.01
"""What each query has, however long those before it took."""


class Reevaluated:
    """The queries whose answers are kept, and compared with the next ones."""

    def __init__(self, reader: Reader, counters: Counters) -> None:
        self._reader = reader
        self._counters = counters
        self._by_table: ByTable[LiveQuery] = ByTable()

    def add(self, live: LiveQuery) -> None:
        with self._reader.within(access.COMMIT_SECONDS_MAX):  # it would not get over its first commit
            live.bag = self._reader.select(live.query, live.condition, rows_max=access.ROWS_MAX)
        self._by_table.add(live, live.query.reads)

    def remove(self, live: LiveQuery) -> None:
        self._by_table.remove(live, live.query.reads)

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        check_count(live.bag, rows_max)
        return list(live.bag)

    def commit(self, commit: Commit, touched: Touched) -> None:
        until = perf_counter() + access.COMMIT_SECONDS_MAX
        for live in self._by_table.of(commit.changes):
            touched[live] = None
            query = live.query
            if query.is_event:
                events = commit.changes.get(query.name)
                live.inserted = [] if events is None else self._reader.select(query, live.condition, events.inserted)
                continue
            self._counters.queries_reevaluated += 1
            try:
                with self._reader.within(max(LEAST_SECONDS, until - perf_counter())):
                    after = self._reader.select(query, live.condition, rows_max=access.ROWS_MAX)
            except QueryError as error:  # it has grown too large, or takes too long
                live.error = str(error)
                continue
            before, live.bag = live.bag, after
            live.deleted = without(before, live.bag, live.exact)
            live.inserted = without(live.bag, before, live.exact)
