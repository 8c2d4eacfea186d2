"""Random games of the engine against a model of readiness: signals, time, fired timers, cancels, faults, crashes."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from engine_support import Bid, Faults, Game, Stop, seconds
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from readiness_model import Flow, World
from readiness_shapes import SHAPES, Shape

from workflow_module import Workflow, WorkflowTimer

EXAMPLES = max(1, int(os.environ.get("GAMEDB_FUZZ_STEPS", "2000")) // 100)


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

    def teardown(self) -> None:
        Faults.on = False
        self.game.db.close()
        self.directory.cleanup()

    # --- what can be picked

    def pick(self, data: Any, flows: list[Flow]) -> Flow:
        return flows[data.draw(st.integers(0, len(flows) - 1), label="which")]

    @property
    def live(self) -> list[Flow]:
        return [flow for flow in self.world.flows.values() if not flow.finished]

    def learn(self) -> None:
        """New workflows of both sides, in the order of their making."""
        rows = sorted(self.game.db.read(Workflow), key=lambda row: row.id)
        assert len(rows) == len(self.world.flows)
        self.ids = {model: row.id for model, row in zip(sorted(self.world.flows), rows, strict=True)}

    # --- rules

    @rule(shape=st.sampled_from(sorted(SHAPES)), d=st.integers(0, 6), manual=st.booleans(), data=st.data())
    def start(self, shape: str, d: int, manual: bool, data: Any) -> None:
        target = 0
        if shape == "racer" and self.world.flows and data.draw(st.booleans(), label="relay"):
            target = self.pick(data, list(self.world.flows.values())).id
        begin = self.game.flows.start_test if manual else self.game.flows.start
        begin(SHAPES[shape], Shape(d=d, target=self.ids.get(target, 0)))
        self.world.start(shape, Shape(d=d, target=target), manual)
        self.settle()

    @precondition(lambda self: any(SHAPES[flow.shape].signals for flow in self.live))
    @rule(data=st.data(), amount=st.integers(0, 9), stop=st.booleans())
    def signal(self, data: Any, amount: int, stop: bool) -> None:
        flow = self.pick(data, [flow for flow in self.live if SHAPES[flow.shape].signals])
        stop = stop and "Stop" in SHAPES[flow.shape].signals
        self.game.flows.signal(self.ids[flow.id], Stop() if stop else Bid(amount=amount))
        self.world.signal(flow, "Stop" if stop else "Bid", amount)
        self.settle()

    @rule(by=st.integers(1, 5))
    def jump(self, by: int) -> None:
        self.game.clock.advance(seconds(by))
        self.world.now += by
        if self.resumptions_max is not None:
            self.run_due()

    @rule()
    def run_due(self) -> None:
        self.game.due()
        self.world.run_due()
        self.settle()

    @rule(by=st.integers(1, 8))
    def keep_up(self, by: int) -> None:
        for _ in range(by):
            self.jump(1)
            self.run_due()

    @precondition(lambda self: any(self.pending(flow) for flow in self.live))
    @rule(data=st.data())
    def fire(self, data: Any) -> None:
        flow = self.pick(data, [flow for flow in self.live if self.pending(flow)])
        names = self.pending(flow)
        name = names[data.draw(st.integers(0, len(names) - 1), label="timer")]
        self.game.flows.fire_timer(self.ids[flow.id], name)
        self.world.fire(flow, next(arm for arm in flow.arms if arm.timer_name == name and arm.fired is None))
        self.settle()

    def pending(self, flow: Flow) -> list[str]:
        return [arm.timer_name for arm in flow.arms if arm.due is not None and arm.fired is None]

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        flow = self.pick(data, self.live)
        self.game.flows.cancel(self.ids[flow.id])
        self.world.cancel(flow)
        self.settle()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def terminate(self, data: Any) -> None:
        flow = self.pick(data, self.live)
        self.game.flows.terminate(self.ids[flow.id])
        self.world.terminate(flow)
        self.settle()

    @precondition(lambda self: any(flow.status == "Failed" for flow in self.live))
    @rule(data=st.data(), fixed=st.booleans())
    def resume(self, data: Any, fixed: bool) -> None:
        if fixed:
            Faults.on = self.world.faults = False
        flow = self.pick(data, [flow for flow in self.live if flow.status == "Failed"])
        self.game.flows.resume(self.ids[flow.id])
        self.world.resume(flow)
        self.settle()

    @rule()
    def break_or_fix(self) -> None:
        Faults.on = self.world.faults = not self.world.faults

    @rule()
    def crash(self) -> None:
        self.game.crash()
        self.game.quiet()

    def settle(self) -> None:
        self.world.drain()
        if self.resumptions_max is not None:  # what was put off to next transactions
            self.game.due()
            self.world.run_due()
        self.learn()

    # --- what must hold

    @invariant()
    def both_say_the_same(self) -> None:
        for flow in self.world.flows.values():
            flow_id = self.ids[flow.id]
            row = self.game.row(flow_id)
            assert row.status.value == flow.status, (flow.id, flow.shape)
            assert self.game.inbox(flow_id) == [name for _, _, name, _ in flow.inbox], (flow.id, flow.shape)
            if flow.status == "Completed":
                assert json.loads(row.result or "") == flow.log, (flow.id, flow.shape)
            elif not flow.finished and row.current_step:
                assert self.game.flows.view(flow_id).log == flow.saved, (flow.id, flow.shape)
            if flow.finished:
                assert row.unread_signals == flow.unread, (flow.id, flow.shape)
                if flow.status == "Cancelled" and flow.error:
                    assert "on purpose" in (row.error or "")

    @invariant()
    def timers_are_those_of_the_waits(self) -> None:
        for flow in self.world.flows.values():
            rows = self.game.db.read(WorkflowTimer).where(workflow_id=self.ids[flow.id])
            there = {row.timer_name for row in rows}
            if flow.finished:
                assert not there
            else:
                to_come = {
                    arm.timer_name
                    for arm in flow.arms
                    if arm.due is not None and arm.fired is None and not arm.row_fired
                }
                assert to_come <= there, (flow.id, flow.shape)


class ReadinessAtTheLimit(Readiness):
    """The same with two steps in each transaction; whatever is due is fired at once."""

    resumptions_max = 2


SETTINGS = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReadiness = Readiness.TestCase
TestReadiness.settings = SETTINGS
TestReadinessAtTheLimit = ReadinessAtTheLimit.TestCase
TestReadinessAtTheLimit.settings = SETTINGS
