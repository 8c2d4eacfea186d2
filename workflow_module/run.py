"""The engine's work in one transaction: a queue of workflows to look after.

Everything that happens to a workflow is first a fact in a table (an unread signal, a deadline, a child's end) and
then a look: `_advance` evaluates what the workflow waits for, and runs its code as long as something is ready. Each
step has a savepoint of its own. What a step causes (signals, children, cancels) goes into the queue, not on the stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from gamedb import ReducerContext, Table

from .armed import Ready, decode_node, evaluate
from .codec import decode
from .endings import FINISHED, failed
from .inbox import ID_MAX, Incoming, RunFacts, arrival
from .refusals import BadPayload, UnknownSignal, UnknownWorkflow, WorkflowExists, WorkflowFinished
from .steps import start_state, step
from .structs import Signal
from .tables import Workflow, WorkflowSignal, WorkflowStatus, WorkflowSubscription, WorkflowWake
from .waiting import UNDECIDED, Waiting

if TYPE_CHECKING:
    from .engine import Engine
    from .local import LocalState

RESUMPTIONS_MAX: Final = 10_000
"""Steps in one transaction; what is left goes on in the next."""

CANCEL_HEAD_START: Final = timedelta(minutes=1)
"""By how much a postponed cancel goes first, or it would never catch up with a workflow that starts itself for ever."""

_FAILED: Final = WorkflowStatus.Failed
_CANCELLING: Final = WorkflowStatus.Cancelling  # an enum's members are slow to get at


class Run(msgspec.Struct):
    """One transaction's worth of engine work. `begin` one, do something, `drain`."""

    local: LocalState
    engine: Engine
    ctx: ReducerContext
    now: datetime
    now_micros: int
    workflows: Table[Workflow]
    signals: Table[WorkflowSignal]
    _savepoint: AbstractContextManager[None]
    _queue: deque[tuple[int, Incoming | None]]
    _steps: int = 0
    _draining: bool = False
    _current: int | None = None
    _own_signals: int = 0
    """How many signals the running step has sent to its own workflow."""

    # --- what can happen

    def start(
        self,
        workflow_type: str,
        init: bytes,
        entity_id: int | None,
        correlation_id: str | None,
        *,
        parent_id: int | None = None,
        abandon: bool = False,
        test_mode: bool = False,
        signals: Iterable[tuple[str, str, Signal]] = (),
    ) -> int:
        """Start a workflow, or join the run with this correlation id; its id. `init` is JSON that fits."""
        definition = self.engine.definition(workflow_type)
        if correlation_id is not None:
            known = self.workflows.where(workflow_type=definition.name, correlation_id=correlation_id)
            if known:
                return self._join(known[0], parent_id, signals)
        row = self.workflows.insert(
            Workflow(
                workflow_type=definition.name,
                entity_id=entity_id,
                correlation_id=correlation_id,
                parent_id=parent_id,
                on_parent_end_abandon=abandon,
                state_data=start_state(definition.name, init),
                test_mode=test_mode,
                created_at=self.now,
                updated_at=self.now,
            )
        )
        for name, payload, _ in signals:
            self._store(row.id, name, payload, self.now)
        self._queue.append((row.id, None))
        return row.id

    def _join(self, known: Workflow, parent_id: int | None, signals: Iterable[tuple[str, str, Signal]]) -> int:
        if parent_id is not None and known.parent_id != parent_id:
            raise WorkflowExists(
                f"{known.workflow_type} {known.correlation_id!r} runs already as workflow {known.id}, which is not a "
                "child of this one; choose another correlation_id"
            )
        for name, payload, message in signals:
            self.signal(known.id, name, payload, message)
        return known.id

    def start_child(
        self,
        parent_id: int,
        workflow_type: str,
        init: bytes,
        entity_id: int | None,
        correlation_id: str | None,
        abandon: bool,
    ) -> int:
        """Start a child; its code runs after the present step."""
        parent = self.workflows.get(parent_id)
        test_mode = parent is not None and parent.test_mode
        return self.start(
            workflow_type, init, entity_id, correlation_id, parent_id=parent_id, abandon=abandon, test_mode=test_mode
        )

    def live(self, workflow_id: int) -> Workflow:
        """The workflow; `UnknownWorkflow` or `WorkflowFinished` when there is none to talk to."""
        row = self.workflows.get(workflow_id)
        if row is None:
            raise UnknownWorkflow(f"there is no workflow {workflow_id}; perhaps it was deleted after its retention")
        if row.status in FINISHED:
            raise WorkflowFinished(f"workflow {workflow_id} ({row.workflow_type}) has ended: {row.status.value}")
        return row

    def signal(self, workflow_id: int, name: str, payload: str, message: Signal | None = None) -> None:
        """Send a signal; refused at once when the workflow has ended or does not know it."""
        row = self.live(workflow_id)
        checked = self.checked_signal(row, name, payload, message)
        self._deliver(workflow_id, name, payload, checked)

    def _deliver(self, workflow_id: int, name: str, payload: str, message: Signal) -> None:
        if workflow_id == self._current:  # it looks into its inbox right after this step
            self._store(workflow_id, name, payload, self.now)
            self._own_signals += 1
        else:
            self._queue.append((workflow_id, arrival(name, payload, message, self.now_micros)))

    def checked_signal(self, row: Workflow, name: str, payload: str, message: Signal | None) -> Signal:
        """The typed signal; `UnknownSignal` or `BadPayload` when the workflow cannot take it."""
        definition = self.engine.definition(row.workflow_type)
        cls = definition.signals.get(name)
        if cls is None:
            known = ", ".join(sorted(definition.signals)) or "none"
            raise UnknownSignal(f"workflow {row.id} ({row.workflow_type}) knows no signal {name!r}; it knows: {known}")
        if message is not None:
            if type(message) is not cls:
                raise UnknownSignal(
                    f"{row.workflow_type} waits for {cls.__module__}.{name}, and got {type(message).__module__}.{name}"
                )
            return message
        return _typed(payload, cls, f"the payload of {name}")

    def signal_entity(self, entity_id: int, name: str, payload: str, message: Signal | None = None) -> int:
        """Send a signal to the live workflows of an entity that know it; how many there were."""
        count = 0
        for row in sorted(self.workflows.where(entity_id=entity_id), key=lambda row: row.id):
            definition = self.engine.definitions.get(row.workflow_type)
            if definition is not None and row.status not in FINISHED and name in definition.signals:
                self.signal(row.id, name, payload, message)
                count += 1
        return count

    def broadcast(self, name: str, key: str, payload: str, message: Signal | None = None) -> int:
        """Send a signal to those that subscribed to it with this key, in the order of subscribing; how many.

        Subscribers whose code is gone, or does not know the signal any more, are passed over.
        """
        found = self.ctx.db[WorkflowSubscription].where(signal=name, key=key)
        checked: dict[str, Signal] = {}
        count = 0
        for subscription in sorted(found, key=lambda row: row.id):
            row = self.workflows.get(subscription.workflow_id)
            if row is None:
                continue
            typed = checked.get(row.workflow_type)
            if typed is None:
                definition = self.engine.definitions.get(row.workflow_type)
                if definition is None or name not in definition.signals:
                    continue
                typed = checked[row.workflow_type] = self.checked_signal(row, name, payload, message)
            self._deliver(row.id, name, payload, typed)
            count += 1
        return count

    def cancel(self, workflow_id: int) -> None:
        """Ask a workflow to end: `Cancelled` is raised where it waits. Twice is once."""
        row = self.live(workflow_id)
        if not row.cancel_requested:
            self.workflows.update(row.replace(cancel_requested=True))
            self._queue.append((workflow_id, None))

    def wake(self, workflow_id: int) -> None:
        """Look whether what a workflow waits for has come."""
        self._queue.append((workflow_id, None))

    def mark(self) -> tuple[int, int]:
        """Where the queue is, for `unwind`."""
        return len(self._queue), self._own_signals

    def unwind(self, mark: tuple[int, int]) -> None:
        """Forget what was caused since `mark`: its changes were rolled back."""
        length, self._own_signals = mark
        while len(self._queue) > length:
            self._queue.pop()

    # --- the queue

    def drain(self) -> None:
        """Look after everything in the queue, and after what comes of it."""
        if self._draining:
            return  # a step called a reducer that uses the engine: its work is in the queue, and comes after the step
        self._draining = True
        try:
            while self._queue:
                if self._steps >= self.engine.resumptions_max:
                    self.postpone()
                    return
                self._advance(*self._queue.popleft())
        finally:
            self._draining = False

    def postpone(self) -> None:
        """Leave the rest of the queue to the next transaction."""
        wakes = self.ctx.db[WorkflowWake]
        while self._queue:
            workflow_id, incoming = self._queue.popleft()
            row = self.workflows.get(workflow_id)
            if row is None or row.status in FINISHED:
                self._unread(row, incoming)
                continue
            if incoming is not None:
                self._store(workflow_id, incoming.name, incoming.payload, self.now)
            if not wakes.count(workflow_id=workflow_id):
                at = self.now - CANCEL_HEAD_START if row.cancel_requested else self.now
                wakes.insert(WorkflowWake(scheduled_at=at, workflow_id=workflow_id))

    def _store(self, workflow_id: int, name: str, payload: str, arrived: datetime) -> None:
        self.signals.insert(WorkflowSignal(workflow_id=workflow_id, signal=name, payload=payload, arrived_at=arrived))

    # --- one workflow

    def _advance(self, workflow_id: int, incoming: Incoming | None) -> None:
        """Run a workflow's code as long as something that it waits for is ready."""
        row = self.workflows.get(workflow_id)
        if row is None or row.status in FINISHED:
            self._unread(row, incoming)
            return
        definition = self.engine.definitions.get(row.workflow_type)
        held = self.local.held
        waiting = held.take(row)
        unread = self.signals.count(workflow_id=workflow_id) if self.signals else 0
        while definition is not None and (row.status is not _FAILED or row.cancel_requested):
            ready: Ready | None = None
            mark = len(self._queue), self._own_signals
            try:
                if waiting is None and row.wait_data:
                    waiting = Waiting(decode_node(row.wait_data))
                if waiting is not None and (not row.cancel_requested or row.status is _CANCELLING):
                    ready = UNDECIDED
                    if unread == 0:
                        ready = waiting.look(self.now_micros, row.test_mode, incoming, definition)
                    if ready is UNDECIDED:
                        ready = evaluate(waiting.node, RunFacts(self, row, definition, unread, incoming))
                    if ready is None:
                        break
                if self._steps >= self.engine.resumptions_max:
                    self._queue.appendleft((workflow_id, incoming))
                    return
                self._steps += 1
                if incoming is not None and (ready is None or ID_MAX not in ready.taken):
                    self._store(workflow_id, incoming.name, incoming.payload, self.now)
                    unread += 1
                    incoming = None
                self._current = workflow_id
                with self._savepoint:
                    row, waiting = step(self, row, definition, waiting, ready)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                self.unwind(mark)
                if incoming is not None:
                    self._store(workflow_id, incoming.name, incoming.payload, self.now)
                failed(self, row, None if waiting is None else waiting.node, ready, error)
                return
            finally:
                self._current = None
            own, self._own_signals = self._own_signals, 0
            if row.status in FINISHED:
                return
            unread += own
            if ready is not None:
                unread -= len(ready.taken)
                if incoming is not None:
                    unread += 1  # it was never in the table
                    incoming = None
            quiet = waiting is not None and waiting.quiet_until > self.now_micros
            if quiet and unread == 0 and not row.cancel_requested:
                break  # as nearly always: there is nothing to look for
        if incoming is not None:
            self._store(workflow_id, incoming.name, incoming.payload, self.now)
        if waiting is not None:
            held.keep(row, waiting)

    def _unread(self, row: Workflow | None, incoming: Incoming | None) -> None:
        """A signal has come to a workflow that ended meanwhile, in this transaction."""
        if row is not None and incoming is not None:
            self.workflows.update(row.replace(unread_signals=row.unread_signals + 1))


def begin(local: LocalState, ctx: ReducerContext) -> Run:
    """The engine's work in the transaction of this context."""
    workflows, signals = ctx.db[Workflow], ctx.db[WorkflowSignal]
    return Run(local, local.engine, ctx, ctx.now, ctx.micros, workflows, signals, ctx.savepoint(), deque())


def _typed(payload: str, cls: type[Signal], what: str) -> Signal:
    try:
        message: Signal = decode(payload or "{}", cls)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadPayload(f"{what} does not fit: {error}") from None
    return message
