"""Follows queries on views: a view runs again when a table that it looked at changes.

A run that never asked who looks is everybody's. What goes wrong in a view is the matter of those who follow it: they
get an error, and the commit stands.
"""

from __future__ import annotations

import logging

from gamedb.bags import without
from gamedb.columns import exact_function
from gamedb.commit import Commit
from gamedb.errors import QueryError
from gamedb.functions import Function
from gamedb.query.access import Reader, check_count
from gamedb.query.by_table import ByTable
from gamedb.query.code import Predicate
from gamedb.query.conditions import Condition
from gamedb.query.live import Counters, LiveQuery, Touched
from gamedb.query.plan import Query
from gamedb.schema import Row
from gamedb.store import ReadTables
from gamedb.types import Identity
from gamedb.viewing import Reads, run_view

_Key = tuple[str, Identity | None]


class _Result:
    """The result of a view, for one sender or (key without one) for all, and the queries over it."""

    __slots__ = ("exact", "key", "lives", "rows", "sender", "tables", "view")

    def __init__(self, key: _Key, view: Function, sender: Identity) -> None:
        self.key = key
        self.view = view
        self.sender = sender
        """In whose name the view runs."""
        self.rows: list[Row] = []
        self.tables: set[str] = set()
        """What its last run looked at; when that failed, also what those before did."""
        self.lives: dict[LiveQuery, None] = {}
        self.exact = None if view.returns is None else exact_function(view.returns)


class Views:
    """The results of views that somebody follows."""

    def __init__(self, log: logging.Logger, tables: ReadTables, reader: Reader, counters: Counters) -> None:
        self._log = log
        self._tables = tables
        self._reader = reader
        self._counters = counters
        self._results: dict[_Key, _Result] = {}
        self._by_table: ByTable[_Result] = ByTable()
        self._personal: set[str] = set()
        """Views that asked who looks, though their code did not tell."""

    def prepare(self, query: Query, sender: Identity) -> bool:
        """Run the view unless its result is there; whether the query's answer is for this sender alone.

        `QueryError` when the view fails. `add` comes next.
        """
        view = _view_of(query)
        key = self._key(query, sender)
        if key not in self._results:
            reads = Reads()
            rows = self._run_for(query, view, sender, reads)
            if reads.sender and key[1] is None:
                self._personal.add(view.name)
                key = self._key(query, sender)
            result = self._results[key] = _Result(key, view, sender)
            result.rows = rows
            self._file(result, reads.tables)
        return query.depends_on_sender or key[1] is not None

    def add(self, live: LiveQuery) -> None:
        live.test = self._reader.predicate(live.condition)
        live.result = self._results[self._key(live.query, live.sender)]
        live.result.lives[live] = None

    def remove(self, live: LiveQuery) -> None:
        result: _Result = live.result
        del result.lives[live]
        if not result.lives:
            self._file(result, set())
            if self._results.get(result.key) is result:
                del self._results[result.key]

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        return _chosen(live.result.rows, live.test, rows_max)

    def answer(self, query: Query, condition: Condition, sender: Identity, rows_max: int | None) -> list[Row]:
        """The answer now, of a query that nobody needs to follow."""
        result = self._results.get(self._key(query, sender))
        rows = self._run_for(query, _view_of(query), sender, Reads()) if result is None else result.rows
        return _chosen(rows, self._reader.predicate(condition), rows_max)

    def commit(self, commit: Commit, touched: Touched) -> None:
        everybodys: dict[str, tuple[list[Row], Reads]] = {}
        for result in self._by_table.of(commit.changes):
            touched |= result.lives
            reads = Reads()
            try:
                if result.view.name in everybodys:
                    after, reads = everybodys[result.view.name]
                else:
                    after = self._run(result.view, result.sender, reads)
            except Exception as error:
                self._file(result, result.tables | reads.tables)  # a change of either may mend it
                self._log.error("view %s failed: %r", result.view.name, error, exc_info=error)
                self._fail(result, _failure(result.view, error))
                continue
            if not reads.sender:
                everybodys[result.view.name] = (after, reads)
            elif result.key[1] is None:
                self._split(result)
                continue
            self._file(result, reads.tables)
            before, result.rows = result.rows, after
            self._tell(result, without(before, after, result.exact), without(after, before, result.exact))

    def _tell(self, result: _Result, deleted: list[Row], inserted: list[Row]) -> None:
        if deleted or inserted:
            for live in result.lives:
                live.deleted = _chosen(deleted, live.test, None)
                live.inserted = _chosen(inserted, live.test, None)

    def _split(self, result: _Result) -> None:
        """What was everybody's result no longer is: who follows it has to ask again, each for themselves."""
        self._personal.add(result.view.name)
        self._file(result, set())
        if self._results.get(result.key) is result:
            del self._results[result.key]
        self._fail(result, f"view `{result.view.name}` now depends on who asks; subscribe to it again")

    def _fail(self, result: _Result, text: str) -> None:
        for live in result.lives:
            live.error = text

    def _key(self, query: Query, sender: Identity) -> _Key:
        return (query.name, sender if query.view_asks_sender or query.name in self._personal else None)

    def _file(self, result: _Result, tables: set[str]) -> None:
        """Run the view again when one of these tables changes, and only then."""
        self._by_table.remove(result, result.tables - tables)
        self._by_table.add(result, tables - result.tables)
        result.tables = set(tables)

    def _run(self, view: Function, sender: Identity, reads: Reads) -> list[Row]:
        self._counters.views_run += 1
        return run_view(self._tables, view, (), sender, reads)

    def _run_for(self, query: Query, view: Function, sender: Identity, reads: Reads) -> list[Row]:
        try:
            return self._run(view, sender, reads)
        except Exception as error:
            self._log.error("view %s failed: %r", view.name, error, exc_info=error)
            raise QueryError(_failure(view, error)) from error


def _view_of(query: Query) -> Function:
    assert query.view is not None
    return query.view


def _failure(view: Function, error: Exception) -> str:
    return f"view `{view.name}` failed with {type(error).__name__}; the log of the server says more"


def _chosen(rows: list[Row], test: Predicate | None, rows_max: int | None) -> list[Row]:
    chosen = list(rows) if test is None else [row for row in rows if test(row)]
    check_count(chosen, rows_max)
    return chosen
