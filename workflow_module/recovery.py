"""What the engine does when a database is opened: every unfinished workflow must have something that wakes it.

Normally it finds nothing to do. What it repairs (a child or call that vanished, a lost timer) it writes to the log;
workflows that the code at hand cannot go on with are parked, those without code are reported and left alone. It runs
no code of workflows: those that have to go on get a row in `workflow_wake`.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from .armed import CallLeaf, ChildLeaf, decode_node, encode_node, evaluate, leaves
from .arming import child_ended, repair_timers
from .endings import FINISHED, failed
from .errors import StateMismatch
from .inbox import RunFacts
from .queues import NEVER, offered
from .run import Run
from .tables import (
    PendingProcedure,
    ProcedureStatus,
    Workflow,
    WorkflowSignal,
    WorkflowStatus,
    WorkflowTimer,
    WorkflowWake,
)

if TYPE_CHECKING:
    from .engine import Engine

LEASE_GRACE: Final = timedelta(minutes=1)
"""How long workers have, after an opening, to come back."""


def recover(run: Run) -> None:
    """Look at every workflow that has not ended."""
    engine, ctx = run.engine, run.ctx
    timed = {timer.workflow_id for timer in ctx.db[WorkflowTimer]}
    reading = {signal.workflow_id for signal in ctx.db[WorkflowSignal]}
    woken = {wake.workflow_id for wake in ctx.db[WorkflowWake]}
    without_code: Counter[str] = Counter()
    fitting: set[tuple[str, str]] = set()
    """Places whose states fit the code: one of each tells for all."""
    for row in list(run.workflows):
        status, workflow_id, wait = row.status, row.id, row.wait_data
        if status is WorkflowStatus.Failed or status in FINISHED:
            continue
        place = (row.workflow_type, row.current_step)
        if place in fitting and workflow_id in timed and workflow_id not in reading and not row.cancel_requested:
            if b'["c"' not in wait and b'["w"' not in wait:
                continue  # a timer wakes it, and it waits for nothing that could have got lost
        elif row.workflow_type not in engine.definitions:
            without_code[row.workflow_type] += 1
            continue
        try:
            problem = None if place in fitting else _problem(engine, row)
            if problem is not None:
                failed(run, row, None, None, StateMismatch(problem))
                continue
            fitting.add(place)
            if workflow_id not in woken:
                _look(run, row, workflow_id in reading)
        except Exception as error:  # the others shall go on
            ctx.log.error("workflow %d (%s) cannot be looked after", row.id, row.workflow_type, exc_info=error)
    _calls(run)
    run.postpone()
    for name, count in sorted(without_code.items()):
        ctx.log.error("%d unfinished workflow(s) of type %r wait for their code: it is not installed", count, name)


def _problem(engine: Engine, row: Workflow) -> str | None:
    """Why the code cannot go on with a workflow; None when it can."""
    if not row.current_step:
        return None
    return engine.definitions[row.workflow_type].check_state(row.state_data)


def _look(run: Run, row: Workflow, unread: bool) -> None:
    """Repair one workflow's wait, and wake it when that is over or nothing else would."""
    undelivered = row.cancel_requested and row.status is WorkflowStatus.Suspended
    if not row.wait_data or undelivered:
        run.wake(row.id)
        return
    node = decode_node(row.wait_data)
    repaired = [leaf for leaf in leaves(node) if _repair_child(run, row, leaf) or _repair_call(run, row, leaf)]
    if repaired:
        row = run.workflows.update(row.replace(wait_data=encode_node(node)))
    if repair_timers(run, row, node):
        run.ctx.log.error("workflow %d (%s) had lost a timer", row.id, row.workflow_type)
    definition = run.engine.definition(row.workflow_type)
    stored = run.signals.count(workflow_id=row.id) if unread else 0
    if evaluate(node, RunFacts(run, row, definition, stored, None)) is not None:
        run.wake(row.id)


def _repair_child(run: Run, row: Workflow, leaf: object) -> bool:
    """A child that ended, or that is not there at all, and nobody told its parent."""
    if not isinstance(leaf, ChildLeaf) or leaf.ready is not None or not child_ended(run, leaf):
        return False
    run.ctx.log.error("workflow %d had not been told how its child %d ended", row.id, leaf.id)
    return True


def _repair_call(run: Run, row: Workflow, leaf: object) -> bool:
    """A call whose row is not there."""
    if not isinstance(leaf, CallLeaf) or leaf.ready is not None or run.ctx.db[PendingProcedure].get(leaf.id):
        return False
    run.ctx.log.error("workflow %d waits for call %d of %s, which is not there", row.id, leaf.id, leaf.procedure)
    leaf.ready, leaf.failure = run.now_micros, (0, "CallLost", "its pending procedure is not there")
    return True


def _calls(run: Run) -> None:
    """Calls that nobody waits for go; those that had to wait for their code go on.

    Workers could not say that they live while nobody heard them: their leases end some time after now.
    """
    table = run.ctx.db[PendingProcedure]
    for pending in list(table):
        row = run.workflows.get(pending.workflow_id)
        if row is None or row.status in FINISHED:
            run.ctx.log.error("call %d of %s belonged to no workflow, and was dropped", pending.id, pending.procedure)
            table.delete(pending.id)
        elif pending.status is ProcedureStatus.Running:
            grace = run.now + LEASE_GRACE
            if isinstance(pending.scheduled_at, datetime) and pending.scheduled_at < grace:
                table.update(pending.replace(scheduled_at=grace))
        elif (
            pending.offered is None
            and pending.scheduled_at == NEVER
            and pending.status is ProcedureStatus.Pending
            and row.workflow_type in run.engine.definitions
        ):
            again = pending.replace(scheduled_at=run.now)
            table.update(again if pending.queue is None else offered(run.ctx, again))
