"""Databases for the tests of the storage: an SQLite file, and a schema on a PostgreSQL server of the tests' own.

`place` gives each test both. The server is the one at GAMEDB_TEST_POSTGRES_URL, or a temporary cluster from the
binaries of Debian's `postgresql` package; without either, these tests are skipped (on CI, they fail).
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from gamedb.resolved import Migration
from gamedb.schema import Row, TableSchema, snake_case, table_schema
from gamedb.storage import Plan, Storage, open_storage, plan


def schemas(*rows: type[Row], **options: Mapping[str, Any]) -> dict[str, TableSchema]:
    """Table schemas of Row classes; `options` by table name."""
    scope = sys._getframe(1).f_locals  # where local classes find the names in their annotations
    return {(name := snake_case(row.__name__)): table_schema(row, scope=scope, **options.get(name, {})) for row in rows}


class Place:
    """Where one test's database is."""

    def __init__(self, target: str, name: str, url: str) -> None:
        self.target = target
        self.name = name
        self.url = url
        self.is_sqlite = url.startswith("sqlite")

    def open(self, tables: Mapping[str, TableSchema], migrations: Sequence[Migration] = ()) -> Storage:
        return open_storage(self.target, tables, migrations, name=self.name, progress=None)

    def plan(self, tables: Mapping[str, TableSchema], migrations: Sequence[Migration] = ()) -> Plan:
        return plan(self.target, tables, migrations, name=self.name)

    def sql(self, statement: str) -> list[Any]:
        """Run SQL as another tool would."""
        engine = create_engine(self.url, poolclass=NullPool)
        try:
            with engine.begin() as connection:
                if not self.is_sqlite:
                    connection.execute(text(f"SET search_path TO {self.name}"))
                result = connection.execute(text(statement))
                return [tuple(row) for row in result] if result.returns_rows else []
        finally:
            engine.dispose()


def rows_of(storage: Storage, table: str) -> list[Any]:
    """All rows of a table, as loaded."""
    return [row for name, rows in storage.load() if name == table for row in rows]


_schema_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    url = os.environ.get("GAMEDB_TEST_POSTGRES_URL")
    if url:
        yield url
        return
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries:
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL is missing on CI: install Debian's postgresql or set GAMEDB_TEST_POSTGRES_URL")
        pytest.skip("no PostgreSQL: install Debian's postgresql package or set GAMEDB_TEST_POSTGRES_URL")
    with tempfile.TemporaryDirectory(prefix="gamedb-pg-") as directory:
        yield from _cluster(binaries[-1], Path(directory))


def _cluster(binaries: Path, directory: Path) -> Iterator[str]:
    prefix = []
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(directory, "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]

    def run(program: str, *arguments: str) -> None:
        command = [*prefix, str(binaries / program), "-D", str(directory / "data"), *arguments]
        subprocess.run(command, check=True, cwd=directory, stdout=subprocess.DEVNULL)

    run("initdb", "-U", "gamedb", "-A", "trust", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "-w", "-l", str(directory / "log"), "-o", f"-c listen_addresses='' -k {directory} -F", "start")
    try:
        yield f"postgresql+psycopg://gamedb@/postgres?host={directory}"
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    path = tmp_path / "arena.db"
    return Place(str(path), "gamedb", f"sqlite:///{path}")


@pytest.fixture
def postgres_place(postgres_url: str) -> Iterator[Place]:
    place = Place(postgres_url, f"arena_{os.getpid()}_{next(_schema_numbers)}", postgres_url)
    yield place
    place.sql(f"DROP SCHEMA IF EXISTS {place.name} CASCADE")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
