"""Tests of workflows: `WorkflowSimulation`, and the pytest fixture `workflow_sim`. See docs/testing.md."""

from typing import TYPE_CHECKING, Any

from .fakes import Fake, FakeCall
from .simulation import WorkflowSimulation
from .workers import WorkerDies

if TYPE_CHECKING:
    from .events import WorkflowAction as WorkflowAction
    from .events import workflow_events as workflow_events

__all__ = ["Fake", "FakeCall", "WorkerDies", "WorkflowSimulation"]


def __getattr__(name: str) -> Any:
    if name in ("workflow_events", "WorkflowAction"):  # they need Hypothesis
        from . import events

        return getattr(events, name)
    raise AttributeError(f"module 'workflow_module.testing' has no attribute {name!r}")
