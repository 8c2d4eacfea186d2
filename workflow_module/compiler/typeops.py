"""Joining and splitting the types that inference works with."""

from __future__ import annotations

import collections.abc as abc
import types
import typing
from typing import Any, Union, get_args, get_origin


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
"""The type of what cannot be inferred."""

# Generic types that are built from computed parts, which a type checker need not follow.
DICT: Any = dict
TUPLE: Any = tuple
ITERABLE: Any = abc.Iterable
ITERATOR: Any = abc.Iterator
COROUTINE: Any = abc.Coroutine


def strip(annotation: Any) -> Any:
    """Without `Annotated`, `NewType` and alias wrappers."""
    while True:
        if get_origin(annotation) is typing.Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif annotation is None:
            annotation = type(None)
        else:
            return annotation


def members(annotation: Any) -> list[Any]:
    """The members of a union, or the type itself."""
    annotation = strip(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        return [part for member in get_args(annotation) for part in members(member)]
    return [annotation]


def join(parts: list[Any]) -> Any:
    """The union of types; `UNKNOWN` if one of them is."""
    flat: list[Any] = []
    for part in parts:
        for member in members(part):
            if member is UNKNOWN or member is Any:
                return UNKNOWN
            if member not in flat:
                flat.append(member)
    if not flat:
        return UNKNOWN
    return flat[0] if len(flat) == 1 else Union[tuple(flat)]  # noqa: UP007


def without_none(annotation: Any) -> Any:
    """The type with None taken out of a union (using None where it is not expected raises anyway)."""
    parts = members(annotation)
    kept = [part for part in parts if part is not type(None)]
    return join(kept) if kept and len(kept) < len(parts) else annotation
