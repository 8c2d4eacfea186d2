"""Answers a query from the committed rows, through indexes where the conditions allow it.

Reads tables and nothing else; the caller sees to it that no transaction is running.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeVar

from gamedb.errors import QueryError
from gamedb.query.code import Predicate, compiled
from gamedb.query.conditions import All, Condition, Exists, Test, routes_of
from gamedb.query.plan import Query, prefer_indexed
from gamedb.schema import Row
from gamedb.store import TableData
from gamedb.store.index import Bucket

T = TypeVar("T")

Lookup = Callable[[Any], Sequence[Row]]
"""The rows with this value in a column. None and nan are in none."""


def lookup(data: TableData, column: str) -> Lookup | None:
    """The look-up by an indexed column; `None` without an index."""
    rows: dict[Any, Row] = data.rows
    schema = data.schema
    if column == schema.primary_key:

        def by_key(value: Any) -> Sequence[Row]:
            row = None if value is None else rows.get(value)
            return () if row is None else (row,)

        return by_key
    index: Any = data.unique.get(column) or data.indexes.get((column,))
    if index is None:
        return None
    keys: dict[Any, Any] = index.keys

    def by_index(value: Any) -> Sequence[Row]:
        if value is None or value != value:
            return ()
        key = keys.get(value)
        if key is None and value not in keys:
            return ()
        if type(key) is Bucket:
            return [rows[k] for k in key]
        return (rows[key],)

    return by_index


ROWS_MAX: Final = 1_000_000
"""Rows of an answer, unless the caller says otherwise."""
PAIRS_MAX: Final = 5_000_000
"""Pairs of joined rows that are tested for an answer that has a limit."""

SECONDS_MAX: Final = 2.0
"""How long the rows of an answer that has a limit may be looked for, as all else waits."""

COMMIT_SECONDS_MAX: Final = 0.5
"""How long a commit may wait for the queries that are answered again at each commit."""


class Reader:
    """The tables of a database, as queries look at them."""

    def __init__(self, tables: Mapping[str, TableData]) -> None:
        self.tables = tables
        self.seconds_max = SECONDS_MAX
        """What applies of `SECONDS_MAX` at the moment."""
        self._lookups: dict[tuple[str, str], Lookup | None] = {}

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Answers with a limit may be looked for no longer than this, nor than what applies already."""
        before = self.seconds_max
        self.seconds_max = min(seconds, before)
        try:
            yield
        finally:
            self.seconds_max = before

    def lookup(self, table: str, column: str) -> Lookup | None:
        """As the function, made once."""
        key = (table, column)
        if key not in self._lookups:
            self._lookups[key] = lookup(self.tables[table], column)
        return self._lookups[key]

    def known_lookup(self, table: str, column: str) -> Lookup:
        """The look-up by a column that has an index: what the `Catalog` made sure of."""
        found = self.lookup(table, column)
        assert found is not None
        return found

    def exists(self, leaf: Exists) -> Callable[[Any], bool]:
        """The test of `Exists` on a row."""
        find = self.known_lookup(leaf.table, leaf.other)
        value_of = operator.attrgetter(leaf.column)
        test = self.predicate(leaf.condition)
        if test is None:
            return lambda row: len(find(value_of(row))) > 0
        return lambda row: any(test(row, other) for other in find(value_of(row)))

    def predicate(self, condition: Condition) -> Predicate | None:
        """The code of a bound condition; `None` when it always holds."""
        return compiled(condition, self.exists)

    def select(
        self, query: Query, condition: Condition, rows: Iterable[Row] | None = None, rows_max: int | None = None
    ) -> list[Row]:
        """The rows that a query on tables gives now, each as often as it is in the result.

        `condition` is its bound one. With `rows`, the answer as if these were all rows of the table that it returns
        rows of. With `rows_max`, `QueryError` for more rows, for more pairs of joined rows than `PAIRS_MAX`, and after
        `seconds_max`.
        """
        test = self.predicate(condition)
        if query.join is None:
            if rows is None:
                rows = () if query.is_event else self.candidates(query.table.name, condition, 0)
            if test is not None and rows_max is not None:
                rows = self._in_time(rows)
            found = rows if test is None else (row for row in rows if test(row))
        else:
            pairs = self._pairs(query, condition, rows)
            if rows_max is not None:
                pairs = self._in_time(_limited(pairs))
            found = (row for row, other in pairs if test is None or test(row, other))
        result = list(found if rows_max is None else islice(found, rows_max + 1))
        check_count(result, rows_max)
        return result

    def _in_time(self, items: Iterable[T]) -> Iterator[T]:
        seconds = self.seconds_max
        until = perf_counter() + seconds
        for number, item in enumerate(items):
            if not number % 1024 and perf_counter() > until:
                raise QueryError(
                    f"the query takes more than {seconds:.2g} s; compare indexed columns with =, or ask for less"
                )
            yield item

    def _pairs(self, query: Query, condition: Condition, rows: Iterable[Row] | None) -> Iterator[tuple[Row, Row]]:
        """The joined rows that may fulfil the condition, from the side that names fewer."""
        join = query.join
        assert join is not None
        left, right = query.table, join.table
        if rows is None and self._cost(left.name, condition, 0) > self._cost(right.name, condition, 1):
            find, value_of = self.known_lookup(left.name, join.column), operator.attrgetter(join.other)
            for other in self.candidates(right.name, condition, 1):
                for row in find(value_of(other)):
                    yield row, other
            return
        find, value_of = self.known_lookup(right.name, join.other), operator.attrgetter(join.column)
        for row in self.candidates(left.name, condition, 0) if rows is None else rows:
            for other in find(value_of(row)):
                yield row, other

    def _cost(self, table: str, condition: Condition, side: int) -> int:
        """How many rows `candidates` may give, roughly."""
        data = self.tables[table]
        routes, _ = routes_of(condition, side, prefer_indexed(data.schema))
        if routes is not None and all(self.lookup(table, column) for column, _ in routes):
            return len(routes)
        return len(data.rows)

    def candidates(self, table: str, condition: Condition, side: int) -> Iterable[Row]:
        """Rows of a table among which are all that fulfil a bound condition; each once."""
        data = self.tables[table]
        routes, _ = routes_of(condition, side, prefer_indexed(data.schema))
        if routes is not None:
            finders = [(self.lookup(table, column), value) for column, value in routes]
            if all(find is not None for find, _ in finders):
                found = [find(value) for find, value in finders if find is not None]
                if len(found) == 1:
                    return found[0]
                return {id(row): row for rows in found for row in rows}.values()
        ranged = self._range(data, condition, side)
        return list(data.rows.values()) if ranged is None else ranged

    def _range(self, data: TableData, condition: Condition, side: int) -> Iterable[Row] | None:
        """The rows of a range that the condition asks for, through an ordered index."""
        ranges: dict[str, tuple[list[Any], list[Any]]] = {}
        for part in condition.parts if isinstance(condition, All) else (condition,):
            if not isinstance(part, Test) or part.side != side or part.operator not in ("<", "<=", ">", ">="):
                continue
            if self.lookup(data.schema.name, part.column) is not None:
                lows, highs = ranges.setdefault(part.column, ([], []))
                (lows if part.operator.startswith(">") else highs).append(part.value)
        if not ranges:
            return None
        column = max(ranges, key=lambda name: sum(map(bool, ranges[name])))
        lows, highs = ranges[column]
        found = data.ordered((column,))
        assert found is not None
        order, keys = found
        rows: dict[Any, Row] = data.rows
        result: list[Row] = []
        for value in order.between(max(lows, default=None), min(highs, default=None)):
            key = keys.get(value, value)
            if type(key) is Bucket:
                result.extend([rows[k] for k in key])
            else:
                result.append(rows[key])
        return result


def _limited(pairs: Iterator[tuple[Row, Row]]) -> Iterator[tuple[Row, Row]]:
    for number, pair in enumerate(pairs):
        if number >= PAIRS_MAX:
            raise QueryError(f"the JOIN meets more than {PAIRS_MAX} pairs of rows; narrow it with WHERE")
        yield pair


def check_count(rows: Sequence[Row], rows_max: int | None) -> None:
    """`QueryError` for more rows than that."""
    if rows_max is not None and len(rows) > rows_max:
        raise QueryError(f"the query gives more than {rows_max} rows; narrow it with WHERE")
