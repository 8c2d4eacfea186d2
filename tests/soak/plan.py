"""What happens when, from a seed: the same seed plans the same soak, though not the same interleaving."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

RESTLESS: Final = 0.7
"""For this part of the time the server is ended again and again; then it has a long life, for its memory."""
GAP_SECONDS_MIN, GAP_SECONDS_MAX = 4.0, 45.0
"""Between two deeds, on average: a soak of half an hour has long gaps, one of half a minute short ones."""

FIRST: Final = ("kill", "worker", "slow", "kill")
"""What also the shortest soak has, with a deploy in its middle."""
RESTLESS_BAG: Final = ("kill",) * 5 + ("early kill", "stop", "stop", "worker", "worker", "cut", "slow", "empty")
CALM_BAG: Final = ("worker", "cut", "slow", "empty")


class Deed(NamedTuple):
    """Something that is done to the game from outside."""

    at_seconds: float
    what: str
    """kill: SIGKILL of the server; early kill: another one while it starts; stop: SIGTERM; deploy: SIGTERM and another
    version; worker: SIGKILL of the worker; cut: all players lose their connections; slow: a client that stops to
    read; empty: everybody leaves, and comes back."""


def plan(seed: int, seconds: float) -> list[Deed]:
    """The deeds of a soak, in order."""
    rng = Random(seed)
    gap = min(max(seconds / 12, GAP_SECONDS_MIN), GAP_SECONDS_MAX)
    times: list[float] = []
    at = gap
    while at < seconds * 0.95 or len(times) <= len(FIRST):
        times.append(at)
        at += rng.uniform(0.3, 1.7) * gap
    restless = max(len(FIRST) + 1, sum(at < seconds * RESTLESS for at in times))
    kinds = [*FIRST, *(rng.choice(RESTLESS_BAG) for _ in range(restless - len(FIRST) - 1))]
    kinds.insert(len(kinds) // 2, "deploy")
    kinds += [rng.choice(CALM_BAG) for _ in times[restless:]]
    return [Deed(*deed) for deed in zip(times, kinds, strict=True)]
