"""Column types from the description of a server: an AlgebraicType as JSON to a `ColumnType`, with classes made for it.

Products become frozen Structs, sums without payloads enums, other sums unions of Structs: the classes that a game
would have declared, as far as the description says.
"""

from __future__ import annotations

import enum
import keyword
from datetime import datetime, timedelta
from types import new_class
from typing import Any, Final
from uuid import UUID

import msgspec

from gamedb import types
from gamedb.columns import (
    ColumnType,
    EnumType,
    ListType,
    OptionType,
    ProductType,
    SumType,
    column_type,
    mark_recursive,
)
from gamedb.errors import SchemaError
from gamedb.schema import Row, Struct
from gamedb.wire.typespace import (
    CONNECTION_ID,
    IDENTITY,
    SCHEDULE_AT,
    TIME_DURATION,
    TIMESTAMP,
    UNIT,
    UUID_TYPE,
    Json,
)

MODULE: Final = "gamedb.client.rows"
"""Where the made classes say that they are from."""

_SPECIAL: Final[list[tuple[Json, Any]]] = [
    (IDENTITY, types.Identity),
    (CONNECTION_ID, types.ConnectionId),
    (TIMESTAMP, datetime),
    (TIME_DURATION, timedelta),
    (UUID_TYPE, UUID),
    (SCHEDULE_AT, types.ScheduleAt),
]
_PLAIN: Final[dict[str, ColumnType]] = {
    name: column_type(annotation, name)
    for name, annotation in (
        *((f"{sign}{bits}".upper(), getattr(types, f"{sign}{bits}")) for sign in "ui" for bits in (8, 16, 32, 64)),
        *((f"{sign}{bits}".upper(), getattr(types, f"{sign}{bits}")) for sign in "ui" for bits in (128, 256)),
        *(("Bool", bool), ("String", str), ("F32", types.f32), ("F64", float)),
    )
}
_BYTES: Final = column_type(bytes, "bytes")


class RemoteTypes:
    """The types of a server's typespace, each made once."""

    def __init__(self, typespace: list[Json], names: dict[int, str]) -> None:
        self._typespace = typespace
        self._names = names
        self._made: dict[int, ColumnType] = {}
        self._products: list[ProductType] = []
        self._rows: dict[int, ProductType] = {}

    def row(self, ref: int) -> ProductType:
        """The product of a table's rows, whose class is a `Row`."""
        if ref not in self._rows:
            self._rows[ref] = self._product(self._name(ref), self._typespace[ref]["Product"], Row)
            mark_recursive(self._products, "the types of the server")
        return self._rows[ref]

    def read(self, kind: Json) -> ColumnType:
        """The column type of an AlgebraicType."""
        found = self._read(kind, "Value")
        mark_recursive(self._products, "the types of the server")
        return found

    def parameters(self, product: Json) -> list[tuple[str, ColumnType]]:
        """Names and types of a function's parameters."""
        return [(_some(e["name"]), self.read(e["algebraic_type"])) for e in product["elements"]]

    def _name(self, ref: int) -> str:
        return self._names.get(ref, f"Type{ref}")

    def _read(self, kind: Json, name: str) -> ColumnType:
        for special, annotation in _SPECIAL:
            if kind == special:
                return column_type(annotation, name)
        (what, inner), *others = kind.items()
        if others:
            raise SchemaError(f"the server describes a type as {kind}, which this client does not know")
        if what == "Ref":
            return self._named(inner)
        if what == "Array":
            return _BYTES if inner == {"U8": []} else ListType(self._read(inner, f"{name}Item"))
        if what == "Product":
            return self._product(name, inner, Struct)
        if what == "Sum":
            return self._sum(name, inner["variants"])
        if what in _PLAIN:
            return _PLAIN[what]
        raise SchemaError(f"the server has a type {what!r}, which this client does not know; use a newer client")

    def _named(self, ref: int) -> ColumnType:
        if ref not in self._made:
            what = self._typespace[ref]
            name = self._name(ref)
            if "Product" in what:
                self._product(name, what["Product"], Struct, ref)
            else:
                self._sum(name, what["Sum"]["variants"], ref)
        return self._made[ref]

    def _product(self, name: str, product: Json, base: type[msgspec.Struct], ref: int | None = None) -> ProductType:
        kind, fields = _shell(name, product, base)
        if ref is not None:
            self._made[ref] = kind  # its fields may hold it
        self._fill(kind, fields)
        return kind

    def _fill(self, kind: ProductType, fields: dict[str, Json]) -> None:
        for field, inner in fields.items():
            kind.fields[field] = self._read(inner, f"{kind.name}{field.title().replace('_', '')}")
        self._products.append(kind)

    def _sum(self, name: str, variants: list[Json], ref: int | None = None) -> ColumnType:
        names = [_some(variant["name"]) for variant in variants]
        payloads = [variant["algebraic_type"] for variant in variants]
        if names == ["some", "none"] and payloads[1] == UNIT:
            return OptionType(self._read(payloads[0], name))
        if all(payload == UNIT for payload in payloads):
            members = [_identifier(member) for member in names]
            kind: ColumnType = EnumType(enum.Enum(name, members, module=MODULE))  # type: ignore[arg-type]
            if ref is not None:
                self._made[ref] = kind
            return kind
        shells = {
            variant: _shell(_identifier(variant), self._payload(payload), Struct, variant)
            for variant, payload in zip(names, payloads, strict=True)
        }
        kind = SumType({variant: shell for variant, (shell, _) in shells.items()}, "type")
        if ref is not None:
            self._made[ref] = kind
        for shell, fields in shells.values():
            self._fill(shell, fields)
        return kind

    def _payload(self, payload: Json) -> Json:
        """The product of a variant's fields: that of its payload, or one with the field `value`."""
        what = self._typespace[payload["Ref"]] if "Ref" in payload else payload
        if "Product" in what and all(what != special for special, _ in _SPECIAL):
            product: Json = what["Product"]
            return product
        return {"elements": [{"name": {"some": "value"}, "algebraic_type": payload}]}


def _shell(
    name: str, product: Json, base: type[msgspec.Struct], tag: str | None = None
) -> tuple[ProductType, dict[str, Json]]:
    """A product whose fields have no types yet, and what they shall be."""
    fields = {_identifier(_some(e["name"])): e["algebraic_type"] for e in product["elements"]}
    body = {"__module__": MODULE, "__annotations__": dict.fromkeys(fields, Any)}
    cls: type[msgspec.Struct] = new_class(name, (base,), {"kw_only": True, "tag": tag}, lambda made: made.update(body))
    return ProductType(cls, {}, set(fields)), fields


def _some(name: Json | str) -> str:
    """A name that may be an option."""
    return name if isinstance(name, str) else str(name["some"])


def _identifier(name: str) -> str:
    """A name as Python can have it: with `_` behind a keyword, and behind what `Row` has already."""
    made = "".join(c if c.isidentifier() or c.isdigit() else "_" for c in name).lstrip("_") or "field"
    if made[0].isdigit():
        made = f"n{made}"
    return f"{made}_" if keyword.iskeyword(made) or hasattr(Row, made) else made
