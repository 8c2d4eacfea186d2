"""The engine's tables. Their columns are public: clients subscribe to them, and `state_data` is UTF-8 JSON."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec

from gamedb import AutoInc, Index, PrimaryKey, Row, ScheduleAt, u32, u64


class WorkflowStatus(enum.Enum):
    """Where a workflow is in its life."""

    Suspended = "Suspended"
    """It waits."""
    Cancelling = "Cancelling"
    """It was cancelled, and waits while it cleans up."""
    Completed = "Completed"
    """It returned."""
    Failed = "Failed"
    """Its code raised: it is parked where it was before that step, and can be resumed."""
    Cancelled = "Cancelled"
    """It was cancelled, and has cleaned up; or it was terminated."""


class ProcedureStatus(enum.Enum):
    """What a pending procedure is doing."""

    Pending = "Pending"
    """Its next attempt starts at `scheduled_at`, or when a worker of its queue takes it."""
    Running = "Running"
    """A worker has it until `scheduled_at`."""
    Failed = "Failed"
    """Its last attempt has failed. It is kept while its workflow is parked by that: a resume tries it again."""


class Workflow(Row):
    """One run of a workflow, from its start until its retention is over."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """The id of the run."""
    workflow_type: str
    """The name of the workflow."""
    entity_id: Index[u64 | None] = None
    """As given at the start: the entity of the game that the run is about."""
    correlation_id: str | None = None
    """As given at the start: what finds this run again."""
    parent_id: Index[u64 | None] = None
    """The run that started this one as its child."""
    on_parent_end_abandon: bool = False
    """Whether it goes on when its parent ends, instead of being cancelled."""
    status: WorkflowStatus = WorkflowStatus.Suspended
    """Where it is in its life."""
    current_step: str = ""
    """The label of the suspension point where it waits; empty before its first step."""
    current_line: u32 = 0
    """The line of the source where it waits."""
    state_data: bytes = b""
    """Its variables and its place in the code, as UTF-8 JSON; `Workflows.view` reads it."""
    wait_data: bytes = b""
    """What it waits for, in the engine's own JSON."""
    result: str | None = None
    """JSON."""
    error: str | None = None
    """The traceback of a failed step, or of an error while cleaning up."""
    test_mode: bool = False
    """Timers fire by hand only."""
    cancel_requested: bool = False
    """Whether somebody has cancelled it."""
    steps: u64 = 0
    """How many steps have run."""
    unread_signals: u32 = 0
    """How many signals had come that nobody read, at the end."""
    created_at: datetime
    """When it was started."""
    updated_at: datetime
    """When its last step was."""


class WorkflowTimer(Row):
    """A deadline that a workflow waits for."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    """The id of the timer."""
    scheduled_at: ScheduleAt
    """When it fires."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    timer_name: str
    """The timer's value; `sleep`, or `timeout(Signal)`."""
    due_at: datetime
    """The deadline itself; in test mode `scheduled_at` is never."""


class WorkflowSignal(Row):
    """A signal that nobody has read yet."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """Counts up: the order in which signals came."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    signal: str
    """The name of its class."""
    payload: str
    """JSON."""
    arrived_at: datetime
    """When it came."""


class WorkflowSubscription(Row):
    """A workflow that gets broadcasts of a signal with a key."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """The id of the subscription."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    signal: str
    """The name of the signal's class."""
    key: str
    """The key, as text."""


class PendingProcedure(Row):
    """A call that has not ended. `scheduled_at` is when its next attempt starts, or when a worker's lease ends."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """The id of the call."""
    scheduled_at: ScheduleAt
    """When its next attempt starts, or when the lease of its worker ends."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    procedure: str
    """The name of the procedure."""
    arguments: str
    """JSON: an array of the arguments by position and an object of those by name."""
    queue: Index[str | None] = None
    """The workers that run it are those of this queue; None: this process runs it."""
    status: ProcedureStatus = ProcedureStatus.Pending
    """What it is doing."""
    attempt: u32 = 1
    """The number of the attempt that is next, or running."""
    attempts_max: u32
    """How often it is tried in all."""
    backoff_first_seconds: float
    """`Backoff.first`."""
    backoff_factor: float
    """`Backoff.factor`."""
    backoff_cap_seconds: float
    """`Backoff.cap`."""
    timeout_seconds: float | None = None
    """How long an attempt may take; `None`: for ever."""
    heartbeat_seconds: float | None = None
    """How long an attempt may be silent; `None`: for ever."""
    non_retryable: list[str] = msgspec.field(default_factory=list)
    """Errors that end it at once, as `module:qualname`."""
    step_key: str
    """The same for all attempts of this call."""
    worker: Index[str | None] = None
    """The worker that has it."""
    last_error: str | None = None
    """Why the last attempt failed."""
    created_at: datetime
    """When it was called."""
    offered: str | None = None
    """Its queue while a worker may take it, or else None."""
    attempts_before: u32 = 0
    """How many attempts had failed when its workflow was resumed: `attempts_max` counts from there."""
    offered_at: datetime | None = None
    """Since when a worker may take it, while one may."""


class WorkflowQueue(Row):
    """The bell of a queue: it changes whenever a call can be taken."""

    name: PrimaryKey[str]
    offers: u64
    """How often that was, so far."""


class WorkflowEvent(Row):
    """One entry of a workflow's timeline."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """Counts up: the order of events."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    at: datetime
    """When it was."""
    kind: str
    """started, step, completed, failed, cancelling, cancelled, resumed, terminated, continued, attempt_failed."""
    detail: str
    """What the workflow got: the timer, the signal with its payload, the result; or the error."""
    step: str
    """Where it waits after it."""
    state_data: bytes
    """The state after it."""


class WorkflowAttribute(Row):
    """What `ctx.set_attribute` shows of a workflow."""

    id: PrimaryKey[AutoInc[u64]] = 0
    """The id of the attribute."""
    workflow_id: Index[u64]
    """The run that it is of: `Workflow.id`."""
    name: str
    """Its name."""
    value: str
    """JSON."""


class WorkflowExpiry(Row):
    """When a finished workflow is deleted."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    workflow_id: Index[u64]


class WorkflowWake(Row):
    """A workflow that goes on in the next transaction, since this one had run enough steps."""

    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    workflow_id: Index[u64]
