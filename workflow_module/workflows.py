"""`Workflows(db)`: workflows from outside of transactions, typed. For game servers, tools and tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from gamedb import Commit, Database, ReducerContext

from .definition import StateView, WorkflowDefinition
from .engine import Engine, engine_of
from .history import Moment, moment, moments
from .refusals import UnknownWorkflow
from .structs import Signal
from .tables import Workflow, WorkflowEvent, WorkflowStatus, WorkflowTimer

InitT = TypeVar("InitT")
ResultT = TypeVar("ResultT")
T = TypeVar("T")

ENDED = (WorkflowStatus.Completed, WorkflowStatus.Cancelled, WorkflowStatus.Failed)


class WorkflowFailed(Exception):
    """Asked for the result of a workflow that is parked; the text is its traceback."""


class WorkflowCancelled(Exception):
    """Asked for the result of a workflow that was cancelled."""


class WorkflowPending(Exception):
    """Asked for the result of a workflow that has not ended."""


class Workflows:
    """The workflows of a database. Each method is a transaction of its own, or a look at committed rows.

    For code around the game: a server, a script, a test. Reducers use what `install` returns.
    """

    def __init__(self, db: Database) -> None:
        if not isinstance(db, Database):
            raise TypeError(f"Workflows takes an open Database, as in Workflows(Database(module)), not {db!r}")
        self.db = db
        """The database."""
        self.engine: Engine = engine_of(db.module.functions)
        """What `install` returned for its module."""

    def start(
        self,
        workflow: WorkflowDefinition[InitT, Any],
        init: InitT,
        *,
        entity_id: int | None = None,
        correlation_id: str | None = None,
        signals: Iterable[Signal] = (),
    ) -> int:
        """Start a workflow and give its id; a run with this `correlation_id` is joined instead.

        - `init`: an instance of the type that the workflow declares; `None` when it takes none. `BadPayload` otherwise.
        - `entity_id`: the entity of the game that it is about, for `signal_entity`.
        - `signals`: are in its inbox before its first statement.
        """
        return self._start(workflow, init, entity_id, correlation_id, signals, False)

    def start_test(
        self,
        workflow: WorkflowDefinition[InitT, Any],
        init: InitT,
        *,
        entity_id: int | None = None,
        correlation_id: str | None = None,
        signals: Iterable[Signal] = (),
    ) -> int:
        """Start a workflow in manual mode: its timers fire by `fire_timer` only."""
        return self._start(workflow, init, entity_id, correlation_id, signals, True)

    def _start(
        self,
        workflow: WorkflowDefinition[InitT, Any],
        init: InitT,
        entity_id: int | None,
        correlation_id: str | None,
        signals: Iterable[Signal],
        test_mode: bool,
    ) -> int:
        def body(ctx: ReducerContext) -> int:
            return self.engine.start(
                ctx,
                workflow,
                init,
                entity_id=entity_id,
                correlation_id=correlation_id,
                signals=signals,
                test_mode=test_mode,
            )

        return self._do("workflow_start", body)

    def signal(self, workflow_id: int, message: Signal) -> None:
        """Send a signal. `UnknownWorkflow`, `WorkflowFinished` or `UnknownSignal` when it cannot be taken."""
        self._do("workflow_signal", self.engine.signal, workflow_id, message)

    def signal_entity(self, entity_id: int, message: Signal) -> int:
        """Send a signal to the live workflows of an entity that know it; how many there were."""
        return self._do("workflow_signal", self.engine.signal_entity, entity_id, message)

    def broadcast(self, message: Signal, key: str | int) -> int:
        """Send a signal to all that subscribed to its class with this key; how many there were."""
        return self._do("workflow_broadcast_signal", self.engine.broadcast, message, key)

    def cancel(self, workflow_id: int) -> None:
        """Raise `Cancelled` where a workflow waits. Twice is once."""
        self._do("workflow_cancel", self.engine.cancel, workflow_id)

    def resume(self, workflow_id: int) -> None:
        """Try the step again at which a workflow failed. `NotFailed` when it has not."""
        self._do("workflow_resume", self.engine.resume, workflow_id)

    def terminate(self, workflow_id: int) -> None:
        """End a workflow in any state at once, without running its code."""
        self._do("workflow_terminate", self.engine.terminate, workflow_id)

    def delete(self, workflow_id: int) -> None:
        """Forget a workflow and all that belongs to it, ending it first if need be."""
        self._do("workflow_delete", self.engine.delete, workflow_id)

    def fire_timer(self, workflow_id: int, timer_name: str) -> None:
        """Let a timer be due now: the value of its enum member, or `sleep`."""
        self._do("debug_fire_timer", self.engine.fire_timer, workflow_id, timer_name)

    def _do(self, name: str, body: Callable[..., T], *arguments: Any) -> T:
        return self.db.execute(name, body, arguments)

    # --- looking

    def find(self, workflow_id: int) -> Workflow | None:
        """The row, or None."""
        return self.db.read(Workflow).get(workflow_id)

    def get(self, workflow_id: int) -> Workflow:
        """The row; `UnknownWorkflow` when there is none."""
        row = self.find(workflow_id)
        if row is None:
            raise UnknownWorkflow(
                f"there is no workflow {workflow_id}; it never was, or was deleted after its retention"
            )
        return row

    def by_correlation(self, workflow: WorkflowDefinition[Any, Any], correlation_id: str) -> Workflow | None:
        """The run of this type with this correlation id, or None."""
        rows = self.db.read(Workflow).where(workflow_type=workflow.name, correlation_id=correlation_id)
        return rows[0] if rows else None

    def timers(self, workflow_id: int) -> list[WorkflowTimer]:
        """What the workflow waits for, by deadline."""
        rows = self.db.read(WorkflowTimer).where(workflow_id=workflow_id)
        return sorted(rows, key=lambda timer: (timer.due_at, timer.scheduled_id))

    def view(self, workflow_id: int) -> StateView:
        """The typed state of a waiting workflow: `.init`, and each stored variable."""
        row = self.get(workflow_id)
        return self.engine.definition(row.workflow_type).view(row.state_data)

    def history(self, workflow_id: int) -> list[Moment]:
        """What happened to a workflow, with the state after each event. Empty with `install(journal=False)`."""
        row = self.find(workflow_id)
        definition = None if row is None else self.engine.definitions.get(row.workflow_type)
        return moments(self.db.read(WorkflowEvent).where(workflow_id=workflow_id), definition)

    def at(self, workflow_id: int, number: int) -> Moment:
        """A workflow as it was after its event of this number: 1 is its start, -1 the last. `IndexError` for others."""
        return moment(self.history(workflow_id), workflow_id, number)

    def result(self, workflow_id: int) -> Any:
        """The result of a completed workflow. Raises `WorkflowFailed`, `WorkflowCancelled` or `WorkflowPending`."""
        row = self.get(workflow_id)
        what = f"workflow {workflow_id} ({row.workflow_type})"
        if row.status is WorkflowStatus.Completed:
            return self.engine.definition(row.workflow_type).decode_result(row.result or "null")
        if row.status is WorkflowStatus.Failed:
            raise WorkflowFailed(f"{what} failed at {row.current_step or 'its start'}:\n{row.error}")
        if row.status is WorkflowStatus.Cancelled:
            raise WorkflowCancelled(f"{what} was cancelled" + (f":\n{row.error}" if row.error else ""))
        raise WorkflowPending(f"{what} is {row.status.value} at {row.current_step}")

    def result_of(self, workflow: WorkflowDefinition[Any, ResultT], workflow_id: int) -> ResultT:
        """`result`, typed by the workflow."""
        result: ResultT = self.result(workflow_id)
        return result

    def wait(self, workflow_id: int, timeout: timedelta | None = None) -> Any:
        """Sleep until a workflow has ended (or failed), then `result`. `TimeoutError` after so long."""
        if timeout is not None and not isinstance(timeout, timedelta):
            raise TypeError(f"wait(timeout=...) needs a timedelta, such as timedelta(seconds=5), not {timeout!r}")
        ended = threading.Event()

        def look(_commit: Commit) -> None:
            row = self.find(workflow_id)
            if row is None or row.status in ENDED:
                ended.set()

        with self.db.subscribe(Workflow, look):
            if self.get(workflow_id).status not in ENDED and not ended.wait(
                None if timeout is None else timeout.total_seconds()
            ):
                raise TimeoutError(f"workflow {workflow_id} has not ended within {timeout}")
        return self.result(workflow_id)
