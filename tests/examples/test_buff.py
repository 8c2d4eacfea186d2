"""A buff: stacks, refresh, dispel, expiry, cancel."""

from __future__ import annotations

import pytest

from examples.buff import BuffResult, cast_strength, dispel, module, refresh_strength, stack_strength
from examples.stage import Player, Stage
from examples.world import Effect
from gamedb import ReducerError
from workflow_module import WorkflowCancelled


@pytest.fixture
def stage() -> Stage:
    return Stage(module)


@pytest.fixture
def ann(stage: Stage) -> Player:
    return stage.join("ann")


def test_it_gives_strength_until_it_expires(stage: Stage, ann: Player) -> None:
    buff = ann.call(cast_strength, ann.id)
    assert ann.row.strength == 15
    stage.wait(seconds=59)
    assert ann.row.strength == 15
    assert [(e.kind, e.stacks, e.until) for e in stage.db.read(Effect)] == [
        ("strength", 1, stage.clock.now.replace(second=0, minute=1))
    ]
    stage.wait(seconds=1)
    assert ann.row.strength == 10
    assert not list(stage.db.read(Effect))
    assert stage.flows.result(buff) == BuffResult(final_stacks=1, dispelled=False)
    assert ann.heard == ["You feel strong.", "Your strength fades."]


def test_stacks_add_up_and_do_not_move_the_end(stage: Stage, ann: Player) -> None:
    buff = ann.call(cast_strength, ann.id)
    stage.wait(seconds=30)
    ann.call(stack_strength, ann.id, 2)
    assert ann.row.strength == 25
    assert stage.flows.view(buff).stacks == 3
    ann.call(stack_strength, ann.id, 100)
    assert ann.row.strength == 35, "five stacks at most"
    stage.wait(seconds=30)
    assert ann.row.strength == 10
    assert stage.flows.result(buff) == BuffResult(final_stacks=5, dispelled=False)


def test_a_refresh_starts_the_minute_anew(stage: Stage, ann: Player) -> None:
    ann.call(cast_strength, ann.id)
    stage.wait(seconds=50)
    ann.call(refresh_strength, ann.id)
    stage.wait(seconds=59)
    assert ann.row.strength == 15
    stage.wait(seconds=1)
    assert ann.row.strength == 10


def test_a_dispel_ends_it_at_once(stage: Stage, ann: Player) -> None:
    buff = ann.call(cast_strength, ann.id)
    ann.call(dispel, ann.id)
    assert ann.row.strength == 10
    assert stage.flows.result(buff) == BuffResult(final_stacks=1, dispelled=True)
    with pytest.raises(ReducerError, match="ann has no buff"):
        ann.call(dispel, ann.id)


def test_a_second_one_is_refused(stage: Stage, ann: Player) -> None:
    ann.call(cast_strength, ann.id)
    with pytest.raises(ReducerError, match="strong already"):
        ann.call(cast_strength, ann.id)


def test_a_cancelled_one_takes_its_strength_along(stage: Stage, ann: Player) -> None:
    buff = ann.call(cast_strength, ann.id)
    stage.flows.cancel(buff)
    assert ann.row.strength == 10
    with pytest.raises(WorkflowCancelled):
        stage.flows.result(buff)
