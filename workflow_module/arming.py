"""Turns a `Wait` into an armed one: fixes deadlines, starts children and calls, and keeps the timer rows in step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from .armed import (
    AllNode,
    CallLeaf,
    ChildLeaf,
    GatherNode,
    Node,
    SelectNode,
    SignalLeaf,
    TimerLeaf,
    deadlines,
)
from .tables import PendingProcedure, Workflow, WorkflowStatus, WorkflowTimer
from .waits import (
    CallWait,
    GatherWait,
    Handle,
    SelectWait,
    SignalWait,
    SleepWait,
    SpawnWait,
    TimerWait,
    Wait,
    WaitAllWait,
)

if TYPE_CHECKING:
    from .run import Run

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEVER: Final = datetime.max.replace(tzinfo=UTC)
NEVER_MICROS: Final = (NEVER - EPOCH) // timedelta(microseconds=1)


def _micros(duration: timedelta) -> int:
    return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


def _due(run: Run, after: timedelta | None) -> int | None:
    return None if after is None else min(run.now_micros + _micros(after), NEVER_MICROS)


def arm(run: Run, row: Workflow, wait: Wait) -> Node:
    """Begin a wait: what comes back says what the workflow waits for from now on."""
    match wait:
        case TimerWait(timer=name, after=after, at=at):
            due = _micros(at - EPOCH) if at is not None else _due(run, after)
            assert due is not None
            return TimerLeaf(name, due)
        case SleepWait(duration=duration):
            due = _due(run, duration)
            assert due is not None
            return TimerLeaf(None, due)
        case SignalWait(signal=name, timeout=timeout):
            return SignalLeaf(name, _due(run, timeout))
        case SelectWait(arms=arms):
            return SelectNode([arm(run, row, each) for each in arms])
        case GatherWait(arms=arms, return_exceptions=keep):
            return GatherNode([arm(run, row, each) for each in arms], keep)
        case WaitAllWait(signals=names, timeout=timeout):
            return AllNode(list(names), _due(run, timeout))
        case SpawnWait():
            child = run.start_child(
                row.id, wait.workflow, bytes(wait.init), wait.entity_id, wait.correlation_id, wait.on_parent_end == "abandon"
            )
            return _child(run, child, wait.workflow, own=True)
        case Handle(workflow_id=child, workflow_type=name):
            return _child(run, child, name, own=False)
        case CallWait():
            return _call(run, row, wait)
    raise TypeError(f"{wait!r} is not a wait")


def _child(run: Run, child_id: int, workflow_type: str, *, own: bool) -> ChildLeaf:
    """A child may have ended before anybody waits for it."""
    leaf = ChildLeaf(child_id, workflow_type, own)
    child = run.ctx.db[Workflow].get(child_id)
    if child is None:
        leaf.ready, leaf.failure = run.now_micros, "its result is not kept any more (its retention is over)"
    elif child.status is WorkflowStatus.Completed:
        leaf.ready, leaf.value = _micros(child.updated_at - EPOCH), child.result
    elif child.status is WorkflowStatus.Cancelled:
        leaf.ready, leaf.failure, leaf.cancelled = _micros(child.updated_at - EPOCH), child.error or "cancelled", True
    elif child.status is WorkflowStatus.Failed:
        text = (child.error or "failed").strip().splitlines()[-1]
        leaf.ready, leaf.failure = _micros(child.updated_at - EPOCH), text
    return leaf


def _call(run: Run, row: Workflow, wait: CallWait) -> CallLeaf:
    backoff = wait.backoff
    pending = run.ctx.db[PendingProcedure].insert(
        PendingProcedure(
            scheduled_at=run.now if wait.queue is None else NEVER,
            workflow_id=row.id,
            procedure=wait.procedure,
            arguments=f"[{bytes(wait.args).decode()},{bytes(wait.kwargs).decode()}]",
            queue=wait.queue,
            attempts_max=wait.attempts,
            backoff_first_seconds=backoff.first.total_seconds(),
            backoff_factor=backoff.factor,
            backoff_cap_seconds=backoff.cap.total_seconds(),
            timeout_seconds=None if wait.timeout is None else wait.timeout.total_seconds(),
            heartbeat_seconds=None if wait.heartbeat is None else wait.heartbeat.total_seconds(),
            non_retryable=list(wait.non_retryable),
            step_key=str(run.ctx.new_uuid()),
            created_at=run.now,
        )
    )
    return CallLeaf(pending.id, wait.procedure)


def set_timers(run: Run, row: Workflow, node: Node) -> None:
    """Make the workflow's timer rows those of its wait; rows that stay right are left alone."""
    table = run.ctx.db[WorkflowTimer]
    kept = {(timer.timer_name, timer.due_at): timer for timer in table.where(workflow_id=row.id)}
    wanted = {(name, EPOCH + timedelta(microseconds=leaf.due or 0)) for name, leaf in deadlines(node)}
    for key, timer in kept.items():
        if key not in wanted:
            table.delete(timer.scheduled_id)
    for name, due in sorted(wanted - kept.keys()):
        at = NEVER if row.test_mode else due
        table.insert(WorkflowTimer(scheduled_at=at, workflow_id=row.id, timer_name=name, due_at=due))
