"""`HealthReport`: what a `Module.on_health` function gets. It knows no server; who asks counts the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gamedb.schema import Row


class HealthReport:
    """What a `Module.on_health` function gets: numbers by name, and what is wrong."""

    def __init__(self, count: Callable[[type[Row], dict[str, Any]], int]) -> None:
        self._count = count
        self.numbers: dict[str, float] = {}
        """What was told by `add`, by name."""
        self.problems: list[str] = []
        """What is wrong; a database is healthy while this is empty."""

    def count(self, row: type[Row], **values: Any) -> int:
        """How many rows of a table have these values; of columns that `Module.count_rows` counts by."""
        return self._count(row, values)

    def add(self, name: str, number: float, *, limit: float | None = None, problem: str = "") -> None:
        """Tell a number. Above `limit` the database is unhealthy, and `problem` says why and what to do."""
        self.numbers[name] = number
        if limit is not None and number > limit:
            self.problems.append(problem or f"{name} is {number:g}, more than {limit:g}")
