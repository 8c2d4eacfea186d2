"""`HealthReport`: what a `Module.on_health` function gets. It knows no server; who asks counts the rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from gamedb.schema import Row
from gamedb.store import ReadTable

R = TypeVar("R", bound=Row)


class HealthReport:
    """What a `Module.on_health` function gets: numbers by name, and what is wrong."""

    def __init__(
        self,
        count: Callable[[type[Row], dict[str, Any]], int],
        *,
        read: Callable[[type[Any]], ReadTable[Any]],
        seconds_since: Callable[[datetime], float],
    ) -> None:
        self._count = count
        self._read = read
        self._seconds_since = seconds_since
        self.numbers: dict[str, float] = {}
        """What was told by `add`, by name."""
        self.problems: list[str] = []
        """What is wrong; a database is healthy while this is empty."""

    def count(self, row: type[Row], **values: Any) -> int:
        """How many rows of a table have these values; of columns that `Module.count_rows` counts by."""
        return self._count(row, values)

    def read(self, row: type[R]) -> ReadTable[R]:
        """The committed rows of a table. Ask an index: health is looked at every few seconds."""
        return self._read(row)

    def seconds_since(self, moment: datetime) -> float:
        """How long ago that was, of the time that the database has been served; never negative."""
        return self._seconds_since(moment)

    def add(self, name: str, number: float, *, limit: float | None = None, problem: str = "") -> None:
        """Tell a number. Above `limit` the database is unhealthy, and `problem` says why and what to do."""
        self.numbers[name] = number
        if limit is not None and number > limit:
            self.problems.append(problem or f"{name} is {number:g}, more than {limit:g}")
