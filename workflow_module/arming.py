"""Turns a `Wait` into an armed one: fixes deadlines, starts children and calls, and keeps the timer rows in step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from gamedb.columns import from_micros

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
from .queues import NEVER, ring
from .tables import PendingProcedure, Workflow, WorkflowStatus, WorkflowTimer
from .tracebacks import error_line
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
NEVER_MICROS: Final = (NEVER - EPOCH) // timedelta(microseconds=1)


def micros_of(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


def _due(run: Run, after: timedelta | None) -> int | None:
    return None if after is None else min(run.now_micros + max(0, micros_of(after)), NEVER_MICROS)


def arm(run: Run, row: Workflow, wait: Wait) -> Node:
    """Begin a wait: what comes back says what the workflow waits for from now on."""
    begin = _BEGIN.get(type(wait))
    if begin is None:
        raise TypeError(f"{wait!r} is not a wait")
    return begin(run, row, wait)


def _timer(run: Run, _row: Workflow, wait: TimerWait) -> Node:
    due = _due(run, wait.after) if wait.at is None else micros_of(wait.at - EPOCH)
    assert due is not None
    return TimerLeaf(wait.timer, due)


def _sleep(run: Run, _row: Workflow, wait: SleepWait) -> Node:
    due = _due(run, wait.duration)
    assert due is not None
    return TimerLeaf(None, due)


def _signal(run: Run, _row: Workflow, wait: SignalWait) -> Node:
    return SignalLeaf(wait.signal, _due(run, wait.timeout))


def _select(run: Run, row: Workflow, wait: SelectWait) -> Node:
    nodes: list[Node] = []
    for each in wait.arms:
        if type(each) is SignalWait and each.timeout is None:
            nodes.append(SignalLeaf(each.signal))
        else:
            nodes.append(arm(run, row, each))
    return SelectNode(nodes)


def _gather(run: Run, row: Workflow, wait: GatherWait) -> Node:
    return GatherNode([arm(run, row, each) for each in wait.arms], wait.return_exceptions)


def _wait_all(run: Run, _row: Workflow, wait: WaitAllWait) -> Node:
    return AllNode(list(wait.signals), _due(run, wait.timeout))


def _spawn(run: Run, row: Workflow, wait: SpawnWait) -> Node:
    abandon = wait.on_parent_end == "abandon"
    child = run.start_child(row.id, wait.workflow, bytes(wait.init), wait.entity_id, wait.correlation_id, abandon)
    return _child(run, child, wait.workflow, own=True)


def _handle(run: Run, _row: Workflow, wait: Handle[object]) -> Node:
    return _child(run, wait.workflow_id, wait.workflow_type, own=False)


def _child(run: Run, child_id: int, workflow_type: str, *, own: bool) -> ChildLeaf:
    """A child may have ended before anybody waits for it."""
    leaf = ChildLeaf(child_id, workflow_type, own)
    child_ended(run, leaf)
    return leaf


def child_ended(run: Run, leaf: ChildLeaf) -> bool:
    """Note how a child ended, if it has."""
    child = run.ctx.db[Workflow].get(leaf.id)
    if child is None:
        leaf.ready, leaf.failure = run.now_micros, "its result is not kept any more (its retention is over)"
        return True
    if child.status is WorkflowStatus.Completed:
        leaf.value = child.result
    elif child.status is WorkflowStatus.Cancelled:
        leaf.failure, leaf.cancelled = child.error or "cancelled", True
    elif child.status is WorkflowStatus.Failed:
        leaf.failure = error_line(child.error or "failed")
    else:
        return False
    leaf.ready = micros_of(child.updated_at - EPOCH)
    return True


def _call(run: Run, row: Workflow, wait: CallWait) -> Node:
    backoff = wait.backoff
    queue = wait.queue if wait.queue is not None else run.local.declared_queue(run.ctx, wait.procedure)
    pending = run.ctx.db[PendingProcedure].insert(
        PendingProcedure(
            scheduled_at=run.now if queue is None else NEVER,
            workflow_id=row.id,
            procedure=wait.procedure,
            arguments=f"[{bytes(wait.args).decode()},{bytes(wait.kwargs).decode()}]",
            queue=queue,
            offered=queue,
            offered_at=None if queue is None else run.now,
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
    if queue is not None:
        ring(run.ctx, queue)
    return CallLeaf(pending.id, wait.procedure)


def set_timers(run: Run, row: Workflow, due: list[tuple[str, int]]) -> None:
    """Make the workflow's timer rows those of its wait; rows that stay right are left alone."""
    table = run.ctx.db[WorkflowTimer]
    wanted = [(name, from_micros(micros)) for name, micros in due]
    if len(wanted) > 1:
        wanted = sorted(set(wanted))
    for timer in table.where(workflow_id=row.id) if row.steps else ():  # before its first wait there are none
        key = (timer.timer_name, timer.due_at)
        if key in wanted:
            wanted.remove(key)
        else:
            table.delete_key(timer.scheduled_id)
    for name, at in wanted:
        scheduled_at = NEVER if row.test_mode else at
        table.insert(WorkflowTimer(scheduled_at=scheduled_at, workflow_id=row.id, timer_name=name, due_at=at))


def repair_timers(run: Run, row: Workflow, node: Node) -> bool:
    """See that deadlines to come have rows; whether one had none, as after a clock was set back behind a deadline."""
    due = [(name, leaf.due or 0) for name, leaf in deadlines(node)]
    there = {timer.timer_name for timer in run.ctx.db[WorkflowTimer].where(workflow_id=row.id)}
    lost = any(micros > run.now_micros and name not in there for name, micros in due)
    if lost:
        set_timers(run, row, due)
    return lost


_BEGIN: dict[type, Callable[[Run, Workflow, Any], Node]] = {
    TimerWait: _timer,
    SleepWait: _sleep,
    SignalWait: _signal,
    SelectWait: _select,
    GatherWait: _gather,
    WaitAllWait: _wait_all,
    SpawnWait: _spawn,
    Handle: _handle,
    CallWait: _call,
}
