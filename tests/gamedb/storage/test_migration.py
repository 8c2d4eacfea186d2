"""Migrations: once for each database, in order, in the transaction of the open, and checked like everything else."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from conftest import Place, rows_of, schemas
from tables import Player, Tag

from gamedb.errors import SchemaChangeRefused, StorageError
from gamedb.resolved import Migration
from gamedb.schema import AutoInc, PrimaryKey, Row, Struct, table_schema
from gamedb.storage import MigrationContext
from gamedb.types import Identity, u32, u64

OLD = schemas(Player, Tag)
ADA = Player(id=1, name="Ada", zone=3)
BOB = Player(id=2, name="Bob", zone=3)
MAGE = Tag(player=1, label="mage")


class Hero(Row):
    """What became of Player."""

    id: PrimaryKey[AutoInc[u64]] = 0
    nick: str
    zone: u32 = 0


class Color(enum.Enum):
    RED = 1


class Point(Struct):
    x: float
    at: datetime


class Thing(Row):
    id: PrimaryKey[u64]
    color: Color
    where: Point | None
    owner: Identity
    at: datetime


class Class(enum.Enum):
    MAGE = 1
    ELF = 2


class Home(Struct):
    zone: u32


class ByName(Row):
    """What Player becomes when it is rewritten."""

    key: PrimaryKey[str]
    number: u64
    kind: Class = Class.ELF
    home: Home | None = None


NEW = schemas(Hero, Tag)


@pytest.fixture
def filled(place: Place) -> Place:
    """A database of two players and a tag."""
    with closing(place.open(OLD)) as storage:
        storage.write(1, {"player": {1: ADA, 2: BOB}, "tag": {MAGE: MAGE}})
        storage.write_sequences({"player": 10})
    return place


def to_hero(ctx: MigrationContext) -> None:
    ctx.rename_table("player", "hero")
    ctx.rename_column("hero", "name", "nick")


def migrated(place: Place, tables: Any, *functions: Callable[[MigrationContext], None]) -> Any:
    """Open with these migrations; the rows by table."""
    migrations = [Migration(f.__name__, f) for f in functions]
    planned = place.plan(tables, migrations)
    assert planned.refusals == []
    with closing(place.open(tables, migrations)) as storage:
        rows = {name: rows_of(storage, name) for name in tables}
    assert place.plan(tables, migrations).steps == []
    return rows


def refused(place: Place, tables: Any, function: Callable[[MigrationContext], None], match: str) -> None:
    """Opening fails, and nothing is changed."""
    migrations = [Migration(function.__name__, function)]
    with pytest.raises(StorageError, match=match):
        place.open(tables, migrations)
    with closing(place.open(OLD)) as storage:
        assert rows_of(storage, "player") == [ADA, BOB]
        assert rows_of(storage, "tag") == [MAGE]
        assert storage.sequences == {"player": 10}


def test_a_table_and_a_column_are_renamed_with_their_rows_and_numbers(filled: Place) -> None:
    rows = migrated(filled, NEW, to_hero)
    assert rows == {"hero": [Hero(id=1, nick="Ada", zone=3), Hero(id=2, nick="Bob", zone=3)], "tag": [MAGE]}
    with closing(filled.open(NEW, [Migration("to_hero", to_hero)])) as storage:
        assert storage.sequences == {"hero": 10}


def test_a_table_renamed_to_a_name_of_before_counts_from_the_higher_number(filled: Place) -> None:
    class Hero(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        name: str
        zone: u32 = 0

    both, renamed = schemas(Player, Tag, Hero), schemas(Tag, Hero)
    with closing(filled.open(both)) as storage:
        storage.write_sequences({"hero": 500})
    filled.open(OLD).close()  # the empty table is dropped

    def rename(ctx: MigrationContext) -> None:
        ctx.rename_table("player", "hero")

    with closing(filled.open(renamed, [Migration("rename", rename)])) as storage:
        assert storage.sequences == {"hero": 500}


def test_each_runs_once_in_order_of_declaration(filled: Place) -> None:
    ran = []

    def first(ctx: MigrationContext) -> None:
        ran.append("first")

    def second(ctx: MigrationContext) -> None:
        ran.append("second")

    def between(ctx: MigrationContext) -> None:
        ran.append("between")

    one, two = Migration("first", first), Migration("second", second)
    filled.open(OLD, [one, two]).close()
    filled.open(OLD, [one, Migration("between", between), two]).close()
    filled.open(OLD, [two, one]).close()
    assert ran == ["first", "second", "between"]


def test_a_new_database_needs_none_and_remembers_that(place: Place) -> None:
    def never(ctx: MigrationContext) -> None:
        raise AssertionError("it ran")

    for _ in range(2):
        place.open(NEW, [Migration("never", never)]).close()


def test_tables_and_rows_are_shown_as_they_are_stored(place: Place) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    thing = Thing(id=2**64 - 1, color=Color.RED, where=Point(1.5, moment), owner=Identity.from_int(7), at=moment)
    with closing(place.open(schemas(Thing))) as storage:
        storage.write(1, {"thing": {thing.id: thing}})
    seen: list[Any] = []

    def look(ctx: MigrationContext) -> None:
        seen.extend([ctx.tables, *ctx.rows("thing")])

    migrated(place, schemas(Thing), look)
    assert seen[-2:] == [
        {"thing": ("id", "color", "where", "owner", "at")},
        {
            "id": 2**64 - 1,
            "color": "RED",
            "where": {"x": 1.5, "at": "2026-01-01T00:00:00Z"},
            "owner": Identity.from_int(7),
            "at": moment,
        },
    ]


def test_rewrite_rebuilds_a_table_from_rows_or_dicts(filled: Place) -> None:
    def convert(row: dict[str, Any]) -> Any:
        if row["id"] == 1:
            return ByName(key=row["name"], number=row["id"], home=Home(zone=row["zone"]))
        return {"key": row["name"], "number": row["id"], "kind": "MAGE", "home": {"zone": 4}}

    def rekey(ctx: MigrationContext) -> None:
        ctx.rewrite("player", convert)

    tables = {**schemas(Tag), "player": table_schema(ByName, name="player")}
    assert migrated(filled, tables, rekey)["player"] == [
        ByName(key="Ada", number=1, home=Home(zone=3)),
        ByName(key="Bob", number=2, kind=Class.MAGE, home=Home(zone=4)),
    ]


def test_rewrite_drops_rows_for_which_it_gets_none(filled: Place) -> None:
    def only_ada(ctx: MigrationContext) -> None:
        ctx.rewrite("player", lambda row: row if row["name"] == "Ada" else None)

    assert migrated(filled, OLD, only_ada)["player"] == [ADA]


def test_columns_and_tables_are_dropped_on_request(filled: Place) -> None:
    class Player(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        name: str

    def forget(ctx: MigrationContext) -> None:
        ctx.drop_column("player", "zone")
        ctx.drop_table("tag")
        assert ctx.tables == {"player": ("id", "name")}

    assert migrated(filled, schemas(Player), forget) == {"player": [Player(id=1, name="Ada"), Player(id=2, name="Bob")]}


def test_rows_without_a_key_are_found_again_after_a_column_went(filled: Place) -> None:
    class Tag(Row):
        label: str

    def forget(ctx: MigrationContext) -> None:
        ctx.rename_table("tag", "label")
        ctx.drop_column("label", "player")
        ctx.rename_table("label", "tag")

    mage = Tag(label="mage")
    tables = schemas(Player, Tag)
    assert migrated(filled, tables, forget)["tag"] == [mage]
    with closing(filled.open(tables, [Migration("forget", forget)])) as storage:
        storage.write(2, {"tag": {mage: None}})
        assert rows_of(storage, "tag") == []


def test_rows_that_become_equal_are_refused(filled: Place) -> None:
    class Tag(Row):
        label: str

    with closing(filled.open(OLD)) as storage:
        storage.write(2, {"tag": {(other := MAGE.replace(player=2)): other}})

    def forget(ctx: MigrationContext) -> None:
        ctx.drop_column("tag", "player")

    with pytest.raises(StorageError, match=r"'tag': two rows would have .*label='mage'.*ctx.rewrite\('tag'"):
        filled.open(schemas(Player, Tag), [Migration("forget", forget)])


def test_after_migrations_the_ordinary_changes_follow(filled: Place) -> None:
    class Hero(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        nick: str
        zone: u32 = 0
        hp: u32 = 100

    rows = migrated(filled, schemas(Hero, Tag), to_hero)
    assert [hero.hp for hero in rows["hero"]] == [100, 100]


def test_what_still_does_not_fit_afterwards_is_refused(filled: Place) -> None:
    def half(ctx: MigrationContext) -> None:
        ctx.rename_table("player", "hero")

    with pytest.raises(SchemaChangeRefused, match=r"'hero': column 'name' is gone"):
        filled.open(NEW, [Migration("half", half)])
    assert filled.plan(NEW, [Migration("half", half)]).refusals
    refused(filled, NEW, half, "'name' is gone")


def test_a_migration_that_raises_changes_nothing(filled: Place) -> None:
    def broken(ctx: MigrationContext) -> None:
        to_hero(ctx)
        ctx.drop_table("tag")
        raise ZeroDivisionError("oops")

    refused(filled, NEW, broken, "migration 'broken' failed, nothing was changed: ZeroDivisionError: oops")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda ctx: ctx.rename_table("hero", "x"), r"no stored table 'hero' \(there are: player, tag\)"),
        (lambda ctx: ctx.rename_table("player", "tag"), "there is a table 'tag' already"),
        (lambda ctx: ctx.rename_column("player", "nick", "x"), r"no column 'nick' \(it has id, name, zone\)"),
        (lambda ctx: ctx.rename_column("player", "name", "zone"), "has a column 'zone' already"),
        (lambda ctx: ctx.drop_column("player", "id"), "'id' is the primary key"),
        (lambda ctx: [ctx.drop_column("tag", c) for c in ("player", "label")], "'label' is the only one"),
        (lambda ctx: ctx.drop_table("x"), "no stored table 'x'"),
        (lambda ctx: list(ctx.rows("x")), "no stored table 'x'"),
        (lambda ctx: [ctx.rename_table("player", "x"), ctx.rewrite("x", dict)], "module has no stored table 'x'"),
        (lambda ctx: ctx.rewrite("player", lambda row: {**row, "zone": -1}), "player.zone: -1 is out of range"),
        (lambda ctx: ctx.rewrite("player", lambda row: {**row, "hp": 1}), "no column 'hp'"),
        (lambda ctx: ctx.rewrite("player", lambda row: {"id": 1}), "player.name is missing and has no default"),
        (lambda ctx: ctx.rewrite("player", lambda row: {**row, "id": 1}), "two rows would have id 1"),
        (lambda ctx: ctx.rewrite("player", lambda row: MAGE), "expected a Player or a dict, got Tag"),
    ],
)
def test_a_mistake_in_a_migration_is_explained(filled: Place, change: Any, match: str) -> None:
    def mistaken(ctx: MigrationContext) -> None:
        change(ctx)

    refused(filled, OLD, mistaken, match)


def test_leaving_a_loop_over_rows_early_is_fine(filled: Place) -> None:
    def first_only(ctx: MigrationContext) -> None:
        for row in ctx.rows("player"):
            assert row == {"id": 1, "name": "Ada", "zone": 3}
            break
        ctx.drop_column("player", "zone")
        ctx.drop_table("tag")

    class Player(Row):
        id: PrimaryKey[AutoInc[u64]] = 0
        name: str

    assert len(migrated(filled, schemas(Player), first_only)["player"]) == 2
