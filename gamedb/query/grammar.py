"""From the pieces of a query to a `Statement`: which tables, which conditions. sqlglot is the parser.

It parses a skeleton in which every name and literal is the number of its piece, so whatever names and values a client
writes, sqlglot sees a plain query, and each node of its tree leads back to a position. What its SQL knows and ours does
not is refused here. It knows no table.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final, NoReturn

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from gamedb.columns import shown
from gamedb.errors import QueryError
from gamedb.query.text import FORM, LITERALS, Piece, refuse_words, without_idle_parentheses

CONDITIONS_MAX: Final = 1_000
"""Comparisons in a query."""


class Name(msgspec.Struct, frozen=True):
    """A column as it is written, with the piece that it stands at."""

    table: str | None
    column: str
    piece: int


class Value(msgspec.Struct, frozen=True):
    """The place of a literal."""

    piece: int


class Compare(msgspec.Struct, frozen=True):
    """`left operator right`."""

    operator: str
    left: Name | Value
    right: Name | Value
    piece: int


class Is(msgspec.Struct, frozen=True):
    """A column or literal of type bool as a condition."""

    operand: Name | Value


class Not(msgspec.Struct, frozen=True):
    part: Written


class All(msgspec.Struct, frozen=True):
    parts: tuple[Written, ...]


class Any_(msgspec.Struct, frozen=True):
    parts: tuple[Written, ...]


Written = Compare | Is | Not | All | Any_
"""A condition as it is written."""


class Source(msgspec.Struct, frozen=True):
    """A table as it is named, and what it is called in the rest of the query."""

    table: str
    alias: str
    piece: int


class Statement(msgspec.Struct, frozen=True):
    """A query whose names and literals nobody has looked at yet."""

    selected: str | None
    """`t` of `SELECT t.*`; `None` for `SELECT *`."""
    selected_piece: int
    sources: tuple[Source, ...]
    on: Written | None
    where: Written | None


_OPERATORS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def statement(pieces: list[Piece]) -> Statement:
    """The statement that the pieces make; `QueryError` with the position of what is wrong.

    The cost is in proportion to the comparisons, see `check_count`.
    """
    if not pieces:
        raise QueryError(f"the query is empty; the form is {FORM}", 0)
    if pieces[0][:2] != ("keyword", "SELECT"):
        raise QueryError(
            f"a query begins with SELECT, not {shown(pieces[0].value)}; the form is {FORM}", pieces[0].start
        )
    refuse_words(pieces)
    kept = without_idle_parentheses(pieces)
    skeleton, ends = _skeleton(pieces, kept)
    try:
        trees = sqlglot.parse(skeleton, read="sqlite")
    except SqlglotError as error:
        detail = (getattr(error, "errors", None) or [{}])[0]
        place = kept[min(bisect_left(ends, detail.get("col") or 0), len(kept) - 1)]
        after = pieces[place]
        raise QueryError(
            f"something is missing or wrong at {shown(after.value)}; the form is {FORM}", after.start
        ) from None
    except RecursionError:
        raise QueryError("the conditions are nested too deep; flatten them", 0) from None
    return _Reader(pieces).statement(trees[0])


def check_count(pieces: list[Piece], conditions_max: int) -> None:
    """Refuse too many conditions before any work is put into them."""
    if len(pieces) <= conditions_max:
        return
    count = 1
    for kind, value, start in pieces:
        count += kind == "keyword" and value in ("AND", "OR", "ON", "WHERE")
        if count > conditions_max + 1:
            raise QueryError(f"the query has more than {conditions_max} comparisons; split it", start)


def _skeleton(pieces: list[Piece], kept: list[int]) -> tuple[str, list[int]]:
    """The query with a number for each name and literal, and where each piece ends in it."""
    parts: list[str] = []
    ends: list[int] = []
    length = 0
    for place in kept:
        kind, value, _ = pieces[place]
        part = f'"{place}"' if kind == "name" else str(place) if kind in LITERALS else value
        parts.append(part)
        length += len(part)
        ends.append(length)
        length += 1
    return " ".join(parts), ends


class _Reader:
    """Turns sqlglot's tree into a `Statement`, and refuses every node and part that the dialect does not have."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    def _refuse(self, node: Any, why: str) -> NoReturn:
        raise QueryError(why, self._pieces[self._piece_of(node)].start)

    def _piece_of(self, node: Any) -> int:
        """The first piece below a node."""
        numbers = [
            int(leaf.this)
            for leaf in (node.find_all(exp.Identifier, exp.Literal) if isinstance(node, exp.Expression) else ())
            if isinstance(leaf.this, str) and leaf.this.isdigit()
        ]
        return min(numbers, default=0)

    def _only(self, node: Any, *allowed: str) -> None:
        """Refuse a part of a node that the dialect does not have."""
        for key, value in node.args.items():
            if value and key.rstrip("_") not in allowed:
                culprit = value[0] if isinstance(value, list) else value
                self._refuse(
                    culprit if isinstance(culprit, exp.Expression) else node, f"not supported here; the form is {FORM}"
                )

    def _text(self, identifier: Any) -> str:
        return self._pieces[int(identifier.this)].value

    def statement(self, tree: Any) -> Statement:
        if not isinstance(tree, exp.Select):
            self._refuse(tree, f"the form of a query is {FORM}")
        self._only(tree, "expressions", "from", "joins", "where")
        args = {key.rstrip("_"): value for key, value in tree.args.items()}
        if len(tree.expressions) != 1:
            self._refuse(tree.expressions[1] if tree.expressions else tree, "select one table: * or t.*")
        selected, selected_piece = self._selected(tree.expressions[0])
        if args.get("from") is None:
            self._refuse(tree, f"FROM is missing; the form is {FORM}")
        self._only(args["from"], "this")
        sources = [self._source(args["from"].this)]
        on = None
        joins = args.get("joins") or []
        if len(joins) > 1:
            self._refuse(joins[1], "at most two tables can be joined; declare a view for more")
        for join in joins:
            self._only(join, "this", "on", "kind")
            if (
                not isinstance(join.args.get("on"), exp.Condition)
                or isinstance(join.args["on"], exp.Boolean)
                or join.args.get("kind") not in (None, "", "INNER")
            ):
                self._refuse(join, "two tables need a JOIN with its condition: FROM t JOIN u ON t.a = u.b")
            sources.append(self._source(join.this))
            on = self._condition(join.args["on"])
        where = args.get("where")
        condition = None if where is None else self._condition(where.this)
        return Statement(selected, selected_piece, tuple(sources), on, condition)

    def _selected(self, node: Any) -> tuple[str | None, int]:
        if isinstance(node, exp.Star):
            self._only(node, "this")
            return None, 1
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self._only(node, "this", "table")
            return self._text(node.args["table"]), int(node.args["table"].this)
        self._refuse(node, "whole rows are selected: * or t.*; single columns, values and aggregates are not supported")

    def _source(self, node: Any) -> Source:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self._refuse(node, "FROM and JOIN take the name of a table")
        self._only(node, "this", "db", "catalog", "alias")
        parts = [node.args.get("catalog"), node.args.get("db"), node.this]
        table = ".".join(self._text(part) for part in parts if part is not None)
        alias = node.args.get("alias")
        if alias is None:
            return Source(table, table, self._piece_of(node))
        self._only(alias, "this")
        return Source(table, self._text(alias.this), self._piece_of(node))

    def _condition(self, node: Any) -> Written:
        if isinstance(node, exp.Paren):
            self._only(node, "this")
            return self._condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            kind = type(node)
            parts: list[Written] = []
            while type(node) is kind:  # chains lean to the left; no recursion for a thousand of them
                self._only(node, "this", "expression")
                parts.append(self._condition(node.args["expression"]))
                node = node.this
            parts.append(self._condition(node))
            parts.reverse()
            return All(tuple(parts)) if kind is exp.And else Any_(tuple(parts))
        if isinstance(node, exp.Not):
            return Not(self._condition(node.this))
        operator = _OPERATORS.get(type(node))
        if operator is None:
            return Is(self._operand(node))
        self._only(node, "this", "expression")
        left, right = self._operand(node.this), self._operand(node.args["expression"])
        return Compare(operator, left, right, self._piece_of(node))

    def _operand(self, node: Any) -> Name | Value:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Literal):
            return Value(int(node.this))
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            self._only(node, "this", "table", "db", "catalog")
            names = [node.args.get("catalog"), node.args.get("db"), node.args.get("table")]
            table = ".".join(self._text(part) for part in names if part is not None)
            return Name(table or None, self._text(node.this), self._piece_of(node))
        self._refuse(node, "a comparison has a column or a value on each side: t.a = 5")
