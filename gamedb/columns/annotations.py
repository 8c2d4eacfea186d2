"""From annotations to column types: what may stand in a Row, a Struct or a function's parameters.

All errors here are `SchemaError`, raised when a game is imported.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from gamedb.columns.base import ColumnType
from gamedb.columns.hints import Names, check_equality, resolve_hints, struct_defaults
from gamedb.columns.lists import ListType, OptionType
from gamedb.columns.plain import BoolType, BytesType, EnumType, FloatType, HexType, IntType, StrType, UuidType
from gamedb.columns.recursion import mark_recursive
from gamedb.columns.structs import ProductType, SumType
from gamedb.columns.times import DurationType, ScheduleAtType, TimestampType
from gamedb.errors import SchemaError
from gamedb.types import I64, ConnectionId, F32Marker, Identity, IntRange

_PLAIN: Final[dict[object, ColumnType]] = {
    bool: BoolType(),
    int: IntType(I64),
    float: FloatType("f64"),
    str: StrType(),
    bytes: BytesType(),
    datetime: TimestampType(),
    timedelta: DurationType(),
    UUID: UuidType(),
    Identity: HexType(Identity),
    ConnectionId: HexType(ConnectionId),
}

_KNOWN: Final = (
    "bool, int, u8..u256, i8..i256, f32, float, str, bytes, datetime, timedelta, UUID, Identity, ConnectionId, "
    "ScheduleAt, an Enum, T | None, list[T], a frozen Struct, or a union of tagged Structs"
)


def column_type(annotation: Any, where: str, scope: Names = None) -> ColumnType:
    """The `ColumnType` of a resolved annotation; `SchemaError` naming `where` when there is none."""
    reader = _Reader(scope)
    kind = reader.read(annotation, where)
    mark_recursive(reader.products.values(), where)
    return kind


def product_type(cls: type[msgspec.Struct], where: str, scope: Names = None) -> ProductType:
    """The product of a frozen Struct's fields."""
    reader = _Reader(scope)
    kind = reader.product(cls, where)
    mark_recursive(reader.products.values(), where)
    return kind


class _Reader:
    """Reads one annotation. Each Struct class inside it becomes one type, so that it may stand inside itself."""

    def __init__(self, scope: Names) -> None:
        self._scope = scope
        self.products: dict[type[msgspec.Struct], ProductType] = {}

    def read(self, annotation: Any, where: str) -> ColumnType:
        if typing.get_origin(annotation) is Annotated:
            base, *markers = typing.get_args(annotation)
            for marker in markers:
                if isinstance(marker, IntRange):
                    return IntType(marker)
                if isinstance(marker, F32Marker):
                    return FloatType("f32")
            return self.read(base, where)
        plain = _PLAIN.get(annotation) if isinstance(annotation, type) else None
        if plain is not None:
            return plain
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return self._union(args, where)
        if origin is list:
            return ListType(self.read(args[0], where))
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return _enum(annotation, where)
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            return self.product(annotation, where)
        hint = " (write list[T])" if annotation is list else ""
        raise SchemaError(f"{where}: {_type_name(annotation)} is not a column type{hint}; use {_KNOWN}")

    def product(self, cls: type[msgspec.Struct], where: str) -> ProductType:
        if cls in self.products:
            return self.products[cls]
        if not cls.__struct_config__.frozen:
            raise SchemaError(f"{where}: {cls.__name__} can be changed in place; declare it with frozen=True")
        check_equality(cls, where)
        hints = resolve_hints(cls, where, self._scope if "<locals>" in cls.__qualname__ else None)
        defaults = struct_defaults(cls)
        required = {name for name, default in defaults.items() if default is msgspec.NODEFAULT}
        kind = self.products[cls] = ProductType(cls, {}, required)
        for name in defaults:
            kind.fields[name] = self.read(hints[name], f"{where}.{name}")
        return kind

    def _union(self, args: Sequence[Any], where: str) -> ColumnType:
        members = [a for a in args if a is not type(None)]
        if set(members) == {datetime, timedelta}:
            kind: ColumnType = ScheduleAtType()
        elif len(members) == 1:
            kind = self.read(members[0], where)
        else:
            kind = self._sum(members, where)
        return OptionType(kind) if len(members) < len(args) else kind

    def _sum(self, members: list[Any], where: str) -> ColumnType:
        variants: dict[str, ProductType] = {}
        tag_fields = set()
        for member in members:
            if not (isinstance(member, type) and issubclass(member, msgspec.Struct)):
                raise SchemaError(
                    f"{where}: a union may hold Structs with tags (or one type and None), not {_type_name(member)}"
                )
            config = member.__struct_config__
            if not isinstance(config.tag, str):
                raise SchemaError(f"{where}: {member.__name__} stands in a union; declare it with tag=True")
            variants[config.tag] = self.product(member, where)
            tag_fields.add(config.tag_field)
        if len(variants) != len(members) or len(tag_fields) != 1:
            raise SchemaError(f"{where}: the Structs of a union need different tags in one tag_field")
        return SumType(variants, str(tag_fields.pop()))


def _enum(cls: type[enum.Enum], where: str) -> ColumnType:
    if issubclass(cls, enum.Flag):
        raise SchemaError(f"{where}: {cls.__name__} is a Flag, whose values combine; store it as u32")
    if not cls.__members__:
        raise SchemaError(f"{where}: {cls.__name__} has no members")
    for base in cls.__mro__[: cls.__mro__.index(enum.Enum)]:
        if issubclass(base, enum.Enum) and base.__module__ != "enum" and {"__eq__", "__hash__"} & base.__dict__.keys():
            raise SchemaError(f"{where}: {cls.__name__} must compare by its members; drop its own __eq__ and __hash__")
    return EnumType(cls)


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
