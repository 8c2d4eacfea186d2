"""Follows queries on one table: a changed row is tested against the queries that it can reach."""

from __future__ import annotations

from gamedb.commit import Commit
from gamedb.query.access import Reader
from gamedb.query.conditions import routes_of
from gamedb.query.live import Counters, LiveQuery, Touched
from gamedb.query.plan import prefer_indexed
from gamedb.query.routes import Routes
from gamedb.schema import Row


class SingleTables:
    """The queries without a JOIN, event tables among them."""

    def __init__(self, reader: Reader, counters: Counters) -> None:
        self._reader = reader
        self._counters = counters
        self._tables: dict[str, Routes] = {}
        self._stamp = 0

    def add(self, live: LiveQuery) -> None:
        table = live.query.table
        live.routes, rest = routes_of(live.condition, 0, prefer_indexed(table))
        live.test = self._reader.predicate(rest)
        if live.routes != ():  # no route at all: no row can match
            self._tables.setdefault(table.name, Routes()).add(live, live.routes)

    def remove(self, live: LiveQuery) -> None:
        if live.routes == ():
            return
        name = live.query.table.name
        self._tables[name].remove(live, live.routes)
        if not self._tables[name]:
            del self._tables[name]

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        return self._reader.select(live.query, live.condition, rows_max=rows_max)

    def commit(self, commit: Commit, touched: Touched) -> None:
        for name, changes in commit.changes.items():
            routes = self._tables.get(name)
            if routes is None:
                continue
            for _, old, new in changes.changes:
                if old is not None:
                    for live in self._matching(routes, old, touched):
                        live.deleted.append(old)
                if new is not None:
                    for live in self._matching(routes, new, touched):
                        live.inserted.append(new)

    def _matching(self, routes: Routes, row: Row, touched: Touched) -> list[LiveQuery]:
        self._stamp += 1
        result = []
        for live in routes.reach(row):
            if live.stamp == self._stamp:  # it was reached by another of its routes
                continue
            live.stamp = self._stamp
            touched[live] = None
            self._counters.tests += 1
            if live.test is None or live.test(row):
                result.append(live)
        return result
