"""An expedition: gatherers are sent out one after the other, or all together, and what they bring is counted.

    python -m examples.parent_child

What it shows: a workflow that is made of workflows.

- `await spawn(errand, ...)` in a loop: one after the other, with the result of each.
- `start(...)` gives a handle at once; handles are kept in a list and awaited later, so all errands run meanwhile.
- A gatherer who is lost is a child that failed or was cancelled: `ChildError` at the `await`, and the expedition goes
  on without what that one would have brought. Cancelling the expedition recalls everybody who is still out.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, ReducerError, u64
from workflow_module import (
    ChildError,
    Handle,
    Struct,
    WorkflowContext,
    install,
    sleep,
    spawn,
    start,
    workflow,
)

from .stage import Stage
from .world import Item, announce, character, me, name_of, world

module = Module("parent_child")
module.include(world)


class ErrandInit(Struct):
    gatherer: int
    for_whom: int
    distance: timedelta


@workflow
async def errand(ctx: WorkflowContext, init: ErrandInit) -> int:
    await sleep(init.distance)
    found = pick_up_all_in_reach(ctx, init)
    await sleep(init.distance)
    announce(ctx, f"{name_of(ctx, init.gatherer)} is back with {found}.")
    return found


class ExpeditionInit(Struct):
    leader: int
    gatherers: list[int]
    together: bool = False


class ExpeditionResult(Struct):
    found: int
    lost: int


@workflow
async def expedition(ctx: WorkflowContext, init: ExpeditionInit) -> ExpeditionResult:
    found = 0
    lost = 0
    if not init.together:
        for n, gatherer in enumerate(init.gatherers):
            try:
                found += await spawn(errand, errand_of(init, n, gatherer))
            except ChildError:
                lost += 1
        return ExpeditionResult(found, lost)

    out: list[Handle[int]] = [start(errand, errand_of(init, n, g)) for n, g in enumerate(init.gatherers)]
    for handle in out:
        try:
            found += await handle
        except ChildError:
            lost += 1
    return ExpeditionResult(found, lost)


def errand_of(init: ExpeditionInit, n: int, gatherer: int) -> ErrandInit:
    """Each goes a minute farther than the one before."""
    return ErrandInit(gatherer=gatherer, for_whom=init.leader, distance=timedelta(minutes=n + 1))


def pick_up_all_in_reach(ctx: ReducerContext, init: ErrandInit) -> int:
    """What lies on the ground, at most one a minute of the way, goes to the leader; how much it was."""
    character(ctx, init.gatherer)  # whoever is gone by now cannot carry anything
    lying = sorted((item for item in ctx.db[Item].where(owner_id=None)), key=lambda item: item.id)
    taken = lying[: init.distance // timedelta(minutes=1)]
    for item in taken:
        ctx.db[Item].update(item.replace(owner_id=init.for_whom))
    return len(taken)


engine = install(module, [expedition, errand], testing=True)


@module.reducer
def send_out(ctx: ReducerContext, gatherers: list[u64], together: bool = False) -> int:
    """Send gatherers out."""
    if not gatherers:
        raise ReducerError("nobody to send")
    init = ExpeditionInit(leader=me(ctx).id, gatherers=[character(ctx, g).id for g in gatherers], together=together)
    return engine.start(ctx, expedition, init)


def main() -> None:
    """Three gatherers, first one after the other, then together."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    gatherers = [stage.place(name) for name in ("flip", "flap", "flop")]
    for together in (False, True):
        for _ in range(9):
            stage.drop("mushroom")
        trip = ann.call(send_out, gatherers, together)
        stage.wait(minutes=12)
        print(f"{'':12}{stage.flows.result(trip)}")


if __name__ == "__main__":
    main()
