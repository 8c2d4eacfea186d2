"""The named types of a module as clients know them: their names, their numbers, and their SATS descriptions.

The schema endpoint, the module definition and the generated bindings are written from a `Typespace`. It works
from a resolved module alone: it knows no values, no bytes and no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

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
from gamedb.errors import SchemaError
from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.schema import TableSchema
from gamedb.types import Identity

Json = dict[str, Any]

TIMESTAMP_FIELD: Final = "__timestamp_micros_since_unix_epoch__"
DURATION_FIELD: Final = "__time_duration_micros__"
IDENTITY_FIELD: Final = "__identity__"
CONNECTION_ID_FIELD: Final = "__connection_id__"
UUID_FIELD: Final = "__uuid__"
"""The field of each product with special standing, by which other sides know it."""

UNIT: Final[Json] = {"Product": {"elements": []}}


def named(name: str, kind: Json) -> Json:
    """One element of a product or one variant of a sum."""
    return {"name": {"some": name}, "algebraic_type": kind}


def _special(field: str, kind: str) -> Json:
    return {"Product": {"elements": [named(field, {kind: []})]}}


TIMESTAMP: Final = _special(TIMESTAMP_FIELD, "I64")
TIME_DURATION: Final = _special(DURATION_FIELD, "I64")
IDENTITY: Final = _special(IDENTITY_FIELD, "U256")
CONNECTION_ID: Final = _special(CONNECTION_ID_FIELD, "U128")
UUID_TYPE: Final = _special(UUID_FIELD, "U128")
SCHEDULE_AT: Final[Json] = {"Sum": {"variants": [named("Interval", TIME_DURATION), named("Time", TIMESTAMP)]}}


def option(inner: Json) -> Json:
    """`inner`, or nothing."""
    return {"Sum": {"variants": [named("some", inner), named("none", UNIT)]}}


class NamedType(msgspec.Struct, frozen=True, eq=False):
    """One entry: a product or a sum with a name of its own."""

    name: str
    ref: int
    kind: Literal["product", "enum", "sum"]
    type: ProductType | EnumType | SumType

    @property
    def is_enum(self) -> bool:
        """Whether all variants are without payload."""
        return self.kind == "enum"


def enum_names(kind: EnumType) -> list[str]:
    """The members in the order of their variant indexes; an alias is no member of its own."""
    return [member.name for member in kind.cls]


def sum_name(kind: SumType) -> str:
    """The base class of all variants that stands directly below `Struct`, or their names joined by `Or`."""
    classes = [variant.cls for variant in kind.variants.values()]
    shared = [base for base in classes[0].__mro__ if all(issubclass(cls, base) for cls in classes)]
    bases = [base for base in shared if _is_declared(base) and base not in classes]
    return bases[-1].__name__ if bases else "Or".join(cls.__name__ for cls in classes)


def _is_declared(base: type) -> bool:
    """Whether a class is a game's own Struct, not one of the libraries' bases (which are all named `Struct`)."""
    return issubclass(base, msgspec.Struct) and base is not msgspec.Struct and base.__name__ != "Struct"


def _key(kind: ProductType | EnumType | SumType) -> Any:
    if isinstance(kind, SumType):
        return tuple(variant.cls for variant in kind.variants.values())
    return kind.cls


def row_type(schema: TableSchema) -> ProductType:
    """The product that a row of the table is."""
    required = {c.name for c in schema.columns if c.default is msgspec.NODEFAULT}
    return ProductType(schema.row, {c.name: c.type for c in schema.columns}, required)


class Typespace:
    """The named types that tables and functions of a module use, numbered in the order of their first use.

    With `public_only`, those of public tables and of functions that clients may call. Raises `SchemaError` when two
    different types have one name.
    """

    def __init__(self, module: Resolved, *, public_only: bool = False) -> None:
        self.types: list[NamedType] = []
        self._by_key: dict[Any, NamedType] = {}
        self._by_name: dict[str, NamedType] = {}
        for schema in client_tables(module, public_only):
            self._add(row_type(schema))
        for function in client_functions(module, public_only):
            for parameter in function.parameters:
                self._visit(parameter.type)
            if function.returns is not None:
                self._visit(function.returns)

    def find(self, kind: ColumnType) -> NamedType | None:
        """The entry of a type that has a name; `None` for plain, special, list and option types."""
        if isinstance(kind, ProductType | EnumType | SumType):
            return self._by_key[_key(kind)]
        return None

    def ref(self, kind: ColumnType) -> int:
        """The number of a named type."""
        found = self.find(kind)
        if found is None:
            raise KeyError(kind.name)
        return found.ref

    def row(self, schema: TableSchema) -> NamedType:
        """The entry of a table's row type."""
        return self._by_key[schema.row]

    def algebraic(self, kind: ColumnType) -> Json:
        """The type as the JSON of an AlgebraicType; named types are a `Ref`."""
        found = self.find(kind)
        return {"Ref": found.ref} if found is not None else _inline(kind, self.algebraic)

    def definition(self, entry: NamedType) -> Json:
        """What a named type consists of, as the JSON of an AlgebraicType."""
        if isinstance(entry.type, EnumType):
            return {"Sum": {"variants": [named(name, UNIT) for name in enum_names(entry.type)]}}
        if isinstance(entry.type, SumType):
            return {
                "Sum": {
                    "variants": [
                        named(tag, self.algebraic(variant) if variant.fields else UNIT)
                        for tag, variant in entry.type.variants.items()
                    ]
                }
            }
        return {"Product": {"elements": [named(n, self.algebraic(kind)) for n, kind in entry.type.fields.items()]}}

    def _visit(self, kind: ColumnType) -> None:
        if isinstance(kind, OptionType):
            self._visit(kind.inner)
        elif isinstance(kind, ListType):
            self._visit(kind.item)
        elif isinstance(kind, ProductType | EnumType | SumType):
            self._add(kind)

    def _add(self, kind: ProductType | EnumType | SumType) -> None:
        key = _key(kind)
        if key in self._by_key:
            return
        name = sum_name(kind) if isinstance(kind, SumType) else kind.cls.__name__
        self._check_name(name, kind)
        which: Literal["product", "enum", "sum"] = "product"
        if not isinstance(kind, ProductType):
            which = "enum" if isinstance(kind, EnumType) else "sum"
        entry = NamedType(name, len(self.types), which, kind)
        self.types.append(entry)
        self._by_key[key] = self._by_name[name] = entry
        for part in _parts(kind):
            self._visit(part)

    def _check_name(self, name: str, kind: ProductType | EnumType | SumType) -> None:
        other = self._by_name.get(name)
        if other is None:
            return
        if isinstance(kind, SumType) or isinstance(other.type, SumType):
            remedy = "give each union of Structs a base class of its own"
        else:
            remedy = "rename one"
        raise SchemaError(
            f"two types are named {name!r}, {_shown(other.type)} and {_shown(kind)}; "
            f"clients could not tell them apart: {remedy}"
        )


def _parts(kind: ProductType | EnumType | SumType) -> Iterator[ColumnType]:
    if isinstance(kind, ProductType):
        yield from kind.fields.values()
    elif isinstance(kind, SumType):
        yield from (variant for variant in kind.variants.values() if variant.fields)


def _shown(kind: ProductType | EnumType | SumType) -> str:
    if isinstance(kind, SumType):
        return f"the union {' | '.join(variant.cls.__name__ for variant in kind.variants.values())}"
    return f"{kind.cls.__module__}.{kind.cls.__qualname__}"


def client_tables(module: Resolved, public_only: bool = True) -> list[TableSchema]:
    """The tables that clients see, or all."""
    return [schema for schema in module.tables.values() if schema.public or not public_only]


def client_functions(module: Resolved, public_only: bool = True) -> list[Function]:
    """The reducers, procedures and views that clients see, or all. Lifecycle reducers are private."""
    return [f for f in module.functions.values() if not public_only or (not f.private and f.public)]


def anonymous(kind: ColumnType) -> Json:
    """The type with everything inline, for results of queries: there are no names and no numbers in it."""
    return _anonymous(kind, ())


def _anonymous(kind: ColumnType, within: tuple[Any, ...]) -> Json:
    if not isinstance(kind, ProductType | EnumType | SumType):
        return _inline(kind, lambda inner: _anonymous(inner, within))
    key = _key(kind)
    if key in within:  # a type inside itself has no finite form
        return UNIT
    inside = (*within, key)
    if isinstance(kind, EnumType):
        return {"Sum": {"variants": [named(name, UNIT) for name in enum_names(kind)]}}
    if isinstance(kind, SumType):
        return {"Sum": {"variants": [named(tag, _anonymous(v, inside)) for tag, v in kind.variants.items()]}}
    return {"Product": {"elements": [named(name, _anonymous(v, inside)) for name, v in kind.fields.items()]}}


_PLAIN: Final[dict[type[ColumnType], Json]] = {
    BoolType: {"Bool": []},
    StrType: {"String": []},
    BytesType: {"Array": {"U8": []}},
    TimestampType: TIMESTAMP,
    DurationType: TIME_DURATION,
    ScheduleAtType: SCHEDULE_AT,
    UuidType: UUID_TYPE,
}


def _inline(kind: ColumnType, algebraic: Any) -> Json:
    """A type that has no name: its parts are described by `algebraic`."""
    if isinstance(kind, IntType | FloatType):
        return {kind.name.upper(): []}
    if isinstance(kind, HexType):
        return IDENTITY if kind.cls is Identity else CONNECTION_ID
    if isinstance(kind, OptionType):
        return option(algebraic(kind.inner))
    if isinstance(kind, ListType):
        return {"Array": algebraic(kind.item)}
    return _PLAIN[type(kind)]


def product(parts: Iterable[tuple[str, Json]]) -> Json:
    """A ProductType (without the `Product` around it) of named elements."""
    return {"elements": [named(name, kind) for name, kind in parts]}
