"""Codecs of exceptions: class, storable args and attributes.

Args have no declared types, so each carries what JSON would lose; one that cannot be stored becomes its repr.
An exception comes back without running its `__init__`, and without traceback, cause and context.
"""

from __future__ import annotations

import base64
import importlib
import math
from typing import Any

import msgspec

from workflow_module.errors import StateError

from .base import Codec, Unstorable, bad_value, codec_for


class StoredException(msgspec.Struct, frozen=True):
    """`type` is `module:qualname`."""

    type: str
    args: list[Any]
    attributes: dict[str, Any] = {}


def exception_codec(cls: type[BaseException]) -> Codec:
    """The codec of an exception class and its subclasses."""

    def pack(value: Any, path: str) -> StoredException:
        if not isinstance(value, cls):
            raise bad_value(value, path, cls.__qualname__)
        return pack_exception(value)

    return Codec(StoredException, pack, unpack_exception, None, frozenset({"object"}), (cls,))


def pack_exception(error: BaseException) -> StoredException:
    """The stored form of any exception."""
    attributes = {key: pack_any(value) for key, value in vars(error).items() if key != "__notes__"}
    return StoredException(path_of(type(error)), [pack_any(arg) for arg in error.args], attributes)


def unpack_exception(stored: StoredException) -> BaseException:
    """The exception again. Raises `StateError` when its class is gone."""
    cls = class_at(stored.type)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        raise StateError(f"{stored.type} is not an exception class any more")
    args = tuple(unpack_any(arg) for arg in stored.args)
    error: BaseException = cls.__new__(cls, *args)
    if type(error).__init__ is cls.__init__ and issubclass(cls, (OSError, StopIteration, SystemExit, SyntaxError)):
        BaseException.__init__(error, *args)
    error.args = args
    error.__dict__.update({key: unpack_any(value) for key, value in stored.attributes.items()})
    return error


def path_of(cls: type) -> str:
    """`module:qualname` of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def class_at(path: str) -> Any:
    """The object at `module:qualname`. Raises `StateError` when there is none."""
    module, _, qualname = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise StateError(f"{path} cannot be found any more: {error}") from None
    return found


def pack_any(value: Any) -> Any:
    """A self-describing form: plain JSON as it is, the rest as `{"$": kind, "value": ...}`."""
    cls = type(value)
    if value is None or cls in (bool, int, str):
        return value
    if cls is float:
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if cls is list:
        return [pack_any(part) for part in value]
    if cls is tuple:
        return {"$": "tuple", "value": [pack_any(part) for part in value]}
    if cls is dict:
        return {"$": "dict", "value": [[pack_any(k), pack_any(v)] for k, v in value.items()]}
    if cls is bytes:
        return {"$": "bytes", "value": base64.b64encode(value).decode()}
    if isinstance(value, BaseException):
        return {"$": "error", "value": msgspec.to_builtins(pack_exception(value))}
    try:
        class_at(path_of(cls))
        packed = codec_for(cls).pack(value, "args")
    except (Unstorable, StateError):
        return repr(value)
    return {"$": path_of(cls), "value": msgspec.to_builtins(packed)}


def unpack_any(stored: Any) -> Any:
    """The inverse of `pack_any`."""
    if type(stored) is list:
        return [unpack_any(part) for part in stored]
    if type(stored) is not dict:
        return stored
    kind, value = stored["$"], stored["value"]
    if kind == "float":
        return float(value)
    if kind == "tuple":
        return tuple(unpack_any(part) for part in value)
    if kind == "dict":
        return {unpack_any(k): unpack_any(v) for k, v in value}
    if kind == "bytes":
        return base64.b64decode(value)
    if kind == "error":
        return unpack_exception(msgspec.convert(value, StoredException))
    codec = codec_for(class_at(kind))
    converted = msgspec.convert(value, codec.stored)
    return codec.unpack(converted) if codec.unpack else converted
