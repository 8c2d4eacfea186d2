"""Codecs of lists, tuples, sets, dicts, and plain JSON."""

from __future__ import annotations

import enum
import math
from typing import Any

from .base import Codec, Unstorable, bad_value, codec_for, visit

ARRAY = frozenset({"array"})


def sequence(cls: Any, item: Any) -> Codec:
    """list[T], set[T], frozenset[T] and tuple[T, ...]."""
    inner = codec_for(item)
    if inner.walk is not None and cls in (set, frozenset):
        raise Unstorable(f"a {cls.__name__} of mutable values")
    pack_item, unpack_item, walk_item = inner.pack, inner.unpack, inner.walk
    mutable = cls in (list, set)
    name = cls.__name__

    def pack(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, name)
        packed = [pack_item(part, path) for part in value]
        return packed if unpack_item is not None else value

    def unpack(stored: Any) -> Any:
        assert unpack_item is not None
        return cls([unpack_item(part) for part in stored])

    def walk(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
        if mutable:
            visit(value, path, seen)
        if walk_item is not None:
            for index, part in enumerate(value):
                walk_item(part, f"{path}[{index}]", seen)

    stored = list[inner.stored] if unpack_item is not None else _natural(cls, inner.stored)  # type: ignore[name-defined]
    walks = mutable or walk_item is not None
    return Codec(stored, pack, unpack if unpack_item else None, walk if walks else None, ARRAY, (cls,))


def _natural(cls: Any, item: Any) -> Any:
    return tuple[item, ...] if cls is tuple else cls[item]


def fixed_tuple(items: tuple[Any, ...]) -> Codec:
    """tuple[A, B, C] and tuple[()]."""
    codecs = [codec_for(item) for item in items]
    converts = any(codec.unpack for codec in codecs)
    walks = [(index, codec.walk) for index, codec in enumerate(codecs) if codec.walk]

    def pack(value: Any, path: str) -> Any:
        if type(value) is not tuple or len(value) != len(codecs):
            raise bad_value(value, path, f"a tuple of {len(codecs)}")
        packed = tuple([codec.pack(part, f"{path}[{i}]") for i, (codec, part) in enumerate(zip(codecs, value))])  # noqa: B905
        return packed if converts else value

    def unpack(stored: Any) -> Any:
        return tuple(codec.unpack(part) if codec.unpack else part for codec, part in zip(codecs, stored, strict=True))

    def walk(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
        for index, walk_item in walks:
            walk_item(value[index], f"{path}[{index}]", seen)

    stored = tuple[tuple(codec.stored for codec in codecs)] if codecs else tuple[()]  # type: ignore[misc]
    return Codec(stored, pack, unpack if converts else None, walk if walks else None, ARRAY, (tuple,))


def _is_json_key(key: Any, codec: Codec) -> bool:
    if key in (str, int):
        return True
    return isinstance(key, type) and issubclass(key, enum.Enum) and codec.unpack is None


def mapping(key: Any, value: Any) -> Codec:
    """dict[K, V]: a JSON object for keys that are strings, ints or enums of those, else a list of pairs."""
    keys, values = codec_for(key), codec_for(value)
    if keys.walk is not None:
        raise Unstorable("a dict with mutable keys")
    as_object = _is_json_key(key, keys)
    converts = not as_object or values.unpack is not None
    pack_key, pack_value, walk_value = keys.pack, values.pack, values.walk
    unpack_key = keys.unpack or (lambda stored: stored)
    unpack_value = values.unpack or (lambda stored: stored)

    def pack(mapping: Any, path: str) -> Any:
        if type(mapping) is not dict:
            raise bad_value(mapping, path, "dict")
        pairs = [(pack_key(k, f"a key of {path}"), pack_value(v, path)) for k, v in mapping.items()]
        if not converts:
            return mapping
        return dict(pairs) if as_object else pairs

    def unpack(stored: Any) -> Any:
        if as_object:
            return {k: unpack_value(v) for k, v in stored.items()}
        return {unpack_key(k): unpack_value(v) for k, v in stored}

    def walk(mapping: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
        visit(mapping, path, seen)
        if walk_value is not None:
            for k, v in mapping.items():
                walk_value(v, f"{path}[{k!r}]", seen)

    if as_object:
        stored: Any = dict[key, values.stored]  # type: ignore[name-defined]
    else:
        stored = list[tuple[keys.stored, values.stored]]  # type: ignore[name-defined]
    kind = frozenset({"object"}) if as_object else ARRAY
    return Codec(stored, pack, unpack if converts else None, walk, kind, (dict,))


def _pack_json(value: Any, path: str) -> Any:
    cls = type(value)
    if cls is list:
        for index, part in enumerate(value):
            _pack_json(part, f"{path}[{index}]")
    elif cls is dict:
        for key, part in value.items():
            if type(key) is not str:
                raise bad_value(key, f"a key of {path}", "a string of plain JSON")
            _pack_json(part, f"{path}[{key!r}]")
    elif cls is float:
        if not math.isfinite(value):
            raise bad_value(value, path, "plain JSON", "which has no inf and nan: declare it as float")
    elif value is not None and cls not in (str, int, bool):
        raise bad_value(value, path, "plain JSON", "declare its type instead of Json")
    return value


def _walk_json(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
    if type(value) is list:
        visit(value, path, seen)
        for index, part in enumerate(value):
            _walk_json(part, f"{path}[{index}]", seen)
    elif type(value) is dict:
        visit(value, path, seen)
        for key, part in value.items():
            _walk_json(part, f"{path}[{key!r}]", seen)


JSON = Codec(
    Any,
    _pack_json,
    None,
    _walk_json,
    frozenset({"null", "bool", "int", "float", "str", "array", "object"}),
    (type(None), bool, int, float, str, list, dict),
)
