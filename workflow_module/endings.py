"""How workflows end, or stop: completed, cancelled, parked, terminated; and who is told.

Part of `Run`; everything happens in the running transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from .armed import CallLeaf, ChildLeaf, Node, Ready, decode_node, encode_node, forget_choice, leaves, remember
from .errors import ProcedureFailed
from .queues import NEVER, offered
from .refusals import UnknownWorkflow
from .tables import (
    PendingProcedure,
    ProcedureStatus,
    Workflow,
    WorkflowExpiry,
    WorkflowSignal,
    WorkflowStatus,
    WorkflowSubscription,
    WorkflowTimer,
    WorkflowWake,
)
from .timeline import note
from .tracebacks import author_traceback, error_line

if TYPE_CHECKING:
    from .run import Run

_PROCEDURE_FAILED: Final = f"{ProcedureFailed.__module__}.{ProcedureFailed.__qualname__}"
FINISHED: Final = (WorkflowStatus.Completed, WorkflowStatus.Cancelled)  # a tuple compares by identity first


def failed(run: Run, row: Workflow, node: Node | None, ready: Ready | None, error: BaseException) -> None:
    """A step raised, and its effects are gone: park the workflow where it was, or end it if it was cleaning up."""
    text = author_traceback(error)
    run.ctx.log.error(
        "workflow %d (%s) failed at %s:\n%s", row.id, row.workflow_type, row.current_step or "its start", text
    )
    if row.cancel_requested:
        finish(run, row, WorkflowStatus.Cancelled, "cancelled", text, error=text)
        return
    if node is not None and ready is not None:  # a resume gives the step the same event
        remember(node, ready, max((s.id for s in run.signals.where(workflow_id=row.id)), default=0))
        row = row.replace(wait_data=encode_node(node))
    row = run.workflows.update(row.replace(status=WorkflowStatus.Failed, error=text, updated_at=run.now))
    note(run, row, "failed", text)
    tell_parent(run, row, failure=error_line(text))


def finish(
    run: Run, row: Workflow, status: WorkflowStatus, kind: str, detail: str, *, error: str | None = None
) -> Workflow:
    """End a workflow: nothing waits for it or by it any more, its children are cancelled, its parent is told."""
    db, workflow_id = run.ctx.db, row.id
    unread = run.signals.count(workflow_id=workflow_id) if run.signals else 0
    if db[PendingProcedure] and db[PendingProcedure].count(workflow_id=workflow_id):
        for pending in db[PendingProcedure].where(workflow_id=workflow_id):
            drop_call(run, pending.id)
    for table in (WorkflowTimer, WorkflowSubscription, WorkflowSignal, WorkflowWake):
        if db[table] and db[table].count(workflow_id=workflow_id):
            db[table].delete_where(workflow_id=workflow_id)
    row = run.workflows.update(
        row.replace(
            status=status,
            current_step="",
            current_line=0,
            wait_data=b"",
            result=detail if status is WorkflowStatus.Completed else None,
            error=row.error if error is None and row.status is WorkflowStatus.Failed else error,
            steps=row.steps + 1,
            unread_signals=unread,
            updated_at=run.now,
        )
    )
    retention = run.engine.retention_of(row.workflow_type)
    if retention is not None:
        db[WorkflowExpiry].insert(WorkflowExpiry(scheduled_at=_later(run.now, retention), workflow_id=workflow_id))
    note(run, row, kind, detail)
    cancel_children(run, workflow_id)
    if status is WorkflowStatus.Completed:
        tell_parent(run, row, value=detail)
    else:
        tell_parent(run, row, failure=error_line(error or kind), cancelled=True)
    return row


def cancel_children(run: Run, workflow_id: int) -> None:
    """A workflow has ended: so shall its children, but for those that were started to outlive it."""
    if not run.workflows.count(parent_id=workflow_id):
        return
    for child in sorted(run.workflows.where(parent_id=workflow_id), key=lambda child: child.id):
        if child.status not in FINISHED and not child.on_parent_end_abandon:
            run.cancel(child.id)


def terminate(run: Run, workflow_id: int) -> None:
    """End a workflow in any state at once, without running its code."""
    row = run.live(workflow_id)
    if row.wait_data:
        drop_losers(run, decode_node(row.wait_data))
    finish(run, row, WorkflowStatus.Cancelled, "terminated", "terminated", error="terminated by an operator")


def delete(run: Run, workflow_id: int) -> None:
    """Forget a workflow, ending it first if need be."""
    row = run.workflows.get(workflow_id)
    if row is None:
        raise UnknownWorkflow(f"there is no workflow {workflow_id}")
    if row.status not in FINISHED:
        terminate(run, workflow_id)
    run.engine.forget(run.ctx, workflow_id)


def drop_losers(run: Run, node: Node) -> None:
    """A wait is over: cancel the children and calls that it started and that have not ended."""
    for leaf in leaves(node):
        if isinstance(leaf, CallLeaf):
            if leaf.ready is None or leaf.failure is not None:
                drop_call(run, leaf.id)
        elif isinstance(leaf, ChildLeaf) and leaf.own and leaf.ready is None:
            child = run.workflows.get(leaf.id)
            if child is not None and child.status not in FINISHED:
                run.cancel(leaf.id)


def drop_call(run: Run, pending_id: int) -> None:
    """Nobody waits for a call any more."""
    run.ctx.db[PendingProcedure].delete(pending_id)
    attempt = run.local.attempts.get(pending_id)
    if attempt is not None:
        attempt()


def tell_parent(
    run: Run, row: Workflow, *, value: str | None = None, failure: str | None = None, cancelled: bool = False
) -> None:
    """Write into the parent's wait how its child ended, and look after the parent."""
    parent = None if row.parent_id is None else run.workflows.get(row.parent_id)
    if parent is None or parent.status in FINISHED or not parent.wait_data:
        return
    waiting = run.local.held.take_or_read(parent)
    found = waiting.ended(ChildLeaf, row.id)
    for leaf in found:
        assert isinstance(leaf, ChildLeaf)
        leaf.ready, leaf.value, leaf.failure, leaf.cancelled = run.now_micros, value, failure, cancelled
    if found:
        if failure is not None:
            waiting.fails()
        parent = run.workflows.update(parent.replace(wait_data=waiting.encode()))
        run.wake(parent.id)
    run.local.held.keep(parent, waiting)


def procedure_ended(
    run: Run, pending: PendingProcedure, value: str | None, failure: tuple[int, str, str] | None
) -> None:
    """Write into the workflow's wait how its call ended, and look after the workflow."""
    row = run.workflows.get(pending.workflow_id)
    if row is None or row.status in FINISHED or not row.wait_data:
        drop_call(run, pending.id)
        return
    if failure is None:
        drop_call(run, pending.id)
    else:  # kept until the workflow has gone on, see `retry_calls`
        error = f"{failure[1]}: {failure[2]}"
        run.ctx.db[PendingProcedure].update(
            pending.replace(scheduled_at=NEVER, status=ProcedureStatus.Failed, worker=None, last_error=error)
        )
    waiting = run.local.held.take_or_read(row)
    for leaf in waiting.ended(CallLeaf, pending.id):
        assert isinstance(leaf, CallLeaf)
        leaf.ready, leaf.value, leaf.failure = run.now_micros, value, failure
    if failure is not None:
        waiting.fails()
    row = run.workflows.update(row.replace(wait_data=waiting.encode()))
    run.local.held.keep(row, waiting)
    run.wake(row.id)


def retry_calls(run: Run, row: Workflow) -> Workflow:
    """A workflow that a `ProcedureFailed` parked, which it did not catch, is resumed: as many attempts again."""
    if not row.wait_data or not error_line(row.error or "").startswith(_PROCEDURE_FAILED):
        return row
    table = run.ctx.db[PendingProcedure]
    node = decode_node(row.wait_data)
    for leaf in leaves(node):
        pending = table.get(leaf.id) if isinstance(leaf, CallLeaf) and leaf.failure is not None else None
        if pending is not None and isinstance(leaf, CallLeaf):
            leaf.ready = leaf.failure = None
            again = pending.replace(
                scheduled_at=run.now,
                status=ProcedureStatus.Pending,
                attempt=pending.attempt + 1,
                attempts_before=pending.attempt,
            )
            table.update(again if pending.queue is None else offered(run.ctx, again))
    forget_choice(node)
    return run.workflows.update(row.replace(wait_data=encode_node(node)))


def _later(now: datetime, by: timedelta) -> datetime:
    try:
        return now + by
    except OverflowError:
        return datetime.max.replace(tzinfo=now.tzinfo)
