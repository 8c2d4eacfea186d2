"""Column types as TypeScript: the builders of the SDK, and plain types where inference cannot follow.

A named type is a constant in `types.ts` with a type of the same name. References to named types stand in getters, so
that types may refer to each other, and to themselves, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gamedb.codegen.names import camel, check_distinct, pascal
from gamedb.columns import (
    BoolType,
    BytesType,
    ColumnType,
    DurationType,
    EnumType,
    FloatType,
    HexType,
    IntType,
    ListType,
    OptionType,
    ProductType,
    ScheduleAtType,
    StrType,
    SumType,
    TimestampType,
    UuidType,
)
from gamedb.wire.typespace import NamedType, Typespace, enum_names

BUILDERS: Final[dict[type[ColumnType], str]] = {
    BoolType: "bool",
    StrType: "string",
    BytesType: "byteArray",
    TimestampType: "timestamp",
    DurationType: "timeDuration",
    ScheduleAtType: "scheduleAt",
    UuidType: "uuid",
}
_PLAIN: Final[dict[type[ColumnType], str]] = {
    BoolType: "boolean",
    StrType: "string",
    BytesType: "globalThis.Uint8Array",  # a game may call a type of its own so
    TimestampType: "__Timestamp",
    DurationType: "__TimeDuration",
    ScheduleAtType: "__Infer<ReturnType<typeof __t.scheduleAt>>",
    UuidType: "__Uuid",
}
CLASSES: Final = ("ConnectionId", "Identity", "TimeDuration", "Timestamp", "Uuid")
"""Classes of the SDK that plain types name, with `__` in front."""


class Builder(msgspec.Struct, frozen=True):
    """An expression that builds a type, and the named types in it."""

    text: str
    uses: tuple[str, ...] = ()

    def as_property(self, name: str, indent: str = "  ") -> str:
        """The property of an object literal: a getter when named types are in it."""
        if not self.uses:
            return f"{indent}{name}: {self.text},\n"
        return f"{indent}get {name}() {{\n{indent}  return {self.text};\n{indent}}},\n"


class TypeScriptTypes:
    """The named types of a typespace under their TypeScript names."""

    def __init__(self, types: Typespace) -> None:
        self.types = types
        self.names = {entry.ref: pascal(entry.name) for entry in types.types}
        check_distinct("types", [(entry.name, self.names[entry.ref]) for entry in types.types])
        self._recursive = {entry.ref for entry in types.types if self._reaches_itself(entry)}

    def name(self, kind: ColumnType) -> str:
        """The name of a named type."""
        return self.names[self.types.ref(kind)]

    def is_recursive(self, kind: ColumnType) -> bool:
        """Whether a named type contains itself, so that its constant has an explicit type."""
        found = self.types.find(kind)
        return found is not None and found.ref in self._recursive

    def builder(self, kind: ColumnType) -> Builder:
        """The expression that builds a type."""
        if isinstance(kind, IntType | FloatType):
            return Builder(f"__t.{kind.name}()")
        if isinstance(kind, HexType):
            return Builder(f"__t.{camel(kind.name)}()")
        if isinstance(kind, OptionType):
            inner = self.builder(kind.inner)
            return Builder(f"__t.option({inner.text})", inner.uses)
        if isinstance(kind, ListType):
            if kind.item.name == "u8":  # the SDK has one form for both
                return Builder("__t.byteArray()")
            inner = self.builder(kind.item)
            return Builder(f"__t.array({inner.text})", inner.uses)
        if isinstance(kind, ProductType | EnumType | SumType):
            return Builder(self.name(kind), (self.name(kind),))
        return Builder(f"__t.{BUILDERS[type(kind)]}()")

    def properties(self, fields: Iterable[tuple[str, ColumnType]], where: str) -> str:
        """The properties of an object literal of builders, with names in camel case."""
        listed = list(fields)
        check_distinct(where, [(name, camel(name)) for name, _ in listed])
        return "".join(self.builder(kind).as_property(camel(name)) for name, kind in listed)

    def definitions(self) -> Iterator[str]:
        """The declarations of all named types, in the order of their names."""
        for entry in sorted(self.types.types, key=lambda entry: self.names[entry.ref]):
            yield self._definition(entry)

    def _definition(self, entry: NamedType) -> str:
        name = self.names[entry.ref]
        function = "object" if entry.kind == "product" else "enum"
        body = f"__t.{function}('{name}', {{\n{self._members(entry)}}})"
        if entry.ref not in self._recursive:
            return f"export const {name} = {body};\nexport type {name} = __Infer<typeof {name}>;\n"
        # Inference gives up on a type inside itself, so this one is written down.
        plain = self._plain_definition(entry)
        annotation = f"__TypeBuilder<{name}, __AlgebraicTypeType>"
        return f"export type {name} ={plain};\nexport const {name}: {annotation} = {body};\n"

    def _members(self, entry: NamedType) -> str:
        if isinstance(entry.type, ProductType):
            return self.properties(entry.type.fields.items(), f"type {entry.name}")
        return "".join(
            f"  {name}: __t.unit(),\n" if payload is None else self.builder(payload).as_property(name)
            for name, payload in self._variants(entry)
        )

    def _variants(self, entry: NamedType) -> list[tuple[str, ProductType | None]]:
        if isinstance(entry.type, EnumType):
            tags: list[tuple[str, ProductType | None]] = [(name, None) for name in enum_names(entry.type)]
        else:
            assert isinstance(entry.type, SumType)
            tags = [(tag, variant if variant.fields else None) for tag, variant in entry.type.variants.items()]
        check_distinct(f"type {entry.name}", [(tag, pascal(tag)) for tag, _ in tags])
        return [(pascal(tag), payload) for tag, payload in tags]

    def _plain_definition(self, entry: NamedType) -> str:
        if isinstance(entry.type, ProductType):
            fields = "".join(f"  {camel(name)}: {self._plain(kind)};\n" for name, kind in entry.type.fields.items())
            return f" {{\n{fields}}}"
        return "".join(
            f"\n  | {{ tag: '{name}' }}"
            if payload is None
            else f"\n  | {{ tag: '{name}'; value: {self._plain(payload)} }}"
            for name, payload in self._variants(entry)
        )

    def _plain(self, kind: ColumnType) -> str:
        if isinstance(kind, IntType):
            return "number" if kind.high < 2**32 else "bigint"
        if isinstance(kind, FloatType):
            return "number"
        if isinstance(kind, HexType):
            return f"__{kind.name}"
        if isinstance(kind, OptionType):
            return f"{self._plain(kind.inner)} | undefined"
        if isinstance(kind, ListType):
            return _PLAIN[BytesType] if kind.item.name == "u8" else f"({self._plain(kind.item)})[]"
        if isinstance(kind, ProductType | EnumType | SumType):
            return self.name(kind)
        return _PLAIN[type(kind)]

    def _reaches_itself(self, start: NamedType) -> bool:
        seen: set[int] = set()
        waiting = list(self._direct(start))
        while waiting:
            entry = waiting.pop()
            if entry.ref == start.ref:
                return True
            if entry.ref not in seen:
                seen.add(entry.ref)
                waiting += self._direct(entry)
        return False

    def _direct(self, entry: NamedType) -> Iterator[NamedType]:
        kinds: Iterable[ColumnType] = ()
        if isinstance(entry.type, ProductType):
            kinds = entry.type.fields.values()
        elif isinstance(entry.type, SumType):
            kinds = [variant for variant in entry.type.variants.values() if variant.fields]
        for kind in kinds:
            while isinstance(kind, OptionType | ListType):
                kind = kind.inner if isinstance(kind, OptionType) else kind.item
            found = self.types.find(kind)
            if found is not None:
                yield found
