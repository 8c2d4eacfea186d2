"""What a type is stored as, as plain JSON that a tool can make a form of.

The counterpart of `json_types`, which writes the same as TypeScript. A shape is an object with a `kind`; what has no
form of its own (unions of several types, types inside themselves) is of kind `json`: any JSON text, checked by the
engine. It knows types alone, not workflows.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import types
import typing
import uuid
from typing import Any, Final, get_args, get_origin

import msgspec

from .codec import Unstorable, encode
from .codec.base import _registered, type_name
from .codec.scalars import stored_members
from .errors import StateError

Shape: typing.TypeAlias = dict[str, Any]

_PLAIN: Final[dict[Any, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    bytes: "base64",
    dt.datetime: "time",
    dt.date: "date",
    dt.timedelta: "duration",
    uuid.UUID: "uuid",
    decimal.Decimal: "decimal",
}
_LISTS: Final = (list, set, frozenset)


def shape_of(annotation: Any) -> Shape:
    """The shape of the JSON of a value; `type` in it is what the author wrote."""
    return _shape(annotation, ())


def _shape(annotation: Any, inside: tuple[Any, ...]) -> Shape:
    if annotation is None:
        annotation = type(None)
    for unwrapped in (getattr(annotation, "__supertype__", None), getattr(annotation, "__value__", None)):
        if unwrapped is not None:
            return _shape(unwrapped, inside)
    if isinstance(annotation, type) and annotation in _registered and annotation not in _PLAIN:
        return _shape(_registered[annotation].stored, inside)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return _shape(args[0], inside)
    return {**_body(annotation, origin, args, inside), "type": type_name(annotation)}


def _body(annotation: Any, origin: Any, args: tuple[Any, ...], inside: tuple[Any, ...]) -> Shape:
    if isinstance(annotation, type) and annotation in _PLAIN:
        return {"kind": _PLAIN[annotation]}
    if origin in (typing.Union, types.UnionType):
        return _union(args, inside)
    if origin is typing.Literal and all(type(value) in (str, int) for value in args):
        return {"kind": "enum", "values": list(args)}
    if origin in _LISTS or (origin is tuple and len(args) == 2 and args[1] is Ellipsis):
        return {"kind": "list", "of": _shape(args[0], inside)}
    cls = origin or annotation
    if isinstance(cls, type) and issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag):
        return {"kind": "enum", "values": stored_members(cls)}
    if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
        return _struct(cls, annotation, inside)
    return {"kind": "json"}


def _union(members: tuple[Any, ...], inside: tuple[Any, ...]) -> Shape:
    present = [member for member in members if member is not type(None)]
    if len(present) == 1 and len(members) == 2:
        return {"kind": "option", "of": _shape(present[0], inside)}
    if set(present) == {int, float} and len(members) == 2:
        return {"kind": "number"}
    return {"kind": "json"}


def _struct(cls: type[msgspec.Struct], annotation: Any, inside: tuple[Any, ...]) -> Shape:
    config = cls.__struct_config__
    if config.array_like or config.tag is not None or annotation in inside:
        return {"kind": "json"}
    fields = []
    for field in msgspec.structs.fields(annotation):
        shown: Shape = {"name": field.encode_name, "shape": _shape(field.type, (*inside, annotation))}
        if not field.required:
            shown["default"] = _default(field)
        fields.append(shown)
    return {"kind": "struct", "fields": fields}


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """The JSON of a field's default; None when it cannot be told."""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    try:
        return json.loads(encode(value, field.type, field.name))
    except (StateError, Unstorable):
        return None
