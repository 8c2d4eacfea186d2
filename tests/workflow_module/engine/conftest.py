"""What the engine's tests need around them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from engine_support import Faults

from gamedb import unclosed


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    Faults.on = False
    yield
    Faults.on = False
    logging.getLogger("gamedb.game").setLevel(logging.NOTSET)
    for left in list(unclosed.databases):  # games on disk that a test leaves open
        left.close()
