"""The engine's work in one transaction: a queue of workflows to look after, and the steps that they run.

Everything that happens to a workflow is first a fact in a table (an unread signal, a deadline, a child's end) and
then a look: `advance` evaluates what the workflow waits for, and runs its code as long as something is ready. Each
step has a savepoint of its own. What a step causes (signals, children, cancels) goes into the queue, not on the stack.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gamedb import ReducerContext

from .armed import (
    CallLeaf,
    ChildLeaf,
    Facts,
    Node,
    Ready,
    SelectNode,
    decode_node,
    encode_node,
    evaluate,
    leaves,
)
from .arming import arm, set_timers
from .codec import decode
from .definition import WorkflowDefinition
from .engine_context import EngineContext
from .errors import Cancelled
from .outcome import Completed, ContinueAsNew, Outcome, Suspended, Throw
from .refusals import BadPayload, UnknownSignal, UnknownWorkflow, WorkflowExists, WorkflowFinished
from .structs import Signal
from .tables import (
    PendingProcedure,
    Workflow,
    WorkflowEvent,
    WorkflowExpiry,
    WorkflowSignal,
    WorkflowStatus,
    WorkflowSubscription,
    WorkflowTimer,
    WorkflowWake,
)
from .tracebacks import author_traceback

if TYPE_CHECKING:
    from .engine import Engine

RESUMPTIONS_MAX: Final = 10_000
"""Steps in one transaction; what is left goes on in the next."""
FINISHED: Final = frozenset({WorkflowStatus.Completed, WorkflowStatus.Cancelled})
ID_MAX: Final = 2**64 - 1
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def micros(moment: datetime) -> int:
    """Microseconds since the Unix epoch."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


class Incoming:
    """A signal that has just come, and is in no table yet."""

    __slots__ = ("arrived", "message", "name", "payload")

    id = ID_MAX  # younger than all that wait in the inbox

    def __init__(self, name: str, payload: str, message: Signal, arrived: int) -> None:
        self.name = name
        self.payload = payload
        self.message = message
        self.arrived = arrived

    @property
    def micros(self) -> int:
        """When it arrived."""
        return self.arrived

    @property
    def value(self) -> Signal:
        """The signal."""
        return self.message


class Stored:
    """An unread signal of the inbox."""

    __slots__ = ("_definition", "_row", "id")

    def __init__(self, row: WorkflowSignal, definition: WorkflowDefinition[Any, Any]) -> None:
        self._row = row
        self._definition = definition
        self.id = row.id

    @property
    def micros(self) -> int:
        """When it arrived."""
        return micros(self._row.arrived_at)

    @property
    def value(self) -> Any:
        """The signal."""
        return decode(self._row.payload, self._definition.signals[self._row.signal])


def start_state(name: str, init: bytes) -> bytes:
    """The state of a workflow whose code has not begun."""
    return b'{"$workflow":' + json.dumps(name).encode() + b',"$at":"","init":' + init + b"}"


class _StartState(msgspec.Struct):
    init: msgspec.Raw


class Run:
    """One transaction's worth of engine work. Make one for a reducer's context, do something, `drain`."""

    def __init__(self, engine: Engine, ctx: ReducerContext) -> None:
        self.engine = engine
        self.ctx = ctx
        self.now = ctx.now
        self.now_micros = ctx.micros
        self.steps = 0
        self._queue: deque[tuple[int, Incoming | None]] = deque()
        self._draining = False
        self._workflows = ctx.db[Workflow]
        self._signals = ctx.db[WorkflowSignal]

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
            known = self._workflows.where(workflow_type=definition.name, correlation_id=correlation_id)
            if known:
                return self._join(known[0], parent_id, signals)
        row = self._workflows.insert(
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
        parent = self._workflows.get(parent_id)
        test_mode = parent is not None and parent.test_mode
        return self.start(
            workflow_type, init, entity_id, correlation_id, parent_id=parent_id, abandon=abandon, test_mode=test_mode
        )

    def live(self, workflow_id: int) -> Workflow:
        """The workflow; `UnknownWorkflow` or `WorkflowFinished` when there is none to talk to."""
        row = self._workflows.get(workflow_id)
        if row is None:
            raise UnknownWorkflow(f"there is no workflow {workflow_id}; it never was, or was deleted after its retention")
        if row.status in FINISHED:
            raise WorkflowFinished(f"workflow {workflow_id} ({row.workflow_type}) has ended: {row.status.value}")
        return row

    def signal(self, workflow_id: int, name: str, payload: str, message: Signal | None = None) -> None:
        """Send a signal; refused at once when the workflow has ended or does not know it."""
        row = self.live(workflow_id)
        checked = self.checked_signal(row, name, payload, message)
        self._queue.append((workflow_id, Incoming(name, payload, checked, self.now_micros)))

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
        for row in sorted(self._workflows.where(entity_id=entity_id), key=lambda row: row.id):
            if row.status not in FINISHED and name in self.engine.definition(row.workflow_type).signals:
                self.signal(row.id, name, payload, message)
                count += 1
        return count

    def broadcast(self, name: str, key: str, payload: str, message: Signal | None = None) -> int:
        """Send a signal to those that subscribed to it with this key, in the order of subscribing; how many."""
        found = self.ctx.db[WorkflowSubscription].where(signal=name, key=key)
        checked: dict[str, Signal] = {}
        for subscription in sorted(found, key=lambda row: row.id):
            row = self._workflows.get(subscription.workflow_id)
            if row is None:
                continue
            typed = checked.get(row.workflow_type)
            if typed is None:
                typed = checked[row.workflow_type] = self.checked_signal(row, name, payload, message)
            self._queue.append((row.id, Incoming(name, payload, typed, self.now_micros)))
        return len(found)

    def cancel(self, workflow_id: int) -> None:
        """Ask a workflow to end: `Cancelled` is raised where it waits. Twice is once."""
        row = self.live(workflow_id)
        if not row.cancel_requested:
            self._workflows.update(row.replace(cancel_requested=True))
            self._queue.append((workflow_id, None))

    def wake(self, workflow_id: int) -> None:
        """Look whether what a workflow waits for has come."""
        self._queue.append((workflow_id, None))

    # --- the queue

    def drain(self) -> None:
        """Look after everything in the queue, and after what comes of it."""
        if self._draining:
            return  # a step called a reducer that uses the engine: its work is in the queue, and comes after the step
        self._draining = True
        try:
            while self._queue:
                if self.steps >= self.engine.resumptions_max:
                    self._postpone()
                    return
                self._advance(*self._queue.popleft())
        finally:
            self._draining = False

    def _postpone(self) -> None:
        """Leave the rest of the queue to the next transaction."""
        wakes = self.ctx.db[WorkflowWake]
        while self._queue:
            workflow_id, incoming = self._queue.popleft()
            if incoming is not None:
                self._store(workflow_id, incoming.name, incoming.payload, self.now)
            if not wakes.count(workflow_id=workflow_id):
                wakes.insert(WorkflowWake(scheduled_at=self.now, workflow_id=workflow_id))

    def _store(self, workflow_id: int, name: str, payload: str, arrived: datetime) -> None:
        self._signals.insert(
            WorkflowSignal(workflow_id=workflow_id, signal=name, payload=payload, arrived_at=arrived)
        )

    # --- one workflow

    def _advance(self, workflow_id: int, incoming: Incoming | None) -> None:
        """Run a workflow's code as long as something that it waits for is ready."""
        row = self._workflows.get(workflow_id)
        if row is None or row.status in FINISHED:
            return
        node: Node | None = None
        while row.status is not WorkflowStatus.Failed or row.cancel_requested:
            definition = self.engine.definitions.get(row.workflow_type)
            if definition is None:
                break
            if node is None and row.wait_data:
                node = decode_node(row.wait_data)
            ready: Ready | None = None
            cancelling = row.cancel_requested and row.status is not WorkflowStatus.Cancelling
            if not cancelling and row.current_step:
                assert node is not None
                ready = evaluate(node, self._facts(row, definition, incoming))
                if ready is None:
                    break
            if self.steps >= self.engine.resumptions_max:
                self._queue.appendleft((workflow_id, incoming))
                return
            self.steps += 1
            taken = ready is not None and ID_MAX in ready.taken
            mark = len(self._queue)
            try:
                with self.ctx.savepoint():
                    row, node = self._step(row, definition, node, ready, cancelling)
            except (Exception, Cancelled, GeneratorExit) as error:
                while len(self._queue) > mark:
                    self._queue.pop()
                self._failed(row, node, ready, error, cancelling)
                break
            if taken:
                incoming = None
            if row.status in FINISHED:
                return
        if incoming is not None:
            self._store(workflow_id, incoming.name, incoming.payload, self.now)

    def _facts(self, row: Workflow, definition: WorkflowDefinition[Any, Any], incoming: Incoming | None) -> Facts:
        signals = self._signals
        stored = signals.count(workflow_id=row.id)

        def unread(name: str, skip: int) -> Stored | Incoming | None:
            there = 0
            if stored:
                low, high = (row.id, name, 0), (row.id, name, ID_MAX)
                found = signals.between(("workflow_id", "signal", "id"), low, high, limit=skip + 1)
                if len(found) > skip:
                    return Stored(found[skip], definition)
                there = len(found)
            return incoming if incoming is not None and incoming.name == name and skip == there else None

        return Facts(
            self.now_micros,
            row.test_mode,
            unread,
            lambda name: definition.timers[name],
            lambda leaf: self.engine.definition(leaf.workflow_type).decode_result(leaf.value or "null"),
            lambda leaf: self.engine.call_result(definition, leaf),
        )

    def _step(
        self,
        row: Workflow,
        definition: WorkflowDefinition[Any, Any],
        node: Node | None,
        ready: Ready | None,
        cancelling: bool,
    ) -> tuple[Workflow, Node | None]:
        """In a savepoint: take what is ready, run the code, note what it waits for next."""
        ctx = EngineContext(self, row)
        if node is not None:
            self._drop_losers(node)
        if not row.current_step:
            if cancelling:
                return self._finish(row, WorkflowStatus.Cancelled, "cancelled", ""), None
            event: Any = None
            init = definition.decode_init(bytes(msgspec.json.decode(row.state_data, type=_StartState).init))
            outcome = definition.start(ctx, init)
        else:
            if cancelling:
                event = Throw(Cancelled())
            else:
                assert ready is not None
                for signal_id in ready.taken:
                    if signal_id != ID_MAX:
                        self._signals.delete(signal_id)
                event = ready.event()
            outcome = self._resumed(ctx, row, definition, event, cancelling)
        return self._apply(row, definition, outcome, cancelling, event)

    def _resumed(
        self, ctx: EngineContext, row: Workflow, definition: WorkflowDefinition[Any, Any], event: Any, cancelling: bool
    ) -> Outcome:
        try:
            return definition.resume(ctx, row.state_data, event)
        except Cancelled:
            if cancelling or row.cancel_requested:
                return Completed(None, b"null")
            raise

    def _apply(
        self, row: Workflow, definition: WorkflowDefinition[Any, Any], outcome: Outcome, cancelling: bool, event: Any
    ) -> tuple[Workflow, Node | None]:
        status = WorkflowStatus.Cancelling if cancelling else row.status
        if status is WorkflowStatus.Failed:
            status = WorkflowStatus.Suspended
        if isinstance(outcome, Suspended):
            node = arm(self, row, outcome.wait)
            set_timers(self, row, node)
            row = self._workflows.update(
                row.replace(
                    status=status,
                    current_step=outcome.label,
                    current_line=outcome.line,
                    state_data=outcome.state,
                    wait_data=encode_node(node),
                    error=None,
                    steps=row.steps + 1,
                    updated_at=self.now,
                )
            )
            if self.engine.journal:
                self._note(row, "cancelling" if cancelling else "step" if event is not None else "started", event)
            return row, node
        if isinstance(outcome, ContinueAsNew) and status is not WorkflowStatus.Cancelling:
            return self._continued(row, definition, outcome), None
        if status is WorkflowStatus.Cancelling:
            return self._finish(row, WorkflowStatus.Cancelled, "cancelled", "cancelled"), None
        assert isinstance(outcome, Completed)
        return self._finish(row, WorkflowStatus.Completed, "completed", outcome.data.decode()), None

    def _continued(self, row: Workflow, definition: WorkflowDefinition[Any, Any], outcome: ContinueAsNew) -> Workflow:
        self.ctx.db[WorkflowTimer].delete_where(workflow_id=row.id)
        self.ctx.db[WorkflowSubscription].delete_where(workflow_id=row.id)
        row = self._workflows.update(
            row.replace(
                current_step="",
                current_line=0,
                state_data=start_state(definition.name, outcome.init),
                wait_data=b"",
                steps=row.steps + 1,
                updated_at=self.now,
            )
        )
        if self.engine.journal:
            self._note(row, "continued", outcome.init.decode())
        return row

    def _drop_losers(self, node: Node) -> None:
        """A wait is over: cancel the children and calls that it started and that have not ended."""
        for leaf in leaves(node):
            if isinstance(leaf, CallLeaf) and leaf.ready is None:
                self.ctx.db[PendingProcedure].delete(leaf.id)
            elif isinstance(leaf, ChildLeaf) and leaf.own and leaf.ready is None:
                child = self._workflows.get(leaf.id)
                if child is not None and child.status not in FINISHED:
                    self.cancel(leaf.id)

    # --- endings

    def _failed(
        self, row: Workflow, node: Node | None, ready: Ready | None, error: BaseException, cancelling: bool
    ) -> None:
        """A step raised: its effects are gone. Park the workflow where it was, or end it if it was cleaning up."""
        text = author_traceback(error)
        self.ctx.log.error("workflow %d (%s) failed at %s:\n%s", row.id, row.workflow_type, row.current_step, text)
        if cancelling or row.cancel_requested:
            self._finish(row, WorkflowStatus.Cancelled, "cancelled", text, error=text)
            return
        if isinstance(node, SelectNode) and ready is not None and node.chosen is None:
            node.chosen = ready.arm
            row = row.replace(wait_data=encode_node(node))
        row = self._workflows.update(row.replace(status=WorkflowStatus.Failed, error=text, updated_at=self.now))
        if self.engine.journal:
            self._note(row, "failed", text)
        self._tell_parent(row, failure=text.strip().splitlines()[-1] if text.strip() else type(error).__name__)

    def _finish(
        self, row: Workflow, status: WorkflowStatus, kind: str, detail: str, *, error: str | None = None
    ) -> Workflow:
        """End a workflow: nothing waits for it or by it any more, its children are cancelled, its parent is told."""
        db, workflow_id = self.ctx.db, row.id
        unread = self._signals.count(workflow_id=workflow_id)
        for table in (WorkflowTimer, WorkflowSubscription, WorkflowSignal, PendingProcedure, WorkflowWake):
            if db[table].count(workflow_id=workflow_id):
                db[table].delete_where(workflow_id=workflow_id)
        row = self._workflows.update(
            row.replace(
                status=status,
                current_step="",
                current_line=0,
                wait_data=b"",
                result=detail if status is WorkflowStatus.Completed else None,
                error=error,
                steps=row.steps + 1,
                unread_signals=unread,
                updated_at=self.now,
            )
        )
        retention = self.engine.retention_of(row.workflow_type)
        if retention is not None:
            db[WorkflowExpiry].insert(WorkflowExpiry(scheduled_at=_later(self.now, retention), workflow_id=workflow_id))
        if self.engine.journal:
            self._note(row, kind, detail)
        self._end_children(workflow_id)
        if status is WorkflowStatus.Completed:
            self._tell_parent(row, value=detail)
        else:
            self._tell_parent(row, failure=error or kind, cancelled=True)
        return row

    def _end_children(self, workflow_id: int) -> None:
        for child in sorted(self._workflows.where(parent_id=workflow_id), key=lambda row: row.id):
            if child.status not in FINISHED and not child.on_parent_end_abandon:
                self.cancel(child.id)

    def terminate(self, workflow_id: int) -> None:
        """End a workflow in any state at once, without running its code."""
        row = self.live(workflow_id)
        if row.wait_data:
            self._drop_losers(decode_node(row.wait_data))
        self._finish(row, WorkflowStatus.Cancelled, "terminated", "terminated", error="terminated by an operator")

    def delete(self, workflow_id: int) -> None:
        """Forget a workflow, ending it first if need be."""
        row = self._workflows.get(workflow_id)
        if row is None:
            raise UnknownWorkflow(f"there is no workflow {workflow_id}")
        if row.status not in FINISHED:
            self.terminate(workflow_id)
        self.engine.forget(self.ctx, workflow_id)

    def _tell_parent(
        self, row: Workflow, *, value: str | None = None, failure: str | None = None, cancelled: bool = False
    ) -> None:
        """Write into the parent's wait how its child ended, and look after the parent."""
        parent = None if row.parent_id is None else self._workflows.get(row.parent_id)
        if parent is None or parent.status in FINISHED or not parent.wait_data:
            return
        node = decode_node(parent.wait_data)
        found = False
        for leaf in leaves(node):
            if isinstance(leaf, ChildLeaf) and leaf.id == row.id and leaf.ready is None:
                leaf.ready, leaf.value, leaf.failure, leaf.cancelled = self.now_micros, value, failure, cancelled
                found = True
        if found:
            self._workflows.update(parent.replace(wait_data=encode_node(node)))
            self._queue.append((parent.id, None))

    def procedure_ended(
        self, pending: PendingProcedure, value: str | None, failure: tuple[int, str, str] | None
    ) -> None:
        """Write into the workflow's wait how its call ended, and look after the workflow."""
        row = self._workflows.get(pending.workflow_id)
        self.ctx.db[PendingProcedure].delete(pending.id)
        if row is None or row.status in FINISHED or not row.wait_data:
            return
        node = decode_node(row.wait_data)
        for leaf in leaves(node):
            if isinstance(leaf, CallLeaf) and leaf.id == pending.id and leaf.ready is None:
                leaf.ready, leaf.value, leaf.failure = self.now_micros, value, failure
        self._workflows.update(row.replace(wait_data=encode_node(node)))
        self._queue.append((row.id, None))

    def _note(self, row: Workflow, kind: str, detail: Any) -> None:
        self.ctx.db[WorkflowEvent].insert(
            WorkflowEvent(
                workflow_id=row.id,
                at=self.now,
                kind=kind,
                detail=detail if isinstance(detail, str) else _described(detail),
                step=row.current_step,
                state_data=row.state_data,
            )
        )

    def note(self, workflow_id: int, kind: str, detail: str) -> None:
        """Put something into a workflow's timeline."""
        row = self._workflows.get(workflow_id)
        if row is not None and self.engine.journal:
            self._note(row, kind, detail)


def _typed(payload: str, cls: type[Signal], what: str) -> Signal:
    try:
        message: Signal = decode(payload or "{}", cls)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadPayload(f"{what} does not fit: {error}") from None
    return message


def _later(now: datetime, by: timedelta) -> datetime:
    try:
        return now + by
    except OverflowError:
        return datetime.max.replace(tzinfo=now.tzinfo)


def _described(event: Any) -> str:
    if event is None:
        return ""
    value = event.error if isinstance(event, Throw) else event.value
    return "" if value is None else repr(value)[:500]
