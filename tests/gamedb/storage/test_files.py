"""Which files are opened, which are refused and stay as they are, and how a new one comes to be."""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Place, rows_of, schemas
from tables import Player

from gamedb.columns import FrozenList
from gamedb.errors import DatabaseLocked, ForeignFile, StorageError, WriteFailed
from gamedb.schema import PrimaryKey, Row
from gamedb.storage import open_storage, plan, read_stored
from gamedb.storage import sqlite as sqlite_room
from gamedb.types import ConnectionId, u8, u64, u128

TABLES = schemas(Player)
NOBODY = 65534


class Rank(enum.Enum):
    PAWN = 1


class Piece(Row):
    """Columns that are stored as text."""

    id: PrimaryKey[u64]
    owner: ConnectionId
    at: datetime
    rank: Rank = Rank.PAWN
    points: list[u8] = FrozenList()
    big: u128 = 0
    speed: float = 0.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """A closed database with 2,000 players."""
    storage = open_storage(path, TABLES)
    storage.write(1, {"player": {i: Player(id=i, name=f"player {i}") for i in range(1, 2001)}})
    storage.close()
    return path


def refuses_and_leaves_alone(path: Path, error: type[Exception], match: str) -> None:
    before = path.read_bytes()
    with pytest.raises(error, match=match):
        open_storage(path, TABLES)
    assert path.read_bytes() == before
    assert not path.with_name("arena.db-wal").exists()


def execute(path: Path, *statements: str) -> None:
    """Change a database as another tool would."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_new_database_is_one_file_that_any_tool_can_read(path: Path) -> None:
    storage = open_storage(path, TABLES)
    assert storage.is_new
    assert storage.last_tx_id == 0
    storage.write(1, {"player": {1: Player(id=1, name="Ada", zone=3)}})
    with contextlib.closing(sqlite3.connect(path)) as reader:  # while it is open
        assert reader.execute("SELECT * FROM player").fetchall() == [(1, "Ada", 3)]
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    storage.close()
    assert sorted(p.name for p in path.parent.iterdir()) == ["arena.db", "arena.db.lock"]
    assert path.read_bytes()[68:72] == b"gmdb"

    storage = open_storage(f"sqlite:///{path}", TABLES)
    assert not storage.is_new
    storage.close()


def test_opening_without_changes_does_not_change_a_byte(filled: Path) -> None:
    before = filled.read_bytes()
    storage = open_storage(filled, TABLES)
    assert len(rows_of(storage, "player")) == 2000
    storage.close()
    assert filled.read_bytes() == before


def test_every_write_is_synced(path: Path) -> None:
    storage = open_storage(path, TABLES)
    driver: Any = storage._connection.connection.driver_connection
    assert driver.execute("PRAGMA synchronous").fetchone() == (2,)
    storage.close()


def test_a_file_is_synced_then_named_then_its_directory_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            first = arguments[0]
            target = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else os.fspath(first)
            calls.append((name, os.path.basename(target)))
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", recorded("fsync", os.fsync))
    monkeypatch.setattr(os, "rename", recorded("rename", os.rename))
    open_storage(path, TABLES).close()
    assert calls == [
        ("fsync", "arena.db.creating"),
        ("rename", "arena.db.creating"),
        ("fsync", path.parent.name),
    ]


def test_a_crash_during_creation_leaves_nothing_that_matters(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", crash)
    with pytest.raises(KeyboardInterrupt):
        open_storage(path, TABLES)
    assert not path.exists()
    monkeypatch.undo()
    path.with_name("arena.db.creating").write_bytes(b"left by a killed process")
    path.with_name("arena.db.creating-wal").write_bytes(b"this too")

    storage = open_storage(path, TABLES)
    assert storage.is_new
    storage.close()
    assert sorted(p.name for p in path.parent.iterdir()) == ["arena.db", "arena.db.lock"]


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    storage = open_storage(path, TABLES)
    assert storage.is_new
    storage.close()


@pytest.mark.parametrize("content", [b"x", b"# Notes\n" * 40, b"SQLite format 3\x00", b"\x00" * 5000])
def test_a_file_of_another_kind_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refuses_and_leaves_alone(path, ForeignFile, "no SQLite header")


def test_an_sqlite_file_of_another_program_is_refused(path: Path) -> None:
    execute(path, "CREATE TABLE player (id INTEGER)", "INSERT INTO player VALUES (1)")
    refuses_and_leaves_alone(path, ForeignFile, "of another program")


def test_a_directory_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ForeignFile, match="is a directory"):
        open_storage(path, TABLES)


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="data does not exist; create it first"):
        open_storage(tmp_path / "data" / "arena.db", TABLES)


def test_a_file_of_a_newer_format_is_refused(filled: Path) -> None:
    execute(filled, "PRAGMA user_version = 99")
    execute(filled, "PRAGMA wal_checkpoint(TRUNCATE)")
    refuses_and_leaves_alone(filled, StorageError, r"newer gamedb \(file format 99.*upgrade")


def test_tables_of_a_newer_format_are_refused(place: Place) -> None:
    place.open(TABLES).close()
    place.sql("UPDATE gamedb_meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(StorageError, match=r"format 99.*upgrade"):
        place.open(TABLES)


@pytest.mark.parametrize("where", [0.3, 0.6, 0.9])
def test_damaged_pages_are_refused(filled: Path, where: float) -> None:
    content = bytearray(filled.read_bytes())
    start = int(len(content) * where) // 4096 * 4096
    content[start : start + 4096] = b"\xff" * 4096
    filled.write_bytes(content)
    refuses_and_leaves_alone(filled, ForeignFile, "damaged")


def test_a_truncated_file_is_refused(filled: Path) -> None:
    filled.write_bytes(filled.read_bytes()[:-8192])
    refuses_and_leaves_alone(filled, ForeignFile, "damaged")


def test_a_value_that_does_not_fit_its_column_is_refused_by_the_database(filled: Path) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT value"):
        execute(filled, "UPDATE player SET zone = 'north' WHERE id = 7")


def test_a_number_out_of_range_is_refused_on_load(filled: Path) -> None:
    execute(filled, "UPDATE player SET zone = 4294967296 WHERE id = 7")
    storage = open_storage(filled, TABLES)
    with pytest.raises(ForeignFile, match=r"'player'.*'zone' holds 4294967296, out of range for u32"):
        rows_of(storage, "player")
    storage.close()


@pytest.mark.parametrize(
    ("column", "stored", "match"),
    [
        ("rank", "'KING'", r"column 'rank': 'KING'"),
        ("at", "'yesterday'", r"column 'at': .*yesterday"),
        ("at", "'2026-01-01T00:00:00+02:00'", r"column 'at': .*is not a time of UTC"),
        ("points", "'{'", r"column 'points': "),
        ("points", "'[1, 300]'", r"column 'points': .*300 is out of range for u8"),
        ("big", "'340282366920938463463374607431768211456'", r"column 'big': .*out of range for u128"),
        ("owner", "'abc0'", r"column 'owner': 'abc0' is not the hex text of a ConnectionId"),
        ("speed", "'fast'", r"column 'speed': 'fast' is not a float"),
    ],
)
def test_an_unreadable_value_is_refused_on_load_with_its_row(path: Path, column: str, stored: str, match: str) -> None:
    tables = schemas(Piece)
    piece = Piece(id=5, owner=ConnectionId(bytes(16)), at=datetime(2026, 1, 1, tzinfo=UTC))
    with contextlib.closing(open_storage(path, tables)) as storage:
        storage.write(1, {"piece": {5: piece}})
    execute(path, f"UPDATE piece SET {column} = {stored}")
    with contextlib.closing(open_storage(path, tables)) as storage, pytest.raises(ForeignFile, match=match):
        rows_of(storage, "piece")


def test_text_that_is_not_utf8_is_refused_on_load(filled: Path) -> None:
    execute(filled, "UPDATE player SET name = CAST(x'ff41' AS TEXT) WHERE id = 7")
    storage = open_storage(filled, TABLES)
    with pytest.raises(ForeignFile, match=r"'player' cannot be read.*UTF-8"):
        rows_of(storage, "player")
    storage.close()


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A directory of an ordinary user, who is this process (root may write everywhere)."""
    with tempfile.TemporaryDirectory() as directory:
        if os.geteuid() != 0:
            yield Path(directory)
            return
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(directory)
        finally:
            os.seteuid(0)


def test_a_file_that_cannot_be_written_is_refused(ordinary_user: Path) -> None:
    path = ordinary_user / "arena.db"
    open_storage(path, TABLES).close()
    path.chmod(0o400)
    with pytest.raises(StorageError, match="cannot be written by this user"):
        open_storage(path, TABLES)


def test_a_directory_that_cannot_be_written_is_refused(ordinary_user: Path) -> None:
    ordinary_user.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be locked: Permission denied"):
        open_storage(ordinary_user / "arena.db", TABLES)
    ordinary_user.chmod(0o700)


def test_a_log_without_its_database_is_refused(filled: Path) -> None:
    filled.unlink()
    wal = filled.with_name("arena.db-wal")
    wal.write_bytes(b"of the deleted database")
    with pytest.raises(ForeignFile, match=r"arena.db is missing, but .*arena.db-wal"):
        open_storage(filled, TABLES)
    assert wal.read_bytes() == b"of the deleted database"
    assert not filled.exists()


def test_the_second_opener_is_told_who_has_it(filled: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(filled)
    storage = open_storage(filled, TABLES)
    for other in (filled, link, f"sqlite:///{filled}"):
        with pytest.raises(DatabaseLocked, match=rf"open in this process \({os.getpid()}\)"):
            open_storage(other, TABLES)
    code = (
        "import sys\nfrom gamedb.errors import DatabaseLocked\nfrom gamedb.storage import open_storage\n"
        "try: open_storage(sys.argv[1], {})\n"
        "except DatabaseLocked as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code, filled], capture_output=True, text=True, check=True).stdout
    assert f"is open in process {os.getpid()}" in output
    storage.close()
    open_storage(link, TABLES).close()


def test_a_lock_of_a_dead_process_does_not_hold(filled: Path) -> None:
    code = (
        "import os, sys\nfrom gamedb.storage import open_storage\n"
        "storage = open_storage(sys.argv[1], {}, progress=None)\nos._exit(0)"
    )
    copy = filled.with_name("other.db")
    subprocess.run([sys.executable, "-c", code, copy], check=True)
    open_storage(copy, {}).close()


def test_closing_twice_is_closing_once(path: Path) -> None:
    storage = open_storage(path, TABLES)
    storage.close()
    storage.close()
    open_storage(path, TABLES).close()


def test_a_copy_of_the_file_is_a_database_of_its_own(filled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(filled, copy)
    first, second = open_storage(filled, TABLES), open_storage(copy, TABLES)
    assert rows_of(first, "player") == rows_of(second, "player")
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("mysql://host/db", "'mysql' is not supported"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("://", "not a database URL"),
    ],
)
def test_a_target_that_cannot_be_is_explained(target: str, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        open_storage(target, TABLES)


def test_the_second_opener_of_a_postgres_schema_is_told_who_has_it(postgres_place: Place) -> None:
    storage = postgres_place.open(TABLES)
    with pytest.raises(DatabaseLocked, match=rf"open in gamedb, process {os.getpid()} on "):
        postgres_place.open(TABLES)
    other = Place(postgres_place.target, f"{postgres_place.name}_b", postgres_place.url)
    other.open(TABLES).close()  # another schema is another database
    storage.close()
    postgres_place.open(TABLES).close()
    other.sql(f"DROP SCHEMA {other.name} CASCADE")


def test_a_postgres_schema_of_another_program_is_refused(postgres_place: Place) -> None:
    postgres_place.sql(f"CREATE SCHEMA {postgres_place.name}")
    postgres_place.sql("CREATE TABLE customers (id int)")
    with pytest.raises(ForeignFile, match=r"tables of another program.*customers"):
        postgres_place.open(TABLES)
    assert postgres_place.sql("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == [("customers",)]


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StorageError, match="cannot be opened") as caught:
        open_storage("postgresql+psycopg://ada:secret@127.0.0.1:1/arena", TABLES)
    assert "secret" not in str(caught.value)


def _another_tool_looks(path: Path) -> None:
    """Opens, reads and closes the file in a process of its own, as `sqlite3` does."""
    code = (
        f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('SELECT * FROM player').fetchall(); c.close()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_planning_for_an_open_file_in_the_same_process_keeps_its_locks(filled: Path) -> None:
    storage = open_storage(filled, TABLES)
    storage.write(2, {"player": {1: Player(id=1, name="before")}})
    plan(filled, TABLES)
    with read_stored(filled) as stored:
        assert stored is not None
    _another_tool_looks(filled)  # were it the last one with a lock, it would delete the -wal file when it ends
    storage.write(3, {"player": {1: Player(id=1, name="after")}})
    with contextlib.closing(sqlite3.connect(filled)) as reader:
        assert reader.execute("SELECT name FROM player WHERE id = 1").fetchone() == ("after",)
    storage.close()


@pytest.mark.parametrize("suffix", ["", "-wal", ".lock"])
def test_a_file_deleted_under_a_running_database_fails_the_next_write(filled: Path, suffix: str) -> None:
    storage = open_storage(filled, TABLES)
    os.remove(f"{filled}{suffix}")
    with pytest.raises(WriteFailed, match="deleted or replaced while the database was open"):
        storage.write(2, {"player": {1: Player(id=1, name="lost")}})
    storage.close()


def test_a_file_replaced_under_a_running_database_fails_the_next_write(filled: Path, tmp_path: Path) -> None:
    storage = open_storage(filled, TABLES)
    shutil.copy(filled, tmp_path / "restored.db")
    os.replace(tmp_path / "restored.db", filled)
    with pytest.raises(WriteFailed, match="deleted or replaced"):
        storage.write(2, {"player": {1: Player(id=1, name="lost")}})
    storage.close()


def test_a_directory_given_as_file_gets_no_lock_beside_it(tmp_path: Path) -> None:
    with pytest.raises(ForeignFile, match="is a directory"):
        open_storage(tmp_path, TABLES)
    assert not os.path.exists(f"{tmp_path}.lock")


def test_a_disk_that_is_full_when_a_new_file_has_got_its_name_is_a_storage_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite_room._connect

    def full(name: str, mode: str, journal: str = "WAL") -> Any:
        if mode == "rw":
            raise StorageError("database or disk is full")
        return connect(name, mode, journal)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_room, "_connect", full)
        with pytest.raises(StorageError, match="disk is full"):
            open_storage(path, TABLES)
    open_storage(path, TABLES).close()


def test_a_disk_that_is_full_when_a_file_is_opened_is_a_storage_error_and_leaves_no_lock(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: object) -> None:
        raise StorageError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_room.SQLiteBackend, "_note_files", full)
        with pytest.raises(StorageError, match="disk I/O error"):
            open_storage(filled, TABLES)
    open_storage(filled, TABLES).close()
