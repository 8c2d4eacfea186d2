"""A buff: strength for a while. Stacks add up, a refresh starts the minute anew, a dispel ends it.

    python -m examples.buff

What it shows: `select` over a deadline and signals in a loop. The deadline is a variable (`expires`), given to the
timer with `at=`: signals that come in between do not push it, and a refresh is one assignment. Kill the process in the
middle, and the buff ends when it would have ended.

The lines that matter are those of the `match`. The `finally` takes the strength away again however the buff ends:
expired, dispelled, or cancelled because its bearer left the game.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gamedb import Module, ReducerContext, ReducerError, u32, u64
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow

from .stage import Stage
from .world import Character, Effect, character, clear_effect, set_effect, tell, world

STRENGTH_PER_STACK = {"strength": 5, "weakness": -1}
"""What a stack of each kind does to the bearer's strength; other kinds are for the game to make something of."""
STACKS_MAX = 5
FEELS = {"strength": ("You feel strong.", "Your strength fades."), "weakness": ("You feel weak.", "You feel better.")}
"""What the bearer is told at the beginning and at the end."""

module = Module("buff")
module.include(world)


class BuffTimer(Timer):
    EXPIRE = "expire"


class Stack(Signal):
    n: int


class Refresh(Signal): ...


class Dispel(Signal): ...


class BuffInit(Struct):
    bearer: int
    duration: timedelta
    kind: str = "strength"


class BuffResult(Struct):
    final_stacks: int
    dispelled: bool


@workflow
async def buff(ctx: WorkflowContext, init: BuffInit) -> BuffResult:
    stacks = 1
    dispelled = False
    expires = ctx.now + init.duration
    show_stacks(ctx, init, 0, stacks, expires)
    tell(ctx, init.bearer, feels(init.kind)[0])
    try:
        while True:
            match await select(timer(BuffTimer.EXPIRE, at=expires), Dispel, Stack, Refresh):
                case BuffTimer.EXPIRE:
                    break
                case Dispel():
                    dispelled = True
                    break
                case Stack(n):
                    more = min(STACKS_MAX, stacks + n)
                    show_stacks(ctx, init, stacks, more, expires)
                    stacks = more
                case Refresh():
                    expires = ctx.now + init.duration
                    show_stacks(ctx, init, stacks, stacks, expires)
        return BuffResult(final_stacks=stacks, dispelled=dispelled)
    finally:
        show_stacks(ctx, init, stacks, 0, expires)
        tell(ctx, init.bearer, feels(init.kind)[1])


def show_stacks(ctx: ReducerContext, init: BuffInit, before: int, now: int, expires: datetime) -> None:
    """Give the bearer the strength of `now` stacks instead of `before`."""
    row = character(ctx, init.bearer)
    gained = STRENGTH_PER_STACK.get(init.kind, 0) * (now - before)
    ctx.db[Character].update(row.replace(strength=row.strength + gained))
    if now:
        set_effect(ctx, init.bearer, init.kind, now, expires)
    else:
        clear_effect(ctx, init.bearer, init.kind)


def feels(kind: str) -> tuple[str, str]:
    """What a buff of this kind feels like, and its end."""
    return FEELS.get(kind, (f"You feel the {kind}.", f"The {kind} is over."))


engine = install(module, [buff], testing=True)


@module.reducer
def cast_strength(ctx: ReducerContext, target: u64, seconds: u32 = 60) -> int:
    """Anybody may strengthen anybody, once. The buff's entity is its bearer."""
    if any(effect.kind == "strength" for effect in ctx.db[Effect].where(character_id=target)):
        raise ReducerError(f"{character(ctx, target).name} is strong already; stack it or refresh it")
    init = BuffInit(bearer=character(ctx, target).id, duration=timedelta(seconds=seconds))
    return engine.start(ctx, buff, init, entity_id=target)


@module.reducer
def stack_strength(ctx: ReducerContext, target: u64, n: u32 = 1) -> None:
    """Add stacks to all buffs of a character."""
    _send(ctx, target, Stack(n=n))


@module.reducer
def refresh_strength(ctx: ReducerContext, target: u64) -> None:
    """Start the time of a character's buffs anew."""
    _send(ctx, target, Refresh())


@module.reducer
def dispel(ctx: ReducerContext, target: u64) -> None:
    """End the buffs of a character."""
    _send(ctx, target, Dispel())


def _send(ctx: ReducerContext, target: int, message: Signal) -> None:
    if not engine.signal_entity(ctx, target, message):
        raise ReducerError(f"{character(ctx, target).name} has no buff")


def main() -> None:
    """A buff is cast, stacked, refreshed and runs out."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    buff_id = ann.call(cast_strength, ann.id)
    print(f"{'':12}strength {ann.row.strength}")
    stage.wait(seconds=30)
    ann.call(stack_strength, ann.id, 2)
    print(f"{'':12}after 30 s, two more stacks: strength {ann.row.strength}")
    ann.call(refresh_strength, ann.id)
    stage.wait(seconds=59)
    print(f"{'':12}refreshed, 59 s later: strength {ann.row.strength}")
    stage.wait(seconds=1)
    print(f"{'':12}strength {ann.row.strength}; {stage.flows.result(buff_id)}")


if __name__ == "__main__":
    main()
