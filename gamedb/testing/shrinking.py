"""Shortening a list that fails: leave out as much as possible while it still does, and simplify what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shortened(items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, replays_max: int) -> list[T]:
    """Leave out runs of items, long ones first, then single ones, for as long as that helps (as in delta debugging)."""
    found = list(items)
    replays = 0
    size = max(1, len(found) // 2)
    while True:
        at = len(found) - size
        helped = False
        while at > -size and replays < replays_max:
            start = max(0, at)
            candidate = found[:start] + found[at + size :]
            replays += 1
            if len(candidate) < len(found) and fails(candidate):
                found, helped = candidate, True
            at -= size
        if replays >= replays_max or (size == 1 and not helped):
            return found
        size = max(1, size // 2) if size > 1 else 1


def simplified(
    items: Sequence[T], simpler: Callable[[T], Iterable[T]], fails: Callable[[Sequence[T]], bool]
) -> list[T]:
    """Put something simpler in the place of each item, if it still fails then."""
    found = list(items)
    for at, item in enumerate(found):
        for other in simpler(item):
            candidate = [*found[:at], other, *found[at + 1 :]]
            if other != item and fails(candidate):
                found = candidate
                break
    return found
