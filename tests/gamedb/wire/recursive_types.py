"""Random types that contain themselves, and values of them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from gamedb.columns import ColumnType, ListType, OptionType, ProductType, SumType, inside
from tests.gamedb.wire.random_types import PLAIN, values


def recursive_types() -> st.SearchStrategy[ColumnType]:
    """A Struct of a group of up to three, which contain each other in options, lists and unions."""
    return st.integers(1, 3).flatmap(_groups)


@st.composite
def _groups(draw: st.DrawFn, count: int) -> ColumnType:
    group = [_empty(f"Node{number}", f"Node{number}") for number in range(count)]
    leaf = _empty("Leaf", "Leaf")
    plain = st.sampled_from(PLAIN)
    leaf.fields["value"] = draw(plain)
    ways = st.sampled_from(group).flatmap(
        lambda node: st.sampled_from(
            [
                OptionType(node),
                ListType(node),
                ListType(OptionType(node)),
                SumType({"Leaf": leaf, node.name: node}, "type"),
            ]
        )
    )
    for node in (*group, leaf):
        for number in range(FIELDS):
            node.fields[f"f{number}"] = draw(ways | plain) if node is not leaf else draw(plain)
    for node in group:
        node.recursive = node in inside(node)
    return group[0]


FIELDS = 2


def _empty(name: str, tag: str) -> ProductType:
    fields = [f"f{number}" for number in range(FIELDS)] + (["value"] if name == "Leaf" else [])
    return ProductType(msgspec.defstruct(name, fields, frozen=True, tag=tag), {}, set(fields))


def recursive_values(kind: ColumnType, depth: int = 5) -> st.SearchStrategy[Any]:
    """Canonical values of a type, which end after so many levels."""
    if isinstance(kind, ProductType):
        return st.builds(kind.cls, **{n: st.deferred(_later(k, depth - 1)) for n, k in kind.fields.items()})
    if isinstance(kind, OptionType):
        return st.none() | recursive_values(kind.inner, depth) if depth > 0 else st.none()
    if isinstance(kind, ListType):
        items = st.lists(recursive_values(kind.item, depth), max_size=2) if depth > 0 else st.just([])
        return items.map(lambda given: kind.coerce(given, "list"))
    if isinstance(kind, SumType):
        variants = list(kind.variants.values())
        return st.one_of([recursive_values(v, depth) for v in (variants if depth > 0 else variants[:1])])
    return values(kind)


def _later(kind: ColumnType, depth: int) -> Any:
    return lambda: recursive_values(kind, depth)
