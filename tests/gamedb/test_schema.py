"""How tables are declared: names, markers, defaults, indexes, and what is refused."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import msgspec
import pytest

from gamedb import (
    AutoInc,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    ScheduleAt,
    SchemaError,
    Struct,
    Unique,
    f32,
    u8,
    u32,
    u64,
)
from gamedb.schema import snake_case, table_schema


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    identity: Unique[Identity]
    name: Unique[str | None] = None
    zone: Index[u32]
    level: Index[u8] = 1
    items: list[u32] = msgspec.field(default_factory=list)


def test_a_schema_says_what_the_class_declares() -> None:
    schema = table_schema(Player, indexes=[("zone", "level")], public=True)
    assert schema.name == "player"
    assert schema.row is Player
    assert [c.name for c in schema.columns] == ["id", "identity", "name", "zone", "level", "items"]
    assert [c.type.name for c in schema.columns] == ["u64", "Identity", "str | None", "u32", "u8", "list[u32]"]
    assert schema.primary_key == "id"
    assert schema.unique_columns == ("identity", "name")
    assert schema.indexes == (("zone",), ("level",), ("zone", "level"))
    assert schema.public
    assert not schema.event
    assert [c.name for c in schema.columns if c.auto_inc] == ["id"]
    assert schema.column("level").default == 1
    assert schema.column("zone").default is msgspec.NODEFAULT
    assert schema.column("items").default == []


@pytest.mark.parametrize(
    ("class_name", "table"),
    [
        ("Player", "player"),
        ("DamageEvent", "damage_event"),
        ("HTTPServer", "http_server"),
        ("PlayerV2", "player_v2"),
        ("Level2Boss", "level2_boss"),
        ("already_snake", "already_snake"),
        ("ABC", "abc"),
    ],
)
def test_a_table_is_named_after_its_class_in_snake_case(class_name: str, table: str) -> None:
    assert snake_case(class_name) == table


def test_a_table_can_be_named_otherwise() -> None:
    module = Module("names")

    @module.table(name="hero")
    class Character(Row):
        id: PrimaryKey[u32]

    assert list(Database(module).module.tables) == ["hero"]


@pytest.mark.parametrize("name", ["", "Player", "1st", "two words", "é", "a-b", 'quote"', "a\n"])
def test_names_that_are_no_identifiers_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="lower-case letters, digits and underscores"):
        table_schema(Player, name=name)


@pytest.mark.parametrize("name", ["gamedb_x", "sqlite_x", "pg_x", "st_table"])
def test_reserved_prefixes_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="reserved"):
        table_schema(Player, name=name)


def test_rows_are_frozen_keyword_only_and_compared_by_value() -> None:
    row = Player(identity=Identity.from_int(1), zone=1)
    with pytest.raises(AttributeError):
        row.zone = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Player(1)  # type: ignore[misc,call-arg]
    assert row == Player(identity=Identity.from_int(1), zone=1)
    assert row != row.replace(zone=2)


def test_replace_gives_a_changed_copy_and_refuses_unknown_columns() -> None:
    row = Player(identity=Identity.from_int(1), zone=1)
    assert row.replace(zone=2, level=3).zone == 2
    assert row.zone == 1
    with pytest.raises(TypeError, match="speed"):
        row.replace(speed=1)


def test_a_column_may_be_called_self_or_type() -> None:
    module = Module("names")
    row = type(Row)("Odd", (Row,), {"__annotations__": {"self": Unique[u8], "type": u8}, "__module__": __name__})
    module.table(row)  # type: ignore[call-overload]
    db = Database(module)
    with db.transaction() as ctx:
        table: Any = ctx.db[row]
        table.insert(row(self=1, type=2))
        assert table.find(self=1) == table.where(self=1, type=2)[0]
        assert db.tables[row].get is not None
        assert table.find(self=1).replace(self=2).self == 2
        assert table.delete_where(self=1) == 1


def test_a_struct_is_frozen_unless_told_otherwise() -> None:
    class Frozen(Struct):
        x: int

    class Thawed(Struct, frozen=False):
        x: int

    with pytest.raises(AttributeError):
        Frozen(x=1).x = 2  # type: ignore[misc]
    thawed = Thawed(x=1)
    thawed.x = 2  # type: ignore[misc]
    assert thawed.x == 2


@pytest.mark.parametrize("option", [{"frozen": False}, {"kw_only": False}, {"gc": True}, {"eq": False}])
def test_a_row_cannot_be_made_mutable_or_compared_by_identity(option: dict[str, bool]) -> None:
    with pytest.raises(SchemaError, match=f"a Row is always {next(iter(option))}"):
        type(Row)("Bad", (Row,), {"__annotations__": {"x": int}}, **option)


def test_a_row_with_an_equality_of_its_own_is_refused() -> None:
    class Lax(Row):
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    with pytest.raises(SchemaError, match="must compare by its fields"):
        table_schema(Lax)


# --- refusals: each class below cannot be a table


class Level(enum.Enum):
    LOW = 1


class Nothing(Row):
    pass


class TwoKeys(Row):
    a: PrimaryKey[u8]
    b: PrimaryKey[u8]


class TwoCounters(Row):
    a: AutoInc[u8] = 0
    b: AutoInc[u8] = 0


class TextCounter(Row):
    a: AutoInc[str] = ""


class OptionalCounter(Row):
    a: AutoInc[u8 | None] = None


class KeyAndUnique(Row):
    a: PrimaryKey[Unique[u8]]


class KeyAndIndex(Row):
    a: Index[PrimaryKey[u8]]


class KeyTwice(Row):
    a: PrimaryKey[PrimaryKey[u8]]


class OptionalKey(Row):
    a: PrimaryKey[u8 | None]


class FloatKey(Row):
    a: PrimaryKey[float]


class FloatUnique(Row):
    a: Unique[f32 | None]


class ListKey(Row):
    a: PrimaryKey[list[u8]]


class ListIndex(Row):
    a: Index[list[u8]]


class TimeIndex(Row):
    a: Index[ScheduleAt]


class WrongDefault(Row):
    a: u8 = 256


class WrongFactory(Row):
    a: list[u8] = msgspec.field(default_factory=lambda: [1, "x"])  # type: ignore[list-item]


class Underscore(Row):
    _a: u8


class TakenName(Row):
    replace: u8  # type: ignore[assignment]


class CaseOnly(Row):
    hp: u8
    HP: u8


class Missing(Row):
    a: NoSuchType  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Nothing, "has no columns"),
        (TwoKeys, r"2 primary keys \(a, b\).*indexes="),
        (TwoCounters, "more than one AutoInc"),
        (TextCounter, "TextCounter.a: AutoInc needs an integer column, not str"),
        (OptionalCounter, "AutoInc needs an integer"),
        (KeyAndUnique, "write PrimaryKey alone"),
        (KeyAndIndex, "write PrimaryKey alone"),
        (KeyTwice, "PrimaryKey is given twice"),
        (OptionalKey, "cannot be None"),
        (FloatKey, "cannot be unique"),
        (FloatUnique, "cannot be unique"),
        (ListKey, "cannot be a key"),
        (ListIndex, "cannot be a key or an index"),
        (TimeIndex, "cannot be a key or an index"),
        (WrongDefault, "the default of WrongDefault.a: 256 is out of range"),
        (WrongFactory, r"the default of WrongFactory.a\[1\]"),
        (Underscore, "taken by Row itself"),
        (TakenName, "taken by Row itself"),
        (CaseOnly, "differ only by case"),
        (Missing, "'NoSuchType' is not defined in an annotation"),
        (Level, "is not a table: declare it as class Level"),
        (Level.LOW, "is not a table"),
    ],
)
def test_a_class_that_cannot_be_a_table_is_refused_with_a_remedy(row: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Module("refusing").table(row)


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([("zone", "speed")], "names 'speed', which is not a column"),
        ([("zone", "items")], "cannot be indexed"),
        ([("zone", "zone")], "must name different columns"),
        ([()], "must name different columns"),
        ([("zone",)], "declared twice"),
        ([("zone", "level"), ("zone", "level")], "declared twice"),
    ],
)
def test_an_index_that_cannot_work_is_refused(indexes: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=f"Player: index .*{message}"):
        table_schema(Player, indexes=indexes)


def test_an_index_of_one_column_may_be_named_by_text() -> None:
    class Plain(Row):
        a: u8
        b: u8

    assert table_schema(Plain, indexes=["a", ["b", "a"]]).indexes == (("a",), ("b", "a"))


def test_one_class_can_be_only_one_table_of_a_module() -> None:
    module = Module("twice")
    module.table(Player)
    with pytest.raises(SchemaError, match="has a table 'player' already"):
        module.table(name="other")(Player)


def test_two_classes_cannot_share_a_table_name() -> None:
    module = Module("twice")
    module.table(Player)
    with pytest.raises(SchemaError, match="has a table 'player' already"):
        module.table(name="player")(OnlyKey)


class OnlyKey(Row):
    a: PrimaryKey[u8]


# --- scheduled tables


class NoTime(Row):
    id: PrimaryKey[AutoInc[u64]] = 0


class TwoTimes(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    a: ScheduleAt
    b: ScheduleAt


class NoKey(Row):
    at: ScheduleAt


class SmallKey(Row):
    id: PrimaryKey[u32]
    at: ScheduleAt


class Timer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (NoTime, "exactly one column of type ScheduleAt, it has 0"),
        (TwoTimes, "exactly one column of type ScheduleAt, it has 2"),
        (NoKey, r"a key: scheduled_id: PrimaryKey\[AutoInc\[u64\]\] = 0"),
        (SmallKey, "a key"),
    ],
)
def test_a_scheduled_table_needs_a_time_and_a_key(row: type[Row], message: str) -> None:
    with pytest.raises(SchemaError, match=f"scheduled table {row.__name__} (needs )?{message}"):
        Module("refusing").table(scheduled="fire")(row)


def test_a_scheduled_table_cannot_be_an_event_table() -> None:
    with pytest.raises(SchemaError, match="cannot be an event table"):
        Module("refusing").table(scheduled="fire", event=True)(Timer)


def test_a_scheduled_table_names_its_reducer_by_text_or_by_function() -> None:
    module = Module("both")

    @module.reducer(name="renamed")
    def fire(ctx: ReducerContext, timer: Timer) -> None: ...

    module.table(scheduled=fire)(Timer)
    assert module.resolve().tables["timer"].scheduled == "renamed"


def test_the_time_column_may_have_any_name() -> None:
    class Alarm(Row):
        id: PrimaryKey[u64]
        rings: ScheduleAt

    assert table_schema(Alarm, scheduled="ring").schedule_column == "rings"


def test_annotations_of_local_classes_are_found() -> None:
    class Kind(enum.Enum):
        A = 1

    class Part(Struct):
        kind: int

    module = Module("local")

    @module.table
    class Local(Row):
        kind: Kind
        part: Part

    @module.reducer
    def make(ctx: ReducerContext, kind: Kind) -> None:
        ctx.db[Local].insert(Local(kind=kind, part=Part(kind=1)))

    @module.table(scheduled="fire")
    class LocalTimer(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        at: ScheduleAt
        kind: Kind

    @module.reducer
    def fire(ctx: ReducerContext, timer: LocalTimer) -> None: ...

    @module.view
    def locals_of(ctx: Any) -> list[Local]:
        return list(ctx.db[Local])

    db = Database(module)
    db.call(make, Kind.A)
    assert db.view(locals_of) == [Local(kind=Kind.A, part=Part(kind=1))]


def test_foreign_metadata_in_an_annotation_is_ignored() -> None:
    class Described(Row):
        a: Annotated[PrimaryKey[u8], "a note"]

    assert table_schema(Described).primary_key == "a"
