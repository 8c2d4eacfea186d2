"""What tools for operators learn of the installed workflows."""

from __future__ import annotations

import enum
import json
from datetime import timedelta
from typing import Any

from gamedb import Database, HealthReport, Module
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow
from workflow_module.install import PARKED_MAX
from workflow_module.json_shapes import shape_of


class Flour(enum.Enum):
    RYE = "rye"
    WHEAT = "wheat"


class Rest(Timer):
    RISE = "rise"


class Order(Signal):
    customer: str
    loaves: int = 1


class Recipe(Struct):
    flour: Flour
    rise: timedelta
    seeds: list[str] = []
    salt: float | None = None


class Branch(Struct):
    next: Branch | None = None


@workflow
async def bakery(ctx: WorkflowContext, init: Recipe) -> int:
    """Bake until nobody wants any more."""
    sold = 0
    while True:
        match await select(timer(Rest.RISE, after=init.rise), Order):
            case Rest.RISE:
                return sold
            case Order(_, loaves):
                sold += loaves


def fields(shape: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in shape["fields"]}


def told() -> dict[str, Any]:
    module = Module("village")
    install(module, [bakery], testing=True)
    found: dict[str, Any] = {}
    for function in module.resolve().describers:
        found.update(function())
    return json.loads(json.dumps(found))


def test_a_workflow_is_described_with_its_signals_timers_and_source() -> None:
    body = told()
    assert body["workflows_testing"] is True
    found = body["workflows"]["bakery"]
    assert (found["version"], found["timers"], found["result"]["kind"]) == (1, ["rise"], "integer")
    assert found["doc"] == "Bake until nobody wants any more."
    order = fields(found["signals"]["Order"])
    assert order["customer"] == {"name": "customer", "shape": {"kind": "text", "type": "str"}}
    assert order["loaves"]["default"] == 1


def test_the_source_has_the_lines_where_it_waits_and_its_variables() -> None:
    source = told()["workflows"]["bakery"]["source"]
    (point,) = source["points"]
    lines = source["text"].split("\n")
    assert lines[0] == "@workflow"
    assert "await select" in lines[point["line"] - source["first_line"]]
    assert point["label"] == "select(RISE, Order)"
    assert source["variables"] == {"sold": "int"}
    assert source["file"] == "test_description.py"


def test_shapes_have_what_a_form_needs() -> None:
    recipe = fields(shape_of(Recipe))
    assert recipe["flour"]["shape"] == {"kind": "enum", "values": ["rye", "wheat"], "type": "Flour"}
    assert recipe["rise"]["shape"]["kind"] == "duration"
    assert recipe["seeds"] == {
        "name": "seeds",
        "shape": {"kind": "list", "of": {"kind": "text", "type": "str"}, "type": "list[str]"},
        "default": [],
    }
    assert recipe["salt"]["shape"]["of"]["kind"] == "number"
    assert fields(shape_of(Branch))["next"]["shape"]["of"]["kind"] == "json"  # a type inside itself is written as JSON
    assert shape_of(int | str)["kind"] == "json"
    assert shape_of(None)["kind"] == "null"


def test_parked_workflows_are_told_to_health() -> None:
    module = Module("village")
    install(module, [bakery])
    with Database(module) as db:
        for count, problems in ((PARKED_MAX, 0), (PARKED_MAX + 1, 1)):
            report = HealthReport(lambda _row, _values, count=count: count, read=db.read, seconds_since=lambda _: 0.0)
            for check in db.module.health_checks:
                check(report)
            assert report.numbers == {"parked_workflows": count, "untaken_call_seconds": 0.0}
            assert len(report.problems) == problems
