"""`install`: puts the engine's tables, reducers and procedures on a module. An ordinary client of `gamedb`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from gamedb import HealthReport, Module, ProcedureContext, ReducerContext, SchemaError, WorkerJob, u32, u64

from .checking import report_states
from .definition import WorkflowDefinition
from .description import describe_workflows
from .engine import Engine
from .generation import add_workflows
from .leases import Leases
from .procedures import Procedures
from .queues import report_untaken
from .recovery import recover
from .tables import (
    PendingProcedure,
    Workflow,
    WorkflowAttribute,
    WorkflowEvent,
    WorkflowExpiry,
    WorkflowQueue,
    WorkflowSignal,
    WorkflowStatus,
    WorkflowSubscription,
    WorkflowTimer,
    WorkflowWake,
)

RETENTION: Final = timedelta(days=7)
"""How long finished workflows are kept, unless their type or `install` says otherwise."""

PARKED_MAX: Final = 100
"""A database with more failed workflows than so many is unhealthy."""

QUEUE_WAIT_MAX: Final = timedelta(minutes=5)
"""How long a call may wait in a queue until a worker takes it, before the database is unhealthy."""

OPENABLE: Final = (
    "workflow_start",
    "workflow_signal",
    "workflow_broadcast_signal",
    "workflow_cancel",
    "workflow_resume",
    "workflow_terminate",
    "workflow_delete",
    "workflow_procedure_take",
    "workflow_procedure_heartbeat",
    "workflow_procedure_complete",
    "workflow_procedure_fail",
    "workflow_procedure_release",
)
TESTING: Final = ("workflow_start_test", "debug_fire_timer", "debug_send_signal", "debug_complete_procedure")


def install(
    module: Module,
    workflows: Iterable[WorkflowDefinition[Any, Any]],
    *,
    testing: bool = False,
    access: Collection[str] | Literal["all"] = (),
    retention: timedelta | None = RETENTION,
    journal: bool = True,
    public: bool = True,
    queue_wait_max: timedelta | None = QUEUE_WAIT_MAX,
) -> Engine:
    """Install workflows on a module; what comes back is for the game's own reducers.

    - `testing`: also the reducers for tests (manual timers).
    - `access`: names of engine reducers that clients may call (`"all"`: every one); by default only in-process code and
      operators.
    - `retention`: how long finished runs are kept (`None`: for ever); a workflow's own `retention=` goes first.
    - `journal`: keep a timeline in `workflow_event`.
    - `public`: clients may subscribe to the tables (but for `pending_procedure`, which operators alone may read), and
      ask for the time that their deadlines are told in.
    - `queue_wait_max`: a database whose calls wait longer for a worker is unhealthy (`None`: never).

    Once for each module. Raises `SchemaError` for two workflows of one name and for what `access` names wrongly.
    """
    if isinstance(workflows, WorkflowDefinition):
        raise SchemaError(f"install takes a list of workflows: install(module, [{workflows.name}])")
    definitions: dict[str, WorkflowDefinition[Any, Any]] = {}
    for definition in workflows:
        if not isinstance(definition, WorkflowDefinition):
            raise SchemaError(f"install takes workflows, not {definition!r}; decorate it with @workflow")
        if definitions.setdefault(definition.name, definition) is not definition:
            raise SchemaError(f"two workflows are named {definition.name!r}; give one @workflow(name=...)")
    for definition in definitions.values():
        for name, child in definition.children.items():
            if definitions.get(name) is not child:
                raise SchemaError(f"workflow {definition.name!r} starts {name!r}, which is not installed; add it")
    known = (*OPENABLE, *(TESTING if testing else ()))
    opened = set(known) if access == "all" else set(access)
    unknown = sorted(opened - set(known))
    if unknown:
        raise SchemaError(f"access names {unknown[0]!r}; the reducers that can be opened are {', '.join(known)}")
    engine = Engine(definitions, testing=testing, retention=retention, journal=journal)
    _tables(module, public)
    _clock(module, public)
    _reducers(module, engine, opened)
    _procedure_reducers(module, engine, opened)
    if testing:
        _test_reducers(module, engine, opened)
    module.on_check(lambda report: report_states(engine, report))
    module.on_open(lambda ctx: recover(engine.run(ctx)))
    module.on_generate(lambda generation: add_workflows(generation, definitions.values()))
    module.on_describe(lambda: describe_workflows(definitions, testing=testing, journal=journal))
    module.on_health(_parked)
    module.on_health(lambda report: report_untaken(report, queue_wait_max))
    module.on_worker(_work)
    module.count_rows(Workflow, "workflow_type", "status")
    module.count_rows(PendingProcedure, "procedure", "status")
    return engine


def _parked(report: HealthReport) -> None:
    count = report.count(Workflow, status=WorkflowStatus.Failed)
    report.add(
        "parked_workflows",
        count,
        limit=PARKED_MAX,
        problem=f"{count} workflows have failed and are parked; mend their code and resume them, or cancel them",
    )


async def _work(job: WorkerJob) -> None:
    from .worker import work  # what only workers need

    await work(job)


def _tables(module: Module, public: bool) -> None:
    try:
        module.table(public=public, indexes=[("workflow_type", "correlation_id")])(Workflow)
    except SchemaError as error:
        raise SchemaError(f"{error}; install is called once for each module, with all its workflows") from None
    module.table(public=public, scheduled="workflow_timer_fire")(WorkflowTimer)
    module.table(public=public, indexes=[("workflow_id", "signal", "id")])(WorkflowSignal)
    module.table(public=public, indexes=[("signal", "key"), ("workflow_id", "signal", "key")])(WorkflowSubscription)
    module.table(scheduled="workflow_procedure_run", indexes=[("offered", "id")])(PendingProcedure)
    module.table(public=public)(WorkflowEvent)
    module.table(public=public)(WorkflowAttribute)
    module.table(WorkflowQueue)
    module.table(scheduled="workflow_expire")(WorkflowExpiry)
    module.table(scheduled="workflow_wake")(WorkflowWake)


def _clock(module: Module, public: bool) -> None:
    @module.procedure(private=not public)
    async def workflow_now(ctx: ProcedureContext) -> datetime:
        """The server's time, for clients that show what is left until `due_at`."""
        with ctx.transaction() as tx:
            return tx.now


def _opening(module: Module, opened: set[str]) -> Callable[[Any], Any]:
    """The decorator of the engine's reducers: private, but for those that `access` opens."""
    return lambda function: module.reducer(private=function.__name__ not in opened)(function)


def _reducers(module: Module, engine: Engine, opened: set[str]) -> None:
    reducer = _opening(module, opened)

    @reducer
    def workflow_start(
        ctx: ReducerContext, workflow_type: str, entity_id: u64 | None, correlation_id: str | None, init: str
    ) -> int:
        return engine.start_json(ctx, workflow_type, entity_id, correlation_id, init)

    workflow_start.engine = engine

    @reducer
    def workflow_signal(ctx: ReducerContext, workflow_id: u64, signal: str, payload: str) -> None:
        engine.signal_json(ctx, workflow_id, signal, payload)

    @reducer
    def workflow_broadcast_signal(ctx: ReducerContext, signal: str, key: str, payload: str) -> None:
        engine.broadcast_json(ctx, signal, key, payload)

    @reducer
    def workflow_cancel(ctx: ReducerContext, workflow_id: u64) -> None:
        engine.cancel(ctx, workflow_id)

    @reducer
    def workflow_resume(ctx: ReducerContext, workflow_id: u64) -> None:
        engine.resume(ctx, workflow_id)

    @reducer
    def workflow_terminate(ctx: ReducerContext, workflow_id: u64) -> None:
        engine.terminate(ctx, workflow_id)

    @reducer
    def workflow_delete(ctx: ReducerContext, workflow_id: u64) -> None:
        engine.delete(ctx, workflow_id)

    @reducer
    def workflow_timer_fire(ctx: ReducerContext, timer: WorkflowTimer) -> None:
        engine.timer_fired(ctx, timer)

    @reducer
    def workflow_wake(ctx: ReducerContext, wake: WorkflowWake) -> None:
        engine.wake(ctx, wake.workflow_id)

    @reducer
    def workflow_expire(ctx: ReducerContext, expiry: WorkflowExpiry) -> None:
        engine.expire(ctx, expiry.workflow_id)


def _procedure_reducers(module: Module, engine: Engine, opened: set[str]) -> None:
    procedures = Procedures(engine)
    leases = Leases(engine, procedures)

    reducer = _opening(module, opened)

    @module.procedure(private=True)
    async def workflow_procedure_run(ctx: ProcedureContext, pending: PendingProcedure) -> None:
        await procedures.run(ctx, pending)

    @reducer
    def workflow_procedure_take(
        ctx: ReducerContext, queue: str, worker: str, lease_seconds: float, limit: u32
    ) -> list[PendingProcedure]:
        return leases.take(ctx, queue, worker, lease_seconds, limit)

    @reducer
    def workflow_procedure_heartbeat(
        ctx: ReducerContext, pending_id: u64, attempt: u32, lease_seconds: float, worker: str | None = None
    ) -> None:
        leases.extend(ctx, pending_id, attempt, lease_seconds, worker)

    @reducer
    def workflow_procedure_complete(
        ctx: ReducerContext, pending_id: u64, attempt: u32, result: str, worker: str | None = None
    ) -> None:
        leases.complete(ctx, pending_id, attempt, result, worker)

    @reducer
    def workflow_procedure_fail(
        ctx: ReducerContext,
        pending_id: u64,
        attempt: u32,
        error_type: str,
        error: str,
        worker: str | None = None,
        final: bool = False,
    ) -> None:
        leases.fail(ctx, pending_id, attempt, error_type, error, worker, final)

    @reducer
    def workflow_procedure_release(
        ctx: ReducerContext, pending_id: u64, attempt: u32, worker: str | None = None
    ) -> None:
        leases.release(ctx, pending_id, attempt, worker)


def _test_reducers(module: Module, engine: Engine, opened: set[str]) -> None:
    reducer = _opening(module, opened)

    @reducer
    def workflow_start_test(
        ctx: ReducerContext, workflow_type: str, entity_id: u64 | None, correlation_id: str | None, init: str
    ) -> int:
        return engine.start_json(ctx, workflow_type, entity_id, correlation_id, init, test_mode=True)

    @reducer
    def debug_fire_timer(ctx: ReducerContext, workflow_id: u64, timer_name: str) -> None:
        engine.fire_timer(ctx, workflow_id, timer_name)

    @reducer
    def debug_send_signal(ctx: ReducerContext, workflow_id: u64, signal: str, payload: str) -> None:
        engine.signal_json(ctx, workflow_id, signal, payload)

    @reducer
    def debug_complete_procedure(ctx: ReducerContext, pending_id: u64, result: str) -> None:
        engine.complete_procedure(ctx, pending_id, result)
