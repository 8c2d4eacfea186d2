"""The past of a workflow: what happened to it, and the state that it had after each event. Read from its timeline."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from .definition import StateView, WorkflowDefinition
from .errors import StateMismatch
from .refusals import UnknownWorkflow
from .tables import WorkflowEvent


class Moment(msgspec.Struct, frozen=True):
    """A workflow as it was after one event."""

    number: int
    """Counts from 1, the start."""
    at: datetime
    """When the event was."""
    kind: str
    """As in `workflow_event`: started, step, completed, ..."""
    detail: str
    """What the workflow got."""
    step: str
    """Where it waited after it; empty when it did not wait."""
    state: StateView | None
    """Its `init` and variables by name; `None` where it had none, or where they do not fit the code of today."""
    state_data: bytes
    """The same as JSON, as it was stored."""


def moments(events: Iterable[WorkflowEvent], definition: WorkflowDefinition[Any, Any] | None) -> list[Moment]:
    """The timeline of one workflow, with states."""
    ordered = sorted(events, key=lambda event: event.id)
    return [
        Moment(
            number=number,
            at=event.at,
            kind=event.kind,
            detail=event.detail,
            step=event.step,
            state=_state(event, definition),
            state_data=event.state_data,
        )
        for number, event in enumerate(ordered, 1)
    ]


def moment(found: list[Moment], workflow_id: int, number: int) -> Moment:
    """One of them by its number; negative numbers count from the last."""
    if not found:
        raise UnknownWorkflow(
            f"workflow {workflow_id} has no timeline; it never was, was deleted, or install(journal=False) keeps none"
        )
    if not isinstance(number, int):
        raise TypeError(f"an event of workflow {workflow_id} is named by its number, 1 to {len(found)}, not {number!r}")
    index = number - 1 if number > 0 else len(found) + number
    if number == 0 or not 0 <= index < len(found):
        raise IndexError(f"workflow {workflow_id} has events 1 to {len(found)}, not {number}")
    return found[index]


def _state(event: WorkflowEvent, definition: WorkflowDefinition[Any, Any] | None) -> StateView | None:
    if definition is None or not event.step:
        return None
    try:
        return definition.view(event.state_data)
    except (StateMismatch, msgspec.DecodeError, ValueError):
        return None
