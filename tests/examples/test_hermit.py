"""Questions that workers answer: who waits, who leaves, and what becomes of the call."""

from __future__ import annotations

import logging

import pytest

from examples.hermit import Audience, ask_hermit, leave_hermit, module, work_by_hand
from examples.stage import Stage
from gamedb import ReducerError
from workflow_module import PendingProcedure, UnknownProcedure


@pytest.fixture
def stage() -> Stage:
    return Stage(module)


def test_the_answer_of_a_worker_reaches_the_player(stage: Stage) -> None:
    ann = stage.join("ann")
    asked = ann.call(ask_hermit, "Where?")
    taken = work_by_hand(stage)
    stage.db.call("workflow_procedure_complete", taken.id, 1, '"There."')
    assert stage.flows.result(asked) == "There."
    assert ann.heard == ["There."]
    assert len(stage.db.read(Audience)) == 0


def test_who_leaves_ends_the_thinking(stage: Stage) -> None:
    ann = stage.join("ann")
    ann.call(ask_hermit, "Where?")
    taken = work_by_hand(stage)
    ann.call(leave_hermit)
    assert len(stage.db.read(PendingProcedure)) == 0
    with pytest.raises(UnknownProcedure):
        stage.db.call("workflow_procedure_complete", taken.id, 1, '"There."')
    with pytest.raises(ReducerError, match="asked nothing"):
        ann.call(leave_hermit)


def test_patience_ends_though_no_worker_came(stage: Stage) -> None:
    ann = stage.join("ann")
    ann.call(ask_hermit, "Where?")
    with pytest.raises(ReducerError, match="still thinks"):
        ann.call(ask_hermit, "Why?")
    stage.wait(minutes=2)
    assert ann.heard == ["The hermit still thinks. Come back another day."]


def test_three_workers_that_fail_put_the_hermit_to_sleep(stage: Stage) -> None:
    logging.getLogger("gamedb.hermit").setLevel(logging.CRITICAL)
    ann = stage.join("ann")
    ann.call(ask_hermit, "Where?")
    for attempt in (1, 2, 3):
        taken = work_by_hand(stage)
        stage.db.call("workflow_procedure_fail", taken.id, attempt, "MemoryError", "the model does not fit")
        stage.wait(seconds=5)
    assert ann.heard == ["The hermit has fallen asleep."]
    logging.getLogger("gamedb.hermit").setLevel(logging.NOTSET)


@pytest.mark.parametrize("question", ["", "x" * 201])
def test_questions_have_a_length(stage: Stage, question: str) -> None:
    with pytest.raises(ReducerError, match="1 to 200"):
        stage.join("ann").call(ask_hermit, question)
