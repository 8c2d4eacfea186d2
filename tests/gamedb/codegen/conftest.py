"""What the tests of code generation share. Rows are not declared here: there are several modules named `conftest`."""

from __future__ import annotations

import pytest

from gamedb import Module
from tests.gamedb.codegen.sample import sample


@pytest.fixture
def module() -> Module:
    return sample()
