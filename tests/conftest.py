"""How Hypothesis searches: the same examples in every `make test`, new ones in `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import settings

SEARCHES = ("GAMEDB_FUZZ_STEPS", "WORKFLOW_PROGRAMS", "GAMEDB_FUZZ_SCENARIOS")

settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("fuzz" if any(name in os.environ for name in SEARCHES) else "test")
