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

from gamedb.columns import ProductType, has_float
from gamedb.errors import QueryError, SchemaError
from gamedb.functions import Function
from gamedb.query import grammar
from gamedb.query.conditions import (
    FALSE,
    TRUE,
    All,
    Condition,
    Exists,
    Pair,
    all_of,
    any_of,
    filled,
    moved,
)
from gamedb.query.names import Names, same_type
from gamedb.query.plan import NOT_INDEXED, Join, Query, prefer_indexed
from gamedb.query.sender import mentions_sender
from gamedb.query.text import Piece, Text, take_apart
from gamedb.resolved import Resolved
from gamedb.schema import Column, TableSchema

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

    def parse(self, sql: str, *, operator: bool = False, conditions_max: int = grammar.CONDITIONS_MAX) -> Query:
        """The query that a text asks; `QueryError` with the position of what is wrong in it.

        `operator`: private tables may be read, and client visibility filters do not apply. `conditions_max`: how many
        comparisons it may have, as they are what parsing costs.
        """
        return self._query(take_apart(sql), operator, conditions_max)

    def parse_all(
        self, sql: str, *, operator: bool = False, conditions_max: int = grammar.CONDITIONS_MAX
    ) -> list[Query]:
        """As `parse`, but `SELECT * FROM *` is allowed, too: a query for every table that may be read but events."""
        text = take_apart(sql)
        if not _is_everything(text.pieces):
            return [self._query(text, operator, conditions_max)]
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

    def _query(self, text: Text, operator: bool, conditions_max: int) -> Query:
        grammar.check_count(text.pieces, conditions_max)
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
        names = Names(sources, [target.schema for target in targets], pieces)
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
        if query.condition == FALSE:
            return query.name, FALSE
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
    usable: list[tuple[tuple[int, int, str, str], Pair]] = []
    for pair in equalities:  # side 0 stands on the left of a pair
        left, right = (schemas[0].column(pair.column), schemas[1].column(pair.other))
        names = (f"{schemas[0].name}.{left.name}", f"{schemas[1].name}.{right.name}")
        if not same_type(left.type, right.type):
            problem = problem or f"{names[0]} ({left.type.name}) and {names[1]} ({right.type.name}) differ in type"
            continue
        ratings = (prefer_indexed(schemas[0])(left.name), prefer_indexed(schemas[1])(right.name))
        bare = [name for name, rating in zip(names, ratings, strict=True) if rating == NOT_INDEXED]
        if bare:
            problem = problem or f"a JOIN needs an index on both columns; declare {' and '.join(bare)} as Index[...]"
        else:
            usable.append(((ratings[1], ratings[0], left.name, right.name), pair))
    if not usable:
        raise QueryError(problem, start)
    _, chosen = min(usable, key=lambda rated: rated[0])
    rest = [part for part in parts if part is not chosen]
    return Join(schemas[1], chosen.column, chosen.other), all_of(rest)
