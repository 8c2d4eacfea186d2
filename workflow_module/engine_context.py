"""The `ctx` of a step: a reducer context with what a workflow may do. Everything takes effect at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from .codec import encode
from .context import WorkflowContext
from .structs import Signal
from .tables import Workflow, WorkflowAttribute, WorkflowSubscription
from .waits import OnParentEnd

if TYPE_CHECKING:
    from .run import Run


def key_text(key: str | int) -> str:
    """A broadcast key as it stands in the table."""
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise TypeError(f"a broadcast key is a str or an int, not {key!r}")
    return str(key)


class EngineContext(WorkflowContext):
    """See `WorkflowContext`; `run` is the engine's work in this transaction."""

    __slots__ = ("run",)

    def __init__(self, run: Run, row: Workflow) -> None:
        self.share(run.ctx)
        self.run = run
        self.workflow_id = row.id
        self.entity_id = row.entity_id
        self.correlation_id = row.correlation_id
        self.parent_id = row.parent_id

    def savepoint(self) -> AbstractContextManager[None]:
        return _StepSavepoint(super().savepoint(), self.run)

    def set_attribute(self, name: str, value: str | int | float | bool | None) -> None:
        attributes = self.db[WorkflowAttribute]
        old = next((a for a in attributes.where(workflow_id=self.workflow_id) if a.name == name), None)
        if value is None:
            if old is not None:
                attributes.delete(old)
            return
        text = msgspec.json.encode(value).decode()
        if old is None:
            attributes.insert(WorkflowAttribute(workflow_id=self.workflow_id, name=name, value=text))
        else:
            attributes.update(old.replace(value=text))

    def broadcast(self, message: Signal, key: str | int) -> None:
        self.run.broadcast(type(message).__name__, key_text(key), _payload(message), message)

    def signal(self, workflow_id: int, message: Signal) -> None:
        self.run.signal(workflow_id, type(message).__name__, _payload(message), message)

    def signal_entity(self, entity_id: int, message: Signal) -> None:
        self.run.signal_entity(entity_id, type(message).__name__, _payload(message), message)

    def subscribe(self, signal_name: str, key: str | int) -> None:
        subscriptions = self.db[WorkflowSubscription]
        wanted = {"workflow_id": self.workflow_id, "signal": signal_name, "key": key_text(key)}
        if not subscriptions.count(**wanted):
            subscriptions.insert(
                WorkflowSubscription(workflow_id=self.workflow_id, signal=signal_name, key=key_text(key))
            )

    def unsubscribe(self, signal_name: str, key: str | int) -> None:
        self.db[WorkflowSubscription].delete_where(workflow_id=self.workflow_id, signal=signal_name, key=key_text(key))

    def start_child(
        self,
        workflow_type: str,
        init: bytes,
        *,
        entity_id: int | None,
        correlation_id: str | None,
        on_parent_end: OnParentEnd,
    ) -> int:
        return self.run.start_child(
            self.workflow_id, workflow_type, init, entity_id, correlation_id, on_parent_end == "abandon"
        )


class _StepSavepoint:
    """A savepoint that also takes back the signals and children of what it undoes."""

    __slots__ = ("_inner", "_mark", "_run")

    def __init__(self, inner: AbstractContextManager[None], run: Run) -> None:
        self._inner = inner
        self._run = run

    def __enter__(self) -> None:
        self._mark = self._run.mark()
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace)
        if kind is not None:
            self._run.unwind(self._mark)


def _payload(message: Signal) -> str:
    if not isinstance(message, Signal):
        is_class = isinstance(message, type)
        shown = f"the class {message.__name__}: write {message.__name__}(...)" if is_class else repr(message)
        raise TypeError(f"what is sent is a Signal, not {shown}")
    return encode(message, type(message), type(message).__name__).decode()
