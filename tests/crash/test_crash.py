"""SIGKILL at random moments: the file opens with whole transactions, nothing that was confirmed is missing, and the
workflows in it go on: each effect once, each call with one step key, and no property lost."""

from __future__ import annotations

import os
import random

import pytest

from tests.crash.driver import kill_often
from tests.crash.games import GAMES


@pytest.mark.parametrize("name", GAMES)
def test_a_killed_game_goes_on_from_a_prefix_of_its_transactions(name: str) -> None:
    game = GAMES[name]
    kills = int(os.environ.get("GAMEDB_CRASH_KILLS", game.kills))
    seed = int(os.environ.get("GAMEDB_CRASH_SEED", str(random.randrange(1 << 30))))
    kill_often(game, kills, seed)
