"""What opening a database with a module would do: the question that `gamedb check` and deploy scripts ask.

It reads, and changes nothing; a server may have the database open meanwhile. It knows no terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from gamedb.errors import StorageError
from gamedb.module import Module
from gamedb.resolved import Resolved
from gamedb.system import SYSTEM_TABLES

if TYPE_CHECKING:
    from gamedb.storage import Plan, StoredRows


class CheckStep(msgspec.Struct, frozen=True):
    """One thing that opening would do."""

    kind: str
    """`create table`, `add column`, `migration`..."""
    table: str
    """Its name; empty when the step is about no single table."""
    text: str
    clients_must_reload: bool
    """Whether connected clients know the tables in a form that is no longer right."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What opening would do, or why it would refuse."""

    module: str
    target: str
    """The database, as a path or URL without password."""
    exists: bool
    steps: list[CheckStep]
    refusals: list[str]
    """With any of these opening changes nothing and raises; each says what to do."""
    notes: list[str]
    """What libraries have to say (`Module.on_check`)."""

    @property
    def opens(self) -> bool:
        """Whether opening would succeed."""
        return not self.refusals

    @property
    def clients_must_reload(self) -> bool:
        """Whether one of the steps asks for it."""
        return any(step.clients_must_reload for step in self.steps)


class CheckReport:
    """What a `Module.on_check` function gets: the stored rows, and `add`."""

    def __init__(self, stored: StoredRows) -> None:
        self._stored = stored
        self.notes: list[str] = []
        """The lines that were added."""

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The stored tables and their columns, by the names that they have on disk."""
        return self._stored.tables

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a stored table, as they are before any migration: enum members by name, nested values as JSON.

        `StorageError` for a table that is not stored; look into `tables` first.
        """
        return self._stored.rows(table)

    def add(self, text: str) -> None:
        """Add a line to the report."""
        self.notes.append(text)


def check(module: Module, target: str | os.PathLike[str]) -> CheckResult:
    """What `Database(module, target)` would change, or why it would refuse; `SchemaError` for a wrong module.

    A file that is damaged, foreign, or whose migration fails is a refusal, not an exception.
    """
    resolved = module.resolve()
    steps: list[CheckStep] = []
    notes: list[str] = []
    exists = False
    try:
        plan, exists, notes = _ask(resolved, target)
        refusals = plan.refusals
        steps = [
            CheckStep(s.kind, s.table, s.text, s.clients_must_reload)
            for s in plan.steps
            if s.table not in SYSTEM_TABLES or s.kind != "create table"
        ]
    except StorageError as error:
        refusals = [str(error)]
    return CheckResult(
        module=resolved.name, target=_shown(target), exists=exists, steps=steps, refusals=refusals, notes=notes
    )


def _ask(module: Resolved, target: str | os.PathLike[str]) -> tuple[Plan, bool, list[str]]:
    from gamedb import storage  # slow to import

    plan = storage.plan(target, {**SYSTEM_TABLES, **module.tables}, module.migrations, name=module.name)
    with storage.read_stored(target, name=module.name) as stored:
        return plan, stored is not None, [] if stored is None else _notes(module, stored)


def _notes(module: Resolved, stored: StoredRows) -> list[str]:
    report = CheckReport(stored)
    for hook in module.checks:
        try:
            hook.function(report)
        except Exception as error:
            raise StorageError(f"check {hook.name!r} failed: {type(error).__name__}: {error}") from error
    return report.notes


def _shown(target: str | os.PathLike[str]) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", os.fspath(target))
