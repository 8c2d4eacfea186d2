"""Ad hoc SQL: typed answers, reading only, within limits; on SQLite, on PostgreSQL and from memory."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import NullPool, create_engine, text

from gamedb import (
    AutoInc,
    ConnectionId,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    QueryError,
    Row,
    Struct,
    f32,
    u8,
    u32,
    u64,
    u128,
    u256,
)
from gamedb.columns import OptionType, column_type
from gamedb.storage.adhoc import READ_ONLY, AdHocLimits, SqlAnswer


class Mood(enum.Enum):
    CALM = 1
    ANGRY = 2


class Point(Struct):
    x: float
    y: float


class Everything(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    yes: bool
    small: u8
    large: u64
    huge: u256
    wide: u128
    single: f32
    double: float
    text: str
    data: bytes
    at: datetime
    span: timedelta
    key: UUID
    who: Identity
    where: ConnectionId
    mood: Mood
    maybe: u32 | None
    place: Point
    tags: list[str]


class Note(Row):
    """Private, and without a primary key."""

    author: Index[u64]
    text: str


class Flash(Row):
    what: str


LAST = Everything(
    id=2**64 - 1, yes=True, small=255, large=2**64 - 1, huge=2**256 - 1, wide=2**127 + 1, single=0.5, double=-0.0,
    text="é\n'\"\x00\x1a", data=b"\x00\xff", at=datetime(2026, 11, 29, 12, 30, 0, 123456, UTC),
    span=timedelta(days=-1, microseconds=7), key=UUID(int=2**127), who=Identity(b"\xc2" * 32),
    where=ConnectionId(b"\x01" * 16), mood=Mood.ANGRY, maybe=None, place=Point(x=1.5, y=float("inf")), tags=["a", "b"],
)  # fmt: skip
FIRST = LAST.replace(id=1, text="plain", maybe=7, mood=Mood.CALM, double=float("nan"))

Ask = Callable[..., SqlAnswer]


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def db(request: pytest.FixtureRequest, where: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One for all tests, as asking changes nothing."""
    module = Module(f"adhoc_{os.getpid()}")
    module.table(public=True)(Everything)
    module.table(Note)
    module.table(event=True)(Flash)
    target: Any = None
    if where == "sqlite":
        target = tmp_path_factory.mktemp("adhoc") / "arena.db"
    elif where == "postgres":
        target = request.getfixturevalue("postgres_url")
    with Database(module, target, quiet=True) as db:
        with db.transaction() as ctx:
            ctx.db[Everything].insert(FIRST)
            ctx.db[Everything].insert(LAST)
            ctx.db[Note].insert(Note(author=1, text="one"))
            ctx.db[Note].insert(Note(author=1, text="two"))
        yield db
    if where == "postgres":
        engine = create_engine(target, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {module.name} CASCADE"))


def kinds(answer: SqlAnswer) -> dict[str, str]:
    return {name: kind.name for name, kind in answer.columns}


def test_every_column_type_comes_back_as_it_is(db: Database) -> None:
    answer = db.sql("SELECT * FROM everything")
    assert kinds(answer) == {c.name: c.type.name for c in db.module.tables["everything"].columns}
    names = [name for name, _ in answer.columns]
    found = {row[0]: Everything(**dict(zip(names, row, strict=True))) for row in answer.rows}
    assert found[2**64 - 1] == LAST
    assert repr(found[2**64 - 1].double) == "-0.0"
    assert found[1].double != found[1].double
    assert found[1].replace(double=0.0) == FIRST.replace(double=0.0)


def test_it_answers_of_all_that_is_committed(db: Database) -> None:
    with db.transaction() as ctx:
        ctx.db[Note].insert(Note(author=2, text="three"))
    assert db.sql("SELECT count(*) AS n FROM note WHERE author = 2").rows == [(1,)]


@pytest.mark.parametrize(
    ("sql", "wanted", "rows"),
    [
        ("SELECT large AS l, text FROM everything WHERE small = 255 AND text = 'plain'", {"l": "u64", "text": "str"},
         [(2**64 - 1, "plain")]),
        ("SELECT n.text, e.mood FROM everything e JOIN note n ON n.author = e.id ORDER BY n.text",
         {"text": "str", "mood": "Mood"}, [("one", Mood.CALM), ("two", Mood.CALM)]),
        ("SELECT x.large FROM (SELECT large, mood FROM everything) AS x LIMIT 1", {"large": "u64"}, [(2**64 - 1,)]),
        ("WITH x AS (SELECT large AS y FROM everything) SELECT y FROM x LIMIT 1", {"y": "u64"}, [(2**64 - 1,)]),
        ("SELECT e.maybe, n.author FROM everything e LEFT JOIN note n ON n.author = e.id AND n.text = 'one' ORDER BY 2",
         {"maybe": "u32 | None", "author": "u64 | None"}, None),
        ("SELECT mood, count(*) AS n FROM everything GROUP BY mood ORDER BY mood", {"mood": "Mood", "n": "i64"},
         [(Mood.ANGRY, 1), (Mood.CALM, 1)]),
        ("SELECT 1.5 * 2 AS a, 'x' AS b, NULL AS c", None, None),
        ("SELECT author FROM note WHERE text = 'no'", {"author": "u64"}, []),
        ("SELECT author FROM note WHERE text = 'one' UNION SELECT author FROM note WHERE text = 'two'",
         {"author": "u64"}, [(1,)]),
    ],
    ids=["aliases", "join", "subquery", "cte", "outer join", "group", "computed", "empty", "union"],
)  # fmt: skip
def test_results_are_typed(db: Database, sql: str, wanted: dict[str, str] | None, rows: list[Any] | None) -> None:
    answer = db.sql(sql)
    if wanted is not None:
        assert kinds(answer) == wanted
    if rows is not None:
        assert answer.rows == rows


def test_missing_values_of_computed_columns(db: Database) -> None:
    answer = db.sql("SELECT count(*) AS n, max(author) AS m FROM note WHERE author = 99")
    assert answer.rows == [(0, None)]
    assert isinstance(dict(answer.columns)["m"], OptionType)


def test_lists_can_be_taken_apart_on_sqlite(db: Database, where: str) -> None:
    if where != "postgres":
        sql = "SELECT tag.value AS tag FROM everything e, json_each(e.tags) tag ORDER BY tag"
        assert db.sql(sql).rows == [(tag,) for tag in sorted(tag for row in db.read(Everything) for tag in row.tags)]


def test_a_name_may_be_there_twice(db: Database) -> None:
    assert len(db.sql("SELECT text, text FROM note").columns) == 2


WRITES = [
    "INSERT INTO note (author, text) VALUES (1, 'x')",
    "UPDATE note SET text = 'x'",
    "DELETE FROM note",
    "DROP TABLE note",
    "CREATE TABLE more (x INTEGER)",
    "CREATE TEMP TABLE more AS SELECT * FROM note",
    "ALTER TABLE note RENAME TO notes",
    "WITH x AS (SELECT 1) INSERT INTO note (author, text) SELECT 1, 'x' FROM x",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "VACUUM",
]


@pytest.mark.parametrize("sql", WRITES)
def test_nothing_can_be_changed(db: Database, sql: str) -> None:
    with pytest.raises(QueryError):
        db.sql(sql)
    assert db.sql("SELECT count(*) AS n FROM note WHERE author = 1").rows == [(2,)]
    with db.transaction() as ctx:  # and writing goes on
        ctx.db[Note].insert(Note(author=5, text=sql))
    db.flush()


@pytest.mark.parametrize("sql", ["DELETE FROM note", "UPDATE note SET text = 'x'", "CREATE TABLE more (x INTEGER)"])
def test_it_is_said_how_to_change_something(db: Database, sql: str) -> None:
    with pytest.raises(QueryError) as refused:
        db.sql(sql)
    assert str(refused.value) == READ_ONLY


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = 0",
        "ATTACH DATABASE '/tmp/gamedb_attached.db' AS other",
        "DETACH DATABASE main",
        "SELECT load_extension('x')",
        "SELECT zeroblob(1000000000)",
        "SELECT * FROM pragma_database_list",
        "EXPLAIN DELETE FROM note",
        "REINDEX",
        "ANALYZE",
        "SAVEPOINT x",
        "VACUUM INTO '/tmp/gamedb_copy.db'",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT readfile('/etc/passwd')",
    ],
)
def test_ways_around_on_sqlite(db: Database, where: str, sql: str) -> None:
    if where == "postgres":
        return
    with pytest.raises(QueryError):
        db.sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY note TO '/tmp/gamedb_copied'",
        "COPY note TO PROGRAM 'cat'",
        "SELECT 1; COMMIT; DELETE FROM note",
        "SELECT text FROM note FOR UPDATE",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "DO $$ BEGIN DELETE FROM note; END $$",
        "SELECT setval('no_such', 1)",
    ],
)
def test_ways_around_on_postgresql(db: Database, where: str, sql: str) -> None:
    if where != "postgres":
        return
    with pytest.raises(QueryError):
        db.sql(sql)
    assert db.sql("SELECT count(*) AS n FROM note WHERE author = 1").rows == [(2,)]


NO_QUERIES = ["", "  ;", "SELECT FROM WHERE", "SELECT * FROM nothing", "SELECT nothing FROM note", "SELECT 1; SELECT 2",
              "SELECT * FROM note WHERE text = ?", "SELECT * FROM note WHERE text = :name", "x" * 2_000_000, "\x00",
              "SELECT '\x00", "SELECT " + "(" * 5000]  # fmt: skip


@pytest.mark.parametrize("sql", NO_QUERIES, ids=lambda sql: repr(sql)[:30])
def test_what_is_no_query_is_an_error_of_the_query(db: Database, sql: str) -> None:
    with pytest.raises(QueryError):
        db.sql(sql)
    assert db.sql("SELECT count(*) AS n FROM note WHERE author = 1").rows == [(2,)]


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT * FROM notes", "did you mean note?"),
        ("SELECT * FROM Everythin", "did you mean everything?"),
        ("SELECT autor FROM note", "did you mean author?"),
        ("SELECT n.autor FROM note n", "did you mean author?"),
        ("SELECT * FROM zzzzzz", ""),
        ("SELECT zzzzzz FROM note", ""),
    ],
)
def test_a_misspelt_name_is_told_from_the_right_one(db: Database, sql: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        db.sql(sql)
    assert str(caught.value).partition("; ")[2] == hint


def test_limits_of_rows_and_bytes(db: Database) -> None:
    with pytest.raises(QueryError, match="more than 1 rows; add a LIMIT"):
        db.sql("SELECT * FROM note", limits=AdHocLimits(rows_max=1))
    assert len(db.sql("SELECT * FROM note WHERE author = 1", limits=AdHocLimits(rows_max=2)).rows) == 2
    with pytest.raises(QueryError, match="more than 2 bytes"):
        db.sql("SELECT * FROM note", limits=AdHocLimits(bytes_max=2))


def test_a_question_that_takes_too_long_is_stopped(db: Database) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    with pytest.raises(QueryError, match=r"longer than 0\.2 s"):
        db.sql(endless, limits=AdHocLimits(seconds_max=0.2))


def test_event_tables_hold_nothing_to_ask_for(db: Database) -> None:
    with pytest.raises(QueryError, match="flash"):
        db.sql("SELECT * FROM flash")


def test_a_computed_column_of_mixed_values_is_text() -> None:
    with Database(Module("arena")) as db:
        answer = db.sql("SELECT 1 AS a UNION ALL SELECT 'x' UNION ALL SELECT NULL")
        assert answer.rows == [("1",), ("x",), (None,)]
        assert dict(answer.columns)["a"].name == "str | None"
        assert db.sql("SELECT 1 AS a UNION ALL SELECT 2.5").rows == [(1.0,), (2.5,)]


def test_types_for_computed_columns_are_those_of_values() -> None:
    with Database(Module("arena")) as db:
        answer = db.sql("SELECT 1 + 1 AS a, 'x' || 'y' AS b, x'00ff' AS c")
        assert answer.columns == tuple((n, column_type(t, "")) for n, t in [("a", int), ("b", str), ("c", bytes)])
        assert answer.rows == [(2, "xy", b"\x00\xff")]
