"""No gold and no thing is made or lost, whatever players do and whenever the process dies.

Random scenarios in a simulation whose disk is slow. `save` is a flush boundary; a crash falls back to what the disk
has, as a killed process would, and the game goes on from there. After each commit the sums are those of the beginning,
what the tables say agrees with what the workflows did, and when all has ended, nothing is held any more.
"""

from __future__ import annotations

import contextlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamedb import ReducerError
from tests.examples.crashes import CrashStage
from tests.examples.games import GAMES
from tests.examples.games.base import Action, Game, Play
from workflow_module import WorkflowError

SCENARIOS = int(os.environ.get("GAMEDB_FUZZ_SCENARIOS", "40"))
STEPS = 30

Draw = st.DataObject


class Drawn:
    """Chance that Hypothesis can shrink."""

    def __init__(self, data: Draw) -> None:
        self._data = data

    def number(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


@pytest.mark.parametrize("name", GAMES)
@settings(max_examples=SCENARIOS, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_is_made_or_lost_whenever_it_crashes(name: str, data: Draw) -> None:
    game = GAMES[name]
    stage = CrashStage(game.module)
    try:
        game.begin(stage.db)
        stage.save()
        _play(game, stage, Play(stage, Drawn(data)))
    finally:  # also when Hypothesis gives the scenario up
        stage.sim.close()


def _play(game: Game, stage: CrashStage, play: Play) -> None:
    stage.guard(game.sums)
    actions = game.actions(play)
    common: list[Action] = [
        lambda: stage.wait(seconds=play.number(0, 70)),
        lambda: stage.clock.advance(play.number(0, 30)),  # nobody looks meanwhile
        play.cancel,
        stage.save,
        stage.crash,
    ]
    every = [*actions, *actions, *common]
    for _ in range(STEPS):
        with contextlib.suppress(ReducerError, WorkflowError):
            play.one_of(every)()
        stage.sim.check()
    game.check(stage)
    stage.wait(days=game.days, minutes=1)  # the disk took its time, and so did what waited for it
    game.end(play)
    stage.sim.check()
    game.check(stage)
    game.check_end(stage)
