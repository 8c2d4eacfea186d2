"""The pytest fixture `gamedb_sim`, registered by the package: `sim = gamedb_sim(module)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from gamedb import Module
    from gamedb.testing import Simulation


class MakesSimulations(Protocol):
    """What `gamedb_sim` gives."""

    def __call__(self, module: Module, **options: Any) -> Simulation:
        """A simulation of a module, ended after the test. Options as those of `Simulation`."""


@pytest.fixture
def gamedb_sim() -> Iterator[MakesSimulations]:
    """Makes simulations of a module: `sim = gamedb_sim(module)`."""
    from gamedb.testing import Simulation

    with ExitStack() as stack:
        yield lambda module, **options: stack.enter_context(Simulation(module, **options))
