"""What the names of a query stand for: its columns, and from them the types of its conditions and literals.

It knows the tables of one query, and neither the module nor who asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from gamedb.columns import BoolType, ColumnType, FloatType, HexType, IntType, OptionType, shown
from gamedb.errors import QueryError
from gamedb.query import grammar
from gamedb.query.conditions import (
    FALSE,
    FLIPPED,
    NEGATED,
    SENDER,
    TRUE,
    Condition,
    Constant,
    Hole,
    Pair,
    Test,
    all_of,
    any_of,
    negated,
)
from gamedb.query.literals import base, is_comparable
from gamedb.query.text import Piece
from gamedb.schema import Column, TableSchema
from gamedb.types import Identity


def same_type(left: ColumnType, right: ColumnType) -> bool:
    """Whether present values of two columns are of one type."""
    one, two = base(left), base(right)
    same_class = getattr(one, "cls", None) is getattr(two, "cls", None)
    return type(one) is type(two) and same_class and one.describe() == two.describe()


class Names:
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
