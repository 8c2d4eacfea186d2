"""An expedition: in turn, together, with losses, and recalled."""

from __future__ import annotations

import pytest

from examples.parent_child import ExpeditionResult, errand, module, send_out
from examples.stage import Player, Stage
from examples.world import Character
from workflow_module import Workflow, WorkflowStatus


class Scene:
    def __init__(self) -> None:
        self.stage = Stage(module)
        self.ann: Player = self.stage.join("ann")
        self.gatherers = [self.stage.place(name) for name in ("flip", "flap", "flop")]
        for _ in range(9):
            self.stage.drop("mushroom")

    def errands(self) -> list[Workflow]:
        return sorted(self.stage.db.read(Workflow).where(workflow_type=errand.name), key=lambda row: row.id)


@pytest.mark.parametrize(("together", "minutes"), [(False, 12), (True, 6)])
def test_what_they_bring_is_counted(together: bool, minutes: int) -> None:
    scene = Scene()
    trip = scene.ann.call(send_out, scene.gatherers, together)
    assert len(scene.errands()) == (3 if together else 1)
    scene.stage.wait(minutes=minutes, seconds=-1)
    assert scene.stage.flows.get(trip).result is None
    scene.stage.wait(seconds=1)
    assert scene.stage.flows.result(trip) == ExpeditionResult(found=6, lost=0)
    assert scene.ann.things == ["mushroom"] * 6


@pytest.mark.parametrize("together", [False, True])
def test_those_who_are_lost_bring_nothing_and_do_not_stop_the_others(together: bool) -> None:
    scene = Scene()
    trip = scene.ann.call(send_out, scene.gatherers, together)
    scene.stage.flows.cancel(scene.errands()[0].id)  # called back
    with scene.stage.db.transaction() as ctx:
        ctx.db[Character].delete(scene.gatherers[1])  # eaten: the errand fails when it looks for them
    scene.stage.wait(minutes=4)
    assert [row.status.value for row in scene.errands()] == ["Cancelled", "Failed", "Suspended"]
    assert "there is no character" in (scene.errands()[1].error or "")
    scene.stage.wait(minutes=8)
    assert [row.status.value for row in scene.errands()] == ["Cancelled", "Cancelled", "Completed"], (
        "who is parked ends with the expedition"
    )
    assert scene.stage.flows.result(trip) == ExpeditionResult(found=3, lost=2)


def test_cancelling_the_expedition_recalls_everybody() -> None:
    scene = Scene()
    trip = scene.ann.call(send_out, scene.gatherers, True)
    scene.stage.flows.cancel(trip)
    assert {row.status for row in scene.errands()} == {WorkflowStatus.Cancelled}
    scene.stage.wait(minutes=12)
    assert scene.ann.things == []
