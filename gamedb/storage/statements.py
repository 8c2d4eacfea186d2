"""SQL statements that write many rows at once, as text for the driver's own cursor.

A driver lets go of the interpreter lock at every statement, and beside a busy thread it can take milliseconds to
get it back; so what counts is to need few statements. The SQL is SQLAlchemy's for the database at hand.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from sqlalchemy import Column, Dialect, Table, any_, bindparam, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.types import TypeEngine

from gamedb.storage.codecs import Stored

PARAMETERS_MAX: Final = 32_766
"""Parameters of one statement (the limit of SQLite)."""
ROWS_PER_STATEMENT_MAX: Final = 8_192


_DIALECTS: Final[dict[str, Dialect]] = {
    "sqlite": sqlite.dialect(),
    "postgresql": psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class ManyRows(Protocol):
    """A statement for any number of rows."""

    def run(self, cursor: Any, parameters: list[Any]) -> None:
        """Execute for flat parameters, all of the first row, then all of the second..."""


def upsert(table: Table, dialect: str) -> ManyRows:
    """Insert rows, or overwrite those that have the same primary key."""
    names = [c.name for c in table.columns]
    if dialect == "postgresql":
        source = func.unnest(*(_array(c) for c in table.columns)).table_valued(*names).render_derived()
        statement: Any = postgresql.insert(table).from_select(names, select(*source.c))
    else:
        statement = sqlite.insert(table).values({name: bindparam(name) for name in names})
    others = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    keys = [c.name for c in table.primary_key]
    if others:
        statement = statement.on_conflict_do_update(index_elements=keys, set_=others)
    else:
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    text = sql_text(statement, dialect)
    if dialect == "postgresql":
        return Arrays(text, len(names))
    start, end = text.index(" VALUES ") + len(" VALUES "), text.index(" ON CONFLICT ")
    return Groups(text[:start], text[start:end], text[end:], len(names))


def delete_by_key(table: Table, dialect: str) -> ManyRows:
    """Delete rows by primary key."""
    (key,) = table.primary_key
    if dialect == "postgresql":
        return Arrays(sql_text(delete(table).where(key == any_(_array(key))), dialect), 1)
    text = sql_text(delete(table).where(key.in_([bindparam("key", type_=key.type)])), dialect)
    start, end = text.index(" IN (") + len(" IN ("), text.rindex(")")
    return Groups(text[:start], text[start:end], text[end:], 1)


def sql_text(statement: ClauseElement, dialect: str) -> str:
    """A statement as text for the driver, parameters by position."""
    return str(statement.compile(dialect=_DIALECTS[dialect]))


def _array(column: Column[Any]) -> Any:
    kind: TypeEngine[Any] = column.type
    native = kind.load_dialect_impl(_DIALECTS["postgresql"]) if isinstance(kind, Stored) else kind
    return bindparam(column.name, type_=postgresql.ARRAY(native))


class Arrays:
    """One statement whose parameters are arrays, one for each column; for PostgreSQL."""

    def __init__(self, text: str, width: int) -> None:
        self._text = text
        self._width = width

    def run(self, cursor: Any, parameters: list[Any]) -> None:
        """Execute for flat parameters."""
        step = ROWS_PER_STATEMENT_MAX * self._width
        for start in range(0, len(parameters), step):
            cursor.execute(
                self._text,
                [parameters[i : start + step : self._width] for i in range(start, start + self._width)],
            )


class Groups:
    """A statement with a group of parameters for each row, in the sizes 1, 2, 4... rows; for SQLite.

    Few distinct statements serve any number of rows, and the driver keeps them prepared.
    """

    def __init__(self, before: str, group: str, after: str, width: int) -> None:
        self._before, self._group, self._after = before, group, after
        self._width = width
        self.rows_max = min(ROWS_PER_STATEMENT_MAX, 1 << ((PARAMETERS_MAX // width).bit_length() - 1))
        self._texts: dict[int, str] = {}

    def run(self, cursor: Any, parameters: list[Any]) -> None:
        """Execute for flat parameters; the last row is repeated where that saves statements."""
        width = self._width
        start, left = 0, len(parameters) // width
        for size in self._sizes(left):
            end = start + size * width
            chunk = parameters[start:end]
            if size > left:
                chunk += parameters[-width:] * (size - left)
            cursor.execute(self._text(size), chunk)
            start, left = end, left - size

    def _sizes(self, rows: int) -> list[int]:
        """Powers of two: at most two besides full statements, for at most a third more rows."""
        full, rest = divmod(rows, self.rows_max)
        sizes = [self.rows_max] * full
        if rest:
            size = 1 << (rest.bit_length() - 1)
            after = rest - size
            if after > size // 2:
                sizes.append(2 * size)
            elif after:
                sizes += (size, 1 << (after - 1).bit_length())
            else:
                sizes.append(size)
        return sizes

    def _text(self, rows: int) -> str:
        text = self._texts.get(rows)
        if text is None:
            text = self._texts[rows] = self._before + ", ".join([self._group] * rows) + self._after
        return text
