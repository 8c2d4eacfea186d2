"""Structs that contain themselves: which do, and whether they can end."""

from __future__ import annotations

from collections.abc import Iterable

from gamedb.columns.base import ColumnType
from gamedb.columns.graph import inside
from gamedb.columns.structs import ProductType, SumType
from gamedb.errors import SchemaError


def mark_recursive(products: Iterable[ProductType], where: str) -> None:
    """Mark those that contain themselves, once all fields are there; `SchemaError` when a value could never end."""
    recursive = []
    for kind in products:
        kind.recursive = kind in inside(kind)
        if kind.recursive:
            recursive.append(kind)
    ending: set[ColumnType] = set()
    while found := [kind for kind in recursive if all(_ends(field, ending) for field in kind.fields.values())]:
        ending.update(found)
        recursive = [kind for kind in recursive if kind not in ending]
    if recursive:
        name = recursive[0].name
        raise SchemaError(
            f"{where}: {name} contains itself, and so on without end; let it hold a list[{name}], "
            f"or {name} | None, instead"
        )


def _ends(kind: ColumnType, ending: set[ColumnType]) -> bool:
    """Whether there is a value of the type, given the recursive Structs of which there are."""
    if isinstance(kind, SumType):
        return any(_ends(variant, ending) for variant in kind.variants.values())
    if isinstance(kind, ProductType):
        return kind in ending if kind.recursive else all(_ends(field, ending) for field in kind.fields.values())
    return True
