"""What the tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gamedb import Database, ManualClock
from tests.gamedb.server.http_game import Served, game, with_visitors


@pytest.fixture
def served(clock: ManualClock) -> Iterator[Served]:
    """The game in memory."""
    served = Served(Database(with_visitors(game()), clock=clock), clock)
    yield served
    served.close()


@pytest.fixture
def stored(clock: ManualClock, tmp_path: Path) -> Iterator[Served]:
    """The game in a file."""
    served = Served(Database(game(), tmp_path / "arena.db", clock=clock), clock)
    yield served
    served.close()
