"""`workflow_events`: a Hypothesis strategy for what can happen to a workflow: signals, timers, waits. Needs Hypothesis.

events = data.draw(workflow_events(buff))
for event in events:
    event.apply(sim, workflow_id)
"""

from __future__ import annotations

import typing
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from gamedb import GamedbError
from gamedb.testing.strategies import values
from workflow_module.definition import WorkflowDefinition
from workflow_module.refusals import UnknownTimer, UnknownWorkflow, WorkflowFinished
from workflow_module.structs import Signal
from workflow_module.testing.simulation import WorkflowSimulation

WAIT_SECONDS_MAX = 120


class Send(msgspec.Struct, frozen=True):
    """A signal comes."""

    message: Signal
    """The signal."""

    def apply(self, sim: WorkflowSimulation, workflow_id: int) -> bool:
        """Let it happen; False when the workflow cannot take it any more."""
        try:
            sim.signal(workflow_id, self.message)
        except (WorkflowFinished, UnknownWorkflow):
            return False
        return True


class Fire(msgspec.Struct, frozen=True):
    """A timer is due."""

    timer: str
    """The value of its enum member, or `sleep`."""

    def apply(self, sim: WorkflowSimulation, workflow_id: int) -> bool:
        """Let it happen; False when the workflow does not wait for it."""
        try:
            sim.fire_timer(workflow_id, self.timer)
        except (UnknownTimer, WorkflowFinished, UnknownWorkflow):
            return False
        return True


class Wait(msgspec.Struct, frozen=True):
    """Time passes."""

    seconds: float
    """How long."""

    def apply(self, sim: WorkflowSimulation, workflow_id: int) -> bool:
        """Let it happen."""
        sim.advance(timedelta(seconds=self.seconds))
        return True


WorkflowAction = Send | Fire | Wait
"""One thing that can happen to a workflow; `apply` lets it happen."""


def workflow_events(
    workflow: WorkflowDefinition[Any, Any], *, max_size: int = 10, timers: bool = True
) -> st.SearchStrategy[list[WorkflowAction]]:
    """Lists of valid events for a workflow: its signals with payloads of their types, its timers, and waits."""
    kinds: list[st.SearchStrategy[Any]] = [st.integers(1, WAIT_SECONDS_MAX).map(lambda seconds: Wait(float(seconds)))]
    kinds += [_signals(cls).map(Send) for _, cls in sorted(workflow.signals.items())]
    if timers and workflow.timers:
        kinds.append(st.sampled_from(sorted(workflow.timers)).map(Fire))
    return st.lists(st.one_of(kinds), max_size=max_size)


def _signals(cls: type[Signal]) -> st.SearchStrategy[Signal]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return st.builds(cls, **{field.name: _values(hints[field.name]) for field in msgspec.structs.fields(cls)})


def _values(annotation: Any) -> st.SearchStrategy[Any]:
    """Payloads may have types that columns do not; Hypothesis knows most of them."""
    try:
        return values(annotation)
    except GamedbError:
        return st.from_type(annotation)
