"""What the tests of gamedb share: a manual clock, and the log of a database."""

from __future__ import annotations

import pytest

from gamedb import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
