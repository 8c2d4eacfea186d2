"""SIGKILL at random moments: workflows go on, each effect once, each call with one step key, and no gold is lost."""

from __future__ import annotations

import os
import random

from tests.crash import workflow_run


def test_killed_workflows_go_on_without_losing_or_doubling_anything() -> None:
    kills = int(os.environ.get("GAMEDB_CRASH_KILLS", "100")) // 2
    seed = int(os.environ.get("GAMEDB_CRASH_SEED", str(random.randrange(1 << 30))))
    workflow_run.main(kills, seed)
