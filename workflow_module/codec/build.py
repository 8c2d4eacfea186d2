"""Chooses the codec for an annotation."""

from __future__ import annotations

import datetime as dt
import enum
import types
import typing
from dataclasses import replace
from typing import Any, get_args, get_origin

import msgspec

from workflow_module.structs import Json

from . import containers, scalars
from .base import Codec, Unstorable, bad_value, codec_for, type_name
from .exceptions import exception_codec
from .structs import struct_codec
from .unions import union_codec

_BARE = {
    list: "list[int]",
    set: "set[int]",
    frozenset: "frozenset[int]",
    tuple: "tuple[int, ...]",
    dict: "dict[str, int]",
}

_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")


def build(annotation: Any, registered: dict[type, Codec]) -> Codec:
    """The codec of an annotation. Raises `Unstorable`."""
    if annotation is None:
        annotation = type(None)
    if annotation is Json:
        return containers.JSON
    if annotation is Any or annotation is object:
        raise Unstorable("Any and object say nothing about the value: write its type, or Json for plain JSON")
    if isinstance(annotation, type) and annotation in registered:
        return registered[annotation]
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        inside = codec_for(_inside(annotation))
        return _constrained(inside, annotation) if any(map(_constrains, annotation.__metadata__)) else inside
    if hasattr(annotation, "__supertype__") or hasattr(annotation, "__value__"):
        return codec_for(_inside(annotation))
    if origin in (typing.Union, types.UnionType):
        return union_codec(list(get_args(annotation)))
    if origin is typing.Literal:
        kinds = list(dict.fromkeys(type(value) for value in get_args(annotation)))
        return _literal(union_codec(kinds), annotation)
    if origin in (list, set, frozenset, tuple, dict):
        return _container(origin, get_args(annotation))
    cls = origin or annotation
    if isinstance(cls, type):
        return _class(cls, annotation)
    raise Unstorable(f"{type_name(annotation)} is not a type that can be stored")


def _inside(annotation: Any) -> Any:
    if hasattr(annotation, "__supertype__"):
        return annotation.__supertype__
    if hasattr(annotation, "__value__"):
        return annotation.__value__
    return get_args(annotation)[0]


def _constrains(part: object) -> bool:
    """Whether msgspec refuses values for this part of an `Annotated`."""
    return isinstance(part, msgspec.Meta) and any(getattr(part, name) is not None for name in _CONSTRAINTS)


def _constrained(codec: Codec, annotation: Any) -> Codec:
    """Of the values only those that msgspec takes, which looks again where a Struct is read."""

    def pack(value: Any, path: str) -> Any:
        packed = codec.pack(value, path)
        try:
            msgspec.convert(value, annotation)
        except msgspec.ValidationError as error:
            raise bad_value(value, path, type_name(annotation), str(error)) from None
        return packed

    return replace(codec, pack=pack, exact=None)


def _literal(codec: Codec, annotation: Any) -> Codec:
    allowed = {(type(value), value) for value in get_args(annotation)}

    def pack(value: Any, path: str) -> Any:
        packed = codec.pack(value, path)
        if (type(value), value) not in allowed:
            raise bad_value(value, path, type_name(annotation))
        return packed

    return replace(codec, pack=pack, exact=None)


def _container(origin: Any, args: tuple[Any, ...]) -> Codec:
    if origin is dict:
        return containers.mapping(*args)
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return containers.fixed_tuple(args)
    return containers.sequence(origin, args[0])


def _class(cls: type, annotation: Any) -> Codec:
    if cls is float:
        return scalars.FLOAT
    if cls is range:
        return scalars.RANGE
    if cls in scalars.MSGSPEC_KINDS:
        return scalars.exact(cls, scalars.MSGSPEC_KINDS[cls])
    if cls in (dt.datetime, dt.time):
        return scalars.moment(cls)
    if issubclass(cls, enum.Enum):
        return scalars.enum_codec(cls)
    if issubclass(cls, msgspec.Struct):
        return struct_codec(annotation)
    if issubclass(cls, BaseException):
        return exception_codec(cls)
    if cls in _BARE:
        raise Unstorable(f"a bare {cls.__name__} does not say what is in it: write for example {_BARE[cls]}")
    raise Unstorable(f"{cls.__qualname__} objects cannot be stored: use a Struct of plain values, or look it up again")
