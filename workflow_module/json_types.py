"""The JSON that a type is stored as, as a TypeScript type.

It says in types what `codec` does with values, and follows its decisions: where they differ, clients would be misled.
It knows types alone, not workflows.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import re
import types
import typing
import uuid
from typing import Any, Final, get_args, get_origin

import msgspec

from gamedb import i64, i128, i256, u64, u128, u256

from .codec import codec_for
from .codec.base import _registered, type_name
from .codec.scalars import stored_members
from .structs import Json

_PLAIN: Final[dict[Any, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "Float",
    str: "string",
    bytes: "string",
    range: "[number, number, number]",
    Json: "Json",
    **dict.fromkeys((dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, decimal.Decimal), "string"),
}

HELPERS: Final = {
    "Big": """/** A whole number. JSON.parse rounds those beyond 2^53; gamedb-client gives a bigint for them. */
export type Big = number | bigint;
""",
    "Float": """/** A number; those that JSON has no form for are text. */
export type Float = number | 'inf' | '-inf' | 'nan';
""",
    "Json": """/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
""",
    "StoredException": """/** An exception that is kept: its class as `module:Class`. */
export type StoredException = { type: string; args: unknown[]; attributes: { [name: string]: unknown } };
""",
}


class JsonTypes:
    """Writes types, and collects the declarations that they need: Structs by name, and helpers."""

    def __init__(self, reserved: set[str]) -> None:
        self._names: dict[Any, str] = {}
        self._taken = {*reserved, *HELPERS}
        self._bodies: dict[str, str] = {}
        self._helpers: set[str] = set()
        self._lenient = False
        self._lenient_seen: set[Any] = set()

    def name(self, annotation: Any, name: str) -> None:
        """Give a Struct one of the reserved names, which is its own."""
        self._names[annotation] = name

    def declarations(self) -> str:
        """The named types, in the order of their names, after the helpers."""
        helpers = [HELPERS[name] for name in sorted(self._helpers)]
        return "\n".join([*helpers, *(self._bodies[name] for name in sorted(self._bodies))])

    def given(self, annotation: Any) -> str:
        """The type of JSON that clients write: fields with a default may be left out, wherever this type stands."""
        self._lenient = True
        try:
            return self.of(annotation)
        finally:
            self._lenient = False

    def of(self, annotation: Any) -> str:
        """The type of the JSON of a value."""
        if annotation is None:
            return "null"
        if isinstance(annotation, type) and annotation in _registered and annotation not in _PLAIN:
            return self.of(_registered[annotation].stored)
        if _is_hashable(annotation) and annotation in _PLAIN:
            return self._helper(_PLAIN[annotation])
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is typing.Annotated:
            return self._helper("Big") if _is_big(annotation) else self.of(args[0])
        if hasattr(annotation, "__supertype__"):
            return self.of(annotation.__supertype__)
        if hasattr(annotation, "__value__"):
            return self.of(annotation.__value__)
        if origin in (typing.Union, types.UnionType):
            return self._union(list(args))
        if origin is typing.Literal:
            return " | ".join(dict.fromkeys(_literal(value) for value in args))
        if origin in (list, set, frozenset):
            return f"{_grouped(self.of(args[0]))}[]"
        if origin is tuple:
            return self._tuple(args)
        if origin is dict:
            return self._mapping(*args)
        return self._class(origin or annotation, annotation)

    def _helper(self, name: str) -> str:
        if name in HELPERS:
            self._helpers.add(name)
        return name

    def _tuple(self, args: tuple[Any, ...]) -> str:
        if len(args) == 2 and args[1] is Ellipsis:
            return f"{_grouped(self.of(args[0]))}[]"
        return f"[{', '.join(map(self.of, args))}]"

    def _mapping(self, key: Any, value: Any) -> str:
        codec = codec_for(dict[key, value])
        if codec.kinds != {"object"}:
            return f"[{self.of(key)}, {self.of(value)}][]"
        is_enum = isinstance(key, type) and issubclass(key, enum.Enum)
        keys = f"key in {' | '.join(_literal(str(member.value)) for member in key)}" if is_enum else "key: string"
        return f"{{ [{keys}]{'?' if is_enum else ''}: {self.of(value)} }}"

    def _class(self, cls: Any, annotation: Any) -> str:
        if isinstance(cls, type) and issubclass(cls, enum.Enum):
            return _enum(cls)
        if isinstance(cls, type) and issubclass(cls, BaseException):
            return self._helper("StoredException")
        if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
            return self._struct(cls, annotation)
        return "unknown"

    def _struct(self, cls: type[msgspec.Struct], annotation: Any) -> str:
        name = self._names.get(annotation)
        if name is None:
            name = self._names[annotation] = self._free(re.sub(r"\W+", "_", type_name(annotation)).strip("_"))
        elif name in self._bodies and (not self._lenient or annotation in self._lenient_seen):
            return name
        if self._lenient:
            self._lenient_seen.add(annotation)
        self._bodies[name] = ""  # a type inside itself finds its name
        self._bodies[name] = f"export type {name} = {self._fields(cls, annotation)};\n"
        return name

    def _fields(self, cls: type[msgspec.Struct], annotation: Any) -> str:
        config = cls.__struct_config__
        fields = msgspec.structs.fields(annotation)
        tag = [] if config.tag is None else [(str(config.tag_field), _literal(config.tag))]
        if config.array_like:
            return f"[{', '.join([value for _, value in tag] + [self.of(field.type) for field in fields])}]"
        lines = [f"  {_key(name)}: {value};\n" for name, value in tag]
        for field in fields:
            optional = not field.required and (annotation in self._lenient_seen or config.omit_defaults)
            lines.append(f"  {_key(field.encode_name)}{'?' if optional else ''}: {self.of(field.type)};\n")
        return f"{{\n{''.join(lines)}}}" if lines else "Record<string, never>"

    def _free(self, name: str) -> str:
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}{number}", number + 1
        self._taken.add(found)
        return found

    def _union(self, members: list[Any]) -> str:
        if float in members and int in members:
            members = [member for member in members if member is not int]  # an int may stand for a float
        if len(members) == 1:
            return self.of(members[0])
        if self._is_tagged(members):
            return " | ".join(self._tagged(members))
        return " | ".join(dict.fromkeys(map(self.of, members)))

    def _is_tagged(self, members: list[Any]) -> bool:
        codecs = [codec_for(member) for member in members]
        kinds = [kind for codec in codecs for kind in codec.kinds]
        disjoint = len(set(kinds)) == len(kinds)
        converts = any(codec.unpack for codec in codecs)
        return not (disjoint and (not converts or (len(members) == 2 and type(None) in members)))

    def _tagged(self, members: list[Any]) -> list[str]:
        parts = []
        names: dict[str, int] = {}
        for member in members:
            if member is type(None):
                continue
            name = type_name(member)
            names[name] = names.get(name, 0) + 1
            tag = name if names[name] == 1 else f"{name}#{names[name]}"
            parts.append(f"{{ $type: {_literal(tag)}; value: {self.of(member)} }}")
        return [*parts, "null"] if type(None) in members else parts


def _is_big(annotation: Any) -> bool:
    """Whether this is one of `u64`, `i64`... whose values JavaScript's numbers cannot all be."""
    return annotation in (u64, u128, u256, i64, i128, i256)


def _is_hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _enum(cls: type[enum.Enum]) -> str:
    if issubclass(cls, enum.Flag):
        return "number"
    return " | ".join(map(_literal, stored_members(cls)))


def _literal(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return _enum(type(value))
    if isinstance(value, bytes):
        return "string"
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return text
    return "'" + text[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$][\w$]*", name, re.ASCII) else _literal(name)


def _grouped(text: str) -> str:
    return f"({text})" if " | " in text else text
