"""Codecs of msgspec Structs.

A Struct whose parts are all exact in msgspec's form is stored as itself. Otherwise a mirror of it, with the
stored types of its fields, is what is read and written.
"""

from __future__ import annotations

from typing import Any, get_origin

import msgspec

from .base import Codec, Keeps, Unstorable, always, bad_value, codec_for, type_name, visit

_in_progress: dict[Any, list[bool]] = {}  # recursive types: whether the inner use was met


def struct_codec(annotation: Any) -> Codec:
    """The codec of a Struct class, or of a generic one with its arguments."""
    if annotation in _in_progress:
        _in_progress[annotation].append(True)
        return _delayed(annotation)
    _in_progress[annotation] = []
    try:
        return _build(annotation)
    finally:
        del _in_progress[annotation]


def _delayed(annotation: Any) -> Codec:
    """Stands for a Struct inside itself; calls the finished codec when it is used."""
    cls = get_origin(annotation) or annotation
    return Codec(
        annotation,
        lambda value, path: codec_for(annotation).pack(value, path),
        None,
        lambda value, path, seen: (codec_for(annotation).walk or _no_walk)(value, path, seen),
        frozenset({"object"}),
        (cls,),
    )


def _no_walk(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
    return None


def _build(annotation: Any) -> Codec:
    cls = get_origin(annotation) or annotation
    name = type_name(annotation)
    fields = msgspec.structs.fields(annotation)
    codecs: list[tuple[str, Codec]] = []
    for field in fields:
        try:
            codecs.append((field.name, codec_for(field.type)))
        except Unstorable as error:
            raise Unstorable(f"{name}.{field.name}: {error}") from None
    recursive = bool(_in_progress[annotation])
    frozen = cls.__struct_config__.frozen
    converts = any(codec.unpack for _, codec in codecs)
    if converts and recursive:
        raise Unstorable(f"{name} contains itself and also values that need conversion (floats, unions of Structs)")
    walks = [(field, codec.walk) for field, codec in codecs if codec.walk]

    def check(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, name)
        for field, codec in codecs:
            part = getattr(value, field)
            if type(part) is not codec.exact:
                codec.pack(part, f"{path}.{field}")
        return value

    def walk(value: Any, path: str, seen: dict[int, tuple[str, Any]]) -> None:
        if not frozen:
            visit(value, path, seen)
        for field, walk_field in walks:
            walk_field(getattr(value, field), f"{path}.{field}", seen)

    walk_or_none = walk if walks or not frozen else None
    kind = frozenset({"array" if cls.__struct_config__.array_like else "object"})
    if not converts:
        keeps = None if walk_or_none is not None or recursive else _keeps(cls, codecs)
        return Codec(annotation, check, None, walk_or_none, kind, (cls,), keeps=keeps)
    mirror = _mirror(cls, fields, codecs)

    def pack(value: Any, path: str) -> Any:
        if type(value) is not cls:
            raise bad_value(value, path, name)
        return mirror(**{field: codec.pack(getattr(value, field), f"{path}.{field}") for field, codec in codecs})

    def unpack(stored: Any) -> Any:
        values = {}
        for field, codec in codecs:
            part = getattr(stored, field)
            if part is not msgspec.UNSET:
                values[field] = codec.unpack(part) if codec.unpack else part
        return cls(**values)

    return Codec(mirror, pack, unpack, walk_or_none, kind, (cls,))


def _keeps(cls: type, codecs: list[tuple[str, Codec]]) -> Keeps | None:
    """For an immutable Struct of these fields that is stored as itself."""
    if hasattr(cls, "__post_init__"):  # it runs again when one is read
        return None
    parts = [(field, codec.keeps) for field, codec in codecs if codec.keeps is not always]
    if not parts:
        return always

    def keeps(value: Any) -> bool:
        return all(keeps_part is not None and keeps_part(getattr(value, field)) for field, keeps_part in parts)

    return None if any(keeps_part is None for _, keeps_part in parts) else keeps


def _mirror(cls: Any, fields: tuple[Any, ...], codecs: list[tuple[str, Codec]]) -> Any:
    config = cls.__struct_config__
    parts: list[Any] = []
    for field, (name, codec) in zip(fields, codecs, strict=True):
        if field.required:
            parts.append((name, codec.stored))
        else:
            parts.append((name, codec.stored | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(
        cls.__name__,
        parts,
        kw_only=True,
        rename={field.name: field.encode_name for field in fields},
        tag=config.tag,
        tag_field=config.tag_field,
        array_like=config.array_like,
        forbid_unknown_fields=config.forbid_unknown_fields,
    )
