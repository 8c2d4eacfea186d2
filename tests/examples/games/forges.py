"""Forges: each cycle that was completed has made one ingot of two ore, and none was completed before its time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from examples.production import (
    INGOT,
    Halt,
    ProductionTimer,
    Resume,
    dig,
    halt_forge,
    module,
    production,
    resume_forge,
    start_forge,
    stop_forge,
)
from examples.world import Item
from gamedb import ReducerContext
from tests.examples.games.base import Action, Game, Moment, Play, Running, live, players, things_held, timeline
from workflow_module import Workflow, WorkflowStatus


class Forges(Game):
    """Each player has a forge; there is ore on the ground."""

    module = module
    players = ("ann", "bob")
    ore: int = 15

    def furnish(self, ctx: ReducerContext) -> None:
        """Ore lies on the ground."""
        for _ in range(self.ore):
            ctx.db[Item].insert(Item(kind="ore"))

    def actions(self, play: Play) -> tuple[Action, ...]:
        """Start, dig, halt, resume, stop."""
        return (
            lambda: play.call(play.player(), start_forge),
            lambda: play.call(play.player(), dig, play.row(Item, owner_id=None).id),
            lambda: play.call(play.player(), halt_forge, "why not"),
            lambda: play.call(play.player(), resume_forge),
            lambda: play.call(play.player(), resume_forge),
            play.rarely(lambda: play.call(play.player(), stop_forge)),
        )

    def end(self, play: Play) -> None:
        """Put the fires out."""
        for row in play.db.read(Workflow):
            if row.status is WorkflowStatus.Suspended:
                play.running.flows.cancel(row.id)

    def worth(self, things: Counter[str]) -> object:
        """An ingot is two ore."""
        return things["ore"] + 2 * things["ingot"]

    def check(self, running: Running) -> None:
        """What is in the forges and what came out of them is what their timelines say."""
        super().check(running)
        db = running.db
        for id, state in live(running, production).items():
            step = running.flows.get(id).current_step
            busy = step.startswith("select(CYCLE_COMPLETE") or "while left" in step
            assert len(things_held(db, id)) == (2 if busy else 0), f"{step} with {things_held(db, id)}"
            assert state.cycles >= 0

        made: Counter[int] = Counter()
        for moment in timeline(running, production):
            if moment.before is None:
                continue
            cycles = moment.after.cycles - moment.before.cycles
            assert cycles == moment.fired(ProductionTimer.CYCLE_COMPLETE), "one ingot each time, and no other"
            made[moment.after.init.owner] += cycles
            if cycles:
                assert moment.at >= moment.before.ends, "it was ready too early"
            _check_time_left(moment)
            if moment.kind == "completed":
                assert production.decode_result(moment.detail).cycles == moment.after.cycles
        for player in players(db):
            ingots = [item for item in db.read(Item).where(owner_id=player.id) if item.kind == "ingot"]
            assert len(ingots) == made[player.id]


def _check_time_left(moment: Moment) -> None:
    """A halt keeps the time that is left, and a resume goes on with it."""
    before, after = vars(moment.before), vars(moment.after)
    if moment.got(Halt) and "ends" in before and "ends" not in after:
        assert after["left"] == max(timedelta(0), before["ends"] - moment.at)
    if moment.got(Resume) and "ends" in after and "ends" not in before:
        idle_before = "left" not in before
        assert after["ends"] - moment.at == (INGOT.cycle_time if idle_before else before["left"])
