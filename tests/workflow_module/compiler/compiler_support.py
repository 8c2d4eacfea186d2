"""What test programs use: procedures, signals, Structs, errors, and functions that leave a trace."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from workflow_module import Signal, Struct, Timer

SECOND = timedelta(seconds=1)


async def ask(ctx: Any, key: int) -> int:
    """Gives whatever the script says."""
    raise NotImplementedError


async def ask_list(ctx: Any, key: int) -> list[int]:
    """Gives a list."""
    raise NotImplementedError


class Clock(Timer):
    RING = "ring"
    STOP = "stop"


class Ping(Signal):
    n: int


class Quit(Signal):
    pass


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(Struct):
    x: float
    y: float


class Pair(Struct):
    left: int
    right: int


class Bag(Struct, frozen=False):
    items: list[int]
    n: int = 0


class GameError(Exception):
    pass


class HardError(GameError):
    pass


def note(value: int) -> int:
    """A call that leaves a trace; the program's own `emit` is set by the harness."""
    NOTES.append(repr(value))
    return value


NOTES: list[str] = []


def add(left: int, right: int = 0, *more: int) -> int:
    NOTES.append(repr(("add", left, right, more)))
    return left + right + sum(more)


@contextmanager
def traced(value: int) -> Iterator[int]:
    NOTES.append(repr(("enter", value)))
    try:
        yield value
    finally:
        NOTES.append(repr(("exit", value)))


def box(value: int) -> Bag:
    """A new object to assign to."""
    NOTES.append(repr(("box", value)))
    return Bag([value], value)
