"""What the engine's tests share: a small world of signals and timers, and a game that runs workflows in it."""

from __future__ import annotations

import itertools
import linecache
import logging
import shutil
import textwrap
import types
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gamedb import AutoInc, Database, ManualClock, Module, PrimaryKey, ReducerContext, Row, u64
from workflow_module import (
    PendingProcedure,
    Signal,
    Struct,
    Timer,
    Workflow,
    WorkflowAttribute,
    WorkflowDefinition,
    WorkflowEvent,
    Workflows,
    WorkflowSignal,
    WorkflowSubscription,
    WorkflowTimer,
    install,
)
from workflow_module.tables import WorkflowExpiry, WorkflowWake

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class Clock(Timer):
    END = "end"
    OTHER = "other"


class Go(Signal):
    n: int = 0


class Bid(Signal):
    amount: int


class Stop(Signal):
    pass


class Text(Signal):
    text: str


class Number(Struct):
    n: int


class Target(Struct):
    id: int


class Deadline(Struct):
    at: datetime


class Mark(Row):
    """What a workflow has done, in order."""

    id: PrimaryKey[AutoInc[u64]] = 0
    text: str


class GameError(Exception):
    pass


def mark(ctx: ReducerContext, text: object) -> None:
    ctx.db[Mark].insert(Mark(text=str(text)))


class Faults:
    """Bugs that a test switches on, and fixes later."""

    on = False


def fragile(what: str = "broken") -> None:
    if Faults.on:
        raise GameError(what)


class Game:
    """A database with workflows, under a manual clock. `crash` reopens what a kill would have left."""

    def __init__(
        self,
        workflows: Iterable[WorkflowDefinition[Any, Any]],
        path: Path | None = None,
        *,
        resumptions_max: int | None = None,
        clock: ManualClock | None = None,
        **options: Any,
    ) -> None:
        self.path = path
        self.clock = clock or ManualClock()
        self.options = options
        self.resumptions_max = resumptions_max
        self.definitions = list(workflows)
        self.copies = itertools.count(1)
        self.open()

    def open(self) -> None:
        self.module = Module("game")
        self.module.table(Mark)
        self.engine = install(self.module, self.definitions, **self.options)
        if self.resumptions_max is not None:
            self.engine.resumptions_max = self.resumptions_max
        self.db = Database(self.module, self.path, clock=self.clock, seed=1, quiet=True)
        self.flows = Workflows(self.db)

    def reopen(self, workflows: Iterable[WorkflowDefinition[Any, Any]] | None = None) -> None:
        """Stop and start, perhaps with other code."""
        self.db.close()
        if workflows is not None:
            self.definitions = list(workflows)
        self.open()

    def crash(self) -> None:
        """Lose the process after the last flush: go on from a copy of the file."""
        assert self.path is not None
        self.db.flush()
        copy = self.path.with_name(f"copy{next(self.copies)}.db")
        for suffix in ("", "-wal"):
            source = Path(f"{self.path}{suffix}")
            if source.exists():
                shutil.copy(source, f"{copy}{suffix}")
        self.db.close()
        self.path = copy
        self.open()

    # --- time

    def due(self) -> int:
        return self.db.run_due()

    def advance(self, by: float) -> None:
        """Let time pass; everything fires at its own time, as a server that keeps up would do."""
        end = self.clock.now + seconds(by)
        self.db.run_due()
        while (due := self.db.next_due) is not None and due <= end:
            if due > self.clock.now:
                self.clock.set(due)
            self.db.run_due()
        self.clock.set(end)
        self.db.run_due()

    def jump(self, by: float) -> None:
        """Let time pass while nobody looks."""
        self.clock.advance(by)

    # --- looking

    def marks(self) -> list[str]:
        return [row.text for row in sorted(self.db.read(Mark), key=lambda row: row.id)]

    def row(self, workflow_id: int) -> Workflow:
        return self.flows.get(workflow_id)

    def row_in(self, ctx: ReducerContext, workflow_id: int) -> Workflow:
        row = ctx.db[Workflow].get(workflow_id)
        assert row is not None
        return row

    def status(self, workflow_id: int) -> str:
        return self.row(workflow_id).status.value

    def inbox(self, workflow_id: int) -> list[str]:
        rows = self.db.read(WorkflowSignal).where(workflow_id=workflow_id)
        return [row.signal for row in sorted(rows, key=lambda row: row.id)]

    def timers(self, workflow_id: int) -> list[str]:
        return [timer.timer_name for timer in self.flows.timers(workflow_id)]

    def calls(self, workflow_id: int | None = None) -> list[PendingProcedure]:
        rows = self.db.read(PendingProcedure)
        found = list(rows) if workflow_id is None else rows.where(workflow_id=workflow_id)
        return sorted(found, key=lambda row: row.id)

    def events(self, workflow_id: int) -> list[str]:
        rows = self.db.read(WorkflowEvent).where(workflow_id=workflow_id)
        return [row.kind for row in sorted(rows, key=lambda row: row.id)]

    def children(self, workflow_id: int) -> list[Workflow]:
        rows = self.db.read(Workflow).where(parent_id=workflow_id)
        return sorted(rows, key=lambda row: row.id)

    def rows_of(self, workflow_id: int) -> dict[str, int]:
        """How many rows of each of the engine's tables belong to a workflow."""
        tables = (
            WorkflowTimer,
            WorkflowSignal,
            WorkflowSubscription,
            PendingProcedure,
            WorkflowEvent,
            WorkflowAttribute,
            WorkflowExpiry,
            WorkflowWake,
        )
        counts = {
            table.__name__: sum(row.workflow_id == workflow_id for row in self.db.read(table)) for table in tables
        }
        return {name: count for name, count in counts.items() if count}

    def quiet(self) -> None:
        """Errors that the test makes on purpose need not be shown."""
        self.db.log.setLevel(logging.CRITICAL)


_numbers = itertools.count()

PRELUDE = """\
from __future__ import annotations
from datetime import datetime, timedelta
from typing import Any
from workflow_module import *
from engine_support import *
"""


def define(source: str) -> dict[str, Any]:
    """Compile another version of the code; gives its names."""
    text = PRELUDE + textwrap.dedent(source)
    name = f"deployed_{next(_numbers)}"
    filename = f"{name}.py"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = types.ModuleType(name)
    module.__file__ = filename
    import sys

    sys.modules[name] = module
    exec(compile(text, filename, "exec"), module.__dict__)
    return module.__dict__
