"""Follows queries that join two tables, with exact multiplicities.

Queries over the same two tables and columns share the work: which pairs of rows a commit joined and parted is found
once, through the indexes of the joined columns, and each pair is tested against the queries that it can reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from gamedb.commit import Commit
from gamedb.query.access import Reader
from gamedb.query.by_table import ByTable
from gamedb.query.conditions import FALSE, columns_of, routes_of
from gamedb.query.live import Counters, LiveQuery, Touched, cancel
from gamedb.query.plan import Query, prefer_indexed
from gamedb.query.routes import Routes
from gamedb.schema import Row


class Joins:
    """The queries with a JOIN."""

    def __init__(self, reader: Reader, counters: Counters) -> None:
        self._reader = reader
        self._counters = counters
        self._groups: dict[Any, _Group] = {}
        self._by_table: ByTable[_Group] = ByTable()

    def add(self, live: LiveQuery) -> None:
        if live.condition == FALSE:
            return
        key = _key(live.query)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(live.query, self._reader, self._counters)
            self._by_table.add(group, (group.left_name, group.right_name))
        group.add(live)

    def remove(self, live: LiveQuery) -> None:
        if live.condition == FALSE:
            return
        key = _key(live.query)
        group = self._groups[key]
        group.remove(live)
        if group:
            return
        del self._groups[key]
        self._by_table.remove(group, (group.left_name, group.right_name))

    def rows(self, live: LiveQuery, rows_max: int | None) -> list[Row]:
        return self._reader.select(live.query, live.condition, rows_max=rows_max)

    def commit(self, commit: Commit, touched: Touched) -> None:
        for group in self._by_table.of(commit.changes):
            group.commit(commit, touched)


def _key(query: Query) -> Any:
    assert query.join is not None
    return (query.table.name, query.join.column, query.join.table.name, query.join.other)


class _Group:
    """The queries that join the same two tables by the same columns, and return rows of the same one (the left)."""

    def __init__(self, query: Query, reader: Reader, counters: Counters) -> None:
        join = query.join
        assert join is not None
        self.left_name, self.right_name = query.table.name, join.table.name
        self._right_column = join.other
        self._prefer = (prefer_indexed(query.table), prefer_indexed(join.table))
        self._reader = reader
        self._counters = counters
        self._find_left = reader.known_lookup(self.left_name, join.column)
        self._find_right = reader.known_lookup(self.right_name, join.other)
        self._left_value = attrgetter(join.column)
        self._right_value = attrgetter(join.other)
        self._left = Routes()
        self._right = Routes()
        self._right_used: Counter[str] = Counter()
        self._stamp = 0

    def __bool__(self) -> bool:
        return bool(self._left) or bool(self._right)

    def add(self, live: LiveQuery) -> None:
        by_left, left_rest = routes_of(live.condition, 0, self._prefer[0])
        by_right, right_rest = routes_of(live.condition, 1, self._prefer[1])
        live.on_right = by_left is None and by_right is not None
        live.routes, rest = (by_right, right_rest) if live.on_right else (by_left, left_rest)
        live.test = self._reader.predicate(rest)
        self._side(live).add(live, live.routes)
        self._right_used.update(columns_of(live.condition, 1))

    def remove(self, live: LiveQuery) -> None:
        self._side(live).remove(live, live.routes)
        self._right_used.subtract(columns_of(live.condition, 1))
        self._right_used += Counter()  # drops what is at zero

    def _side(self, live: LiveQuery) -> Routes:
        return self._right if live.on_right else self._left

    def commit(self, commit: Commit, touched: Touched) -> None:
        """Test the pairs that the commit joined and parted.

        The tables are as after the commit. A pair is new when it holds a new row, and was lost when it held one that
        is gone; what was there before is what is there now, less what is new, and what is gone.
        """
        deleted_left, inserted_left = _rows_of(commit, self.left_name)
        deleted_right, inserted_right = self._relevant_rights(commit)
        new_left, new_right = set(map(id, inserted_left)), set(map(id, inserted_right))
        gone_right: dict[Any, list[Row]] = {}
        for right in deleted_right:
            gone_right.setdefault(self._right_value(right), []).append(right)
        here: Touched = {}
        for left in deleted_left:
            value = self._left_value(left)
            if value is None or value != value:
                continue
            stayed = [right for right in self._find_right(value) if id(right) not in new_right]
            for live in self._matching(left, [*stayed, *gone_right.get(value, ())], here):
                live.deleted.append(left)
        for left in inserted_left:
            for live in self._matching(left, self._find_right(self._left_value(left)), here):
                live.inserted.append(left)
        for rights, gone in ((deleted_right, True), (inserted_right, False)):
            for right in rights:
                for left in self._find_left(self._right_value(right)):
                    if id(left) not in new_left:
                        for live in self._matching(left, (right,), here):
                            (live.deleted if gone else live.inserted).append(left)
        for live in here:
            cancel(live)
        touched |= here

    def _relevant_rights(self, commit: Commit) -> tuple[list[Row], list[Row]]:
        """The rows of the other table that went and came, less updates of columns that no query looks at."""
        changes = commit.changes.get(self.right_name)
        if changes is None:
            return [], []
        columns = [self._right_column, *self._right_used]
        deleted: list[Row] = []
        inserted: list[Row] = []
        for _, old, new in changes.changes:
            if old is not None and new is not None and all(getattr(old, c) == getattr(new, c) for c in columns):
                continue
            if old is not None:
                deleted.append(old)
            if new is not None:
                inserted.append(new)
        return deleted, inserted

    def _matching(self, left: Row, rights: Iterable[Row], here: Touched) -> Iterator[LiveQuery]:
        """The queries that the pairs fulfil, once for each pair."""
        reached = list(self._left.reach(left))
        for right in rights:
            self._stamp += 1
            for live in (*reached, *self._right.reach(right)):
                if live.stamp == self._stamp:  # it was reached by another of its routes
                    continue
                live.stamp = self._stamp
                here[live] = None
                self._counters.tests += 1
                if live.test is None or live.test(left, right):
                    yield live


def _rows_of(commit: Commit, name: str) -> tuple[list[Row], list[Row]]:
    changes = commit.changes.get(name)
    return ([], []) if changes is None else (changes.deleted, changes.inserted)
