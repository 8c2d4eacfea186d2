"""Leases: how workers in other processes take calls from a queue, keep them, and say what came of them.

Every method is a reducer of the engine. A lease is the pending procedure's own row, due when the lease ends; whoever
has not spoken by then has failed. What comes from a worker that has lost its lease is refused.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from gamedb import ReducerContext

from .engine import Engine
from .procedures import Procedures
from .queues import offered, parked, waiting_calls
from .refusals import BadLease, UnknownProcedure
from .tables import PendingProcedure, ProcedureStatus

LEASE_SECONDS_MAX: Final = 86_400.0
TAKEN_MAX: Final = 1_000
"""Calls that are taken at once."""


class Leases:
    """What workers may do with the calls of their queue."""

    def __init__(self, engine: Engine, procedures: Procedures) -> None:
        self._engine = engine
        self._procedures = procedures

    def take(
        self, ctx: ReducerContext, queue: str, worker: str, lease_seconds: float, limit: int
    ) -> list[PendingProcedure]:
        """Give a worker up to `limit` calls of a queue, oldest first, each for so long. The cost is what it gives."""
        end = _end(ctx, lease_seconds)
        if not worker:
            raise BadLease("worker is empty: every worker needs a name of its own")
        table = ctx.db[PendingProcedure]
        limit = min(limit, TAKEN_MAX)
        taken: list[PendingProcedure] = []
        while len(taken) < limit:
            found = waiting_calls(table, queue, limit - len(taken))
            if not found:
                break
            for pending in found:
                if self._engine.has_code(ctx, pending.workflow_id):
                    leased = pending.replace(
                        status=ProcedureStatus.Running, worker=worker, scheduled_at=end, offered=None, offered_at=None
                    )
                    taken.append(table.update(leased))
                else:  # `recover` offers it again when the code is back
                    table.update(parked(pending))
        return taken

    def extend(
        self, ctx: ReducerContext, pending_id: int, attempt: int, lease_seconds: float, worker: str | None
    ) -> None:
        """A worker is alive: its lease begins anew."""
        end = _end(ctx, lease_seconds)
        ctx.db[PendingProcedure].update(self._leased(ctx, pending_id, attempt, worker).replace(scheduled_at=end))

    def complete(self, ctx: ReducerContext, pending_id: int, attempt: int, result: str, worker: str | None) -> None:
        """An attempt of a worker has returned."""
        pending = self._leased(ctx, pending_id, attempt, worker)
        if self._engine.has_code(ctx, pending.workflow_id):
            self._engine.complete_procedure(ctx, pending_id, result)
        else:
            self._park(ctx, pending)

    def fail(
        self,
        ctx: ReducerContext,
        pending_id: int,
        attempt: int,
        error_type: str,
        error: str,
        worker: str | None,
        final: bool,
    ) -> None:
        """An attempt of a worker has failed. `error_type` is the name of a class, or `module:qualname`.

        `final`: no other attempt would do better; also so when `error_type` is one of those that are not retried.
        """
        pending = self._leased(ctx, pending_id, attempt, worker)
        if self._engine.has_code(ctx, pending.workflow_id):
            listed = any(error_type in (name, name.rpartition(":")[2]) for name in pending.non_retryable)
            self._procedures.failed(ctx, pending, error_type, error, final=final or listed)
        else:
            self._park(ctx, pending)

    def release(self, ctx: ReducerContext, pending_id: int, attempt: int, worker: str | None) -> None:
        """A worker stops, and gives back what it has not finished: another one runs the same attempt."""
        pending = self._leased(ctx, pending_id, attempt, worker)
        ctx.db[PendingProcedure].update(offered(ctx, pending))

    def _park(self, ctx: ReducerContext, pending: PendingProcedure) -> None:
        """The game was started without the code that waits for this: it is run again when that is back."""
        ctx.log.warning("call %d of %s ended, and its workflow has no code now", pending.id, pending.procedure)
        ctx.db[PendingProcedure].update(parked(pending))

    def _leased(self, ctx: ReducerContext, pending_id: int, attempt: int, worker: str | None) -> PendingProcedure:
        pending = self._engine.pending(ctx, pending_id, attempt)
        if pending is None or pending.status is not ProcedureStatus.Running:
            raise UnknownProcedure(
                f"attempt {attempt} of pending procedure {pending_id} is over: it ended, failed, or was cancelled"
            )
        if worker is not None and pending.worker != worker:
            raise UnknownProcedure(
                f"attempt {attempt} of pending procedure {pending_id} is over for {worker!r}: {pending.worker!r} has it"
            )
        return pending


def _end(ctx: ReducerContext, lease_seconds: float) -> datetime:
    if not 0 < lease_seconds <= LEASE_SECONDS_MAX:
        raise BadLease(f"lease_seconds={lease_seconds:g}: a lease is longer than 0 and at most {LEASE_SECONDS_MAX:g} s")
    return ctx.now + timedelta(seconds=lease_seconds)
