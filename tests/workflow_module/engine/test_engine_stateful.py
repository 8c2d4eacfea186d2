"""Random games of the engine against a model of readiness: signals, time, fired timers, cancels, faults, crashes."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_support import Bid, Faults, Game, Stop, seconds
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from readiness_model import Flow, World
from readiness_shapes import SHAPES, Shape

from workflow_module import Workflow, WorkflowTimer

EXAMPLES = max(1, int(os.environ.get("GAMEDB_FUZZ_STEPS", "2000")) // 100)


Choose = Callable[[int], int]

WEIGHTS = {
    "start": 5,
    "signal": 12,
    "jump": 7,
    "run_due": 5,
    "fire": 4,
    "cancel": 1,
    "terminate": 0.3,
    "resume": 4,
    "break_it": 1,
    "fix_it": 1,
    "crash": 0.15,
}
LIVE_MAX = 10


def pick(flows: list[Flow], choose: Choose) -> Flow:
    return flows[choose(len(flows))]


def pending(flow: Flow) -> list[str]:
    return [arm.timer_name for arm in flow.arms if arm.due is not None and arm.fired is None]


def to_come(flow: Flow) -> set[str]:
    """The timers whose rows must be there."""
    return {arm.timer_name for arm in flow.arms if arm.due is not None and arm.fired is None and not arm.row_fired}


class Readiness(RuleBasedStateMachine):
    """Everything that is done to the engine is done to the model."""

    resumptions_max: int | None = None

    def __init__(self) -> None:
        super().__init__()
        Faults.on = False
        self.directory = tempfile.TemporaryDirectory()
        self.game = Game(
            SHAPES.values(), Path(self.directory.name, "game.db"), journal=False, resumptions_max=self.resumptions_max
        )
        self.game.quiet()
        self.world = World()
        self.ids: dict[int, int] = {}
        """Ids of the model to ids of the engine; they differ after a crash."""
        self.compared: set[int] = set()
        """Those that had ended when they were last compared."""

    def teardown(self) -> None:
        Faults.on = False
        self.game.db.close()
        self.directory.cleanup()

    # --- what is done; `choose(n)` picks a number below n

    @property
    def live(self) -> list[Flow]:
        return [flow for flow in self.world.flows.values() if not flow.finished]

    def learn(self) -> None:
        """New workflows of both sides, in the order of their making."""
        rows = sorted(self.game.db.read(Workflow), key=lambda row: row.id)
        assert len(rows) == len(self.world.flows)
        self.ids = {model: row.id for model, row in zip(sorted(self.world.flows), rows, strict=True)}

    def start(self, choose: Choose) -> None:
        shape = sorted(SHAPES)[choose(len(SHAPES))]
        d, manual, target = choose(6), choose(4) == 0, 0
        if shape == "racer" and self.world.flows and choose(2):
            target = pick(list(self.world.flows.values()), choose).id
        begin = self.game.flows.start_test if manual else self.game.flows.start
        begin(SHAPES[shape], Shape(d=d, target=self.ids.get(target, 0)))
        self.world.start(shape, Shape(d=d, target=target), manual)

    def signal(self, choose: Choose) -> None:
        flows = [flow for flow in self.live if SHAPES[flow.shape].signals]
        if flows:
            flow = pick(flows, choose)
            stop, amount = choose(3) == 0 and "Stop" in SHAPES[flow.shape].signals, choose(10)
            self.game.flows.signal(self.ids[flow.id], Stop() if stop else Bid(amount=amount))
            self.world.signal(flow, "Stop" if stop else "Bid", amount)

    def jump(self, choose: Choose) -> None:
        """Time passes, and nobody looks."""
        by = 1 + choose(3)
        self.game.clock.advance(seconds(by))
        self.world.now += by
        if self.resumptions_max is not None:
            self.run_due(choose)

    def run_due(self, _choose: Choose) -> None:
        self.game.due()
        self.world.run_due()

    def fire(self, choose: Choose) -> None:
        flows = [flow for flow in self.live if pending(flow)]
        if flows:
            flow = pick(flows, choose)
            names = pending(flow)
            name = names[choose(len(names))]
            self.game.flows.fire_timer(self.ids[flow.id], name)
            self.world.fire(flow, next(arm for arm in flow.arms if arm.timer_name == name and arm.fired is None))

    def cancel(self, choose: Choose) -> None:
        if self.live:
            flow = pick(self.live, choose)
            self.game.flows.cancel(self.ids[flow.id])
            self.world.cancel(flow)

    def terminate(self, choose: Choose) -> None:
        if self.live:
            flow = pick(self.live, choose)
            self.game.flows.terminate(self.ids[flow.id])
            self.world.terminate(flow)

    def resume(self, choose: Choose) -> None:
        flows = [flow for flow in self.live if flow.status == "Failed"]
        if flows:
            if choose(3):
                Faults.on = self.world.faults = False
            flow = pick(flows, choose)
            self.game.flows.resume(self.ids[flow.id])
            self.world.resume(flow)

    def break_it(self, _choose: Choose) -> None:
        Faults.on = self.world.faults = True

    def fix_it(self, _choose: Choose) -> None:
        Faults.on = self.world.faults = False

    def crash(self, _choose: Choose) -> None:
        self.game.crash()
        self.game.quiet()

    @rule(data=st.data(), what=st.sampled_from(sorted(WEIGHTS)))
    def one(self, data: Any, what: str) -> None:
        self.do(what, lambda n: data.draw(st.integers(0, n - 1)))

    @rule(seed=st.integers(0, 2**32), count=st.integers(1, 100))
    def many(self, seed: int, count: int) -> None:
        """A dense game from a seed; Hypothesis alone seldom gets to where things interact."""
        rng = random.Random(seed)
        for what in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count):
            self.do(what, rng.randrange)

    def do(self, what: str, choose: Choose) -> None:
        if what == "start" and len(self.live) >= LIVE_MAX:
            what = "terminate"
        note(f"{what} at {self.world.now}")
        getattr(self, what)(choose)
        self.settle()
        self.compare()

    def settle(self) -> None:
        self.world.drain()
        if self.resumptions_max is not None:  # what was put off to next transactions
            self.game.due()
            self.world.run_due()
        self.learn()

    # --- what must hold

    def compare(self) -> None:
        for flow in self.world.flows.values():
            if flow.id not in self.compared:
                self.compare_one(flow, self.ids[flow.id])
                if flow.finished:
                    self.compared.add(flow.id)

    def compare_one(self, flow: Flow, flow_id: int) -> None:
        row = self.game.row(flow_id)
        what = (flow.id, flow.shape, flow.init)
        assert row.status.value == flow.status, what
        assert self.game.inbox(flow_id) == [name for _, _, name, _ in flow.inbox], what
        there = {timer.timer_name for timer in self.game.db.read(WorkflowTimer).where(workflow_id=flow_id)}
        if flow.finished:
            assert not there, what
            assert row.unread_signals == flow.unread, what
            if flow.status == "Completed":
                assert json.loads(row.result or "") == flow.log, what
            elif flow.error:
                assert "on purpose" in (row.error or ""), what
        else:
            assert to_come(flow) <= there, what
            if row.current_step:
                assert self.game.flows.view(flow_id).log == flow.saved, what


class ReadinessAtTheLimit(Readiness):
    """The same with two steps in each transaction; whatever is due is fired at once."""

    resumptions_max = 2


SETTINGS = settings(
    max_examples=EXAMPLES, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReadiness = Readiness.TestCase
TestReadiness.settings = SETTINGS
TestReadinessAtTheLimit = ReadinessAtTheLimit.TestCase
TestReadinessAtTheLimit.settings = SETTINGS
