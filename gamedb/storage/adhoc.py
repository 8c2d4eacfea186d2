"""Ad hoc SQL: questions of operators, answered by the storage engine itself over what is on disk.

It only reads, by means that the engine enforces, and has limits of time, rows and bytes. A database that stores
nothing is answered from a copy of its tables in a private SQLite database, made by the same code.
"""

from __future__ import annotations

import difflib
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import URL

from gamedb.columns import ColumnType, OptionType, column_type
from gamedb.errors import QueryError, StorageError
from gamedb.schema import Row, TableSchema
from gamedb.storage.backend import parse
from gamedb.storage.codecs import codec
from gamedb.storage.evolve import create
from gamedb.storage.origins import column_types, tables_in
from gamedb.storage.rows import stored_tables
from gamedb.storage.sqlite import engine_for

SECONDS_MAX: Final = 10.0
ROWS_MAX: Final = 100_000
RESULT_BYTES_MAX: Final = 64 << 20
SQL_BYTES_MAX: Final = 1 << 20
VALUE_BYTES_MAX: Final = 64 << 20
_STEPS: Final = 10_000
"""SQLite looks at the time after so many steps of its virtual machine."""
_FETCH_ROWS: Final = 1_000
NAME_COMPARED_MAX: Final = 100
_UNKNOWN: Final = re.compile(
    r"no such (?:table: (?P<table>\S+)|column: (?P<column>\S+))"  # SQLite
    r"""|(?:relation "?(?P<relation>[^\s"]+)"?|column "?(?P<attribute>[^\s"]+)"?) does not exist"""  # PostgreSQL
)
"""What the engines say of names that they do not know."""
_TEXT, _WHOLE, _FLOAT, _BYTES, _TRUTH = (column_type(t, "a result") for t in (str, int, float, bytes, bool))
_PLAIN: Final[dict[type, ColumnType]] = {str: _TEXT, int: _WHOLE, float: _FLOAT, bytes: _BYTES, bool: _TRUTH}
_READS: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_FUNCTIONS_REFUSED: Final = frozenset({"load_extension", "fts3_tokenizer", "randomblob", "zeroblob"})
READ_ONLY: Final = "SQL only reads here; to change data call a reducer: gamedb call DATABASE REDUCER ARGUMENTS"


class AdHocLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one question may cost."""

    seconds_max: float = SECONDS_MAX
    """How long it may take."""
    rows_max: int = ROWS_MAX
    """How many rows it may give."""
    bytes_max: int = RESULT_BYTES_MAX
    """How large all of them may be."""


class SqlAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a query: its columns with their types, and rows of canonical values."""

    columns: tuple[tuple[str, ColumnType], ...]
    """Name and type of each column."""
    rows: list[tuple[Any, ...]]
    """The rows, with values in the order of the columns."""


def ask(
    target: str | os.PathLike[str],
    tables: Mapping[str, TableSchema],
    sql: str,
    *,
    name: str = "gamedb",
    limits: AdHocLimits | None = None,
) -> SqlAnswer:
    """Ask the database at a file path or URL; `QueryError` says what is wrong with the question."""
    _check_length(sql)
    limits = limits or AdHocLimits()
    parsed = parse(target)
    if isinstance(parsed, URL):
        try:
            return _ask_postgres(parsed, name, tables, sql, limits)
        except QueryError as error:
            raise QueryError(_with_hint(str(error), tables)) from None
    uri = Path(os.path.realpath(parsed)).as_uri()
    try:
        driver = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=limits.seconds_max)
    except sqlite3.Error as error:
        raise StorageError(f"{os.path.basename(parsed)} cannot be read: {error}") from None
    with closing(driver):
        return _ask_sqlite(driver, tables, sql, limits)


def ask_rows(
    tables: Mapping[str, TableSchema],
    rows: Callable[[list[str]], Mapping[str, Mapping[Any, Row]]],
    sql: str,
    *,
    limits: AdHocLimits | None = None,
) -> SqlAnswer:
    """Ask tables that are not stored; `rows` gives the rows of these tables by their keys."""
    _check_length(sql)
    stored = {name: schema for name, schema in tables.items() if not schema.event}
    found = rows(tables_in(sql, stored, "sqlite"))
    driver = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with closing(driver):
        engine = engine_for(driver, "BEGIN")
        kinds = stored_tables(tuple(stored.values()), "sqlite")
        with engine.connect() as connection, connection.begin(), closing(driver.cursor()) as cursor:
            create(connection, stored, [])
            for name, of_table in found.items():
                key_is_row = kinds[name].row_key is not None
                kinds[name].write(cursor, {row: row for row in of_table.values()} if key_is_row else of_table)
            connection.get_transaction().commit()  # type: ignore[union-attr]
            return _ask_sqlite(driver, stored, sql, limits or AdHocLimits())


def _check_length(sql: str) -> None:
    if len(sql) > SQL_BYTES_MAX:
        raise QueryError(f"the query has {len(sql)} characters; at most {SQL_BYTES_MAX} are read")
    if not sql.strip().rstrip(";").strip():
        raise QueryError("the query is empty; ask something like: SELECT * FROM player")


# --- SQLite


def _ask_sqlite(
    driver: sqlite3.Connection, tables: Mapping[str, TableSchema], sql: str, limits: AdHocLimits
) -> SqlAnswer:
    deadline = time.monotonic() + limits.seconds_max
    driver.execute("PRAGMA query_only = 1")
    driver.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # they are made at their first use: not a reading
    driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    driver.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    driver.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX * 4)
    driver.set_authorizer(_authorize)
    driver.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        with closing(driver.cursor()) as cursor:
            cursor.execute(sql)
            names = [described[0] for described in cursor.description or ()]
            rows = _fetched(iter(lambda: cursor.fetchmany(_FETCH_ROWS), []), limits)
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(_with_hint(_sqlite_problem(error, sql, limits, deadline), tables)) from None
    finally:
        driver.set_authorizer(None)
        driver.set_progress_handler(None, 0)
    if not names:
        raise QueryError(READ_ONLY)
    return _typed(names, column_types(sql, tables, "sqlite"), rows, "sqlite")


def _authorize(action: int, first: str | None, second: str | None, *_place: str | None) -> int:
    if action not in _READS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS_REFUSED:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _sqlite_problem(error: Exception, sql: str, limits: AdHocLimits, deadline: float) -> str:
    text = str(error)
    if "interrupted" in text and time.monotonic() >= deadline:
        return f"the query took longer than {limits.seconds_max:g} s and was stopped; ask for less, or use an index"
    if "not authorized" in text or "readonly" in text:
        return READ_ONLY
    if "one statement" in text:
        return "one statement at a time; send the rest by itself"
    if "binding" in text.lower():
        return "parameters (?, :name) have no values here; write the values into the query"
    return text


# --- PostgreSQL


def _ask_postgres(url: URL, name: str, tables: Mapping[str, TableSchema], sql: str, limits: AdHocLimits) -> SqlAnswer:
    from gamedb.storage.postgres import read_only_cursor

    milliseconds = int(limits.seconds_max * 1000)
    with read_only_cursor(url, name, sql, milliseconds, READ_ONLY) as cursor:
        rows = _fetched(iter(lambda: cursor.fetch(_FETCH_ROWS), []), limits)
        known = {(name, column.name): column.type for name, schema in tables.items() for column in schema.columns}
        kinds = [known.get(origin) for origin in cursor.origins]
        if None in kinds:  # computed, or a UNION, of which the server does not say the origin
            read = column_types(sql, tables, "postgres")
            kinds = [a or b for a, b in zip(kinds, read, strict=True)] if len(read) == len(kinds) else kinds
        return _typed(cursor.names, kinds, rows, "postgresql")


# --- what both have


def _with_hint(problem: str, tables: Mapping[str, TableSchema]) -> str:
    """The engine's words, and the name that was meant if one of ours is like the one that it does not know."""
    found = _UNKNOWN.search(problem)
    if found is None:
        return problem
    table = found["table"] or found["relation"]
    known = list(tables) if table else [column.name for schema in tables.values() for column in schema.columns]
    name = (table or found["column"] or found["attribute"]).rpartition(".")[2]
    close = difflib.get_close_matches(name[:NAME_COMPARED_MAX].lower(), known, 1)
    return f"{problem}; did you mean {close[0]}?" if close else problem


def _fetched(chunks: Iterable[Sequence[tuple[Any, ...]]], limits: AdHocLimits) -> list[tuple[Any, ...]]:
    """All rows; `QueryError` past a limit."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for chunk in chunks:
        rows += chunk
        if len(rows) > limits.rows_max:
            raise QueryError(f"the answer has more than {limits.rows_max} rows; add a LIMIT, or ask for less")
        size += sum(len(value) for row in chunk for value in row if isinstance(value, str | bytes))
        if size > limits.bytes_max:
            raise QueryError(f"the answer has more than {limits.bytes_max} bytes; ask for less")
    return rows


def _typed(
    names: Sequence[str], kinds: Sequence[ColumnType | None], rows: list[tuple[Any, ...]], dialect: str
) -> SqlAnswer:
    """The answer with each column in the type of the table's column that it is, or in that of its values."""
    if len(kinds) != len(names):
        kinds = [None] * len(names)
    columns, values = [], []
    for name, kind, stored in zip_longest(names, kinds, zip(*rows, strict=True), fillvalue=()):
        assert isinstance(name, str)
        found = None if not isinstance(kind, ColumnType) else _decoded(kind, list(stored), dialect)
        of_column, decoded = found if found is not None else _guessed(list(stored))
        columns.append((name, of_column))
        values.append(decoded)
    return SqlAnswer(columns=tuple(columns), rows=list(zip(*values, strict=True)) if rows else [])


def _decoded(kind: ColumnType, stored: list[Any], dialect: str) -> tuple[ColumnType, list[Any]] | None:
    """Stored values as those of a column; `None` when they are not (as after an outer join they may be missing)."""
    decode = codec(kind, dialect).decode_function()
    if not isinstance(kind, OptionType) and None in stored:
        kind = OptionType(kind)
    try:
        values = [value if value is None or decode is None else decode(value) for value in stored]
        return kind, [kind.coerce(value, "a result") for value in values]
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None


def _guessed(stored: list[Any]) -> tuple[ColumnType, list[Any]]:
    """Values of a computed column, and the one type that they all have; text when there is none."""
    stored = [_number(value) if isinstance(value, Decimal) else value for value in stored]
    kinds = {type(value) for value in stored if value is not None}
    if kinds == {int, float}:
        stored, kinds = [None if value is None else float(value) for value in stored], {float}
    if len(kinds) > 1 or not kinds <= set(_PLAIN):
        stored, kinds = [None if value is None else _as_text(value) for value in stored], {str}
    if kinds == {int} and not all(value is None or -(2**63) <= value < 2**63 for value in stored):
        stored, kinds = [None if value is None else str(value) for value in stored], {str}
    kind = _PLAIN[kinds.pop()] if kinds else _TEXT
    return (OptionType(kind) if None in stored else kind), stored


def _number(value: Decimal) -> int | float:
    """PostgreSQL's sums and averages."""
    return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
