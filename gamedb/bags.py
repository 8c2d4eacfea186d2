"""Results as bags: rows in no order, each as often as it is in the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gamedb.schema import Row

R = TypeVar("R", bound=Row)


def without(rows: Sequence[R], others: Sequence[R], exact: Callable[[Any], Any] | None) -> list[R]:
    """The rows that are not among the others, each as many times as it is there more often.

    `exact`: what to compare instead of the rows, where rows that differ may be equal (`columns.exact_function`).
    """
    left = Counter(others if exact is None else map(exact, others))
    result = []
    for row in rows:
        key = row if exact is None else exact(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            result.append(row)
    return result
