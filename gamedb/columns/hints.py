"""What a Struct class or a function declares: resolved annotations, defaults, and how it compares."""

from __future__ import annotations

import typing
from typing import Any

import msgspec

from gamedb.errors import SchemaError

Names = dict[str, Any] | None
"""The local names around a class or function that is not at module level, for its annotations."""


class _Probe(msgspec.Struct):
    made: list[int] = msgspec.field(default_factory=list)


_Factory: Any = type(_Probe.__struct_defaults__[0])


def struct_defaults(cls: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a Struct with their default values, made anew by their factories; `NODEFAULT` without one.

    As `msgspec.structs.fields`, but it leaves alone annotations, which may name local classes.
    """
    given = cls.__struct_defaults__
    values = (msgspec.NODEFAULT,) * (len(cls.__struct_fields__) - len(given)) + given
    made = (value.factory() if isinstance(value, _Factory) else value for value in values)
    return dict(zip(cls.__struct_fields__, made, strict=True))


def check_equality(cls: type[msgspec.Struct], where: str) -> None:
    """`SchemaError` unless a Struct compares by its fields: what is a change, and which rows are equal, hangs on it."""
    if not cls.__struct_config__.eq or cls.__eq__ is not msgspec.Struct.__eq__:
        raise SchemaError(f"{where}: {cls.__name__} must compare by its fields; drop eq=False or its own __eq__")


def resolve_hints(owner: Any, where: str, scope: Names = None) -> dict[str, Any]:
    """The annotations of a class or function with names resolved."""
    if isinstance(owner, type) and "<locals>" in owner.__qualname__:
        scope = {**(scope or {}), owner.__name__: owner}  # its decorators run before its name is known
    try:
        return typing.get_type_hints(owner, localns=scope, include_extras=True)
    except NameError as error:
        raise SchemaError(f"{where}: {error} in an annotation; define or import it first") from None
    except TypeError as error:
        raise SchemaError(f"{where}: an annotation cannot be read: {error}") from None
