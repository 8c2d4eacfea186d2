"""`Catalog`: what clients can ask of a module. It gives names their tables and literals their types.

One for a module. `parse` is thread-safe; what it gives is immutable. It knows no store and no client.
"""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final

import msgspec

from gamedb.columns import BoolType, ColumnType, FloatType, HexType, IntType, OptionType, ProductType, has_float, shown
from gamedb.errors import QueryError, SchemaError
from gamedb.functions import Function
from gamedb.module import Resolved
from gamedb.query import grammar
from gamedb.query.conditions import (
    FALSE,
    FLIPPED,
    NEGATED,
    SENDER,
    TRUE,
    All,
    Condition,
    Constant,
    Exists,
    Hole,
    Pair,
    Test,
    all_of,
    any_of,
    filled,
    moved,
    negated,
)
from gamedb.query.literals import base, is_comparable
from gamedb.query.plan import Join, Query
from gamedb.query.sender import mentions_sender
from gamedb.query.text import Piece, Text, take_apart
from gamedb.schema import Column, TableSchema
from gamedb.types import Identity

SHAPES_MAX: Final = 1_024
"""Query shapes that are kept worked out."""
SHAPE_KEPT_MAX: Final = 256
"""Pieces of a query whose shape is kept."""


_EVERYTHING: Final = [("keyword", "SELECT"), ("symbol", "*"), ("keyword", "FROM"), ("symbol", "*")]


class Target(msgspec.Struct, frozen=True):
    """What may stand behind FROM: a table, or a view as if it were one."""

    schema: TableSchema
    view: Function | None = None


class Planned(msgspec.Struct, frozen=True):
    """A query without its literals."""

    target: Target
    condition: Condition
    join: Join | None
    reads_sender: bool


class Catalog:
    """The tables, views and client visibility filters of a module, for queries.

    `SchemaError` when a client visibility filter cannot work.
    """

    def __init__(self, resolved: Resolved) -> None:
        self.name = resolved.name
        """The name of the module."""
        self.tables = tuple(resolved.tables.values())
        self._targets = {schema.name: Target(schema) for schema in resolved.tables.values()}
        for function in resolved.functions.values():
            if function.kind == "view":
                self._targets[function.name] = Target(_view_schema(function, resolved), function)
        self._lock = Lock()
        self._shapes: OrderedDict[tuple[object, bool], Planned] = OrderedDict()
        self._rules: dict[str, list[Condition]] = {}
        rules: dict[str, list[Condition]] = {}
        for text in resolved.visibility_filters:
            name, rule = self._rule(text)
            rules.setdefault(name, []).append(rule)
        self._rules = rules
        self._shapes.clear()

    def parse(self, sql: str, *, operator: bool = False) -> Query:
        """The query that a text asks; `QueryError` with the position of what is wrong in it.

        `operator`: private tables may be read, and client visibility filters do not apply.
        """
        return self._query(take_apart(sql), operator)

    def parse_all(self, sql: str, *, operator: bool = False) -> list[Query]:
        """As `parse`, but `SELECT * FROM *` is allowed, too: a query for every table that may be read but events."""
        text = take_apart(sql)
        if not _is_everything(text.pieces):
            return [self._query(text, operator)]
        names = [
            target.schema.name
            for target in self._targets.values()
            if target.view is None and not target.schema.event and (target.schema.public or operator)
        ]
        return [self.whole(name, operator=operator) for name in names]

    def whole(self, name: str, *, operator: bool = False) -> Query:
        """The query for all rows of a table or view."""
        quoted = name.replace('"', '""')
        return self.parse(f'SELECT * FROM "{quoted}"', operator=operator)

    def _query(self, text: Text, operator: bool) -> Query:
        key = (text.shape, operator)
        with self._lock:
            planned = self._shapes.get(key)
            if planned is not None:
                self._shapes.move_to_end(key)
        if planned is None:
            if _is_everything(text.pieces):
                raise QueryError("SELECT * FROM * asks for many tables; here one is asked for by its name", 0)
            planned = self._plan(text.pieces, operator)
            if len(text.pieces) > SHAPE_KEPT_MAX:
                return _filled(planned, text)
            with self._lock:
                self._shapes[key] = planned
                if len(self._shapes) > SHAPES_MAX:
                    self._shapes.popitem(last=False)
        return _filled(planned, text)

    def _plan(self, pieces: Sequence[Piece], operator: bool) -> Planned:
        statement = grammar.statement(list(pieces))
        targets = [self._target(source, pieces, operator) for source in statement.sources]
        sources = list(statement.sources)
        chosen = _selected(statement, pieces)
        if chosen == 1:
            sources.reverse()
            targets.reverse()
        names = _Names(sources, [target.schema for target in targets], pieces)
        join = None
        parts: list[Condition] = []
        if len(targets) == 2:
            _check_join(targets, sources, pieces)
            assert statement.on is not None
            on = names.condition(statement.on)
            join, rest = _join(on, [target.schema for target in targets], pieces[sources[1].piece].start)
            parts.append(rest)
        if statement.where is not None:
            parts.append(names.condition(statement.where))
        if not operator:
            parts += [self._visible(target.schema.name, side) for side, target in enumerate(targets)]
        view = targets[0].view
        return Planned(targets[0], all_of(parts), join, view is not None and mentions_sender(view.function))

    def _target(self, source: grammar.Source, pieces: Sequence[Piece], operator: bool) -> Target:
        target = self._targets.get(source.table)
        if target is None or not (target.schema.public or operator):
            known = [name for name, t in self._targets.items() if t.schema.public or operator]
            close = difflib.get_close_matches(source.table[:100], known, 1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise QueryError(
                f"no such table: `{source.table[:100]}`. If the table exists, it may be marked private.{hint}",
                pieces[source.piece].start,
            )
        if target.view is not None and target.view.parameters:
            raise QueryError(
                f"view `{source.table}` takes arguments ({target.view.signature}), so it cannot be queried",
                pieces[source.piece].start,
            )
        return target

    def _visible(self, table: str, side: int) -> Condition:
        """Which rows of a table clients see."""
        rules = self._rules.get(table)
        return TRUE if rules is None else moved(any_of(rules), side)

    def _rule(self, text: str) -> tuple[str, Condition]:
        try:
            query = self.parse(text, operator=True)
        except QueryError as error:
            where = "" if error.position is None else f" (at character {error.position})"
            raise SchemaError(f"client visibility filter {text!r}: {error}{where}") from None
        if query.view is not None:
            raise SchemaError(
                f"client visibility filter {text!r}: `{query.name}` is a view; filter its rows in its code"
            )
        if query.join is None:
            return query.name, query.condition
        join = query.join
        return query.name, Exists(0, join.column, join.table.name, join.other, query.condition)


def _filled(planned: Planned, text: Text) -> Query:
    condition = filled(planned.condition, text.pieces)
    return Query(planned.target.schema, condition, planned.join, planned.target.view, planned.reads_sender)


def _is_everything(pieces: Sequence[Piece]) -> bool:
    return [piece[:2] for piece in pieces] == _EVERYTHING


def _view_schema(view: Function, resolved: Resolved) -> TableSchema:
    """The columns of a view's rows, as if they were a table."""
    assert view.row is not None
    assert isinstance(view.returns, ProductType)
    for schema in resolved.tables.values():
        if schema.row is view.row:
            columns = schema.columns
            break
    else:
        columns = tuple(Column(name=n, type=t, default=msgspec.NODEFAULT) for n, t in view.returns.fields.items())
    return TableSchema(
        name=view.name,
        row=view.row,
        columns=columns,
        primary_key=None,
        indexes=(),
        public=view.public,
        event=False,
        scheduled=None,
        schedule_column=None,
        has_float=any(has_float(column.type) for column in columns),
    )


def _selected(statement: grammar.Statement, pieces: Sequence[Piece]) -> int:
    """The place of the source whose rows are selected."""
    sources = statement.sources
    if len(sources) == 2 and sources[0].alias == sources[1].alias:
        raise QueryError(
            f"`{sources[1].alias}` stands for two tables; a table cannot be joined with itself",
            pieces[sources[1].piece].start,
        )
    if statement.selected is None:
        if len(sources) == 2:
            example = f"SELECT {sources[0].alias}.*"
            raise QueryError(f"with a JOIN, say whose rows are selected: {example}", pieces[1].start)
        return 0
    for place, source in enumerate(sources):
        if source.alias == statement.selected:
            return place
    known = ", ".join(f"`{source.alias}`" for source in sources)
    at = pieces[statement.selected_piece].start
    raise QueryError(f"`{statement.selected[:100]}` is not among the tables of the query: {known}", at)


def _check_join(targets: Sequence[Target], sources: Sequence[grammar.Source], pieces: Sequence[Piece]) -> None:
    for target, source in zip(targets, sources, strict=True):
        if target.view is not None:
            raise QueryError(
                f"`{source.table}` is a view, and views cannot be joined; join inside of the view",
                pieces[source.piece].start,
            )
    if targets[0].schema is targets[1].schema:
        at = pieces[max(sources[0].piece, sources[1].piece)].start
        raise QueryError(f"`{sources[0].table}` cannot be joined with itself; declare a view for it", at)
    if targets[1].schema.event:
        raise QueryError(
            f"`{sources[1].table}` is an event table: its rows are never there to join with. Select them instead: "
            f"SELECT {sources[1].alias}.*",
            pieces[sources[1].piece].start,
        )


def _join(on: Condition, schemas: Sequence[TableSchema], start: int) -> tuple[Join, Condition]:
    """The equality that rows are looked up by, and what else ON asks."""
    parts = on.parts if isinstance(on, All) else (on,)
    equalities = [p for p in parts if isinstance(p, Pair) and p.operator == "=" and p.side != p.other_side]
    if not equalities:
        raise QueryError("ON needs an equality of a column of each table: ON t.a = u.b", start)
    problem = ""
    for pair in equalities:  # side 0 stands on the left of a pair
        left, right = (schemas[0].column(pair.column), schemas[1].column(pair.other))
        names = (f"{schemas[0].name}.{left.name}", f"{schemas[1].name}.{right.name}")
        if not same_type(left.type, right.type):
            problem = problem or f"{names[0]} ({left.type.name}) and {names[1]} ({right.type.name}) differ in type"
            continue
        bare = [
            name
            for name, schema, column in zip(names, schemas, (left, right), strict=True)
            if not is_indexed(schema, column.name)
        ]
        if not bare:
            rest = [part for part in parts if part is not pair]
            return Join(schemas[1], left.name, right.name), all_of(rest)
        problem = problem or f"a JOIN needs an index on both columns; declare {' and '.join(bare)} as Index[...]"
    raise QueryError(problem, start)


def is_indexed(schema: TableSchema, column: str) -> bool:
    """Whether rows can be looked up by this column alone."""
    return column == schema.primary_key or column in schema.unique_columns or (column,) in schema.indexes


def same_type(left: ColumnType, right: ColumnType) -> bool:
    """Whether present values of two columns are of one type."""
    one, two = base(left), base(right)
    same_class = getattr(one, "cls", None) is getattr(two, "cls", None)
    return type(one) is type(two) and same_class and one.describe() == two.describe()


class _Names:
    """The columns that a query may name, and its conditions with their types."""

    def __init__(
        self, sources: Sequence[grammar.Source], schemas: Sequence[TableSchema], pieces: Sequence[Piece]
    ) -> None:
        self._sides = {source.alias: side for side, source in enumerate(sources)}
        self._schemas = schemas
        self._pieces = pieces

    def condition(self, written: grammar.Written, positive: bool = True) -> Condition:
        """The condition, or its negation: a NOT goes down to the comparisons."""
        if isinstance(written, grammar.Not):
            return self.condition(written.part, not positive)
        if isinstance(written, grammar.All | grammar.Any_):
            parts = [self.condition(part, positive) for part in written.parts]
            return all_of(parts) if isinstance(written, grammar.All) is positive else any_of(parts)
        if isinstance(written, grammar.Is):
            return self._bare(written.operand, positive)
        return self._comparison(written, positive)

    def _bare(self, operand: grammar.Name | grammar.Value, positive: bool) -> Condition:
        if isinstance(operand, grammar.Value):
            piece = self._pieces[operand.piece]
            if piece.kind != "bool":
                raise QueryError(f"{shown(piece.value)} alone is no condition; compare it with a column", piece.start)
            return TRUE if (piece.value == "TRUE") is positive else FALSE
        side, column = self._column(operand)
        if not isinstance(base(column.type), BoolType):
            raise QueryError(
                f"column `{column.name}` alone is no condition; compare it with something", self._start(operand)
            )
        return Test(side, column.name, "=", positive, isinstance(column.type, OptionType))

    def _comparison(self, written: grammar.Compare, positive: bool) -> Condition:
        left, right, operator = written.left, written.right, written.operator
        if isinstance(left, grammar.Value):
            if isinstance(right, grammar.Value):
                if "sender" in (self._pieces[left.piece].kind, self._pieces[right.piece].kind):
                    raise QueryError(":sender is compared with a column of type Identity", self._start(left))
                return Constant(operator if positive else NEGATED[operator], left.piece, right.piece)
            left, right, operator = right, left, FLIPPED[operator]
        assert isinstance(left, grammar.Name)
        side, column = self._column(left)
        self._check_operator(column, operator, left)
        signed = operator if positive else negated(operator, column.type)
        optional = isinstance(column.type, OptionType)
        if isinstance(right, grammar.Value):
            return Test(side, column.name, signed, self._value(side, column, right), optional)
        other_side, other = self._column(right)
        self._check_pair(column, other, operator, right)
        optional = optional or isinstance(other.type, OptionType)
        bare = signed.lstrip("!")
        places = ((side, column.name), (other_side, other.name))
        if places[0] > places[1] or (places[0] == places[1] and bare.startswith(">")):
            flipped = signed.replace(bare, FLIPPED[bare])
            return Pair(other_side, other.name, flipped, side, column.name, optional)
        return Pair(side, column.name, signed, other_side, other.name, optional)

    def _value(self, side: int, column: Column, value: grammar.Value) -> object:
        where = f"{self._schemas[side].name}.{column.name}"
        if self._pieces[value.piece].kind != "sender":
            return Hole(value.piece, column.type, where)
        kind = base(column.type)
        if not isinstance(kind, HexType) or kind.cls is not Identity:
            raise QueryError(f"{where}: :sender is an Identity, and the column is {kind.name}", self._start(value))
        return SENDER

    def _check_operator(self, column: Column, operator: str, at: grammar.Name) -> None:
        if not is_comparable(column.type):
            raise QueryError(
                f"column `{column.name}`: values of {column.type.name} cannot be compared; declare a view for it",
                self._start(at),
            )
        if operator not in ("=", "<>") and not base(column.type).orderable:
            raise QueryError(
                f"column `{column.name}`: {column.type.name} has no order; compare it with = or <>", self._start(at)
            )

    def _check_pair(self, column: Column, other: Column, operator: str, at: grammar.Name) -> None:
        self._check_operator(other, operator, at)
        one, two = base(column.type), base(other.type)
        numbers = (isinstance(one, IntType) and isinstance(two, IntType)) or (
            isinstance(one, FloatType) and isinstance(two, FloatType)
        )
        if not numbers and not same_type(one, two):
            raise QueryError(
                f"columns `{column.name}` ({one.name}) and `{other.name}` ({two.name}) differ in type", self._start(at)
            )

    def _column(self, name: grammar.Name) -> tuple[int, Column]:
        if name.table is None:
            found = [
                (side, c) for side, schema in enumerate(self._schemas) for c in schema.columns if c.name == name.column
            ]
            if len(found) == 1:
                return found[0]
            if found:
                raise QueryError(f"column `{name.column}` is in both tables; write t.{name.column}", self._start(name))
            raise self._unknown(name, self._schemas)
        side = self._sides.get(name.table, -1)
        if side < 0:
            known = ", ".join(f"`{alias}`" for alias in self._sides)
            raise QueryError(f"`{name.table[:100]}` is not among the tables of the query: {known}", self._start(name))
        for column in self._schemas[side].columns:
            if column.name == name.column:
                return side, column
        raise self._unknown(name, [self._schemas[side]])

    def _unknown(self, name: grammar.Name, schemas: Sequence[TableSchema]) -> QueryError:
        if name.table is None and name.column.lower() in ("nan", "infinity", "inf", "null"):
            return QueryError(f"{name.column} is no value that can be compared with", self._start(name))
        names = ", ".join(column.name for schema in schemas for column in schema.columns)
        hint = " (a text goes in single quotes)" if name.table is None else ""
        known = f"no such column: `{name.column[:100]}`{hint}; there are {names[:500]}"
        return QueryError(known, self._start(name))

    def _start(self, operand: grammar.Name | grammar.Value) -> int:
        return self._pieces[operand.piece].start
