"""What tells that a test has found something: which exceptions, and where the function is that found it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def failures() -> tuple[type[BaseException], ...]:
    """Exceptions that mean a failure: all, and that of `pytest.fail` and `pytest.raises`, which is no `Exception`."""
    outcomes = sys.modules.get("_pytest.outcomes")
    return (Exception,) if outcomes is None else (Exception, outcomes.Failed)


class DoesNotHold(AssertionError):
    """An invariant that gave False; `place` is where it begins, as no line of it has raised anything."""

    def __init__(self, text: str, place: str | None) -> None:
        super().__init__(text)
        self.place = place


def does_not_hold(check: Callable[..., Any], when: str = "") -> AssertionError:
    """The error for an invariant that gave False."""
    code = getattr(check, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None
    return DoesNotHold(f"{getattr(check, '__name__', check)} does not hold {when}".rstrip(), place)


def place_of(error: BaseException) -> str | None:
    """Where the invariant is that gave False; `None` for other errors."""
    return error.place if isinstance(error, DoesNotHold) else None


def shown(function: Callable[..., Any]) -> str:
    """A function for people: its name, and where it begins."""
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function)
    return f"{function.__name__} ({code.co_filename}:{code.co_firstlineno})"
