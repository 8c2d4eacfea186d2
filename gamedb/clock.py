"""Where time comes from: `SystemClock` for games, `ManualClock` for tests. Nobody else asks the system for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from gamedb.columns import from_micros, micros_of, to_micros


class Clock(Protocol):
    """A source of time, in microseconds since the Unix epoch."""

    def micros(self) -> int:
        """The time now."""

    def wait_seconds(self, due: int) -> float | None:
        """How long to sleep until `due`; `None` when only `on_change` can tell that it has come."""

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever the time jumped; gives a function that undoes this."""


class SystemClock:
    """The machine's time."""

    def micros(self) -> int:
        """The time now."""
        return time.time_ns() // 1000

    def wait_seconds(self, due: int) -> float | None:
        """How long to sleep until `due`; at most a minute, so that a corrected clock is noticed."""
        return min(max(0.0, (due - self.micros()) / 1_000_000), 60.0)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """The system's clock tells nobody when it jumps; `wait_seconds` takes care of that."""
        return lambda: None


class ManualClock:
    """A clock that stands still until it is told to move.

    `start` is an aware datetime; by default 2026-01-01 UTC.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._micros = to_micros(start)
        self._callbacks: list[Callable[[], None]] = []

    def micros(self) -> int:
        """The time now."""
        return self._micros

    @property
    def now(self) -> datetime:
        """The time now, as UTC datetime."""
        return from_micros(self._micros)

    def advance(self, by: timedelta | float) -> None:
        """Move on by a timedelta or by seconds; `ValueError` when that is backwards (use `set`)."""
        step = micros_of(by) if isinstance(by, timedelta) else round(by * 1_000_000)
        if step < 0:
            raise ValueError(f"advance({by!r}) would go backwards; use set()")
        self._move(self._micros + step)

    def set(self, moment: datetime) -> None:
        """Move to this aware datetime, forwards or backwards."""
        self._move(to_micros(moment))

    def wait_seconds(self, due: int) -> float | None:
        """`None`: only `advance` and `set` move this clock."""
        return None if due > self._micros else 0.0

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each `advance` and `set`; gives a function that undoes this."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def _move(self, micros: int) -> None:
        self._micros = micros
        for callback in list(self._callbacks):
            callback()
