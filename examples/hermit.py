"""Questions to a hermit, answered by a language model in a process of its own.

    gamedb start examples.hermit:module
    gamedb worker examples.hermit:module --queue llm     # in other terminals, as many as you like
    python -m examples.hermit                            # or the scene alone, with nothing around it

What it shows: `@module.procedure(queue="llm")` leaves a procedure to workers. The server needs neither the model nor
its memory, and workers may die: another one takes over, with the same `ctx.step_key`. Here the model is a riddle; put
your own call there, and give it `ctx.step_key` if it can recognise a repeat.

The lines that matter are the `select`: the player may lose patience. The worker is then told, and stops thinking.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from datetime import timedelta

from gamedb import Module, PrimaryKey, ReducerContext, ReducerError, Row, u64
from workflow_module import (
    PendingProcedure,
    ProcedureFailed,
    Signal,
    StepContext,
    Struct,
    Timer,
    WorkflowContext,
    call,
    install,
    select,
    timer,
    workflow,
)

from .stage import Stage
from .world import me, tell, world

PATIENCE = timedelta(minutes=2)
QUESTION_CHARACTERS_MAX = 200
RIDDLES = ("Look where the river forgets its name.", "Ask the door, not the key.", "You have it in your pocket.")

module = Module("hermit")
module.include(world)


@module.table(public=True)
class Audience(Row):
    """A player who waits for an answer."""

    player: PrimaryKey[u64]
    audience_id: u64


class AudienceTimer(Timer):
    PATIENCE = "patience"


class Leave(Signal): ...


class AudienceInit(Struct):
    player: int
    question: str


@module.procedure(queue="llm")
async def think(ctx: StepContext, question: str) -> str:
    """Runs in a worker: here a model would be asked."""
    await asyncio.sleep(0.5)
    ctx.heartbeat()
    return riddle(question)


def riddle(question: str) -> str:
    """What the hermit says."""
    return RIDDLES[zlib.crc32(question.encode()) % len(RIDDLES)]


@workflow
async def audience(ctx: WorkflowContext, init: AudienceInit) -> str:
    answer = "The hermit has fallen asleep."
    try:
        match await select(
            call(think, init.question, attempts=3, timeout=timedelta(seconds=60), heartbeat=timedelta(seconds=20)),
            timer(AudienceTimer.PATIENCE, after=PATIENCE),
            Leave,
        ):
            case str(thought):
                answer = thought
            case AudienceTimer.PATIENCE:
                answer = "The hermit still thinks. Come back another day."
            case Leave():
                answer = "You leave the hermit to his thoughts."
    except ProcedureFailed:
        pass
    finally:
        ctx.db[Audience].delete(init.player)
    tell(ctx, init.player, answer)
    return answer


engine = install(module, [audience])


@module.reducer
def ask_hermit(ctx: ReducerContext, question: str) -> int:
    """Ask the hermit something. One question at a time."""
    player = me(ctx)
    if not 1 <= len(question) <= QUESTION_CHARACTERS_MAX:
        raise ReducerError(f"a question has 1 to {QUESTION_CHARACTERS_MAX} characters")
    if ctx.db[Audience].get(player.id) is not None:
        raise ReducerError("the hermit still thinks about your last question")
    audience_id = engine.start(ctx, audience, AudienceInit(player=player.id, question=question))
    ctx.db[Audience].insert(Audience(player=player.id, audience_id=audience_id))
    return audience_id


@module.reducer
def leave_hermit(ctx: ReducerContext) -> None:
    """Leave without an answer."""
    row = ctx.db[Audience].get(me(ctx).id)
    if row is None:
        raise ReducerError("you have asked nothing")
    engine.signal(ctx, row.audience_id, Leave())


def work_by_hand(stage: Stage) -> PendingProcedure:
    """What a worker does first: take the oldest call, under a lease of half a minute."""
    (taken,) = stage.db.call("workflow_procedure_take", "llm", "by hand", 30.0, 1)
    assert isinstance(taken, PendingProcedure)
    return taken


def main() -> None:
    """Ann asks; the first worker dies over it, the second one answers. Then she loses patience."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    first = ann.call(ask_hermit, "Where is the crown?")
    dead = work_by_hand(stage)
    print(f"a worker takes call {dead.id}, attempt {dead.attempt}, and dies")
    stage.wait(seconds=31)
    taken = work_by_hand(stage)
    print(f"another takes it, attempt {taken.attempt}; the same step key: {taken.step_key == dead.step_key}")
    answer = json.dumps(riddle("Where is the crown?"))
    stage.db.call("workflow_procedure_complete", taken.id, taken.attempt, answer)
    ann.call(ask_hermit, "Are you sure?")
    ann.call(leave_hermit)
    print(f"the first answer was: {stage.flows.result(first)}")


if __name__ == "__main__":
    main()
