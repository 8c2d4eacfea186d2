"""Budgets that fill up again with time: how often somebody may do something. Knows no clock; it is told the time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

BURST_SECONDS: Final = 10.0
"""Rates are an average: what nobody used in so many seconds may be used at once."""


class Budget:
    """So much at once, and so much a second in the long run (a token bucket)."""

    __slots__ = ("_at", "_left", "burst", "per_second")

    def __init__(self, per_second: float, now: float, burst: float | None = None) -> None:
        self.per_second = per_second
        self.burst = burst if burst is not None else max(1.0, per_second * BURST_SECONDS)
        self._left = self.burst
        self._at = now

    def wait(self, now: float, amount: float = 1.0) -> float:
        """In how many seconds there is so much; 0 when there is now."""
        self._left = min(self.burst, self._left + (now - self._at) * self.per_second)
        self._at = now
        return max(0.0, (amount - self._left) / self.per_second)

    def use(self, amount: float = 1.0) -> None:
        """Take so much away; what is not there is owed."""
        self._left -= amount

    def is_full(self, now: float) -> bool:
        """Whether it is as if nobody had ever used it."""
        return self.wait(now, self.burst) == 0.0


class Budgets:
    """One budget for each name. It is forgotten when it is full again, so that only those who come often are kept."""

    def __init__(self, per_second: float, burst: float | None = None) -> None:
        self._per_second = per_second
        self._burst = burst
        self._budgets: OrderedDict[str, Budget] = OrderedDict()

    def __len__(self) -> int:
        return len(self._budgets)

    def of(self, name: str, now: float) -> Budget:
        """The budget of this name, which is about to be used."""
        for _ in range(2):  # more than come in
            oldest = next(iter(self._budgets), None)
            if oldest is None or not self._budgets[oldest].is_full(now):
                break
            del self._budgets[oldest]
        budget = self._budgets.get(name)
        if budget is None:
            budget = self._budgets[name] = Budget(self._per_second, now, self._burst)
        self._budgets.move_to_end(name)
        return budget
