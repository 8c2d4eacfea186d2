"""The timeline of a workflow: what happened to it, and where it was after that. Off with `install(journal=False)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .outcome import Event, Throw
from .tables import Workflow, WorkflowEvent

if TYPE_CHECKING:
    from .run import Run

DETAIL_LENGTH_MAX = 500


def note(run: Run, row: Workflow, kind: str, detail: str | Event | None) -> None:
    """Add an entry for what `row` is now."""
    if run.engine.journal:
        text = detail if isinstance(detail, str) else _described(detail)
        run.ctx.db[WorkflowEvent].insert(
            WorkflowEvent(
                workflow_id=row.id,
                at=run.now,
                kind=kind,
                detail=text,
                step=row.current_step,
                state_data=row.state_data,
            )
        )


def note_for(run: Run, workflow_id: int, kind: str, detail: str) -> None:
    """Add an entry to a workflow named by its id."""
    row = run.workflows.get(workflow_id)
    if row is not None:
        note(run, row, kind, detail)


def _described(event: Event | None) -> str:
    if event is None:
        return ""
    value = event.error if isinstance(event, Throw) else event.value
    return "" if value is None else repr(value)[:DETAIL_LENGTH_MAX]
