"""Codecs of unions: as they are where JSON tells the members apart, else with the member's name."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from workflow_module.errors import StateError

from .base import Codec, bad_value, codec_for, type_name


def union_codec(members: list[Any]) -> Codec:
    """The codec of a union of two or more members."""
    if float in members and int in members:
        members = [member for member in members if member is not int]  # a float's form keeps ints as ints
    if len(members) == 1:
        return codec_for(members[0])
    codecs = [codec_for(member) for member in members]
    by_class: dict[type, list[Codec]] = {}
    for codec in codecs:
        for cls in codec.classes:
            by_class.setdefault(cls, []).append(codec)
    wanted = " | ".join(type_name(member) for member in members)
    classes = tuple(by_class)

    def choose(value: Any, path: str) -> tuple[Codec, Any]:
        candidates = by_class.get(type(value), [])
        if not candidates and isinstance(value, BaseException):
            candidates = [c for cls, cs in by_class.items() if isinstance(value, cls) for c in cs]
        for codec in candidates:
            try:
                return codec, codec.pack(value, path)
            except StateError:
                if codec is candidates[-1]:
                    raise
        raise bad_value(value, path, wanted)

    def walk(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
        codec = choose(value, path)[0]
        if codec.walk is not None:
            codec.walk(value, path, seen)

    def keeps(value: Any) -> bool:
        candidates = by_class.get(type(value), [])
        return len(candidates) == 1 and candidates[0].keeps is not None and candidates[0].keeps(value)

    walks = walk if any(codec.walk for codec in codecs) else None
    kinds = frozenset().union(*(codec.kinds for codec in codecs))
    disjoint = len(kinds) == sum(len(codec.kinds) for codec in codecs)
    if disjoint and sum(1 for codec in codecs if codec.unpack) == 0:
        stored = reduce(or_, [codec.stored for codec in codecs])
        return Codec(stored, lambda value, path: choose(value, path)[1], None, walks, kinds, classes, keeps=keeps)
    if disjoint and len(codecs) == 2 and type(None) in members:
        inner = codecs[1 - members.index(type(None))]
        assert inner.unpack is not None
        unpack_inner = inner.unpack
        return Codec(
            inner.stored | None,
            lambda value, path: None if value is None else choose(value, path)[1],
            lambda stored: None if stored is None else unpack_inner(stored),
            walks,
            kinds,
            classes,
            keeps=keeps,
        )
    return _tagged(members, codecs, choose, walks, classes)


def _tagged(members: list[Any], codecs: list[Codec], choose: Any, walks: Any, classes: tuple[type, ...]) -> Codec:
    """`{"$type": "Stack", "value": ...}` for each member but None."""
    boxes: dict[int, Any] = {}
    unpacks: dict[Any, Any] = {}
    names: dict[str, int] = {}
    for member, codec in zip(members, codecs, strict=True):
        if member is type(None):
            continue
        name = type_name(member)
        names[name] = names.get(name, 0) + 1
        tag = name if names[name] == 1 else f"{name}#{names[name]}"
        box = msgspec.defstruct("Box", [("value", codec.stored)], tag=tag, tag_field="$type", frozen=True)
        boxes[id(codec)] = box
        unpacks[box] = codec.unpack
    optional = type(None) in members

    def pack(value: Any, path: str) -> Any:
        if value is None and optional:
            return None
        codec, packed = choose(value, path)
        return boxes[id(codec)](packed)

    def unpack(stored: Any) -> Any:
        if stored is None:
            return None
        unpack_member = unpacks[type(stored)]
        return unpack_member(stored.value) if unpack_member else stored.value

    stored = reduce(or_, boxes.values())
    kinds = frozenset({"object", "null"} if optional else {"object"})
    return Codec(stored | None if optional else stored, pack, unpack, walks, kinds, classes)
