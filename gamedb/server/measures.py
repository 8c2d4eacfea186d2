"""What is counted while a database is served: how long its transactions take, and rows by columns.

Nothing here waits or allocates much, as it runs with every transaction. How it is shown is the business of `metrics`.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gamedb.commit import Commit
from gamedb.database import Database
from gamedb.errors import DatabaseClosed
from gamedb.resolved import RowCount

BUCKETS: Final = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Upper bounds in seconds."""
NAMES_MAX: Final = 1_000
"""Transactions with other names than the first so many are counted together, as `other`."""
OTHER: Final = "other"


class Durations:
    """How long the transactions of one name took."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.buckets)


class RowCounter:
    """The number of rows of a table for each combination of some columns' values."""

    def __init__(self, db: Database, what: RowCount) -> None:
        self.table = db.tables[what.row].data.schema.name
        self.columns = what.by
        self._key = _key_function(what.by)
        self._counts = Counter(map(self._key, db.store.tables[self.table].rows.values()))

    def observe(self, commit: Commit) -> None:
        """Take in a commit."""
        changed = commit.changes.get(self.table)
        if changed is None:
            return
        counts, key = self._counts, self._key
        for _, before, after in changed.changes:
            if before is not None:
                was = key(before)
                counts[was] -= 1
                if not counts[was]:
                    del counts[was]
            if after is not None:
                counts[key(after)] += 1

    def count(self, values: dict[str, Any]) -> int:
        """How many rows have these values in these columns, which are among those that are counted by."""
        places = [(self.columns.index(column), value) for column, value in values.items()]
        return sum(n for key, n in list(self._counts.items()) if all(key[at] == value for at, value in places))

    def counts(self) -> dict[tuple[str, ...], int]:
        """The numbers by the values as text."""
        return {tuple(map(_text, values)): count for values, count in list(self._counts.items())}


def _key_function(columns: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda row: tuple([getattr(row, column) for column in columns])


def _text(value: Any) -> str:
    return value.name if isinstance(value, enum.Enum) else "" if value is None else str(value)


class Measures:
    """What is counted for one database, from the moment that this is made until `close`."""

    def __init__(self, db: Database) -> None:
        self.durations: dict[str, Durations] = {}
        self._db = db
        with db.lock:
            self.rows = [RowCounter(db, what) for what in db.module.row_counts]
            self._stops = [db.observe(counter.observe) for counter in self.rows]
            db.on_timing = self._note

    def _note(self, name: str, seconds: float) -> None:
        found = self.durations.get(name)
        if found is None:
            if len(self.durations) >= NAMES_MAX:
                name = OTHER
            found = self.durations.setdefault(name, Durations())
        found.add(seconds)

    def close(self) -> None:
        """Count nothing any more. Twice is once."""
        stops, self._stops = self._stops, []
        for stop in stops:
            with suppress(DatabaseClosed):
                stop()
        self._db.on_timing = None
