"""What a codec is, and the table from types to codecs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from workflow_module.errors import StateError

Pack: TypeAlias = Callable[[Any, str], Any]
Unpack: TypeAlias = Callable[[Any], Any]
Keeps: TypeAlias = Callable[[Any], bool]
Walk: TypeAlias = Callable[[Any, str, dict[int, tuple[str, Any]]], None]


class Unstorable(Exception):
    """A type that cannot be stored. The text says why and what to use instead."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type are stored.

    `stored` is the type msgspec decodes. `pack(value, path)` checks a value and returns what msgspec is to
    encode (the value itself where msgspec's form is exact); it raises `StateError` naming `path`.
    `unpack(stored)` is its inverse, None where nothing is to do. `walk` visits the mutable objects inside,
    None where there can be none. `kinds` are the JSON kinds its form can have. Values of exactly the class
    `exact` need no packing at all. `keeps(value)` says whether `unpack` would give just this immutable value again;
    None where that is not known.
    """

    stored: Any
    pack: Pack
    unpack: Unpack | None
    walk: Walk | None
    kinds: frozenset[str]
    classes: tuple[type, ...]
    exact: type | None = None
    keeps: Keeps | None = None


def always(_value: object) -> bool:
    """`Codec.keeps` of types that keep all values."""
    return True


def bad_value(value: object, path: str, wanted: str, remedy: str = "") -> StateError:
    """The error for a value that its declared type does not allow."""
    text = f"{path} is declared as {wanted} and holds {value!r:.200} of type {type(value).__qualname__}"
    return StateError(f"{text}; {remedy}" if remedy else text)


def visit(value: object, path: str, seen: dict[int, tuple[str, Any]]) -> None:
    """Note a mutable object met at `path`; raise `StateError` if it was met before elsewhere.

    `seen` keeps the object too, so that its id is not used again while the walk lasts.
    """
    known = seen.get(id(value))
    if known is not None:
        raise StateError(
            f"{known[0]} and {path} are the same mutable {type(value).__qualname__} object, and would come back "
            f"from this wait as two; copy one of them, or keep a key or an index instead of a second reference"
        )
    seen[id(value)] = (path, value)


_registered: dict[type, Codec] = {}
_known: dict[Any, Codec] = {}


def register(
    cls: type,
    stored: Any,
    pack: Callable[[Any], Any],
    unpack: Callable[[Any], Any],
    kinds: frozenset[str] | None = None,
) -> None:
    """Teach the codec an immutable class: `pack(value)` gives a value of the type `stored`, which msgspec
    can read and write; `unpack` is its inverse. A second registration replaces the first.
    """

    def checked(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, cls.__qualname__)
        return pack(value)

    inner = codec_for(stored)
    _registered[cls] = Codec(stored, checked, unpack, None, kinds or inner.kinds, (cls,))
    _known.clear()


def codec_for(annotation: Any) -> Codec:
    """The codec of a type annotation. Raises `Unstorable`."""
    try:
        found = _known.get(annotation)
    except TypeError:  # an unhashable annotation
        found = None
    if found is not None:
        return found
    from .build import build  # the builders call back here for the parts

    codec = build(annotation, _registered)
    try:
        _known[annotation] = codec
    except TypeError:
        return codec
    return codec


def type_name(annotation: Any) -> str:
    """A type as its author wrote it, without module names."""
    if annotation is None or annotation is type(None):
        return "None"
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return annotation.__qualname__
    text = str(annotation)
    for module in ("typing.", "builtins.", "datetime."):
        text = text.replace(module, "")
    return text
