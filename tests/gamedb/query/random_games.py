"""Random schemas, queries and transactions, and a deliberately simple evaluator: nested loops and three-valued logic.

A query is made as a small tree, written as SQL for the code under test, and evaluated here from the tree.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from gamedb import (
    ConstraintError,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    Unique,
    ViewContext,
    f32,
    i64,
    u8,
)
from gamedb.columns import from_micros
from gamedb.schema import RowMeta

SENDERS = [Identity.from_int(n) for n in (1, 2, 3)]


class Mode(enum.Enum):
    A = 1
    B = 2


class Kind(NamedTuple):
    """A column type: its annotation, values to choose from, how a value is written, and whether it has an order."""

    annotation: Any
    values: list[Any]
    write: Callable[[Any], str]
    ordered: bool = True


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


KINDS = {
    "u8": Kind(u8, [0, 1, 2, 3], str),
    "i64": Kind(i64, [-5, 0, 2**62], str),
    "float": Kind(float, [0.0, -0.0, 1.5, -2.0, math.nan, math.inf], repr),
    "f32": Kind(f32, [0.0, 0.5, -0.0], repr),
    "str": Kind(str, ["", "a", "it's", "é\n"], _text),
    "mode": Kind(Mode, list(Mode), lambda v: _text(v.name), ordered=False),
    "who": Kind(Identity, SENDERS, lambda v: f"0x{v.hex()}"),
    "bool": Kind(bool, [True, False], lambda v: str(v).upper(), ordered=False),
    "bytes": Kind(bytes, [b"", b"\0\xff"], lambda v: f"x'{v.hex()}'"),
    "time": Kind(timedelta, [timedelta(0), timedelta(seconds=-1)], lambda v: str(int(v.total_seconds()) * 1_000_000)),
    "stamp": Kind(datetime, [from_micros(0), from_micros(-1)], lambda v: _text(v.isoformat())),
    "uuid": Kind(UUID, [UUID(int=0), UUID(int=7)], lambda v: _text(str(v))),
}


class Field(NamedTuple):
    name: str
    kind: Kind
    optional: bool
    indexed: bool


class Shape(NamedTuple):
    """A random table."""

    name: str
    row: type[Row]
    fields: list[Field]
    key: bool
    event: bool

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)


# --- conditions: tuples whose first part says what they are


def evaluate(condition: Any, rows: dict[str, Row], sender: Identity) -> bool | None:
    """True, False or unknown (`None`), as SQL has it."""
    what = condition[0]
    if what == "const":
        return bool(condition[1])
    if what == "not":
        inner = evaluate(condition[1], rows, sender)
        return None if inner is None else not inner
    if what in ("and", "or"):
        found = [evaluate(part, rows, sender) for part in condition[1]]
        decisive = what == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    _, operator, left, right = condition
    a, b = _operand(left, rows, sender), _operand(right, rows, sender)
    if a is None or b is None:
        return None
    return {
        "=": lambda: a == b,
        "<>": lambda: a != b,
        "<": lambda: a < b,
        "<=": lambda: a <= b,
        ">": lambda: a > b,
        ">=": lambda: a >= b,
    }[operator]()


def _operand(operand: Any, rows: dict[str, Row], sender: Identity) -> Any:
    if operand[0] == "column":
        return getattr(rows[operand[1]], operand[2])
    return sender if operand[0] == "sender" else operand[1]


class Asked(NamedTuple):
    """A random query."""

    table: str
    join: tuple[str, str, str] | None
    """(other table, own column, other column)"""
    on: list[Any]
    where: Any

    def sql(self, random: Random) -> str:
        write = Writer(random)
        if self.join is None:
            head = f"SELECT {write.star(self.table)} FROM {write.name(self.table)}"
        else:
            other, own, others = self.join
            pair = [("column", self.table, own), ("column", other, others)]
            random.shuffle(pair)
            on = [("compare", "=", *pair), *self.on]
            random.shuffle(on)
            names = [self.table, other]
            random.shuffle(names)
            word = random.choice(["JOIN", "INNER JOIN", "join"])
            head = f"SELECT {write.quoted(self.table)}.* FROM {write.name(names[0])} {word} {write.name(names[1])}"
            head += f" ON {write.condition(on[0] if len(on) == 1 else ('and', on))}"
        return head if self.where is None else f"{head} WHERE {write.condition(self.where)}"


class Writer:
    """SQL with the freedoms that clients take."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._builder = random.random() < 0.5

    def quoted(self, name: str) -> str:
        return f'"{name}"' if self._builder else name

    def name(self, name: str) -> str:
        return self.quoted(name)

    def star(self, table: str) -> str:
        return "*" if self._builder else f"{table}.*"

    def condition(self, condition: Any) -> str:
        what = condition[0]
        if what == "const":
            return "TRUE = TRUE" if condition[1] else "FALSE = TRUE"
        if what == "not":
            return f"NOT ({self.condition(condition[1])})"
        if what in ("and", "or"):
            word = f" {what.upper()} "
            return word.join(f"({self.condition(part)})" for part in condition[1])
        _, operator, left, right = condition
        if self._random.random() < 0.2:
            left, right = right, left
            operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
        if operator == "<>" and not self._builder:
            operator = "!="
        return f"{self.operand(left)} {operator} {self.operand(right)}"

    def operand(self, operand: Any) -> str:
        if operand[0] == "column":
            return f"{self.quoted(operand[1])}.{self.quoted(operand[2])}"
        return ":sender" if operand[0] == "sender" else operand[2].write(operand[1])


class Game:
    """A random module with its database."""

    def __init__(self, random: Random, *, filters: bool) -> None:
        self.random = random
        event_at = random.choice([None, 0, 1, 2])
        self.shapes = {f"t{n}": self._shape(f"t{n}", n == event_at) for n in range(random.choice([2, 3]))}
        self.filters: dict[str, list[Asked]] = {}
        module = Module("random")
        for shape in self.shapes.values():
            module.table(name=shape.name, public=True, event=shape.event)(shape.row)
        if filters:
            for _ in range(random.choice([1, 1, 2, 3])):
                rule = self.asked(views=False)
                self.filters.setdefault(rule.table, []).append(rule)
                module.client_visibility_filter(rule.sql(random))
        self.views: dict[str, tuple[str, str | None]] = {}
        self._declare_views(module)
        self.db = Database(module, slow_reducer=timedelta(hours=1))

    def _shape(self, name: str, event: bool) -> Shape:
        random = self.random
        fields: list[Field] = []
        annotations: dict[str, Any] = {}
        key = random.random() < 0.6
        if key:
            fields.append(Field("id", KINDS["u8"], False, True))
            annotations["id"] = PrimaryKey[u8]
        joined = random.choice([Index[u8], Index[u8 | None], Unique[u8 | None], Index[u8 | None]])
        fields.append(Field("j", KINDS["u8"], joined != Index[u8], True))
        annotations["j"] = joined
        for kind in random.sample(sorted(KINDS), random.randint(1, 5)):
            optional = random.random() < 0.3
            annotation = KINDS[kind].annotation
            annotation = annotation | None if optional else annotation
            indexed = random.random() < 0.3
            annotations[f"c_{kind}"] = Index[annotation] if indexed else annotation
            fields.append(Field(f"c_{kind}", KINDS[kind], optional, indexed))
        row = RowMeta(name.upper(), (Row,), {"__annotations__": annotations, "__module__": __name__})
        return Shape(name, row, fields, key, event)  # type: ignore[arg-type]

    def _declare_views(self, module: Module) -> None:
        plain = next((s for s in self.shapes.values() if not s.event), None)
        assert plain is not None
        row = plain.row
        who = next((f.name for f in plain.fields if f.kind is KINDS["who"]), None)

        def everything(ctx: ViewContext) -> Any:
            return list(ctx.db[row])

        def personal(ctx: ViewContext) -> Any:
            rows = list(ctx.db[row])
            if who is None or len(rows) < 2:
                return rows + rows
            return [r for r in rows if getattr(r, who) == ctx.sender]

        for function in (everything, personal):
            function.__annotations__["return"] = list[row]  # type: ignore[valid-type]
            module.view(function)
            self.views[function.__name__] = (plain.name, who)

    # --- queries

    def asked(self, *, views: bool = True) -> Asked:
        random = self.random
        if views and random.random() < 0.15:
            name = random.choice(sorted(self.views))
            return Asked(name, None, [], self.condition([(name, self.shapes[self.views[name][0]])]))
        table = random.choice(sorted(self.shapes))
        others = [n for n in self.shapes if n != table and not self.shapes[n].event]
        if others and random.random() < 0.5:
            other = random.choice(others)
            sources = [(table, self.shapes[table]), (other, self.shapes[other])]
            on = [self.condition(sources, 1) for _ in range(random.choice([0, 0, 1]))]
            where = self.condition(sources) if random.random() < 0.7 else None
            own = random.choice(["j", "id"]) if self.shapes[table].key else "j"
            theirs = random.choice(["j", "id"]) if self.shapes[other].key else "j"
            return Asked(table, (other, own, theirs), on, where)
        where = self.condition([(table, self.shapes[table])]) if random.random() < 0.85 else None
        return Asked(table, None, [], where)

    def condition(self, sources: list[tuple[str, Shape]], depth: int = 3) -> Any:
        random = self.random
        roll = random.random()
        if depth > 1 and roll < 0.45:
            parts = [self.condition(sources, depth - 1) for _ in range(random.choice([2, 2, 3]))]
            return (random.choice(["and", "and", "or"]), parts)
        if depth > 1 and roll < 0.55:
            return ("not", self.condition(sources, depth - 1))
        if roll < 0.58:
            return ("const", random.random() < 0.7)
        if depth > 1 and roll < 0.7:  # what is looked up by several ways
            return ("or", [self._leaf(sources, ["="]) for _ in range(random.choice([2, 3]))])
        leaf = self._leaf(sources, ["=", "=", "=", "<>", "<", "<=", ">", ">="])
        return ("not", leaf) if random.random() < 0.2 else leaf

    def _leaf(self, sources: list[tuple[str, Shape]], operators: list[str]) -> Any:
        random = self.random
        table, shape = random.choice(sources)
        field = random.choice(shape.fields)
        left = ("column", table, field.name)
        operator = random.choice([o for o in operators if field.kind.ordered or o in ("=", "<>")])
        if field.kind is KINDS["who"] and random.random() < 0.6:
            return ("compare", operator, left, ("sender",))
        if random.random() < 0.2:
            same = [(n, f) for n, s in sources for f in s.fields if f.kind is field.kind]
            other, matching = random.choice(same)
            return ("compare", operator, left, ("column", other, matching.name))
        values = [v for v in field.kind.values if not (isinstance(v, float) and not math.isfinite(v))]
        return ("compare", operator, left, ("value", random.choice(values), field.kind))

    # --- the simple evaluator

    def rows(self, table: str) -> list[Row]:
        return list(self.db.read(self.shapes[table].row))

    def visible(self, table: str, row: Row, sender: Identity, operator: bool) -> bool:
        rules = self.filters.get(table)
        if operator or rules is None:
            return True
        return any(self.joined(rule, row, sender, True) for rule in rules)

    def joined(self, asked: Asked, row: Row, sender: Identity, operator: bool) -> int:
        """How often a row of its table is in a query's answer."""
        if not self.visible(asked.table, row, sender, operator):
            return 0
        if asked.join is None:
            return int(asked.where is None or evaluate(asked.where, {asked.table: row}, sender) is True)
        other, own, theirs = asked.join
        count = 0
        for partner in self.rows(other):
            rows = {asked.table: row, other: partner}
            on = ("compare", "=", ("column", asked.table, own), ("column", other, theirs))
            conditions = [on, *asked.on, *([] if asked.where is None else [asked.where])]
            if self.visible(other, partner, sender, operator):
                count += all(evaluate(c, rows, sender) is True for c in conditions)
        return count

    def answer(self, asked: Asked, sender: Identity, operator: bool, events: list[Row] | None = None) -> Counter[str]:
        """The answer as a bag of rows; of an event table, what of these events is in it."""
        result: Counter[str] = Counter()
        if asked.table in self.views:
            table, who = self.views[asked.table]
            rows = self.rows(table)
            if asked.table == "personal":
                personal = who is not None and len(rows) >= 2
                rows = [r for r in rows if getattr(r, str(who)) == sender] if personal else rows + rows
            for row in rows:
                if asked.where is None or evaluate(asked.where, {asked.table: row}, sender) is True:
                    result[repr(row)] += 1
            return result
        for row in self.rows(asked.table) if events is None else events:
            result[repr(row)] += self.joined(asked, row, sender, operator)
        return +result

    # --- transactions

    def play(self) -> None:
        """One transaction of several writes."""
        with self.db.transaction() as ctx:
            for _ in range(self.random.choice([1, 1, 2, 4, 8])):
                self._write(ctx)

    def _write(self, ctx: ReducerContext) -> None:
        random = self.random
        shape = random.choice(list(self.shapes.values()))
        table: Any = ctx.db[shape.row]
        rows = list(table)
        roll = random.random()
        try:
            if not rows or roll < 0.45:
                table.insert(shape.row(**{f.name: self._value(f) for f in shape.fields}))
                return
            row: Any = random.choice(rows)
            if roll < 0.65:
                table.delete(row)
                if random.random() < 0.3:
                    table.insert(row)
                return
            changed = random.sample(shape.fields, random.randint(1, min(2, len(shape.fields))))
            new = row.replace(**{f.name: self._value(f) for f in changed if f.name != "id"})
            if shape.key:
                table.update(new)
            else:
                table.delete(row)
                table.insert(new)
        except ConstraintError:
            pass

    def _value(self, field: Field) -> Any:
        if field.optional and self.random.random() < 0.3:
            return None
        return self.random.choice(field.kind.values)


def clients(random: Random) -> Iterator[tuple[Identity, bool]]:
    """Who asks next, and whether as an operator."""
    while True:
        yield random.choice(SENDERS), random.random() < 0.2
