"""Queues of calls that workers in other processes take: what stands in the rows.

A call that may be taken has its queue's name in `offered`, and an index finds the oldest. `workflow_queue` has a row
for each queue that changes with each offer: workers watch that row, and so hear of work without reading the queue.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gamedb import ReducerContext

from .tables import PendingProcedure, ProcedureStatus, WorkflowQueue

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""When a row is due that waits for somebody to act."""


def offered(ctx: ReducerContext, pending: PendingProcedure) -> PendingProcedure:
    """A call as any worker of its queue may take it now. The bell rings."""
    ring(ctx, pending.queue or "")
    return parked(pending).replace(offered=pending.queue)


def parked(pending: PendingProcedure) -> PendingProcedure:
    """A call that nobody runs, and that no time starts."""
    return pending.replace(scheduled_at=NEVER, status=ProcedureStatus.Pending, worker=None, offered=None)


def ring(ctx: ReducerContext, queue: str) -> None:
    """Tell the workers of a queue that there is something to take."""
    bells = ctx.db[WorkflowQueue]
    bell = bells.get(queue)
    if bell is None:
        bells.insert(WorkflowQueue(name=queue, offers=1))
    else:
        bells.update(bell.replace(offers=bell.offers + 1))
