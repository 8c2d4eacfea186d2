"""Stable names for suspension points and hidden variables.

A name says what is waited for or kept. Where that is not unique in its function, the control structure around
is added, and where that is not enough, "2 of 3": adding a third one then changes the names of all, so that a
stored state never goes on at the wrong one. `name="..."` on a wait replaces all this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from .ir import Point, Variable
from .source import Source


class Labels:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._path: list[str] = []
        self._points: list[tuple[Point, str, str]] = []
        self._explicit: dict[str, Point] = {}
        self._variables: list[tuple[Variable, str]] = []

    @contextmanager
    def inside(self, part: str) -> Iterator[None]:
        """What is named inside stands in this control structure."""
        self._path.append(part)
        try:
            yield
        finally:
            self._path.pop()

    def _where(self) -> str:
        return "/".join(self._path) or "body"

    def point(self, point: Point, what: str, explicit: str | None) -> None:
        if explicit is None:
            self._points.append((point, what, self._where()))
        elif explicit in self._explicit:
            self._source.refuse(
                point.node,
                f"two waits are named {explicit!r} (the other is in line {self._explicit[explicit].line})",
                "give each wait a name of its own",
            )
        else:
            point.label = explicit
            self._explicit[explicit] = point

    def variable(self, variable: Variable) -> None:
        self._variables.append((variable, self._where()))

    def assign(self) -> None:
        """Give every point its label and every hidden variable its stored name."""
        for (point, _, _), label in zip(
            self._points, _unique([(what, where) for _, what, where in self._points], self._explicit), strict=True
        ):
            point.label = label
        named = _unique([(variable.what, where) for variable, where in self._variables], {})
        for (variable, _), name in zip(self._variables, named, strict=True):
            variable.stored_name = "$" + name


def _unique(described: list[tuple[str, str]], taken: dict[str, Point]) -> list[str]:
    short = Counter(what for what, _ in described)
    names = [what if short[what] == 1 and what not in taken else f"{what} in {where}" for what, where in described]
    total = Counter(names)
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if total[name] == 1 else f"{name}, {seen[name]} of {total[name]}")
    return result
