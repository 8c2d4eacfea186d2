"""A forge: two ore in, one ingot out, a minute each time, for as long as there is ore and nobody stops it.

    python -m examples.production

What it shows: a machine that is interrupted at any moment and knows what it was doing. A halt in the middle of a cycle
keeps the time that is left; a resume goes on with it. A stop gives the ore that lies in the forge back, and so does a
cancel: it is only held until the ingot is there, and becomes the ingot in one transaction.

The lines that matter are the two `select`s in the loop: what an idle machine waits for, and what a busy one does.
`until_resumed` is a subroutine, since both can be halted. Every wait also takes the signal that means nothing there (a
resume of what runs): one that nobody reads would stay in the inbox, and undo the next halt.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, ReducerError, u64
from workflow_module import (
    Signal,
    Struct,
    Timer,
    Workflow,
    WorkflowContext,
    WorkflowStatus,
    install,
    select,
    subroutine,
    timer,
    workflow,
)

from .stage import Stage
from .world import Item, announce, give_back, me, world

module = Module("production")
module.include(world)


class ProductionTimer(Timer):
    CYCLE_COMPLETE = "cycle_complete"


class InventoryChanged(Signal): ...


class Halt(Signal):
    reason: str


class Resume(Signal): ...


class Stop(Signal): ...


class Blueprint(Struct):
    inputs: dict[str, int]
    outputs: dict[str, int]
    cycle_time: timedelta


INGOT = Blueprint(inputs={"ore": 2}, outputs={"ingot": 1}, cycle_time=timedelta(minutes=1))


class ProductionInit(Struct):
    owner: int
    blueprint: Blueprint


class ProductionResult(Struct):
    cycles: int


@workflow
async def production(ctx: WorkflowContext, init: ProductionInit) -> ProductionResult:
    cycles = 0
    try:
        while True:
            if not load_inputs(ctx, init):
                match await select(InventoryChanged, Halt, Resume, Stop):
                    case Halt(reason):
                        if not await until_resumed(ctx, reason):
                            return ProductionResult(cycles)
                    case Stop():
                        return ProductionResult(cycles)
                continue

            left = init.blueprint.cycle_time
            while left:
                ends = ctx.now + left
                match await select(timer(ProductionTimer.CYCLE_COMPLETE, at=ends), Halt, Resume, Stop):
                    case ProductionTimer.CYCLE_COMPLETE:
                        left = timedelta(0)
                    case Halt(reason):
                        left = max(timedelta(0), ends - ctx.now)
                        if not await until_resumed(ctx, reason):
                            return ProductionResult(cycles)
                    case Stop():
                        return ProductionResult(cycles)
            make_outputs(ctx, init)
            cycles += 1
    finally:
        give_back(ctx, ctx.workflow_id)


@subroutine
async def until_resumed(ctx: WorkflowContext, reason: str) -> bool:
    """Stand still. False when it is stopped instead."""
    while True:
        announce(ctx, f"The forge halts: {reason}.")
        match await select(Resume, Stop, Halt):
            case Resume():
                announce(ctx, "The forge goes on.")
                return True
            case Stop():
                return False
            case Halt(another):
                reason = another


def load_inputs(ctx: WorkflowContext, init: ProductionInit) -> bool:
    """Take what one cycle needs from the owner into the machine; False when something is missing."""
    free = [item for item in ctx.db[Item].where(owner_id=init.owner) if item.holder is None]
    free.sort(key=lambda item: item.id)
    needed: list[Item] = []
    for kind, count in init.blueprint.inputs.items():
        found = [item for item in free if item.kind == kind][:count]
        if len(found) < count:
            return False
        needed += found
    for item in needed:
        ctx.db[Item].update(item.replace(holder=ctx.workflow_id))
    return True


def make_outputs(ctx: WorkflowContext, init: ProductionInit) -> None:
    """What is in the machine becomes what the blueprint says."""
    ctx.db[Item].delete_where(holder=ctx.workflow_id)
    for kind, count in init.blueprint.outputs.items():
        for _ in range(count):
            ctx.db[Item].insert(Item(kind=kind, owner_id=init.owner))
        announce(ctx, f"The forge has made {count} {kind}.")


engine = install(module, [production], testing=True)


@module.reducer
def start_forge(ctx: ReducerContext) -> int:
    """Start one's forge. Its entity is the owner."""
    owner = me(ctx).id
    if any(row.status is WorkflowStatus.Suspended for row in ctx.db[Workflow].where(entity_id=owner)):
        raise ReducerError("your forge is running")
    return engine.start(ctx, production, ProductionInit(owner=owner, blueprint=INGOT), entity_id=owner)


@module.reducer
def dig(ctx: ReducerContext, item_id: u64) -> None:
    """Pick ore up from the ground."""
    owner, item = me(ctx).id, ctx.db[Item].get(item_id)
    if item is None or item.owner_id is not None:
        raise ReducerError("there is nothing to pick up")
    ctx.db[Item].update(item.replace(owner_id=owner))
    engine.signal_entity(ctx, owner, InventoryChanged())


@module.reducer
def halt_forge(ctx: ReducerContext, reason: str) -> None:
    """Let the forge stand still."""
    _send(ctx, Halt(reason=reason))


@module.reducer
def resume_forge(ctx: ReducerContext) -> None:
    """Let it go on."""
    _send(ctx, Resume())


@module.reducer
def stop_forge(ctx: ReducerContext) -> None:
    """Put the fire out; ore that is in the forge comes back."""
    _send(ctx, Stop())


def _send(ctx: ReducerContext, message: Signal) -> None:
    if not engine.signal_entity(ctx, me(ctx).id, message):
        raise ReducerError("your forge is cold")


def main() -> None:
    """Three ore: one ingot with a pause in it, and one ore left."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann", items=("ore", "ore", "ore"))
    forge = ann.call(start_forge)
    stage.wait(seconds=45)
    ann.call(halt_forge, "the bellows are torn")
    stage.wait(minutes=10)
    ann.call(resume_forge)
    stage.wait(seconds=15)
    print(f"{'':12}ann has {ann.things}: the forge waits for more")
    ann.call(dig, stage.drop("ore"))
    stage.wait(seconds=30)
    ann.call(stop_forge)
    print(f"{'':12}{stage.flows.result(forge)}; stopped half way: {ann.things}")


if __name__ == "__main__":
    main()
