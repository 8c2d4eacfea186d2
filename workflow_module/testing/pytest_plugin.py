"""The pytest fixture `workflow_sim`, registered by the package: `sim = workflow_sim(module)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from gamedb import Module
    from workflow_module.testing import WorkflowSimulation


class MakesWorkflowSimulations(Protocol):
    """What `workflow_sim` gives."""

    def __call__(self, module: Module, **options: Any) -> WorkflowSimulation:
        """A simulation of a module, ended after the test. Options as those of `WorkflowSimulation`."""


@pytest.fixture
def workflow_sim() -> Iterator[MakesWorkflowSimulations]:
    """Makes simulations of a module with workflows: `sim = workflow_sim(module)`."""
    from workflow_module.testing import WorkflowSimulation

    with ExitStack() as stack:
        yield lambda module, **options: stack.enter_context(WorkflowSimulation(module, **options))
