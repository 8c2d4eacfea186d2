"""Which queries a row can match: by the equalities that they contain, so that the others cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from gamedb.query.conditions import Route
from gamedb.query.live import LiveQuery
from gamedb.schema import Row

Lives = dict[LiveQuery, None]


class Routes:
    """The queries on the rows of one table, by column and value where they ask for one."""

    __slots__ = ("_columns", "rest")

    def __init__(self) -> None:
        self._columns: dict[str, tuple[attrgetter[Any], dict[Any, Lives]]] = {}
        self.rest: Lives = {}
        """Those that any row may match."""

    def add(self, live: LiveQuery, routes: tuple[Route, ...] | None) -> None:
        """Let rows reach a query: those on one of its routes, or all."""
        if routes is None:
            self.rest[live] = None
            return
        for column, value in routes:
            if column not in self._columns:
                self._columns[column] = (attrgetter(column), {})
            self._columns[column][1].setdefault(value, {})[live] = None

    def remove(self, live: LiveQuery, routes: tuple[Route, ...] | None) -> None:
        """Undo `add`; nothing of it stays."""
        if routes is None:
            del self.rest[live]
            return
        for column, value in routes:
            by_value = self._columns[column][1]
            lives = by_value[value]
            del lives[live]
            if not lives:
                del by_value[value]
                if not by_value:
                    del self._columns[column]

    def reach(self, row: Row) -> Iterator[LiveQuery]:
        """The queries that the row may match; one with several routes may come several times."""
        for value_of, by_value in self._columns.values():
            lives = by_value.get(value_of(row))
            if lives is not None:
                yield from lives
        yield from self.rest

    def __bool__(self) -> bool:
        return bool(self._columns) or bool(self.rest)
