"""How Hypothesis searches: the same examples in every `make test`, new ones in `make fuzz`.

The plugins of the packages are named here, so that the tests also run where the packages are not installed.
"""

from __future__ import annotations

import os

import coverage
import pytest
from hypothesis import settings

pytest_plugins = ["pytester", "gamedb.testing.pytest_plugin", "workflow_module.testing.pytest_plugin"]

SEARCHES = ("GAMEDB_FUZZ_STEPS", "WORKFLOW_PROGRAMS", "GAMEDB_FUZZ_SCENARIOS")

settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("fuzz" if any(name in os.environ for name in SEARCHES) else "test")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """pytest-xdist kills a process of its own that takes long to end, and what it covered would be lost."""
    measuring = coverage.Coverage.current()
    if measuring is not None and hasattr(session.config, "workerinput"):
        measuring.stop()
        measuring.save()
