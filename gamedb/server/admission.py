"""`Admission`: how much may come from one address. What is past a limit is refused, counted, and told which limit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

from gamedb.errors import GamedbError
from gamedb.server.addresses import Proxies, counted_as
from gamedb.server.limits import Limits
from gamedb.server.rates import Budgets

ADDRESS_BURST: Final = 4
"""How many connections of an address may use up their `query_seconds_burst` at once."""

Spend = Callable[[float], None]
"""Is to be told how many seconds something took."""
Follow = Callable[[], Spend]
"""`Admission.follow` for an address."""


class TooMany(GamedbError):
    """A limit of what one client or address may do; the text is for it."""

    def __init__(self, limit: str, text: str, retry_seconds: float) -> None:
        super().__init__(f"{text} ({limit})")
        self.limit = limit
        self.retry_seconds = max(1, math.ceil(retry_seconds))
        """When to try again."""


class Admission:
    """The limits by address of one server."""

    def __init__(
        self, limits: Limits, proxies: Iterable[str] = (), *, seconds: Callable[[], float] = monotonic
    ) -> None:
        self._limits = limits
        self._seconds = seconds
        self.proxies = Proxies(proxies)
        self.refused: Counter[str] = Counter()
        """How often each limit was reached, by its name."""
        self._open: Counter[str] = Counter()
        self._connects = Budgets(limits.connects_per_second_max)
        self._identities = Budgets(limits.identities_per_second_max)
        burst = limits.query_seconds_burst
        self._queries = Budgets(limits.query_share_max, burst)
        self._followers = Budgets(limits.query_share_per_address_max, burst * ADDRESS_BURST)

    def enter(self, address: str) -> Callable[[], None]:
        """Count a websocket that is being opened, and give what ends that. `TooMany` when it is one too many."""
        name = counted_as(address)
        if name is None:
            return _nothing
        limit = self._limits.connections_per_address_max
        if self._open[name] >= limit:
            text = f"there are {limit} connections from {name} already; close some, or try again later"
            raise self._refusal("connections_per_address_max", text, 1)
        self._take(self._connects, name, "connects_per_second_max", "new connections")
        self._open[name] += 1

        def leave() -> None:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]

        return leave

    def new_identity(self, address: str) -> None:
        """Somebody without a token comes, and gets a new identity. `TooMany` when an address wants too many."""
        name = counted_as(address)
        if name is not None:
            self._take(self._identities, name, "identities_per_second_max", "new identities; send a token to be known")

    def query(self, address: str) -> Spend:
        """A query by HTTP, which stands for itself. `TooMany` as above."""
        return self._timed(self._queries, address, "query_share_max")

    def follow(self, address: str) -> Spend:
        """A query of one of the connections from there. `TooMany` as above."""
        return self._timed(self._followers, address, "query_share_per_address_max")

    def _timed(self, budgets: Budgets, address: str, limit: str) -> Spend:
        name = counted_as(address)
        if name is None:
            return _spend_nothing
        now = self._seconds()
        budget = budgets.of(name, now)
        wait = budget.wait(now, 0.0)
        if wait:
            text = f"queries from {name} have taken too much time; ask again in {wait:.1f} s"
            raise self._refusal(limit, text, wait)
        return budget.use

    def _take(self, budgets: Budgets, name: str, limit: str, what: str) -> None:
        now = self._seconds()
        budget = budgets.of(name, now)
        wait = budget.wait(now)
        if wait:
            text = f"{name} asks for more than {budget.per_second:g} a second of {what}"
            raise self._refusal(limit, text, wait)
        budget.use()

    def _refusal(self, limit: str, text: str, retry_seconds: float) -> TooMany:
        self.refused[limit] += 1
        return TooMany(limit, text, retry_seconds)


def _nothing() -> None:
    pass


def _spend_nothing(_seconds: float) -> None:
    pass
