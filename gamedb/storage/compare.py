"""What differs between the stored tables and the module's: steps that can be taken, and refusals.

It only reads. Taking the steps is `evolve`'s job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, MetaData, Table, func, select

from gamedb.schema import TableSchema
from gamedb.storage.codecs import stored_type
from gamedb.storage.models import plain_table
from gamedb.storage.shape import ColumnShape, Shape, shape_of


class Step(msgspec.Struct, frozen=True):
    """One thing that opening the database would do."""

    kind: str
    """`create table`, `add column`, `drop table`, `migration`..."""
    table: str
    text: str
    clients_must_reload: bool


class Plan(msgspec.Struct, frozen=True):
    """What opening would do, or why it would refuse. With refusals, none of the steps is taken."""

    steps: list[Step]
    refusals: list[str]


def sql_table(shape: Shape) -> Table:
    """The SQLAlchemy table of a stored shape."""
    columns = [(c.name, stored_type(c.type)) for c in shape.columns]
    return plain_table(MetaData(), shape.name, columns, shape.primary_key)


def compare(connection: Connection, stored: Mapping[str, Shape], tables: Mapping[str, TableSchema]) -> Plan:
    """Compare every table."""
    comparison = _Comparison(connection)
    for name, schema in tables.items():
        comparison.table(stored.get(name), shape_of(schema))
    for name, shape in stored.items():
        if name not in tables:
            comparison.gone(shape, tables, stored)
    return Plan(comparison.steps, comparison.refusals)


class _Comparison:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.steps: list[Step] = []
        self.refusals: list[str] = []

    def step(self, kind: str, shape: Shape, text: str, reload: bool = False) -> None:
        self.steps.append(Step(kind, shape.name, text, reload))

    def refuse(self, shape: Shape, text: str) -> None:
        self.refusals.append(f"table {shape.name!r}: {text}")

    def rows(self, shape: Shape) -> int:
        if shape.event:
            return 0
        return self.connection.execute(select(func.count()).select_from(sql_table(shape))).scalar_one()

    def table(self, old: Shape | None, new: Shape) -> None:
        if old is None:
            self.step("create table", new, f"create table {new.name!r}")
        elif old.event != new.event:
            self._event_changed(old, new)
        elif old != new:
            self._columns(old, new)
            self._constraints(old, new)

    def gone(self, old: Shape, tables: Mapping[str, TableSchema], stored: Mapping[str, Shape]) -> None:
        count = self.rows(old)
        if not count:
            self.step("drop table", old, f"drop table {old.name!r}, which is empty", old.public)
            return
        text = f"it is not in the module any more, and holds {_rows(count)}; "
        alike = [n for n, s in tables.items() if n not in stored and shape_of(s).columns == old.columns]
        if alike:
            text += f"if it was renamed, ctx.rename_table({old.name!r}, {alike[0]!r}) in a @module.migration; "
        self.refuse(old, f"{text}to lose the rows, ctx.drop_table({old.name!r}) in a @module.migration")

    def _event_changed(self, old: Shape, new: Shape) -> None:
        count = self.rows(old)
        if count:
            self.refuse(
                old,
                f"it became an event table, which is not stored, and holds {_rows(count)}; "
                f"to lose them, ctx.drop_table({old.name!r}) in a @module.migration",
            )
        elif new.event:
            self.step("drop table", old, f"table {old.name!r} becomes an event table", old.public)
        else:
            self.step("create table", new, f"event table {new.name!r} becomes a stored table", old.public)

    def _columns(self, old: Shape, new: Shape) -> None:
        old_names, new_names = [c.name for c in old.columns], [c.name for c in new.columns]
        missing = [c for c in old.columns if c.name not in new_names]
        added = [c for c in new.columns if c.name not in old_names]
        self._missing(old, missing, added)
        kept = [name for name in new_names if name in old_names]
        if kept != [name for name in old_names if name in new_names]:
            self.refuse(
                old,
                f"the columns changed their order (stored: {', '.join(old_names)}; module: "
                f"{', '.join(new_names)}); put them back, or reorder the rows with {_rewrite(old)}",
            )
        for column in added:
            self._added(old, new, column, at_end=column in new.columns[len(kept) :])
        for name in kept:
            self._kept(old, new, name)
        if old.primary_key != new.primary_key:
            self.refuse(
                old,
                f"the primary key changed from {old.primary_key or 'none'} to {new.primary_key or 'none'}; "
                f"put it back, or give the rows their new key with {_rewrite(old)}",
            )

    def _missing(self, old: Shape, missing: list[ColumnShape], added: list[ColumnShape]) -> None:
        for column in missing:
            alike = [c.name for c in added if c.type == column.type]
            rename = (
                f"if it was renamed, ctx.rename_column({old.name!r}, {column.name!r}, {alike[0]!r}) in a "
                f"@module.migration; "
                if alike
                else ""
            )
            self.refuse(
                old,
                f"column {column.name!r} is gone; put it back, or {rename}to lose its values, "
                f"ctx.drop_column({old.name!r}, {column.name!r}) in a @module.migration",
            )

    def _added(self, old: Shape, new: Shape, column: ColumnShape, at_end: bool) -> None:
        if not at_end:
            self.refuse(
                old,
                f"new column {column.name!r} stands before stored ones; put it at the end, "
                f"or rebuild the rows with {_rewrite(old)}",
            )
        elif not column.default:
            self.refuse(
                old,
                f"new column {column.name!r} has no default for the rows that are stored; give it one, "
                f"or fill it with {_rewrite(old)}",
            )
        elif column.unique and column.default != [None] and self.rows(old) > 1:
            self.refuse(
                old,
                f"new column {column.name!r} is unique, but {_rows(self.rows(old))} would all get its default "
                f"{column.default[0]!r}; fill it with {_rewrite(old)}",
            )
        else:
            text = f"add column {column.name!r} to table {new.name!r}, {column.default[0]!r} in stored rows"
            self.step("add column", new, text, old.public or new.public)

    def _kept(self, old: Shape, new: Shape, name: str) -> None:
        before, after = old.column(name), new.column(name)
        assert before is not None
        assert after is not None
        if before.type != after.type:
            if extends(before.type, after.type):
                text = f"column {name!r} of table {new.name!r} takes more values: {type_text(after.type)}"
                self.step("extend type", new, text, old.public or new.public)
            else:
                was, now = type_text(before.type), type_text(after.type)
                change = f"its type from {was} to {now}" if was != now else f"what its Structs hold ({was})"
                self.refuse(
                    old,
                    f"column {name!r} changed {change}; put it back, or convert the values with {_rewrite(old)}",
                )
        if before.auto_inc != after.auto_inc:
            verb = "starts" if after.auto_inc else "stops"
            self.step("auto-increment", new, f"column {name!r} of table {new.name!r} {verb} to count by itself")
        if before.default != after.default:
            text = f"column {name!r} of table {new.name!r} has another default; stored rows keep their values"
            self.step("change default", new, text)
        if before.unique and not after.unique and name != old.primary_key:
            self.step("drop unique", new, f"column {name!r} of table {new.name!r} is not unique any more")
        if after.unique and not before.unique and name != new.primary_key:
            self._new_unique(old, new, before)

    def _new_unique(self, old: Shape, new: Shape, column: ColumnShape) -> None:
        values = sql_table(old).columns[column.name]
        query = select(values, func.count()).where(values.is_not(None)).group_by(values)
        found = self.connection.execute(query.having(func.count() > 1).order_by(values).limit(1)).first()
        if found is None:
            self.step("add unique", new, f"column {column.name!r} of table {new.name!r} becomes unique")
        else:
            self.refuse(
                old,
                f"column {column.name!r} became unique, but {_rows(found[1])} hold {found[0]!r}; "
                f"change them first, or with {_rewrite(old)}",
            )

    def _constraints(self, old: Shape, new: Shape) -> None:
        for index in new.indexes:
            if index not in old.indexes:
                self.step("add index", new, f"index {_names(index)} on table {new.name!r}")
        for index in old.indexes:
            if index not in new.indexes:
                self.step("drop index", new, f"no index {_names(index)} on table {new.name!r} any more")
        if old.public != new.public:
            if new.public:
                self.step("make public", new, f"table {new.name!r} becomes public")
            else:
                self.step("make private", new, f"table {new.name!r} becomes private", True)
        if old.scheduled != new.scheduled:
            text = f"table {new.name!r} fires {new.scheduled or 'nothing'} instead of {old.scheduled or 'nothing'}"
            self.step("change schedule", new, text)


def _rows(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''}"


def _rewrite(shape: Shape) -> str:
    return f"ctx.rewrite({shape.name!r}, function) in a @module.migration"


def _names(index: list[str]) -> str:
    return f"({', '.join(index)})"


def extends(old: Any, new: Any) -> bool:
    """Whether every stored value of the old type is one of the new: enums and unions may grow at the end."""
    if old == new:
        return True
    if not (isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys()):
        return False
    ((kind, before),) = old.items()
    after = new[kind]
    if kind == "again":  # it refers to another place
        return False
    if kind == "enum":
        return bool(after[: len(before)] == before)
    if kind in ("option", "list"):
        return extends(before, after)
    return (len(after) == len(before) or (kind == "sum" and len(after) > len(before))) and all(
        a[0] == b[0] and extends(a[1], b[1]) for a, b in zip(before, after, strict=False)
    )


def type_text(description: Any) -> str:
    """A described type for messages."""
    if isinstance(description, str):
        return description
    ((kind, inner),) = description.items()
    if kind == "option":
        return f"{type_text(inner)} | None"
    if kind == "list":
        return f"list[{type_text(inner)}]"
    if kind == "again":
        return "itself"
    if kind == "enum":
        return f"enum ({', '.join(inner)})"
    return f"{'union' if kind == 'sum' else 'struct'} ({', '.join(_parts(inner))})"


def _parts(described: list[Any]) -> Iterator[str]:
    for name, inner in described:
        is_struct = not isinstance(inner, str) and inner.keys() & {"product", "recursive"}
        yield name if is_struct else f"{name}: {type_text(inner)}"
