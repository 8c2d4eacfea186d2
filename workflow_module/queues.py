"""Queues of calls that workers in other processes take: what stands in the rows.

A call that may be taken has its queue's name in `offered`, and an index finds the oldest. `workflow_queue` has a row
for each queue that changes with each offer: workers watch that row, and so hear of work without reading the queue.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from gamedb import HealthReport, ReadTable, ReducerContext

from .tables import PendingProcedure, ProcedureStatus, WorkflowQueue

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""When a row is due that waits for somebody to act."""
_ID_MAX: Final = 2**64 - 1


def offered(ctx: ReducerContext, pending: PendingProcedure) -> PendingProcedure:
    """A call as any worker of its queue may take it now. The bell rings."""
    ring(ctx, pending.queue or "")
    return parked(pending).replace(offered=pending.queue, offered_at=ctx.now)


def parked(pending: PendingProcedure) -> PendingProcedure:
    """A call that nobody runs, and that no time starts."""
    return pending.replace(
        scheduled_at=NEVER, status=ProcedureStatus.Pending, worker=None, offered=None, offered_at=None
    )


def ring(ctx: ReducerContext, queue: str) -> None:
    """Tell the workers of a queue that there is something to take."""
    bells = ctx.db[WorkflowQueue]
    bell = bells.get(queue)
    if bell is None:
        bells.insert(WorkflowQueue(name=queue, offers=1))
    else:
        bells.update(bell.replace(offers=bell.offers + 1))


def waiting_calls(calls: ReadTable[PendingProcedure], queue: str, limit: int) -> list[PendingProcedure]:
    """The calls of a queue that may be taken, oldest first, so many at most. The cost is what it gives."""
    return calls.between(("offered", "id"), (queue, 0), (queue, _ID_MAX), limit=limit)


def report_untaken(report: HealthReport, wait_max: timedelta | None) -> None:
    """Tell how long the call that is the next of its queue has been waiting for a worker."""
    longest, name = 0.0, ""
    calls = report.read(PendingProcedure)
    for bell in report.read(WorkflowQueue):
        for call in waiting_calls(calls, bell.name, 1):
            waited = report.seconds_since(call.offered_at or call.created_at)
            if waited > longest:
                longest, name = waited, bell.name
    report.add(
        "untaken_call_seconds",
        round(longest, 1),
        limit=None if wait_max is None else wait_max.total_seconds(),
        problem=f"a call has waited in queue {name!r} for {longest:.0f} s and no worker takes it: start one with "
        f"gamedb worker MODULE:OBJECT --queue {name}",
    )
