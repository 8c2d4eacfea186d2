"""`Engine`: the workflows installed on a module, and what a game's own reducers may do with them.

Every method takes the context of the running transaction (a reducer's, or a workflow step's) and acts in it. Outside
of transactions use `Workflows(db)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from gamedb import ProcedureContext, ReducerContext

from .armed import CallLeaf, TimerLeaf, deadlines, decode_node, encode_node
from .arming import repair_timers
from .codec import decode, encode
from .definition import WorkflowDefinition, procedure_result
from .endings import FINISHED, delete, failed, procedure_ended, retry_calls, terminate
from .engine_context import EngineContext, key_text
from .errors import StateError, StateMismatch
from .local import LocalState
from .refusals import BadPayload, NotFailed, UnknownProcedure, UnknownTimer, UnknownWorkflow
from .run import RESUMPTIONS_MAX, Run, begin
from .structs import Signal
from .tables import (
    PendingProcedure,
    Workflow,
    WorkflowAttribute,
    WorkflowEvent,
    WorkflowExpiry,
    WorkflowStatus,
    WorkflowTimer,
)
from .timeline import note

InitT = TypeVar("InitT")
AnyDefinition = WorkflowDefinition[Any, Any]


class Engine:
    """The workflows of a module, for its reducers: each method is a part of the transaction of its `ctx`.

    Made by `install(...)`. It is the module's, for all its databases; outside of transactions use `Workflows`.

    <!-- not run -->
    ```python
    engine = install(module, [auction])

    @module.reducer
    def bid(ctx: ReducerContext, lot: u64, amount: u32) -> None:
        engine.signal(ctx, lot, Bid(ctx.sender, amount))
    ```
    """

    def __init__(
        self,
        definitions: Mapping[str, AnyDefinition],
        *,
        testing: bool,
        retention: timedelta | None,
        journal: bool,
        resumptions_max: int = RESUMPTIONS_MAX,
    ) -> None:
        self.definitions = dict(definitions)
        self.testing = testing
        """As `install` was told."""
        self.retention = retention
        """As `install` was told: how long finished runs are kept by default; `None`: for ever."""
        self.journal = journal
        """As `install` was told: whether there is a timeline."""
        self.resumptions_max = resumptions_max
        """How often workflows may go on in one transaction; one that goes on at once again and again fails there."""
        self._procedures: dict[str, Any] | None = None

    # --- for a game's reducers, and for workflow code

    def start(
        self,
        ctx: ReducerContext,
        workflow: WorkflowDefinition[InitT, Any],
        init: InitT,
        *,
        entity_id: int | None = None,
        correlation_id: str | None = None,
        signals: Iterable[Signal] = (),
        test_mode: bool = False,
    ) -> int:
        """Start a workflow and give its id; a run with this `correlation_id` is joined instead.

        `signals` are in its inbox before its first statement. If its first step raises, it is parked, and the id
        comes back all the same.
        """
        if not isinstance(workflow, WorkflowDefinition):
            raise TypeError(f"start takes a function that is decorated with @workflow, not {workflow!r}")
        if self.definitions.get(workflow.name) is not workflow:
            raise UnknownWorkflow(f"workflow {workflow.name!r} is not installed; add it to install(module, [...])")
        try:
            data = workflow.encode_init(init)
        except StateError as error:
            raise BadPayload(str(error)) from None
        queued = [(type(s).__name__, _payload(s), s) for s in signals]
        return self._start(ctx, workflow.name, data, entity_id, correlation_id, queued, test_mode)

    def signal(self, ctx: ReducerContext, workflow_id: int, message: Signal) -> None:
        """Send a signal. `UnknownWorkflow`, `WorkflowFinished` or `UnknownSignal` when it cannot be taken."""
        run = self.run(ctx)
        run.signal(workflow_id, type(message).__name__, _payload(message), message)
        run.drain()

    def signal_entity(self, ctx: ReducerContext, entity_id: int, message: Signal) -> int:
        """Send a signal to the live workflows of an entity that know it; how many there were."""
        run = self.run(ctx)
        count = run.signal_entity(entity_id, type(message).__name__, _payload(message), message)
        run.drain()
        return count

    def broadcast(self, ctx: ReducerContext, message: Signal, key: str | int) -> int:
        """Send a signal to every workflow that subscribed to its class with this key; how many there were."""
        run = self.run(ctx)
        count = run.broadcast(type(message).__name__, key_text(key), _payload(message), message)
        run.drain()
        return count

    def cancel(self, ctx: ReducerContext, workflow_id: int) -> None:
        """Raise `Cancelled` where a workflow waits. Twice is once."""
        run = self.run(ctx)
        run.cancel(workflow_id)
        run.drain()

    def resume(self, ctx: ReducerContext, workflow_id: int) -> None:
        """Try the step again at which a workflow failed. `NotFailed` when it has not.

        If it failed by a procedure whose attempts ran out, the procedure is called again.
        """
        run = self.run(ctx)
        row = run.live(workflow_id)
        if row.status is not WorkflowStatus.Failed:
            raise NotFailed(f"workflow {workflow_id} ({row.workflow_type}) has not failed: it is {row.status.value}")
        definition = self.definitions.get(row.workflow_type)
        problem = definition.check_state(row.state_data) if definition is not None and row.current_step else None
        if problem is not None:  # the fix is still to come
            failed(run, row, None, None, StateMismatch(problem))
            run.drain()
            return
        row = ctx.db[Workflow].update(retry_calls(run, row).replace(status=WorkflowStatus.Suspended))
        if row.wait_data:
            repair_timers(run, row, decode_node(row.wait_data))
        note(run, row, "resumed", "")
        run.wake(workflow_id)
        run.drain()

    def terminate(self, ctx: ReducerContext, workflow_id: int) -> None:
        """End a workflow in any state at once, without running its code."""
        run = self.run(ctx)
        terminate(run, workflow_id)
        run.drain()

    def delete(self, ctx: ReducerContext, workflow_id: int) -> None:
        """Forget a workflow and all that belongs to it, ending it first if need be."""
        run = self.run(ctx)
        delete(run, workflow_id)
        run.drain()

    # --- by name and JSON, for the engine's reducers

    def start_json(
        self,
        ctx: ReducerContext,
        workflow_type: str,
        entity_id: int | None,
        correlation_id: str | None,
        init: str,
        *,
        test_mode: bool = False,
    ) -> int:
        """`start` with the init as JSON text."""
        definition = self.definition(workflow_type)
        data = (init or "null").encode()
        try:
            data = definition.encode_init(definition.decode_init(data))
        except (msgspec.DecodeError, ValueError, StateError) as error:
            raise BadPayload(f"the init of {workflow_type} does not fit: {error}") from None
        return self._start(ctx, workflow_type, data, entity_id, correlation_id, [], test_mode)

    def signal_json(self, ctx: ReducerContext, workflow_id: int, signal: str, payload: str) -> None:
        """`signal` with the payload as JSON text."""
        run = self.run(ctx)
        run.signal(workflow_id, signal, payload or "{}")
        run.drain()

    def broadcast_json(self, ctx: ReducerContext, signal: str, key: str, payload: str) -> None:
        """`broadcast` with the payload as JSON text."""
        if not any(signal in definition.signals for definition in self.definitions.values()):
            raise UnknownWorkflow(f"no installed workflow knows a signal {signal!r}")
        run = self.run(ctx)
        run.broadcast(signal, key, payload or "{}")
        run.drain()

    def _start(
        self,
        ctx: ReducerContext,
        workflow_type: str,
        init: bytes,
        entity_id: int | None,
        correlation_id: str | None,
        signals: list[tuple[str, str, Signal]],
        test_mode: bool,
    ) -> int:
        run = self.run(ctx)
        definition = self.definition(workflow_type)
        for name, _, message in signals:
            if definition.signals.get(name) is not type(message):
                raise BadPayload(f"{workflow_type} knows no signal {name!r}")
        workflow_id = run.start(workflow_type, init, entity_id, correlation_id, test_mode=test_mode, signals=signals)
        run.drain()
        return workflow_id

    # --- what timers and tests do

    def timer_fired(self, ctx: ReducerContext, timer: WorkflowTimer) -> None:
        """A deadline has passed. Should the clock have been set back just now, it comes again."""
        row = ctx.db[Workflow].get(timer.workflow_id)
        if row is None or row.status in FINISHED:
            return
        if timer.due_at > ctx.now:
            ctx.db[WorkflowTimer].insert(timer.replace(scheduled_id=0))
        self.wake(ctx, timer.workflow_id)

    def wake(self, ctx: ReducerContext, workflow_id: int) -> None:
        """Look whether what a workflow waits for has come (a deadline has passed)."""
        run = self.run(ctx)
        run.wake(workflow_id)
        run.drain()

    def fire_timer(self, ctx: ReducerContext, workflow_id: int, timer_name: str) -> None:
        """Let a timer be due now, whatever the clock says: the value of its enum member, or `sleep`."""
        run = self.run(ctx)
        row = run.live(workflow_id)
        node = decode_node(row.wait_data) if row.wait_data else TimerLeaf(None, 0, 0)
        pending = list(deadlines(node)) if row.wait_data else []
        for name, leaf in pending:
            if name == timer_name:
                passed = not row.test_mode and leaf.due is not None and leaf.due < run.now_micros
                leaf.fired = leaf.due if passed else run.now_micros  # one that was due already stays as early as it was
                ctx.db[Workflow].update(row.replace(wait_data=encode_node(node)))
                run.wake(workflow_id)
                run.drain()
                return
        known = ", ".join(name for name, _ in pending) or "none"
        what = f"workflow {workflow_id} ({row.workflow_type})"
        raise UnknownTimer(f"{what} does not wait for timer {timer_name!r}; it waits for: {known}")

    # --- procedures

    def pending(self, ctx: ReducerContext, pending_id: int, attempt: int) -> PendingProcedure | None:
        """The pending procedure, if this is still its attempt."""
        pending = ctx.db[PendingProcedure].get(pending_id)
        return pending if pending is not None and pending.attempt == attempt else None

    def procedure_succeeded(self, ctx: ReducerContext, pending: PendingProcedure, result: str) -> None:
        """A call has returned: its result as JSON."""
        run = self.run(ctx)
        procedure_ended(run, pending, result, None)
        run.drain()

    def procedure_failed(self, ctx: ReducerContext, pending: PendingProcedure, error_type: str, error: str) -> None:
        """The last attempt of a call has failed."""
        run = self.run(ctx)
        procedure_ended(run, pending, None, (pending.attempt, error_type, error))
        run.drain()

    def complete_procedure(self, ctx: ReducerContext, pending_id: int, result: str) -> None:
        """End a pending procedure with a result as JSON, from outside. It must fit the procedure's type."""
        pending = ctx.db[PendingProcedure].get(pending_id)
        if pending is None:
            raise UnknownProcedure(f"there is no pending procedure {pending_id}; it has ended or was cancelled")
        try:
            data = self.checked_result(pending.procedure, result)
        except (msgspec.DecodeError, ValueError, StateError) as error:
            raise BadPayload(f"the result of {pending.procedure} does not fit: {error}") from None
        self.procedure_succeeded(ctx, pending, data)

    def checked_result(self, name: str, data: str) -> str:
        """A procedure's result as JSON again, checked by its type."""
        annotation = procedure_result(self.procedure(name))
        return encode(decode(data, annotation), annotation, f"the result of {name}").decode()

    def call_result(self, definition: AnyDefinition, leaf: CallLeaf) -> Any:
        """The typed result of a call that has ended."""
        return decode(leaf.value or "null", procedure_result(definition.procedures[leaf.procedure]))

    @property
    def procedures(self) -> dict[str, Any]:
        """All procedures that the installed workflows call, by name."""
        if self._procedures is None:
            self._procedures = {}
            for definition in self.definitions.values():
                self._procedures.update(definition.procedures)
        return self._procedures

    def procedure(self, name: str) -> Any:
        """The procedure of this name; `UnknownProcedure` when no workflow calls it."""
        found = self.procedures.get(name)
        if found is None:
            raise UnknownProcedure(f"no installed workflow calls a procedure {name!r}")
        return found

    # --- the rest

    def definition(self, workflow_type: str) -> AnyDefinition:
        """The workflow of this name; `UnknownWorkflow` when it is not installed."""
        found = self.definitions.get(workflow_type)
        if found is None:
            known = ", ".join(sorted(self.definitions)) or "none"
            raise UnknownWorkflow(f"no workflow {workflow_type!r} is installed; there are: {known}")
        return found

    def has_code(self, ctx: ReducerContext, workflow_id: int) -> bool:
        """Whether the type of a workflow is installed."""
        row = ctx.db[Workflow].get(workflow_id)
        return row is None or row.workflow_type in self.definitions

    def retention_of(self, workflow_type: str) -> timedelta | None:
        """How long finished runs of this type are kept; None: for ever."""
        definition = self.definitions.get(workflow_type)
        own = definition.retention if definition is not None else msgspec.UNSET
        return own if own is not msgspec.UNSET else self.retention

    def run(self, ctx: ReducerContext) -> Run:
        """The engine's work in this transaction: inside a step its own, else a new one.

        A library's reducers work in a game that installs the library's workflows itself: it is the engine of the
        running database that works, whichever `install` gave this one.
        """
        if isinstance(ctx, EngineContext):
            return ctx.run
        return begin(local_state(ctx), ctx)

    def forget(self, ctx: ReducerContext, workflow_id: int) -> None:
        """Delete the rows of a finished workflow."""
        for table in (WorkflowEvent, WorkflowAttribute, WorkflowExpiry):
            ctx.db[table].delete_where(workflow_id=workflow_id)
        ctx.db[Workflow].delete(workflow_id)

    def expire(self, ctx: ReducerContext, workflow_id: int) -> None:
        """The retention of a workflow is over."""
        row = ctx.db[Workflow].get(workflow_id)
        if row is not None and row.status in FINISHED:
            self.forget(ctx, workflow_id)


def _payload(message: Signal) -> str:
    if not isinstance(message, Signal):
        is_class = isinstance(message, type)
        shown = f"the class {message.__name__}: write {message.__name__}(...)" if is_class else repr(message)
        raise BadPayload(f"what is sent is a Signal, not {shown}")
    try:
        return encode(message, type(message), type(message).__name__).decode()
    except StateError as error:
        raise BadPayload(str(error)) from None


def local_state(ctx: ReducerContext | ProcedureContext) -> LocalState:
    """What the engine keeps in memory for the database of this context."""
    state: LocalState | None = ctx.extensions.get(LocalState)
    if state is None:
        state = ctx.extensions.setdefault(LocalState, LocalState(engine_of(ctx.functions)))
    return state


def engine_of(functions: Mapping[str, Any]) -> Engine:
    """The engine behind a resolved module's functions; `UnknownWorkflow` when none is installed."""
    function = functions.get("workflow_start")
    engine = getattr(function.function, "engine", None) if function is not None else None
    if not isinstance(engine, Engine):
        raise UnknownWorkflow("no workflows are installed in this module; call install(module, [...])")
    return engine
