"""The plugins give tests their fixtures, and end what they made."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

PLUGINS = ("gamedb.testing.pytest_plugin", "workflow_module.testing.pytest_plugin")
GAME = """
from datetime import timedelta
import pytest
from gamedb import Module, PrimaryKey, ReducerContext, Row, u64
from workflow_module import Struct, WorkflowContext, install, sleep, workflow

module = Module("game")

@module.table
class Counter(Row):
    id: PrimaryKey[u64]

@module.reducer
def count(ctx: ReducerContext) -> int:
    return ctx.db[Counter].insert(Counter(id=ctx.db[Counter].count())).id

class Nap(Struct):
    hours: int

@workflow
async def nap(ctx: WorkflowContext, init: Nap) -> int:
    await sleep(timedelta(hours=init.hours))
    return init.hours

install(module, [nap])
made = []

def test_a_game(gamedb_sim):
    sim = gamedb_sim(module, seed=7)
    made.append(sim)
    assert [sim.call(count) for _ in range(3)] == [0, 1, 2]

def test_workflows(workflow_sim):
    sim = workflow_sim(module)
    wf = sim.start(nap, Nap(hours=8))
    sim.advance(timedelta(hours=8))
    assert sim.result(wf) == 8

def test_they_are_ended():
    with pytest.raises(Exception, match="is over"):
        made[0].call(count)
"""


def test_the_fixtures_work_and_clean_up(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GAME)
    result = pytester.runpytest_inprocess("-W", "error", *(word for name in PLUGINS for word in ("-p", name)))
    result.assert_outcomes(passed=3)


def test_fixtures_say_what_they_are_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("")
    result = pytester.runpytest_inprocess("--fixtures", *(word for name in PLUGINS for word in ("-p", name)))
    result.stdout.fnmatch_lines(["gamedb_sim*", "*sim = gamedb_sim(module)*", "workflow_sim*"])


def test_the_package_registers_them() -> None:
    root = Path(__file__).parents[3]
    entries = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert set(entries) == set(entries.values()) == set(PLUGINS)
    for name in PLUGINS:
        assert import_module(name)
