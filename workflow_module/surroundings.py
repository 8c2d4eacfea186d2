"""What attempts of procedures need of the world around them: a clock for their limits, and the code that runs.

Simulations put others in place, for the tasks that they run. Nothing else does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final


class Surroundings:
    """The real world."""

    def seconds(self) -> float:
        """A time that only goes forwards."""
        return time.monotonic()

    def stand_in(self, name: str, procedure: Callable[..., Any]) -> Callable[..., Any]:
        """What runs when this procedure is called: the procedure."""
        return procedure


_REAL: Final = Surroundings()
surroundings: Final = ContextVar("surroundings", default=_REAL)
"""Those of the running task."""
