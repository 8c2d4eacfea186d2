"""Procedures in a simulation: which stand-in runs, and how long an attempt takes."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from workflow_module.surroundings import Surroundings

PAUSE_SECONDS_MAX: Final = 5.0
"""How long an attempt may take when `explore` makes them take time."""


class FakeCall(msgspec.Struct, frozen=True):
    """One attempt that a fake has answered."""

    args: tuple[Any, ...]
    """The arguments by position, after the context."""
    kwargs: dict[str, Any]
    """The arguments by name."""
    step_key: str
    """The same for all attempts of one call."""
    attempt: int
    """The number of the attempt, from 1."""


class Fake:
    """What stands in for one procedure. Made by `sim.fake`."""

    def __init__(self, outcomes: tuple[Any, ...], delay: timedelta | float | None) -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if seconds is not None and not (isinstance(seconds, int | float) and 0 <= seconds < math.inf):
            raise ValueError(f"fake(delay={delay!r}): how long an attempt takes, a timedelta or seconds, 0 or more")
        self.outcomes = list(outcomes)
        """What the attempts give, in order; the last one again and again."""
        self.delay_seconds = seconds
        """How long an attempt takes; `None`: no time."""
        self.calls: list[FakeCall] = []
        """The attempts so far, over all lives of the process."""

    async def answer(self, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The outcome of the next attempt."""
        index = min(len(self.calls), len(self.outcomes) - 1)
        self.calls.append(FakeCall(args, kwargs, step.step_key, step.attempt))
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        outcome = self.outcomes[index]
        if isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException)):
            raise outcome
        if not callable(outcome):
            return outcome
        value = outcome(step, *args, **kwargs)
        return await value if inspect.isawaitable(value) else value


Chance = Callable[[str, str], float]
"""From the name of a procedure and a key of a part of an attempt: how many seconds that takes."""


class Simulated(Surroundings):
    """Surroundings in simulated time."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.fakes: dict[str, Fake] = {}
        self.pause: Chance | None = None
        """With it, attempts take time before and after their work."""

    def seconds(self) -> float:
        """The simulated time."""
        return self._seconds()

    def stand_in(self, name: str, procedure: Callable[..., Any]) -> Callable[..., Any]:
        """The fake of this name, or the procedure itself; never in a thread."""

        async def run(step: Any, *args: Any, **kwargs: Any) -> Any:
            await self._pause(name, f"{step.attempt_key} before")
            fake = self.fakes.get(name)
            if fake is not None:
                value = await fake.answer(step, args, kwargs)
            else:
                value = procedure(step, *args, **kwargs)
                if inspect.isawaitable(value):
                    value = await value
            await self._pause(name, f"{step.attempt_key} after")
            return value

        return run

    async def _pause(self, name: str, key: str) -> None:
        if self.pause is not None and (seconds := self.pause(name, key)) > 0:
            await asyncio.sleep(seconds)
