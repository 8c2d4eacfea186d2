"""How long to wait before the next attempt to connect."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST_SECONDS: Final = 1.0
SECONDS_MAX: Final = 30.0


class Backoff:
    """Waits that double from `FIRST_SECONDS` to `SECONDS_MAX`, each shortened by up to half, so that clients spread."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next = FIRST_SECONDS

    def seconds(self) -> float:
        """The wait before the next attempt."""
        wait = self._next
        self._next = min(wait * 2, SECONDS_MAX)
        return wait * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """An attempt was successful."""
        self._next = FIRST_SECONDS
