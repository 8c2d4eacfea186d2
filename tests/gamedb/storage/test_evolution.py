"""What happens to stored tables when the module's have changed: done by itself, or refused as a whole."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import Place, rows_of, schemas
from tables import Player, Tag

from gamedb.errors import SchemaChangeRefused
from gamedb.schema import AutoInc, Index, PrimaryKey, Row, Struct, TableSchema, Unique
from gamedb.storage import Plan
from gamedb.types import ScheduleAt, u8, u32, u64

OLD = schemas(Player, Tag)
ADA = Player(id=1, name="Ada", zone=3)
BOB = Player(id=2, name="Bob", zone=3)
MAGE = Tag(player=1, label="mage")


@pytest.fixture
def filled(place: Place) -> Place:
    """A database of two players and a tag."""
    with closing(place.open(OLD)) as storage:
        storage.write(1, {"player": {1: ADA, 2: BOB}, "tag": {MAGE: MAGE}})
    return place


def player(**columns: Any) -> TableSchema:
    """The table `player` with other columns."""
    options = columns.pop("options", {})
    defaults = {name: value[1] for name, value in columns.items() if isinstance(value, tuple)}
    hints = {name: value[0] if isinstance(value, tuple) else value for name, value in columns.items()}
    row: Any = type(Row)("Player", (Row,), {"__annotations__": hints, **defaults, "__module__": __name__})
    return schemas(row, player=options)["player"]


COLUMNS: dict[str, Any] = {"id": (PrimaryKey[AutoInc[u64]], 0), "name": str, "zone": (Index[u32], 0)}


def changed(**columns: Any) -> dict[str, TableSchema]:
    """The old tables, with a player table of these columns besides (or instead of) its own."""
    return {**OLD, "player": player(**{**COLUMNS, **columns})}


def opened(place: Place, tables: Mapping[str, TableSchema]) -> tuple[Plan, dict[str, list[Any]]]:
    """Plan, open, reopen: the plan, and the rows by table."""
    plan = place.plan(tables)
    place.open(tables).close()
    assert place.plan(tables) == Plan([], [])
    with closing(place.open(tables)) as storage:
        rows = {name: rows_of(storage, name) for name, schema in tables.items() if not schema.event}
    return plan, rows


def kinds(plan: Plan) -> list[tuple[str, bool]]:
    assert plan.refusals == []
    return [(step.kind, step.clients_must_reload) for step in plan.steps]


def refused(place: Place, tables: Mapping[str, TableSchema]) -> list[str]:
    """The differences for which opening is refused, with nothing changed."""
    with unchanged(place):
        assert place.plan(tables).refusals
        with pytest.raises(SchemaChangeRefused, match="nothing was changed") as caught:
            place.open(tables)
    assert caught.value.differences == place.plan(tables).refusals
    assert all(difference in str(caught.value) for difference in caught.value.differences)
    return caught.value.differences


@contextmanager
def unchanged(place: Place) -> Iterator[None]:
    before = contents(place)
    yield
    assert contents(place) == before


def contents(place: Place) -> Any:
    """All that the old tables hold, and the description of them."""
    return [place.sql(f"SELECT * FROM {table} ORDER BY 1") for table in ("gamedb_meta", "player", "tag")]


def test_the_same_tables_need_nothing(filled: Place) -> None:
    assert opened(filled, OLD) == (Plan([], []), {"player": [ADA, BOB], "tag": [MAGE]})


def test_a_new_table_is_created(filled: Place) -> None:
    class Guild(Row):
        id: PrimaryKey[u64]

    plan, rows = opened(filled, {**OLD, **schemas(Guild)})
    assert kinds(plan) == [("create table", False)]
    assert rows["guild"] == []
    assert rows["player"] == [ADA, BOB]


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(Struct):
    x: float
    y: float = 0.0


class Extra(Row):
    """Columns to add, with defaults of every sort."""

    id: PrimaryKey[u64]
    number: u64 = 2**64 - 1
    text: str = "it's \x00 'quoted'"
    missing: str | None = None
    color: Color = Color.BLUE
    point: Point = Point(1.5, -0.0)
    points: list[Point] = []  # msgspec copies it
    nan: float = float("nan")
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    every: ScheduleAt = timedelta(seconds=5)
    flag: bool = True
    blob: bytes = b"\x00"


@pytest.mark.parametrize("has_key", [True, False])
def test_new_columns_at_the_end_get_their_defaults(place: Place, has_key: bool) -> None:
    key = PrimaryKey[u64] if has_key else u64
    namespace = {"__annotations__": {"id": key}, "__module__": __name__}
    small: Any = type(Row)("Extra", (Row,), namespace)
    hints = {**Extra.__annotations__, "id": "PrimaryKey[u64]" if has_key else "u64"}
    defaults = {c.name: c.default for c in schemas(Extra)["extra"].columns[1:]}
    large: Any = type(Row)("Extra", (Row,), {"__annotations__": hints, **defaults, "__module__": __name__})
    with closing(place.open(schemas(small))) as storage:
        storage.write(1, {"extra": {(i if has_key else small(id=i)): small(id=i) for i in (1, 2)}})

    plan, rows = opened(place, schemas(large))

    assert kinds(plan) == [("add column", False)] * 11
    loaded = sorted(rows["extra"], key=lambda row: row.id)
    assert repr(loaded) == repr([large(id=1), large(id=2)])
    with closing(place.open(schemas(large))) as storage:  # the hidden keys fit the new columns
        storage.write(2, {"extra": {(row.id if has_key else storage.row_keys["extra"](row)): None for row in loaded}})
        assert rows_of(storage, "extra") == []


def test_a_new_column_of_a_public_table_makes_clients_reload(filled: Place) -> None:
    plan, rows = opened(filled, changed(hp=(u32, 100), options={"public": True}))
    assert kinds(plan) == [("add column", True), ("make public", False)]
    assert [(row.name, row.hp) for row in rows["player"]] == [("Ada", 100), ("Bob", 100)]


def test_indexes_come_and_go(filled: Place) -> None:
    plan, _ = opened(filled, changed(zone=(u32, 0), options={"indexes": [("zone", "name")]}))
    assert kinds(plan) == [("add index", False), ("drop index", False)]


def test_public_and_private(filled: Place) -> None:
    public = changed(options={"public": True})
    assert kinds(opened(filled, public)[0]) == [("make public", False)]
    assert kinds(opened(filled, OLD)[0]) == [("make private", True)]


def test_uniqueness_that_the_data_has_is_added_and_dropped(filled: Place) -> None:
    assert kinds(opened(filled, changed(name=Unique[str]))[0]) == [("add unique", False)]
    assert kinds(opened(filled, OLD)[0]) == [("drop unique", False)]


def test_uniqueness_that_the_data_has_not_is_refused(filled: Place) -> None:
    (difference,) = refused(filled, changed(zone=(Unique[u32], 0)))
    assert "'zone' became unique, but 2 rows hold 3" in difference


def test_none_may_stand_in_a_unique_column_many_times(filled: Place) -> None:
    plain, unique = changed(guild=(u64 | None, None)), changed(guild=(Unique[u64 | None], None))
    assert kinds(opened(filled, unique)[0]) == [("add column", False)]
    assert kinds(opened(filled, plain)[0]) == [("drop unique", False)]
    assert kinds(opened(filled, unique)[0]) == [("add unique", False)]


def test_defaults_and_counting_change_by_themselves(filled: Place) -> None:
    tables = changed(id=PrimaryKey[u64], zone=(Index[u32], 9))
    plan, rows = opened(filled, tables)
    assert kinds(plan) == [("auto-increment", False), ("change default", False), ("change default", False)]
    assert rows["player"][0].zone == 3


def test_another_reducer_for_a_schedule(place: Place) -> None:
    class Timer(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        at: ScheduleAt

    place.open(schemas(Timer, timer={"scheduled": "tick"})).close()
    plan, _ = opened(place, schemas(Timer, timer={"scheduled": "tock"}))
    assert [step.text for step in plan.steps] == ["table 'timer' fires tock instead of tick"]


def with_color(*members: str) -> Any:
    return enum.Enum("Color", list(members))  # type: ignore[misc]


def test_enum_members_may_be_added_at_the_end(filled: Place) -> None:
    red_blue, more = with_color("RED", "BLUE"), with_color("RED", "BLUE", "GREEN")
    before = changed(color=(red_blue, red_blue.BLUE), options={"public": True})
    opened(filled, before)
    plan, rows = opened(filled, changed(color=(more, more.BLUE), options={"public": True}))
    assert kinds(plan) == [("extend type", True)]
    assert {row.color for row in rows["player"]} == {more.BLUE}
    for other in (with_color("RED", "BLUE"), with_color("BLUE", "RED", "GREEN"), with_color("RED")):
        (difference,) = refused(filled, changed(color=(other, other.RED), options={"public": True}))
        assert "'color' changed its type from enum (RED, BLUE, GREEN) to enum (" in difference


class Walk(Struct, tag=True):
    to: Color


class Wait(Struct, tag=True):
    until: datetime


class Fight(Struct, tag=True):
    whom: u64


def test_union_variants_may_be_added_at_the_end_also_when_nested(filled: Place) -> None:
    class Two(Struct):
        steps: list[Walk | Wait]

    class Three(Struct):
        steps: list[Walk | Wait | Fight]

    opened(filled, changed(plan=(Two | None, None)))
    assert kinds(opened(filled, changed(plan=(Three | None, None)))[0]) == [("extend type", False)]
    (difference,) = refused(filled, changed(plan=(Two | None, None)))
    assert "'plan' changed its type" in difference


def test_a_table_that_is_gone_is_dropped_when_empty(filled: Place) -> None:
    filled.sql("DELETE FROM tag")
    plan, _ = opened(filled, {"player": OLD["player"]})
    assert kinds(plan) == [("drop table", False)]


def test_a_table_that_is_gone_and_holds_rows_is_refused(filled: Place) -> None:
    (difference,) = refused(filled, {"player": OLD["player"]})
    assert difference == (
        "table 'tag': it is not in the module any more, and holds 1 row; "
        "to lose the rows, ctx.drop_table('tag') in a @module.migration"
    )


def test_a_renamed_table_is_recognised(filled: Place) -> None:
    class Label(Row):
        player: u64
        label: str

    (difference,) = refused(filled, {"player": OLD["player"], **schemas(Label)})
    assert "if it was renamed, ctx.rename_table('tag', 'label')" in difference


def test_event_tables_become_stored_and_back_while_they_are_empty(filled: Place) -> None:
    filled.sql("DELETE FROM tag")
    event = {**OLD, **schemas(Tag, tag={"event": True})}
    assert kinds(opened(filled, event)[0]) == [("drop table", False)]
    assert kinds(opened(filled, OLD)[0]) == [("create table", False)]


def test_a_table_with_rows_cannot_become_an_event_table(filled: Place) -> None:
    (difference,) = refused(filled, {**OLD, **schemas(Tag, tag={"event": True})})
    assert "became an event table, which is not stored, and holds 1 row" in difference


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "removed": ({"id": COLUMNS["id"], "name": str}, "column 'zone' is gone"),
    "renamed": (
        {"id": COLUMNS["id"], "nick": str, "zone": COLUMNS["zone"]},
        "column 'name' is gone; put it back, or if it was renamed, ctx.rename_column('player', 'name', 'nick')",
    ),
    "retyped": ({**COLUMNS, "zone": (Index[u8], 0)}, "column 'zone' changed its type from u32 to u8"),
    "optional": ({**COLUMNS, "name": str | None}, "changed its type from str to str | None"),
    "reordered": (
        {"id": COLUMNS["id"], "zone": COLUMNS["zone"], "name": str},
        "the columns changed their order (stored: id, name, zone; module: id, zone, name)",
    ),
    "in the middle": (
        {"id": COLUMNS["id"], "hp": (u32, 1), "name": str, "zone": COLUMNS["zone"]},
        "new column 'hp' stands before stored ones; put it at the end",
    ),
    "without default": ({**COLUMNS, "hp": u32}, "new column 'hp' has no default"),
    "unique": (
        {**COLUMNS, "hp": (Unique[u32], 1)},
        "new column 'hp' is unique, but 2 rows would all get its default 1",
    ),
    "no key": ({**COLUMNS, "id": u64}, "the primary key changed from id to none"),
    "other key": ({**COLUMNS, "id": u64, "name": PrimaryKey[str]}, "the primary key changed from id to name"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_happen_by_itself_is_refused_with_a_remedy(filled: Place, case: str) -> None:
    columns, text = REFUSALS[case]
    differences = refused(filled, {**OLD, "player": player(**columns)})
    assert any(text in difference for difference in differences)
    assert all("in a @module.migration" in difference for difference in differences)


class Hero(Row):
    id: PrimaryKey[AutoInc[u64]] = 0


def test_a_database_of_another_game_is_first_of_all_taken_for_that(filled: Place) -> None:
    for tables, another in ((schemas(Hero), True), (schemas(Player, Hero), False), (changed(gold=u32), False)):
        with pytest.raises(SchemaChangeRefused) as caught:
            filled.open(tables)
        first = str(caught.value).splitlines()[0]
        assert ("perhaps this is the database of another game" in first) == another
        assert ("choose another path" in first) == another


def test_one_refusal_lists_every_difference(filled: Place) -> None:
    class Guild(Row):
        id: PrimaryKey[u64]

    tables = {"player": player(id=COLUMNS["id"], name=u64, hp=u32), **schemas(Guild)}
    differences = refused(filled, tables)
    for text in ("'tag': it is not in", "'zone' is gone", "'name' changed its type", "'hp' has no default"):
        assert sum(text in difference for difference in differences) == 1


def test_any_combination_of_changes_is_one_step(filled: Place) -> None:
    class Guild(Row):
        id: PrimaryKey[u64]

    filled.sql("DELETE FROM tag")
    tables = {
        "player": player(
            id=COLUMNS["id"],
            name=(Unique[str]),
            zone=(u32, 0),
            hp=(Index[u32], 100),
            guild=(u64 | None, None),
            options={"public": True, "indexes": [("zone", "name")]},
        ),
        **schemas(Guild),
    }
    plan, rows = opened(filled, tables)
    assert len(plan.steps) == 9
    assert [(row.id, row.hp, row.guild) for row in rows["player"]] == [(1, 100, None), (2, 100, None)]


def test_numbers_are_never_handed_out_again_whatever_changed(filled: Place) -> None:
    with closing(filled.open(OLD)) as storage:
        storage.write_sequences({"player": 4097})
        storage.write(2, {"player": {1: None, 2: None}})
    with closing(filled.open(changed(hp=(u32, 100)))) as storage:
        assert storage.sequences == {"player": 4097}
        assert storage.last_tx_id == 2
