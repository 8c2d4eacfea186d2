"""The proof: random programs show the same compiled, stored and read at every wait, as in CPython.

`WORKFLOW_PROGRAMS=5000 pytest ...` runs more of them; `python differential.py SEED COUNT` runs them without
Hypothesis, for hours.
"""

from __future__ import annotations

import os
import random

from differential import compare
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from program_generator import events, program

PROGRAMS = int(os.environ.get("WORKFLOW_PROGRAMS", "300"))


class Bytes:
    """Decisions from bytes, the simplest ones after their end; so that Hypothesis can shrink a program."""

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def __call__(self, options: int) -> int:
        return next(self.data, 0) % options


@settings(max_examples=PROGRAMS // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=900))
def test_programs_that_shrink_show_the_same_as_in_cpython(data: bytes) -> None:
    choose = Bytes(data)
    compare(program(choose, 7), events(choose))


@settings(max_examples=PROGRAMS - PROGRAMS // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
@example(140)
@example(1307)
@example(2344)
@example(741203796)
def test_programs_show_the_same_as_in_cpython(seed: int) -> None:
    choose = random.Random(seed).randrange
    compare(program(choose, 7), events(choose))
