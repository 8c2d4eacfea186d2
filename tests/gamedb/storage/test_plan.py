"""`plan` tells what opening would do, beside a running database, and touches nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from conftest import Place, rows_of, schemas
from tables import Hit, Player, Tag

from gamedb.errors import ForeignFile, StorageError
from gamedb.resolved import Migration
from gamedb.storage import MigrationContext, Step, plan

TABLES = schemas(Player, Tag, Hit, hit={"event": True})


def test_a_database_that_does_not_exist_would_be_created(place: Place, tmp_path: Path) -> None:
    assert place.plan(TABLES).steps == [
        Step("create table", name, f"create table {name!r}", False) for name in ("player", "tag", "hit")
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_running_database_is_planned_for_and_goes_on(place: Place) -> None:
    with closing(place.open(TABLES)) as storage:
        storage.write(1, {"player": {1: Player(id=1, name="Ada")}})

        def rename(ctx: MigrationContext) -> None:
            assert list(ctx.rows("player")) == [{"id": 1, "name": "Ada", "zone": 0}]
            ctx.rename_column("player", "name", "nick")

        assert place.plan(schemas(Player)).refusals == []
        found = place.plan(TABLES, [Migration("rename", rename)]) if place.is_sqlite else None
        if found is not None:  # on a server the trial would wait for the tables that are in use
            assert found.steps == [Step("migration", "", "run migration 'rename'", True)]
            assert "'name'" in found.refusals[0]
        storage.write(2, {"player": {2: Player(id=2, name="Bob")}})
        assert len(rows_of(storage, "player")) == 2


def test_planning_changes_no_byte_and_leaves_nothing_behind(sqlite_place: Place, tmp_path: Path) -> None:
    sqlite_place.open(TABLES).close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def drop(ctx: MigrationContext) -> None:
        ctx.drop_table("tag")

    found = sqlite_place.plan(schemas(Player, Hit, hit={"event": True}), [Migration("drop", drop)])

    assert [step.kind for step in found.steps] == ["migration"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk " * 20)
    with pytest.raises(ForeignFile, match="no SQLite header"):
        plan(path, TABLES)
    assert path.read_text() == "remember the milk " * 20


def test_a_migration_that_would_fail_is_told(place: Place) -> None:
    place.open(TABLES).close()

    def broken(ctx: MigrationContext) -> None:
        raise KeyError("gold")

    with pytest.raises(StorageError, match="migration 'broken' failed, nothing was changed: KeyError: 'gold'"):
        place.plan(TABLES, [Migration("broken", broken)])


def test_a_relative_path_works(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sqlite_place.open(TABLES).close()
    monkeypatch.chdir(tmp_path)
    assert plan("arena.db", TABLES).steps == []
