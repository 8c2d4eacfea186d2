"""Follows queries on one table under client visibility filters with a JOIN.

What a client sees of such a table also depends on rows of others. Which of its rows a commit may show or hide is found
once for all clients, through the indexes of the joined columns; each client's query then tests those rows afresh
against what it had before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from gamedb.commit import Commit
from gamedb.query import access
from gamedb.query.access import Reader, check_count
from gamedb.query.by_table import ByTable
from gamedb.query.conditions import Exists, columns_of, leaves
from gamedb.query.live import Counters, LiveQuery, Touched
from gamedb.query.plan import Query
from gamedb.schema import Row
from gamedb.store import RowChange

Keys = dict[Hashable, None]
"""Keys of rows, in a fixed order."""


class Retested:
    """The queries of which it is kept which rows they show, by key (`live.result`)."""

    def __init__(self, reader: Reader, counters: Counters) -> None:
        self._reader = reader
        self._counters = counters
        self._by_table: ByTable[LiveQuery] = ByTable()

    def add(self, live: LiveQuery) -> None:
        key_of_row = self._reader.tables[live.query.name].key_of
        live.test = self._reader.predicate(live.condition)
        live.result = {
            key_of_row(row): row for row in self._reader.select(live.query, live.condition, rows_max=access.ROWS_MAX)
        }
        self._by_table.add(live, live.query.reads)

    def remove(self, live: LiveQuery) -> None:
        self._by_table.remove(live, live.query.reads)

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        rows = list(live.result.values())
        check_count(rows, rows_max)
        return rows

    def commit(self, commit: Commit, touched: Touched) -> None:
        found: dict[Any, Keys] = {}
        for live in self._by_table.of(commit.changes):
            query = live.query
            if query.is_event:
                self._tell_events(live, commit, touched)
                continue
            rules = _rules(query)
            keys = found.get((query.name, rules))
            if keys is None:
                keys = found[query.name, rules] = self._in_question(query, rules, commit)
            if keys:
                touched[live] = None
                self._retest(live, keys)

    def _tell_events(self, live: LiveQuery, commit: Commit, touched: Touched) -> None:
        events = commit.changes.get(live.query.name)
        if events is not None:
            touched[live] = None
            live.inserted = self._reader.select(live.query, live.condition, events.inserted)

    def _retest(self, live: LiveQuery, keys: Keys) -> None:
        data = self._reader.tables[live.query.name]
        test, shown, rows = live.test, live.result, data.rows
        self._counters.tests += len(keys)
        for key in keys:
            before = shown.get(key)
            after = rows.get(key)
            if after is not None and test is not None and not test(after):
                after = None
            if before is after:
                continue
            if after is None:
                del shown[key]
            else:
                shown[key] = after
                if before is not None and data.same(before, after):
                    continue
                live.inserted.append(after)
            if before is not None:
                live.deleted.append(before)

    def _in_question(self, query: Query, rules: Iterable[Exists], commit: Commit) -> Keys:
        """The rows that came, went or changed, and those whose partners did."""
        changes = commit.changes.get(query.name)
        keys: Keys = {} if changes is None else dict.fromkeys([key for key, _, _ in changes.changes])
        key_of_row = self._reader.tables[query.name].key_of
        for rule in rules:
            partners = commit.changes.get(rule.table)
            if partners is None:
                continue
            find = self._reader.known_lookup(query.name, rule.column)
            value_of = attrgetter(rule.other)
            for partner in _differing(partners.changes, {rule.other, *columns_of(rule.condition, 1)}):
                for row in find(value_of(partner)):
                    keys[key_of_row(row)] = None
        return keys


def _rules(query: Query) -> tuple[Exists, ...]:
    """The filters with a JOIN; the same objects' equals for all who ask, as the sender is not bound in them."""
    return tuple(leaf for leaf in leaves(query.condition) if isinstance(leaf, Exists))


def _differing(changes: Iterable[RowChange], columns: set[str]) -> Iterator[Row]:
    """The rows before and after, less the updates in which these columns stay as they are."""
    for _, old, new in changes:
        if old is not None and new is not None and all(getattr(old, c) == getattr(new, c) for c in columns):
            continue
        if old is not None:
            yield old
        if new is not None:
            yield new
