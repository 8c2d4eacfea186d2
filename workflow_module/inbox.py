"""Signals that a workflow may read: those of the inbox table, and one that has just come."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from .armed import CallLeaf, ChildLeaf, Facts
from .arming import EPOCH, micros_of
from .codec import codec_for, decode
from .definition import WorkflowDefinition
from .outcome import Value
from .structs import Signal
from .tables import Workflow, WorkflowSignal

if TYPE_CHECKING:
    from .run import Run

ID_MAX: Final = 2**64 - 1


def micros(moment: datetime) -> int:
    """Microseconds since the Unix epoch."""
    return micros_of(moment - EPOCH)


class Incoming(msgspec.Struct):
    """A signal that has just come, and is in no table yet."""

    name: str
    payload: str
    event: Value
    micros: int
    """When it arrived."""

    id: ClassVar[int] = ID_MAX  # younger than all that wait in the inbox

    @property
    def value(self) -> Any:
        """The signal."""
        return self.event.value


def arrival(name: str, payload: str, message: Signal, micros: int) -> Incoming:
    """A signal and its JSON, at the time of its arrival."""
    if codec_for(type(message)).walk is not None:  # mutable: nobody else may see what is done to it
        message = decode(payload, type(message))
    return Incoming(name, payload, Value(message), micros)


class Stored:
    """An unread signal of the inbox."""

    __slots__ = ("_definition", "_row", "id", "name")

    def __init__(self, row: WorkflowSignal, definition: WorkflowDefinition[Any, Any]) -> None:
        self._row = row
        self._definition = definition
        self.id = row.id
        self.name = row.signal

    @property
    def micros(self) -> int:
        """When it arrived."""
        return micros(self._row.arrived_at)

    @property
    def value(self) -> Any:
        """The signal."""
        return decode(self._row.payload, self._definition.signals[self._row.signal])


class RunFacts(Facts):
    """What one workflow's wait may look at."""

    __slots__ = ("_definition", "_run", "_workflow_id")

    def __init__(
        self, run: Run, row: Workflow, definition: WorkflowDefinition[Any, Any], stored: int, incoming: Incoming | None
    ) -> None:
        super().__init__(run.now_micros, row.test_mode, stored, incoming)
        self._run = run
        self._workflow_id = row.id
        self._definition = definition

    def inbox(self, name: str, skip: int) -> tuple[Stored | None, int]:
        low, high = (self._workflow_id, name, 0), (self._workflow_id, name, ID_MAX)
        table = self._run.ctx.db[WorkflowSignal]
        found = table.between(("workflow_id", "signal", "id"), low, high, limit=skip + 1)
        return (Stored(found[skip], self._definition) if len(found) > skip else None), len(found)

    def timer_value(self, name: str) -> Any:
        return self._definition.timers[name]

    def child_value(self, leaf: ChildLeaf) -> Any:
        return self._run.engine.definition(leaf.workflow_type).decode_result(leaf.value or "null")

    def call_value(self, leaf: CallLeaf) -> Any:
        return self._run.engine.call_result(self._definition, leaf)
