"""What DESIGN says of readiness, as a small simulation in seconds: no tables, no state machines, no JSON."""

from __future__ import annotations

from collections import deque
from typing import Any

from readiness_shapes import MODELS, Cancel, Shape

Ready = tuple[tuple[int, int], tuple[str, Any], list[Any]]


class Arm:
    """One thing that is waited for."""

    def __init__(self, kind: str, name: str, due: int | None = None, child: Flow | None = None) -> None:
        self.kind, self.name, self.due, self.child = kind, name, due, child
        self.fired: int | None = None
        self.row_fired = False
        self.told: tuple[int, str, Any] | None = None

    @property
    def timer_name(self) -> str:
        return {"timeout": f"timeout({self.name})", "all": "timeout"}.get(self.kind, self.name)


class Flow:
    """One workflow."""

    def __init__(self, flow_id: int, shape: str, init: Shape, manual: bool, parent: Flow | None) -> None:
        self.id, self.shape, self.init, self.manual, self.parent = flow_id, shape, init, manual, parent
        self.status = "Suspended"
        self.log: list[str] = []
        self.saved: list[str] = []
        self.code: Any = None
        self.kind = ""
        self.arms: list[Arm] = []
        self.inbox: list[tuple[int, int, str, int]] = []
        self.event: tuple[Any, list[Any]] | None = None
        self.cancel_requested = False
        self.children: list[Flow] = []
        self.unread = 0
        self.error = False

    @property
    def finished(self) -> bool:
        return self.status in ("Completed", "Cancelled")


class World:
    """All workflows, the clock and the queue."""

    def __init__(self) -> None:
        self.now = 0
        self.flows: dict[int, Flow] = {}
        self.faults = False
        self.queue: deque[tuple[Flow, tuple[str, int] | None]] = deque()
        self.arrivals = 0

    # --- what happens

    def start(self, shape: str, init: Shape, manual: bool, parent: Flow | None = None) -> Flow:
        flow = Flow(max(self.flows, default=0) + 1, shape, init, manual, parent)
        self.flows[flow.id] = flow
        if parent is not None:
            parent.children.append(flow)
        self.queue.append((flow, None))
        return flow

    def signal(self, flow: Flow, name: str, amount: int) -> None:
        self.queue.append((flow, (name, amount)))

    def cancel(self, flow: Flow) -> None:
        if not flow.cancel_requested:
            flow.cancel_requested = True
            self.queue.append((flow, None))

    def resume(self, flow: Flow) -> None:
        flow.status = "Suspended"
        self.queue.append((flow, None))

    def terminate(self, flow: Flow) -> None:
        self.drop_losers(flow)
        self.finish(flow, "Cancelled")

    def fire(self, flow: Flow, arm: Arm) -> None:
        arm.fired = self.now
        self.queue.append((flow, None))

    def run_due(self) -> None:
        """Timer rows fire in order of their deadlines."""
        while True:
            due = [
                (arm.due, flow.id, flow, arm)
                for flow in self.flows.values()
                if not flow.finished and not flow.manual
                for arm in flow.arms
                if arm.due is not None and arm.due <= self.now and arm.fired is None and not arm.row_fired
            ]
            if not due:
                return
            _, _, flow, arm = min(due, key=lambda entry: entry[:2])
            arm.row_fired = True
            self.queue.append((flow, None))
            self.drain()

    def drain(self) -> None:
        while self.queue:
            self.advance(*self.queue.popleft())

    # --- one workflow

    def advance(self, flow: Flow, incoming: tuple[str, int] | None) -> None:
        if flow.finished:
            flow.unread += incoming is not None
            return
        if incoming is not None:
            self.arrivals += 1
            flow.inbox.append((self.now, self.arrivals, *incoming))
        while not flow.finished and (flow.status != "Failed" or flow.cancel_requested):
            if flow.cancel_requested and flow.status != "Cancelling":
                self.deliver_cancel(flow)
            elif flow.code is None:
                self.begin(flow)
            else:
                event = flow.event or self.ready(flow)
                if event is None:
                    return
                self.deliver(flow, event)

    def begin(self, flow: Flow) -> None:
        if self.faults:
            self.park(flow)
            return
        flow.log = []
        flow.code = MODELS[flow.shape](flow.log, self.now, flow.init)
        self.run(flow, lambda: next(flow.code))

    def deliver(self, flow: Flow, event: tuple[Any, list[Any]]) -> None:
        if self.faults and flow.kind != "unchecked":
            if flow.cancel_requested:
                flow.error = True
                self.finish(flow, "Cancelled")
            else:
                flow.event = event
                self.park(flow)
            return
        value, taken = event
        flow.event = None
        flow.inbox = [each for each in flow.inbox if each not in taken]
        self.drop_losers(flow)
        self.run(flow, lambda: flow.code.send(value))

    def deliver_cancel(self, flow: Flow) -> None:
        if flow.code is None:
            self.finish(flow, "Cancelled")
            return
        flow.status = "Cancelling"
        flow.event = None
        self.drop_losers(flow)
        self.run(flow, lambda: flow.code.throw(Cancel()))

    def run(self, flow: Flow, step: Any) -> None:
        try:
            wanted = step()
            while wanted[0] == "send":
                target = self.flows[wanted[1]]
                error = "WorkflowFinished" if target.finished else "UnknownSignal" if target.shape == "family" else None
                if error is None:
                    self.signal(target, "Bid", wanted[2])
                wanted = flow.code.send(error)
        except StopIteration:
            self.finish(flow, "Cancelled" if flow.cancel_requested else "Completed")
        except Cancel:
            self.finish(flow, "Cancelled")
        else:
            self.arm(flow, wanted)
            flow.saved = list(flow.log)

    def arm(self, flow: Flow, wanted: list[Any]) -> None:
        flow.kind = wanted[0]
        if wanted[0] == "all":
            flow.arms = [Arm("all", "", self.now + wanted[1])]
            return
        flow.arms = []
        for kind, name, *rest in wanted[1:]:
            if kind == "spawn":
                child = self.start(name, rest[0], flow.manual, flow)
                flow.arms.append(Arm("child", name, child=child))
            else:
                due = None if kind == "signal" else rest[0] if kind == "at" else self.now + rest[0]
                flow.arms.append(Arm(kind, name, due))

    def park(self, flow: Flow) -> None:
        flow.status = "Failed"
        self.tell_parent(flow, "ChildFailed", None)

    def finish(self, flow: Flow, status: str) -> None:
        flow.status = status
        flow.unread = len(flow.inbox)
        flow.inbox = []
        flow.arms = []
        for child in flow.children:
            if not child.finished:
                self.cancel(child)
        completed = status == "Completed"
        self.tell_parent(flow, "child" if completed else "ChildCancelled", list(flow.log))

    def tell_parent(self, flow: Flow, name: str, value: Any) -> None:
        if flow.parent is not None:
            for arm in flow.parent.arms:
                if arm.child is flow and arm.told is None:
                    arm.told = (self.now, name, value)
                    self.queue.append((flow.parent, None))

    def drop_losers(self, flow: Flow) -> None:
        for arm in flow.arms:
            if arm.child is not None and arm.told is None and not arm.child.finished:
                self.cancel(arm.child)

    # --- readiness

    def since(self, flow: Flow, arm: Arm) -> int | None:
        """Since when the deadline of an arm has passed."""
        if arm.fired is not None:
            return arm.fired if flow.manual or arm.due is None else min(arm.fired, arm.due)
        return arm.due if arm.due is not None and not flow.manual and arm.due <= self.now else None

    def oldest(self, flow: Flow, name: str, taken: list[Any]) -> Any:
        return next((each for each in flow.inbox if each[2] == name and each not in taken), None)

    def ready_arm(self, flow: Flow, arm: Arm, taken: list[Any]) -> Ready | None:
        """((when, arrival), (what, its value), the signals it takes)."""
        if arm.kind == "child":
            return None if arm.told is None else ((arm.told[0], 0), arm.told[1:], [])
        since = self.since(flow, arm)
        if arm.kind in ("signal", "timeout"):
            found = self.oldest(flow, arm.name, taken)
            if found is not None and (since is None or found[0] <= since):
                return (found[0], found[1]), (arm.name, found[3]), [found]
        return None if since is None else ((since, 0), (arm.name, None), [])

    def ready(self, flow: Flow) -> tuple[Any, list[Any]] | None:
        """What the workflow gets, and the signals that it takes."""
        if flow.kind == "all":
            since = self.since(flow, flow.arms[0])
            found = [self.oldest(flow, name, []) for name in ("Bid", "Stop")]
            found = [each if each is None or since is None or each[0] <= since else None for each in found]
            if since is None and None in found:
                return None
            bid, stop = found
            return (None if bid is None else bid[3], stop is not None), [each for each in found if each is not None]
        if flow.kind == "gather":
            values, all_taken = [], []
            for arm in flow.arms:
                ready = self.ready_arm(flow, arm, all_taken)
                if ready is None:
                    return None
                values.append(ready[1])
                all_taken += ready[2]
            return values, all_taken
        best = None
        for arm in flow.arms:
            ready = self.ready_arm(flow, arm, [])
            if ready is not None and (best is None or self.earlier(ready[0], best[0])):
                best = ready
        return None if best is None else (best[1], best[2])

    @staticmethod
    def earlier(one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Ties go to the earlier argument, but one of two signals came first."""
        if one[0] != other[0]:
            return one[0] < other[0]
        return bool(one[1]) and bool(other[1]) and one[1] < other[1]
