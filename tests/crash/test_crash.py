"""SIGKILL at random moments: the file opens, with whole transactions, and nothing that was confirmed is missing."""

from __future__ import annotations

import os
import random

from tests.crash import run


def test_a_killed_game_goes_on_from_a_prefix_of_its_transactions() -> None:
    kills = int(os.environ.get("GAMEDB_CRASH_KILLS", "100"))
    seed = int(os.environ.get("GAMEDB_CRASH_SEED", str(random.randrange(1 << 30))))
    run.main(kills, seed)
