"""`Turns`: work that is done in small shares, so that no client makes the others wait.

One queue for a server. Each pass of the event loop runs shares from its front for a few milliseconds, then lets the
loop look at sockets and timers. It knows neither sessions nor asyncio, only how to be called again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

_log: Final = logging.getLogger("gamedb.server")

PASS_SECONDS: Final = 0.005
"""How long the shares of one pass take together; at least one share is done."""

Share = Callable[[], bool]
"""Does a bit of work, a millisecond or so; says whether there is more to do."""


class Turns:
    """Shares of work, first come, first served; unfinished ones go to the back."""

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], *, seconds: Callable[[], float] = perf_counter
    ) -> None:
        self._call_soon = call_soon
        self.seconds = seconds
        """The clock by which shares are measured."""
        self._queue: deque[Share] = deque()
        self._called = False

    def add(self, share: Share) -> None:
        """Run `share` soon, and again while it says that there is more to do."""
        self._queue.append(share)
        if not self._called:
            self._called = True
            self._call_soon(self._pass)

    def __len__(self) -> int:
        return len(self._queue)

    def _pass(self) -> None:
        queue = self._queue
        until = self.seconds() + PASS_SECONDS
        while queue:
            share = queue.popleft()
            try:
                if share():
                    queue.append(share)
            except Exception as error:  # a bug of ours must not stop the work of everybody
                _log.error("a piece of work failed: %r", error, exc_info=error)
            if self.seconds() >= until:
                break
        if queue:
            self._call_soon(self._pass)
        else:
            self._called = False
