"""What a game sees of a table: `ReadTable` to look, `Table` to look and change.

Every answer is a list or a row made on the spot, so a loop over it goes over the rows as they were when the call
was made, whatever the loop body inserts, updates or deletes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from gamedb.columns import has_float, shown
from gamedb.errors import ColumnError, TransactionError, UnknownName
from gamedb.schema import Row, unknown_column
from gamedb.store.index import Bucket, has_none
from gamedb.store.table import TableData

R = TypeVar("R", bound=Row)

Finder = Callable[..., list[Any]]

ANYBODY: Final = (1).bit_length
"""The `owned` of tables that any thread may read: always true, and without a Python call."""


def _refused(name: str) -> property:
    """What stands in the place of a method that writes. (`__getattr__` would slow down every other attribute.)"""

    def refuse(_table: object) -> None:
        raise AttributeError(f"nothing can be written here: {name} is for reducers, as ctx.db[...].{name}(...)")

    return property(refuse)


class ReadTable(Generic[R]):
    """The rows of one table, read only."""

    __slots__ = ("_canonical_tests", "_counters", "_finders", "_get", "_owned", "_pk", "data")

    def __init__(self, data: TableData, owned: Callable[[], object] = ANYBODY) -> None:
        self.data = data
        self._owned = owned
        self._get: Callable[[Any], Any] = data.rows.get
        self._pk = data.schema.primary_key
        self._finders: dict[tuple[str, ...], Finder] = {}
        self._counters: dict[tuple[str, ...], Callable[..., int]] = {}
        self._canonical_tests: dict[tuple[str, ...], Callable[..., bool]] = {}

    if not TYPE_CHECKING:
        insert, update = _refused("insert"), _refused("update")
        upsert, delete = _refused("upsert"), _refused("delete")
        delete_where, clear = _refused("delete_where"), _refused("clear")

    def get(self, key: Any) -> R | None:
        """The row with this primary key, or `None`. `ColumnError` for a key of another type."""
        if not self._owned():
            raise self._foreign()
        try:
            row: R | None = self._get(key)
        except TypeError:  # unhashable, as a bytearray
            row = None
        if row is None:
            if self._pk is None:
                raise UnknownName(f"table {self._name!r} has no primary key; use where(...), or `row in table`")
            row = self._get(self._canonical(self._pk, key))
        return row

    def find(self, /, **unique: Any) -> R | None:
        """The row with this value in a unique column (or the primary key): `find(name="ann")`; `None` if none."""
        if len(unique) != 1:
            raise TypeError(f"find takes one unique column, got {', '.join(unique) or 'none'}; use where for more")
        if not self._owned():
            raise self._foreign()
        [(column, value)] = unique.items()
        if column == self._pk:
            return self.get(value)
        index = self.data.unique.get(column)
        if index is None:
            self._check_column(column)
            remedy = f"declare it Unique[...], or use where({column}=...)"
            raise UnknownName(f"{self._name}.{column} is not unique: {remedy}")
        try:
            key = index.keys.get(value)
        except TypeError:  # unhashable, as a bytearray
            key = None
        if key is None:
            if value is None:
                raise ColumnError(f"find({column}=None): None may stand in many rows; use where({column}=None)")
            key = index.keys.get(self._canonical(column, value))
        return None if key is None else cast("R", self.data.rows[key])

    def where(self, /, **equalities: Any) -> list[R]:
        """The rows in which each given column has the given value; an index is used when there is one.

        `None` is a value like any other; nan is in no row, as it equals nothing.
        """
        if not self._owned():
            raise self._foreign()
        if not equalities:
            return self._all()
        columns = tuple(equalities)
        finder = self._finders.get(columns)
        if finder is None:
            finder = self._finders[columns] = self._finder(columns)
        try:
            rows = finder(*equalities.values())
        except TypeError:  # unhashable, as a bytearray
            rows = []
        if not rows and not self._are_canonical(columns, equalities.values()):
            # perhaps the values were not in the form in which rows hold them, or cannot be in a row at all
            values = [self._canonical(column, value) for column, value in equalities.items()]
            if any(map(operator.is_not, values, equalities.values())):
                rows = finder(*values)
        return rows

    def between(self, column: str | tuple[str, ...], low: Any, high: Any, *, limit: int | None = None) -> list[R]:
        """The rows with `low <= column <= high`, in that order; `None` leaves an end open.

        `limit`: at most so many, the lowest; with an index this costs only what it gives.

        A declared multi-column index is named by the tuple of its columns, with tuples for `low` and `high`.
        Rows whose value is `None` or nan are in no range. The first use on an index sorts it; after that the order
        is kept. A column without an index is scanned.
        """
        if not self._owned():
            raise self._foreign()
        columns = (column,) if isinstance(column, str) else tuple(column)
        for name in columns:
            self._check_column(name)
            kind = self.data.schema.column(name).type
            if not kind.orderable:
                raise ColumnError(f"{self._name}.{name}: {kind.name} has no order")
        low, high = self._bound(columns, low), self._bound(columns, high)
        found = self.data.ordered(columns)
        if found is None:
            return self._scan_between(columns, low, high)[:limit]
        order, keys = found
        rows: dict[Any, Any] = self.data.rows
        result: list[R] = []
        for value in order.between(low, high):
            key = keys.get(value, value)
            if type(key) is Bucket:
                result.extend(rows[k] for k in key)
            else:
                result.append(rows[key])
            if limit is not None and len(result) >= limit:
                return result[:limit]
        return result

    def count(self, **equalities: Any) -> int:
        """How many rows there are; with columns, how many `where` would give (from an index without reading rows)."""
        if not self._owned():
            raise self._foreign()
        if not equalities:
            return len(self.data.rows)
        columns = tuple(equalities)
        counter = self._counters.get(columns)
        if counter is None:
            counter = self._counters[columns] = self._counter(columns)
        return counter(*equalities.values())

    def __len__(self) -> int:
        """How many rows there are."""
        if not self._owned():
            raise self._foreign()
        return len(self.data.rows)

    def __iter__(self) -> Iterator[R]:
        """All rows, in no order; those that are there now, whatever the loop changes."""
        if not self._owned():
            raise self._foreign()
        return iter(self._all())

    def __contains__(self, row: object) -> bool:
        """Whether this very row is there, with all its values."""
        if not self._owned():
            raise self._foreign()
        data = self.data
        try:
            row = data.check(row)
        except ColumnError:
            return False
        found = data.rows.get(data.key_of(row))
        return found is not None and data.same(found, row)

    def __repr__(self) -> str:
        return f"<table {self._name}: {len(self.data.rows)} rows>"

    @property
    def _name(self) -> str:
        return self.data.schema.name

    def _foreign(self) -> TransactionError:
        """What is raised in a thread that is not in the transaction which this belongs to."""
        return self.data.owner.refusal(self._name, "read")

    def _all(self) -> list[R]:
        return cast("list[R]", list(self.data.rows.values()))

    def _check_column(self, name: str) -> None:
        if all(column.name != name for column in self.data.schema.columns):
            raise UnknownName(unknown_column(self.data.schema, name))

    def _canonical(self, column: str, value: Any) -> Any:
        return self.data.schema.column(column).type.coerce(value, f"{self._name}.{column}")

    def _counter(self, columns: tuple[str, ...]) -> Callable[..., int]:
        """The function that answers `count` for these columns, from an index if there is one that holds the values."""

        def by_rows(*values: Any) -> int:
            return len(self.where(**dict(zip(columns, values, strict=True))))

        index = self.data.indexes.get(columns)
        if index is None:
            return by_rows
        get, optional = index.keys.get, index.optional

        def by_index(*values: Any) -> int:
            found = get(values[0] if len(values) == 1 else values)
            if found is not None:
                return len(found) if type(found) is Bucket else 1
            if (optional and None in values) or not self._are_canonical(columns, values):
                return by_rows(*values)
            return 0

        return by_index

    def _are_canonical(self, columns: tuple[str, ...], values: Iterable[Any]) -> bool:
        """Whether values of these columns are in canonical form, so that what is not found is in no row."""
        test = self._canonical_tests.get(columns)
        if test is None:
            test = self._canonical_tests[columns] = self._canonical_test(columns)
        return test(*values)

    def _canonical_test(self, columns: tuple[str, ...]) -> Callable[..., bool]:
        scope: dict[str, Any] = {}
        tests = [self.data.schema.column(name).type.fast(f"v{n}", scope) for n, name in enumerate(columns)]
        source = f"lambda {', '.join(f'v{n}' for n in range(len(columns)))}: {' and '.join(tests)}"
        test: Callable[..., bool] = eval(source, scope)  # made of checked identifiers
        return test

    def _bound(self, columns: tuple[str, ...], bound: Any) -> Any:
        """An end of a range in canonical form."""
        if bound is None:
            return None
        values = (bound,) if len(columns) == 1 else bound
        if not isinstance(values, tuple) or len(values) != len(columns):
            raise ColumnError(f"{self._name}: between({columns}) takes tuples of {len(columns)}, got {shown(bound)}")
        for name, value in zip(columns, values, strict=True):
            if value is None or value != value:
                raise ColumnError(f"{self._name}.{name}: {value} cannot bound a range, as it is in none")
        result = tuple(map(self._canonical, columns, values))
        return result[0] if len(result) == 1 else result

    def _finder(self, columns: tuple[str, ...]) -> Finder:
        """The function that answers `where` for these columns: an index first, then a filter for the rest."""
        for name in columns:
            self._check_column(name)
        data, given = self.data, set(columns)
        rows: dict[Any, Any] = data.rows
        if self._pk in given:
            used: tuple[str, ...] = (self._pk,) if self._pk else ()
            keys: dict[Any, Any] | None = None
        else:
            unique = next(((name,) for name in data.unique if name in given), None)
            wide = sorted((c for c in data.indexes if set(c) <= given), key=len)
            used = wide[-1] if wide else ()
            keys = data.indexes[used].keys if used else None
            if unique is not None and columns != used:
                used, keys = unique, data.unique[unique[0]].keys
        rest = tuple(name for name in columns if name not in used)
        if not used:
            return _filter(columns, lambda _values: rows.values(), columns)
        places = [columns.index(name) for name in used]
        floats = any(has_float(data.schema.column(name).type) for name in used)

        def candidates(values: tuple[Any, ...]) -> Iterable[Any]:
            value = values[places[0]] if len(places) == 1 else tuple(values[p] for p in places)
            if floats and any(values[p] != values[p] for p in places):
                return ()  # a dict would find the very nan object that a row holds
            key = value if keys is None else keys.get(value)
            if key is None:
                if keys is not None and has_none(value):  # indexes do not hold None
                    wanted = [(name, values[p]) for name, p in zip(used, places, strict=True)]
                    return [row for row in rows.values() if all(getattr(row, name) == v for name, v in wanted)]
                return ()
            if type(key) is Bucket:
                return [rows[k] for k in key]
            row = rows.get(key)
            return () if row is None else (row,)

        if rest:
            return _filter(columns, candidates, rest)
        if keys is None or floats or columns != used:
            return lambda *values: list(candidates(values))
        get, single = keys.get, len(columns) == 1

        def by_index(*values: Any) -> list[R]:
            key = get(values[0] if single else values)
            if key is None:
                return list(candidates(values)) if None in values else []
            return [rows[k] for k in key] if type(key) is Bucket else [rows[key]]

        return by_index

    def _scan_between(self, columns: tuple[str, ...], low: Any, high: Any) -> list[R]:
        pairs = []
        for row in self._all():
            values = tuple(getattr(row, name) for name in columns)
            value = values[0] if len(values) == 1 else values
            if any(v is None or v != v for v in values):
                continue
            if (low is None or low <= value) and (high is None or value <= high):
                pairs.append((value, row))
        pairs.sort(key=lambda pair: pair[0])
        return [row for _, row in pairs]


def _filter(
    columns: tuple[str, ...], candidates: Callable[[tuple[Any, ...]], Iterable[Any]], rest: tuple[str, ...]
) -> Finder:
    """A finder that keeps the candidates whose `rest` columns match; compiled for the columns."""
    arguments = [f"v{columns.index(name)}" for name in rest]
    test = " and ".join(f"row.{name} == {argument}" for name, argument in zip(rest, arguments, strict=True))
    parameters = ", ".join(f"v{n}" for n in range(len(columns)))
    source = f"lambda {parameters}: [row for row in candidates(({parameters},)) if {test}]"
    finder: Finder = eval(source, {"candidates": candidates})  # made of checked identifiers
    return finder


class Table(ReadTable[R]):
    """The rows of one table inside a transaction."""

    __slots__ = ("delete_key", "insert", "update")

    insert: Callable[[R], R]
    """`insert(row) -> row`: add a row and return it as stored, with its auto-increment number.

    Raises `ConstraintError` when its key or a unique value is taken, `ColumnError` when a value does not fit. In a
    table without primary key an equal row is there only once.
    """
    update: Callable[[R], R]
    """`update(row) -> row`: replace the row with the same primary key. `RowNotFound` when there is none.

    Equal values are no change: nothing is sent to anybody.
    """

    def __init__(self, data: TableData) -> None:
        super().__init__(data, data.owner.owned)
        self.insert = cast("Callable[[R], R]", data.insert)
        self.update = cast("Callable[[R], R]", data.update if self._pk is not None else self._no_update)
        self.delete_key = data.remove

    def upsert(self, row: R) -> R:
        """Update the row with the same primary key, or insert it when there is none."""
        data = self.data
        if self._pk is not None:
            row = cast("R", data.check(row))
            if data.key_of(row) in data.rows:
                return self.update(row)
        return self.insert(row)

    def delete(self, row_or_key: R | Any) -> bool:
        """Delete a row, given by its primary key or as the row (found by its key); whether it was there."""
        data = self.data
        if isinstance(row_or_key, Row):
            return data.remove(data.key_of(data.check(row_or_key)))
        row = self.get(row_or_key)
        return row is not None and data.remove(data.key_of(row))

    def delete_where(self, /, **equalities: Any) -> int:
        """Delete the rows that `where` would give; how many there were."""
        if not equalities:
            raise TypeError("delete_where needs a condition; to empty the table use clear()")
        remove, key_of = self.data.remove, self.data.key_of
        rows = self.where(**equalities)
        for row in rows:
            remove(key_of(row))
        return len(rows)

    def clear(self) -> int:
        """Delete all rows; how many there were."""
        if not self._owned():
            raise self._foreign()
        keys = list(self.data.rows)
        for key in keys:
            self.data.remove(key)
        return len(keys)

    def _no_update(self, row: R) -> R:
        raise TransactionError(
            f"table {self._name!r} has no primary key, so update cannot tell which row to change; "
            "delete the old row and insert the new one"
        )


if TYPE_CHECKING:

    class Tables:
        """`ctx.db`: the table of a Row class, as `ctx.db[Player]`."""

        def __init__(self, module: str, tables: Iterable[TableData], view: type[Any] = ...) -> None: ...
        def __getitem__(self, row: type[R], /) -> Table[R]: ...

    class ReadTables:
        """`ctx.db` where nothing may be written."""

        def __init__(self, module: str, tables: Iterable[TableData], view: type[Any] = ...) -> None: ...
        def __getitem__(self, row: type[R], /) -> ReadTable[R]: ...

else:

    class Tables(dict):  # a dict, so that ctx.db[Player] costs no Python call
        """`ctx.db`: the table of a Row class, as `ctx.db[Player]`."""

        def __init__(self, module, tables, view=Table):
            super().__init__((data.schema.row, view(data)) for data in tables)
            self.module = module

        def __missing__(self, row):
            raise UnknownName(unknown_table(self.module, row, list(self)))

    class ReadTables(Tables):
        """`ctx.db` where nothing may be written."""

        def __init__(self, module, tables, view=ReadTable):
            super().__init__(module, tables, view)


def unknown_table(module: str, row: object, known: list[type[Row]]) -> str:
    """The text for something that is no table of the module."""
    if not (isinstance(row, type) and issubclass(row, Row)):
        return f"a table is named by its Row class, such as ctx.db[Player]; got {shown(row)}"
    names = ", ".join(cls.__name__ for cls in known) or "none"
    same = any(cls.__name__ == row.__name__ for cls in known)
    hint = "; another class of that name is (was its file imported twice?)" if same else ""
    return f"{row.__name__} is not a table of module {module!r}{hint}; its tables: {names}"
