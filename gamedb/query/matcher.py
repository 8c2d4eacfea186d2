"""`Matcher`: follows queries, and says after each commit how their answers changed.

One for a database; used under its lock, between transactions or as an observer of commits. It knows no client: who
asked for what, and how it is sent, is the caller's.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any

from gamedb.columns import ProductType, exact_function
from gamedb.commit import Commit
from gamedb.query.access import ROWS_MAX, Reader
from gamedb.query.catalog import Catalog
from gamedb.query.conditions import bound
from gamedb.query.joins import Joins
from gamedb.query.live import Counters, Delta, Follower, LiveQuery, Touched
from gamedb.query.plan import Query
from gamedb.query.reevaluated import Reevaluated
from gamedb.query.retested import Retested
from gamedb.query.single import SingleTables
from gamedb.query.views import Views
from gamedb.schema import Row
from gamedb.store import ReadTables
from gamedb.types import Identity


class Matcher:
    """The running queries of a database."""

    def __init__(self, catalog: Catalog, tables: ReadTables, *, log: logging.Logger | None = None) -> None:
        """`log`: where failures of views go; by default to the logger of the module."""
        self.counters = Counters()
        self._reader = Reader({schema.name: tables[schema.row].data for schema in catalog.tables})
        self._live: dict[Any, LiveQuery] = {}
        self._single = SingleTables(self._reader, self.counters)
        self._joins = Joins(self._reader, self.counters)
        self._reevaluated = Reevaluated(self._reader, self.counters)
        self._retested = Retested(self._reader, self.counters)
        log = log or logging.getLogger(f"gamedb.{catalog.name}")
        self._views = Views(log, tables, self._reader, self.counters)
        self._followers: tuple[Follower, ...] = (
            self._single,
            self._joins,
            self._retested,
            self._reevaluated,
            self._views,
        )

    def __len__(self) -> int:
        return len(self._live)

    def open(self, query: Query, sender: Identity) -> LiveQuery:
        """Follow a query, from the last commit on. Those who ask the same get the same `LiveQuery`.

        `QueryError` when it asks a view that fails.
        """
        personal = query.depends_on_sender if query.view is None else self._views.prepare(query, sender)
        key = (query.key, sender if personal else None)
        live = self._live.get(key)
        if live is None:
            live = LiveQuery(key, query, sender, bound(query.condition, sender), self._follower(query))
            live.exact = exact_of(query)
            live.follower.add(live)
            self._live[key] = live
        live.users += 1
        return live

    def close(self, live: LiveQuery) -> None:
        """Undo one `open`; the last one ends the query, and nothing of it stays."""
        if live.users <= 0:
            raise ValueError(f"{live!r} is closed already")
        live.users -= 1
        if live.users == 0:
            live.follower.remove(live)
            if self._live.get(live.key) is live:
                del self._live[live.key]

    def answer(self, query: Query, sender: Identity, rows_max: int | None = ROWS_MAX) -> list[Row]:
        """The answer of a query now, without following it; `QueryError` for more than `rows_max` rows."""
        condition = bound(query.condition, sender)
        if query.view is not None:
            return self._views.answer(query, condition, sender, rows_max)
        return self._reader.select(query, condition, rows_max=rows_max)

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """Queries that are begun in it may look for their rows no longer than this, nor than `SECONDS_MAX`."""
        return self._reader.within(seconds)

    def commit(self, commit: Commit) -> list[Delta]:
        """How a commit, the last one, changed the answers: nothing for a query whose answer is what it was."""
        counters = self.counters
        touched: Touched = {}
        for follower in self._followers:
            follower.commit(commit, touched)
        deltas = []
        for live in touched:
            if live.error is not None:
                deltas.append(Delta(live, [], [], live.error))
                live.error, live.deleted, live.inserted = None, [], []
            elif live.deleted or live.inserted:
                counters.rows_matched += len(live.deleted) + len(live.inserted)
                deltas.append(Delta(live, live.deleted, live.inserted))
                live.deleted, live.inserted = [], []
        counters.commits += 1
        counters.queries_evaluated += len(touched)
        counters.queries_skipped += len(self._live) - len(touched)
        return deltas

    def _follower(self, query: Query) -> Follower:
        if query.view is not None:
            return self._views
        if query.join is None:
            return self._retested if query.has_exists else self._single
        return self._reevaluated if query.has_exists else self._joins


def exact_of(query: Query) -> Any:
    """What tells the rows of a query apart; `None`: the rows themselves do."""
    if not query.table.has_float:
        return None
    return exact_function(ProductType(query.table.row, {c.name: c.type for c in query.table.columns}, set()))
