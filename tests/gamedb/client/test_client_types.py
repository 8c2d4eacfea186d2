"""Without the game's module: the classes that are made of a server's description read the same bytes."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamedb import (
    Identity,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    SchemaError,
    Struct,
    ViewContext,
    u8,
    u64,
)
from gamedb.client.remote import Remote
from gamedb.client.remote_types import RemoteTypes
from gamedb.codegen.module_def import module_def, schema_json
from gamedb.columns import ColumnType, OptionType, SumType, inside
from gamedb.errors import ArgumentError
from gamedb.functions import Function, Parameter
from gamedb.wire.bsatn import codec
from gamedb.wire.typespace import Typespace
from tests.gamedb.wire.random_types import typed_values
from tests.gamedb.wire.recursive_types import recursive_types, recursive_values


class Mood(enum.Enum):
    CALM = 1
    ANGRY = 2


class Circle(Struct, tag=True):
    radius: float
    moods: list[Mood] = []


class Group(Struct, tag=True):
    shapes: list[Circle | Group] = []


class Thing(Row):
    id: PrimaryKey[u64]
    shape: Circle | Group
    mood: Mood | None
    owner: Identity
    fires: ScheduleAt
    data: bytes
    small: list[u8]


def things() -> Module:
    module = Module("things")
    module.table(Thing, public=True)

    @module.view
    def mine(ctx: ViewContext) -> list[Thing]:
        return []

    @module.reducer
    def put(ctx: ReducerContext, thing: Circle | Group, again: bool = False) -> None: ...

    return module


SAMPLE = Thing(
    id=1,
    shape=Group([Group(), Circle(1.5, [Mood.ANGRY])]),
    mood=Mood.CALM,
    owner=Identity.from_int(3),
    fires=timedelta(seconds=5),
    data=b"x",
    small=[1, 2],
)


def test_rows_read_as_they_were_written() -> None:
    ours = Remote(schema_json(things().resolve()), things())
    theirs = Remote(module_def(things().resolve()))
    data = ours.tables["thing"].codec.encode(SAMPLE)
    row: Any = theirs.tables["thing"].codec.decode_whole(data)
    assert theirs.tables["thing"].codec.encode(row) == data
    assert type(row).__name__ == "Thing"
    assert isinstance(row, Row)
    assert row.mood.name == "CALM"
    assert type(row.shape.shapes[1]).__name__ == "Circle"
    assert row.shape.shapes[1].radius == 1.5
    assert (row.owner, row.fires, row.data, row.small) == (SAMPLE.owner, SAMPLE.fires, b"x", bytes([1, 2]))
    assert theirs.tables["thing"].schema.primary_key == "id"
    assert type(theirs.tables["mine"].codec.decode_whole(data)) is type(row)
    assert theirs.tables["mine"].schema.primary_key == "id"
    with pytest.raises(AttributeError):
        row.id = 5


def test_with_the_module_rows_and_functions_are_its_own() -> None:
    module = things()
    remote = Remote(schema_json(module.resolve()), module)
    assert remote.table(Thing).schema.row is Thing
    mine = module.resolve().functions["mine"].function
    assert remote.table(mine) is remote.table("mine")
    assert remote.tables["mine"].schema.row is Thing
    put = module.resolve().functions["put"].function
    function = remote.function(put, "reducer")
    assert function.bind([Circle(1.0)], {}) == (Circle(1.0), False)
    with pytest.raises(ArgumentError, match=r"thing\.radius"):
        function.bind([Circle(radius="x")], {})  # type: ignore[arg-type]


def test_what_differs_is_named() -> None:
    before, after = things(), Module("things")
    after.table(Thing, public=True)
    remote = Remote(schema_json(before.resolve()))
    assert remote.differences(remote) == []
    assert remote.differences(Remote(schema_json(after.resolve()))) == ["reducer put", "table mine"]
    assert Remote(schema_json(after.resolve())).differences(remote) == [], "more is no harm"


# --- descriptions of other servers


def some(name: str, kind: Any) -> Any:
    return {"name": {"some": name}, "algebraic_type": kind}


def read(kind: Any, *typespace: Any) -> ColumnType:
    return RemoteTypes(list(typespace), {}).read(kind)


def test_variants_may_hold_anything() -> None:
    status = {"Sum": {"variants": [some("Active", {"Product": {"elements": []}}), some("Banned", {"String": []})]}}
    kind = read({"Ref": 0}, status)
    assert isinstance(kind, SumType)
    value = codec(kind).decode_whole(b"\x01\x02\x00\x00\x00no")
    assert value.value == "no"
    assert type(value).__name__ == "Banned"
    assert codec(kind).encode(codec(kind).decode_whole(b"\x00")) == b"\x00"


def test_names_that_python_cannot_have() -> None:
    product = {"elements": [some("class", {"U8": []}), some("replace", {"U8": []}), some("a-b", {"U8": []})]}
    value = codec(read({"Product": product})).decode_whole(b"\x01\x02\x03")
    assert msgspec.structs.asdict(value) == {"class_": 1, "replace_": 2, "a_b": 3}


def test_types_that_are_not_known() -> None:
    with pytest.raises(SchemaError, match="a type 'Map', which this client does not know"):
        read({"Map": []})
    with pytest.raises(SchemaError, match="not a module definition of version 10"):
        Remote({"typespace": {}})
    with pytest.raises(SchemaError, match="without end"):
        read({"Ref": 0}, {"Product": {"elements": [some("inner", {"Ref": 0})]}})


@st.composite
def recursive(draw: st.DrawFn) -> tuple[ColumnType, Any]:
    kind = draw(recursive_types())
    return kind, kind.coerce(draw(recursive_values(kind)), "v")


@settings(max_examples=60)
@given(typed_values() | recursive())
def test_any_type_is_read_from_its_description(typed: tuple[ColumnType, Any]) -> None:
    kind, value = typed
    if any(isinstance(k, OptionType) and isinstance(k.inner, OptionType) for k in (kind, *inside(kind))):
        return  # nobody can declare it
    parameter = Parameter(name="v", type=kind, default=msgspec.NODEFAULT)
    function = Function(
        name="put", kind="reducer", function=len, parameters=(parameter,), bind=lambda v: (v,), invoke=len
    )
    resolved = msgspec.structs.replace(Module("any").resolve(), functions={"put": function})
    try:
        Typespace(resolved)
    except SchemaError:
        return  # two unions with one name, say
    remote = Remote(schema_json(resolved))
    data = codec(kind).encode(value)
    arguments = remote.functions["put"].arguments
    assert arguments.encode(arguments.decode_whole(data)) == data
