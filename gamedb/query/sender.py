"""Whether a view looks at who asks, as far as its code tells.

A view whose code, and the code that it names, never says `sender` gives everybody the same, so its rows are made and
sent once for all. This is a first guess; running the view tells (see `gamedb.query.views`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

FUNCTIONS_MAX: Final = 200
"""Functions that are looked into for one view; one that names more is taken to look at the sender."""


def mentions_sender(function: Callable[..., Any]) -> bool:
    """Whether the code of a function, or of functions that it names, says `sender`."""
    todo: list[Any] = [function]
    seen: set[int] = set()
    while todo:
        current = todo.pop()
        if isinstance(current, MethodType):
            current = current.__func__
        if not isinstance(current, FunctionType) or id(current) in seen:
            continue
        seen.add(id(current))
        if len(seen) > FUNCTIONS_MAX:
            return True
        for code in _codes(current.__code__):
            if "sender" in code.co_names or "sender" in code.co_consts:
                return True
            todo += [current.__globals__[name] for name in code.co_names if name in current.__globals__]
        todo += [cell.cell_contents for cell in current.__closure__ or () if _is_set(cell)]
        todo += [getattr(current, "__wrapped__", None), *(current.__defaults__ or ())]
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # looking is what raises
    except ValueError:
        return False
    return True
