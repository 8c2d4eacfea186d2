"""`Module`: what a game declares. Tables, reducers, procedures, views, lifecycle, migrations, visibility filters.

Declarations only; `Module.resolve` checks them together with those of included modules and hands the result to a
`Database`. It knows no store and no storage.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gamedb.errors import SchemaError
from gamedb.functions import Kind, declare
from gamedb.resolved import Check, Declared, Migration, Resolved, RowCount, resolve
from gamedb.schema import Row, TableSchema, table_schema

if TYPE_CHECKING:
    from gamedb.checking import CheckReport
    from gamedb.codegen.files import Generation
    from gamedb.context import ReducerContext
    from gamedb.health_report import HealthReport
    from gamedb.jobs import WorkerJob

C = TypeVar("C", bound=type[Row])
F = TypeVar("F", bound=Callable[..., Any])


class Module:
    """A game: create one, and decorate its tables and functions.

    `name` is how databases, clients and logs call it: lower-case letters, digits, `_` and `-`, a letter first.
    What cannot work raises `SchemaError` when it is declared, or when a `Database` is made of the module.

    ```python
    module = Module("tavern")

    @module.table(public=True)
    class Guest(Row):
        name: PrimaryKey[str]
        gold: u32 = 10

    @module.reducer
    def enter(ctx: ReducerContext, name: str) -> None:
        ctx.db[Guest].insert(Guest(name=name))
    ```
    """

    def __init__(self, name: str) -> None:
        if not re.match(r"[a-z][a-z0-9_-]*\Z", name):
            raise SchemaError(f"module name {name!r}: use lower-case letters, digits, '_' and '-', a letter first")
        self.name = name
        """As given."""
        self._declared = Declared(name=name)
        self._included: list[Module] = []

    def __repr__(self) -> str:
        return f"<gamedb module {self.name}>"

    # --- tables

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables by name, those of included modules among them."""
        return self.resolve().tables

    @overload
    def table(self, cls: C, /) -> C: ...
    @overload
    def table(
        self,
        *,
        name: str | None = ...,
        public: bool = ...,
        event: bool = ...,
        scheduled: str | Callable[..., Any] | None = ...,
        indexes: Iterable[Sequence[str]] = ...,
    ) -> Callable[[C], C]: ...
    def table(
        self,
        cls: Any = None,
        *,
        name: str | None = None,
        public: bool = False,
        event: bool = False,
        scheduled: str | Callable[..., Any] | None = None,
        indexes: Iterable[Sequence[str]] = (),
    ) -> Any:
        """Register a Row class as a table.

        - `name`: by default the class name in snake case.
        - `public`: clients may subscribe to it.
        - `event`: rows live in their transaction only, and are broadcast.
        - `scheduled`: the reducer or procedure, by name or as function, that fires for each row at its `ScheduleAt`.
        - `indexes`: multi-column indexes, as tuples of column names.

        `SchemaError` for a class that cannot be a table.
        """
        scope = _caller_scope()

        def register(row: C) -> C:
            target = scheduled if scheduled is None or isinstance(scheduled, str) else self._name_of(scheduled)
            schema = table_schema(
                row, name=name, public=public, event=event, scheduled=target, indexes=indexes, scope=scope
            )
            for other in self._declared.tables:
                if other.name == schema.name or other.row is row:
                    raise SchemaError(f"module {self.name!r} has a table {other.name!r} already ({other.row.__name__})")
            self._declared.tables.append(schema)
            return row

        return register if cls is None else register(cls)

    def _name_of(self, function: Callable[..., Any]) -> str:
        for known in self._declared.functions:
            if known.function is function:
                return known.name
        return getattr(function, "__name__", repr(function))

    # --- functions

    @overload
    def reducer(self, function: F, /) -> F: ...
    @overload
    def reducer(self, *, name: str | None = ..., private: bool = ...) -> Callable[[F], F]: ...
    def reducer(self, function: Any = None, *, name: str | None = None, private: bool = False) -> Any:
        """Register a function that runs in one transaction: all that it writes is committed, or nothing.

        Its first parameter is a `ReducerContext`; arguments are checked by the annotations of the others. What it
        raises rolls everything back; only a `ReducerError` tells its text to clients. `name`: how callers call it, by
        default as the function. `private`: only in-process code and operators may call it.
        """
        return self._register(function, "reducer", name=name, private=private)

    @overload
    def procedure(self, function: F, /) -> F: ...
    @overload
    def procedure(
        self, *, name: str | None = ..., private: bool = ..., queue: str | None = ...
    ) -> Callable[[F], F]: ...
    def procedure(
        self, function: Any = None, *, name: str | None = None, private: bool = False, queue: str | None = None
    ) -> Any:
        """Register a function that may wait, do I/O and return a value; it opens transactions itself.

        It is an `async def`, or a plain function, which runs in a thread; its first parameter is a `ProcedureContext`.
        `queue`: workers in other processes take its calls from this queue (see `gamedb worker`), so clients cannot
        call it; who leaves calls there is the matter of a library, such as workflows.
        """
        return self._register(function, "procedure", name=name, private=private, queue=queue)

    @overload
    def view(self, function: F, /) -> F: ...
    @overload
    def view(self, *, name: str | None = ..., public: bool = ...) -> Callable[[F], F]: ...
    def view(self, function: Any = None, *, name: str | None = None, public: bool = True) -> Any:
        """Register a read-only function whose result (a row, a row or None, a list of rows) can be subscribed to.

        It gets a `ViewContext`, and runs again when a table that it read has changed.
        """
        return self._register(function, "view", name=name, public=public)

    def init(self, function: F, /) -> F:
        """Register the reducer that runs once, when the database is new."""
        self._register(function, "reducer", lifecycle="init")
        return function

    def client_connected(self, function: F, /) -> F:
        """Register the reducer that runs when a client connects; raising refuses the connection."""
        self._register(function, "reducer", lifecycle="client_connected")
        return function

    def client_disconnected(self, function: F, /) -> F:
        """Register the reducer that runs once for each connection that ends, a crash of the server included."""
        self._register(function, "reducer", lifecycle="client_disconnected")
        return function

    def _register(self, function: F | None, kind: Kind, **options: Any) -> Any:
        scope = _caller_scope(2)

        def register(function: F) -> F:
            declared = declare(function, kind, scope=scope, **options)
            for other in self._declared.functions:
                if other.name == declared.name:
                    raise SchemaError(f"module {self.name!r} has a {other.kind} {other.name!r} already")
            self._declared.functions.append(declared)
            return function

        return register if function is None else register(function)

    # --- the rest

    def migration(self, function: F, /) -> F:
        """Register a function `(ctx: MigrationContext) -> None` for a change that opening does not do by itself.

        It runs once for each database that was made before it, in the order of declaration, under its name.
        """
        if any(m.name == function.__name__ for m in self._declared.migrations):
            raise SchemaError(f"module {self.name!r} has a migration {function.__name__!r} already; names are for ever")
        self._declared.migrations.append(Migration(function.__name__, function))
        return function

    def client_visibility_filter(self, sql: str) -> None:
        """Row-level security: clients see only the rows of a table that this query selects (`:sender` is theirs).

        Of several for one table, a client sees the rows of each. One that cannot work is a `SchemaError` when the
        database is served.
        """
        self._declared.visibility_filters.append(sql)

    def on_check(self, function: Callable[[CheckReport], None]) -> Callable[[CheckReport], None]:
        """Let `function` add lines to what `gamedb check` reports about a database that exists already.

        For libraries that keep more in their rows than columns tell: whether it would still work with this code. The
        function reads the stored rows with `report.rows(table)` and speaks up with `report.add(text)`.
        """
        self._declared.checks.append(Check(function.__name__, function))
        return function

    def on_open(self, function: Callable[[ReducerContext], object]) -> Callable[[ReducerContext], object]:
        """Let `function` run in a transaction each time a database is opened, before anything fires or is called.

        For libraries that check and repair what they keep in rows. What it raises refuses the opening.
        """
        self._declared.openings.append(function)
        return function

    def static(self, directory: str | os.PathLike[str]) -> None:
        """Declare the directory of the game's files for browsers, such as its page: a server has them at `/`.

        A relative path is seen from the file that calls this. The directory may be built later; without it nothing is
        served. It counts for the module that is served, not for those that include it.
        """
        here = Path(sys._getframe(1).f_code.co_filename).resolve().parent
        self._declared.static = here / directory

    def on_generate(self, function: Callable[[Generation], None]) -> Callable[[Generation], None]:
        """Let `function` add files to what `gamedb generate` writes for a language.

        For libraries that know more of a module than its tables and functions tell. The function looks at
        `generation.language` and adds files with `generation.add(path, text)`.
        """
        self._declared.generators.append(function)
        return function

    def on_describe(self, function: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        """Let `function` add to what servers tell operators about a module (`GET /v1/database/{db}/describe`).

        For libraries that know more of a module than its tables and functions tell, such as the console shows. It
        returns values of plain JSON by name.
        """
        self._declared.describers.append(function)
        return function

    def on_health(self, function: Callable[[HealthReport], None]) -> Callable[[HealthReport], None]:
        """Let `function` add to what a server says about the health of a database.

        It runs with every question, so it must be quick: `report.count(row, column=value)` reads numbers that
        `count_rows` keeps, and `report.add(name, number, ...)` tells one, with the limit that it must not pass.
        Operators are told the numbers, everybody the problems.
        """
        self._declared.health_checks.append(function)
        return function

    def on_worker(self, function: Callable[[WorkerJob], Awaitable[None]]) -> Callable[[WorkerJob], Awaitable[None]]:
        """Let `function` do work of this module in other processes: what `gamedb worker` runs.

        For libraries that leave work in rows. The function takes it with `job.client` from `job.queues` until
        `job.stopping` is set, gives back what it cannot finish in `job.drain_seconds`, and returns.
        """
        self._declared.workers.append(function)
        return function

    def count_rows(self, row: type[Row], *by: str) -> None:
        """Let servers show in their metrics how many rows of a table there are for each value of these columns.

        The numbers are kept up with each commit, so choose columns with few different values, such as a status.
        """
        self._declared.row_counts.append(RowCount(row, by))

    def include(self, other: Module) -> None:
        """Take in everything that another module declares, also what it declares later. Twice is once."""
        if other is self:
            raise SchemaError(f"module {self.name!r} cannot include itself")
        if other not in self._included:
            self._included.append(other)

    def resolve(self) -> Resolved:
        """Everything of this module and of the included ones; `SchemaError` when the parts do not fit together."""
        return resolve([module._declared for module in self._modules()])

    def _modules(self) -> list[Module]:
        """The included modules, each once, before the modules that include them."""
        order: list[Module] = []

        def visit(module: Module, path: tuple[Module, ...]) -> None:
            if module in path:
                names = " -> ".join(m.name for m in (*path, module))
                raise SchemaError(f"modules include each other in a circle: {names}")
            if module not in order:
                for included in module._included:
                    visit(included, (*path, module))
                order.append(module)

        visit(self, ())
        return order


def _caller_scope(depth: int = 1) -> dict[str, Any] | None:
    """The local names around a decorated class or function that is not at module level, for its annotations."""
    frame = sys._getframe(depth + 1)
    return None if frame.f_locals is frame.f_globals else dict(frame.f_locals)
