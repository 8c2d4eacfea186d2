"""The typespace: which types have a name, what they are called, and how they are described."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Any

import pytest

from gamedb import Module, PrimaryKey, ReducerContext, Row, ScheduleAt, SchemaError, Struct, u32, u64
from gamedb.wire.typespace import Typespace, anonymous, option


class Color(enum.Enum):
    Red = 1
    Green = 2
    Verdant = 2  # noqa: PIE796  # an alias


class Point(Struct):
    x: u32
    y: u32


class Shape(Struct): ...


class Circle(Shape, tag=True):
    center: Point


class Nothing(Shape, tag=True): ...


class Sword(Struct, tag=True):
    damage: u32


class Bow(Struct, tag=True):
    range: u32


def sample() -> Module:
    module = Module("sample")

    @module.table(public=True)
    class Item(Row):
        id: PrimaryKey[u64]
        color: Color | None
        shape: Circle | Nothing
        weapons: list[Sword | Bow]
        seen: datetime

    @module.table
    class Secret(Row):
        word: str
        place: Point

    @module.reducer
    def paint(ctx: ReducerContext, color: Color, at: list[Point]) -> None: ...

    @module.reducer(private=True)
    def hide(ctx: ReducerContext, secret: Secret) -> None: ...

    return module


def names(types: Typespace) -> list[str]:
    return [entry.name for entry in types.types]


def test_types_are_named_by_their_class_and_unions_by_their_base_or_their_members() -> None:
    types = Typespace(sample().resolve())

    assert names(types) == ["Item", "Color", "Shape", "Circle", "Point", "SwordOrBow", "Sword", "Bow", "Secret"]
    assert [entry.ref for entry in types.types] == list(range(9))


def test_what_clients_cannot_see_is_left_out() -> None:
    types = Typespace(sample().resolve(), public_only=True)

    assert "Secret" not in names(types)
    assert "Point" in names(types)


def test_a_type_is_described_by_its_variants_or_fields_with_references_to_named_types() -> None:
    module = sample().resolve()
    types = Typespace(module)
    shape = module.tables["item"].column("shape").type
    found = types.find(shape)
    assert found is not None

    assert types.algebraic(shape) == {"Ref": 2}
    assert types.definition(found) == {
        "Sum": {
            "variants": [
                {"name": {"some": "Circle"}, "algebraic_type": {"Ref": 3}},
                {"name": {"some": "Nothing"}, "algebraic_type": {"Product": {"elements": []}}},
            ]
        }
    }


def test_an_alias_of_an_enum_is_no_variant() -> None:
    types = Typespace(sample().resolve())

    variants = types.definition(types.types[1])["Sum"]["variants"]

    assert [variant["name"]["some"] for variant in variants] == ["Red", "Green"]


def test_options_lists_and_special_types_are_inline() -> None:
    module = sample().resolve()
    types = Typespace(module)
    table = module.tables["item"]

    assert types.algebraic(table.column("color").type) == option({"Ref": 1})
    assert types.algebraic(table.column("weapons").type) == {"Array": {"Ref": 5}}
    assert types.algebraic(table.column("seen").type) == {
        "Product": {
            "elements": [{"name": {"some": "__timestamp_micros_since_unix_epoch__"}, "algebraic_type": {"I64": []}}]
        }
    }
    assert types.find(table.column("seen").type) is None


def test_an_anonymous_description_has_no_references() -> None:
    module = sample().resolve()

    described = anonymous(module.tables["item"].column("shape").type)

    assert "Ref" not in str(described)


def module_with(*annotations: Any) -> Module:
    module = Module("sample")
    fields = {f"c{i}": annotation for i, annotation in enumerate(annotations)}
    module.table(public=True)(type(Row)("Item", (Row,), {"__annotations__": fields, "__module__": __name__}))
    return module


def test_two_types_of_one_name_are_refused() -> None:
    other = type(Struct)("Point", (Struct,), {"__annotations__": {"z": int}, "__module__": "elsewhere"})

    with pytest.raises(SchemaError, match=r"two types are named 'Point', .*\.Point and elsewhere\.Point.*rename one"):
        Typespace(module_with(Point, other).resolve())


def test_two_unions_over_one_base_are_refused() -> None:
    square = type(Struct)("Square", (Shape,), {"__annotations__": {}, "__module__": __name__}, tag=True)

    with pytest.raises(SchemaError, match=r"'Shape', the union Circle \| Nothing and the union Circle \| Square"):
        Typespace(module_with(Circle | Nothing, Circle | square).resolve())


def test_a_base_that_is_a_variant_itself_does_not_name_the_union() -> None:
    class Animal(Struct, tag=True): ...

    class Dog(Animal, tag=True): ...

    assert names(Typespace(module_with(Animal | Dog).resolve())) == ["Item", "AnimalOrDog"]


def test_schedule_at_is_inline() -> None:
    module = module_with(ScheduleAt).resolve()

    described = Typespace(module).algebraic(module.tables["item"].column("c0").type)

    assert [variant["name"]["some"] for variant in described["Sum"]["variants"]] == ["Interval", "Time"]
