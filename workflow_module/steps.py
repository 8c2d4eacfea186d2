"""One step of one workflow: give the code what is ready, and note what it waits for next. Runs inside a savepoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from .armed import Ready, encode_node
from .arming import arm, set_timers
from .definition import WorkflowDefinition
from .endings import FINISHED, cancel_children, drop_losers, finish
from .engine_context import EngineContext
from .errors import Cancelled, StateMismatch
from .inbox import ID_MAX
from .outcome import Completed, ContinueAsNew, Event, Outcome, Suspended, Throw
from .tables import Workflow, WorkflowStatus, WorkflowSubscription, WorkflowTimer
from .timeline import note
from .waiting import Waiting

if TYPE_CHECKING:
    from .run import Run

Definition = WorkflowDefinition[Any, Any]
_SUSPENDED: Final = WorkflowStatus.Suspended  # an enum's members are slow to get at
_CANCELLING: Final = WorkflowStatus.Cancelling


class _StartState(msgspec.Struct):
    init: msgspec.Raw


def start_state(name: str, init: bytes) -> bytes:
    """The state of a workflow whose code has not begun."""
    return b'{"$workflow":' + json.dumps(name).encode() + b',"$at":"","init":' + init + b"}"


def step(
    run: Run, row: Workflow, definition: Definition, waiting: Waiting | None, ready: Ready | None
) -> tuple[Workflow, Waiting | None]:
    """Run the code from where it waits to the next wait or the end. `ready` None: it starts, or is cancelled."""
    cancelling = (ready is None and row.cancel_requested) or row.status is _CANCELLING
    if waiting is not None and not waiting.plain:
        drop_losers(run, waiting.node)
    event: Event | None = None
    ctx = EngineContext(run, row)
    if row.current_step:
        if ready is None:
            event = Throw(Cancelled())
        else:
            for signal_id in ready.taken:
                if signal_id != ID_MAX:
                    run.signals.delete(signal_id)
            event = _event(row, definition, ready)
        try:
            frame = None if waiting is None else waiting.frame
            outcome: Outcome = definition.resume(ctx, row.state_data, event, frame)
        except Cancelled:
            if not cancelling:
                raise
            outcome = Completed(None, b"null")
    elif cancelling:
        outcome = Completed(None, b"null")
    else:
        if row.steps:  # after continue_as_new
            run.ctx.db[WorkflowSubscription].delete_where(workflow_id=row.id)
        init = definition.decode_init(bytes(msgspec.json.decode(row.state_data, type=_StartState).init))
        outcome = definition.start(ctx, init)
    current = run.workflows.get(row.id)
    if current is None or current.status in FINISHED:  # the step has ended its own workflow
        cancel_children(run, row.id)
        return row.replace(status=WorkflowStatus.Cancelled), None
    if ready is None or current.wait_data is not row.wait_data:  # cancelled, or the step fired its own timer
        waiting = None
    row = current
    if isinstance(outcome, Suspended):
        return _suspended(run, row, waiting, outcome, event, cancelling)
    if row.cancel_requested:
        return finish(run, row, WorkflowStatus.Cancelled, "cancelled", "cancelled"), None
    if isinstance(outcome, ContinueAsNew):
        return _continued(run, row, definition, outcome), None
    return finish(run, row, WorkflowStatus.Completed, "completed", outcome.data.decode()), None


def _event(row: Workflow, definition: Definition, ready: Ready) -> Event:
    """What the code gets; `StateMismatch` when it does not know that any more."""
    try:
        return ready.event()
    except Exception as error:
        problem = definition.check_state(row.state_data)
        text = f"what {row.workflow_type} waited for does not fit its code any more: {type(error).__name__}: {error}"
        raise StateMismatch(problem or text) from error


def _suspended(
    run: Run, row: Workflow, before: Waiting | None, outcome: Suspended, event: Event | None, cancelling: bool
) -> tuple[Workflow, Waiting]:
    wait = outcome.wait
    if before is not None and before.wait == wait:
        waiting, wait_data = before, row.wait_data
    else:
        waiting = Waiting(arm(run, row, wait), wait)
        wait_data = encode_node(waiting.node)
        if before is None or before.due != waiting.due:
            set_timers(run, row, waiting.due)
    waiting.frame = outcome.frame
    kind = "started" if event is None else "step"
    status = _SUSPENDED
    if cancelling:
        status = _CANCELLING
        kind = "cancelling" if row.status is not status else "step"
    row = run.workflows.update(
        replace(
            row,
            status=status,
            current_step=outcome.label,
            current_line=outcome.line,
            state_data=outcome.state,
            wait_data=wait_data,
            error=None,
            steps=row.steps + 1,
            updated_at=run.now,
        )
    )
    note(run, row, kind, event)
    return row, waiting


def _continued(run: Run, row: Workflow, definition: Definition, outcome: ContinueAsNew) -> Workflow:
    """Begin again under the same id; unread signals and children stay, deadlines do not.

    Subscriptions go when the code begins, so that no broadcast is missed in between.
    """
    run.ctx.db[WorkflowTimer].delete_where(workflow_id=row.id)
    row = run.workflows.update(
        row.replace(
            current_step="",
            current_line=0,
            state_data=start_state(definition.name, outcome.init),
            wait_data=b"",
            steps=row.steps + 1,
            updated_at=run.now,
        )
    )
    note(run, row, "continued", outcome.init.decode())
    return row
