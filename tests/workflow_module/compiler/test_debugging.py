"""Debuggers and coverage see a workflow as its author wrote it: the lines of the file, and the variables by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from gamedb import Module
from workflow_module import Signal, WorkflowContext, install, signal, workflow
from workflow_module.testing import WorkflowSimulation


class Share(Signal):
    n: int


@workflow
async def collection(ctx: WorkflowContext) -> int:
    total = 0  # line 1 of those below
    for _ in range(2):
        share = await signal(Share)
        total += share.n
    return total


FIRST = Path(__file__).read_text().split("# line 1 of those below")[0].count("\n") + 1


def test_a_tracer_sees_the_authors_lines_and_variables(
    workflow_sim: Callable[[Module], WorkflowSimulation],
) -> None:
    module = Module("collections")
    install(module, [collection])
    sim = workflow_sim(module)
    seen: list[tuple[int, Any]] = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name != "collection":
            return None
        if event == "line" and frame.f_lineno >= FIRST:
            seen.append((frame.f_lineno - FIRST + 1, frame.f_locals.get("total")))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        flow = sim.start(collection, None)
        sim.signal(flow, Share(1))
        sim.signal(flow, Share(2))
    finally:
        sys.settrace(before)

    lines = [line for index, (line, _) in enumerate(seen) if index == 0 or seen[index - 1][0] != line]
    assert lines == [1, 2, 3, 4, 2, 3, 4, 2, 5]
    assert [total for line, total in seen if line == 4] == [0, 1]
    assert sim.result(flow) == 3
