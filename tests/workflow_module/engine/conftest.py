"""What the engine's tests need around them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from engine_support import Faults


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    Faults.on = False
    logging.getLogger("gamedb.game").setLevel(logging.NOTSET)
    yield
    Faults.on = False
