"""Questions to a type and all that is inside it. Types may contain themselves, so that this is a graph."""

from __future__ import annotations

from gamedb.columns.base import ColumnType
from gamedb.columns.plain import FloatType


def inside(kind: ColumnType) -> list[ColumnType]:
    """The types that values of a type hold, at any depth: each once, and the type itself only if it holds itself."""
    found: dict[ColumnType, None] = {}
    waiting = list(kind.parts())
    while waiting:
        part = waiting.pop()
        if part not in found:
            found[part] = None
            waiting.extend(part.parts())
    return list(found)


def has_float(kind: ColumnType) -> bool:
    """Whether values of this type hold floats."""
    return any(isinstance(part, FloatType) for part in (kind, *inside(kind)))
