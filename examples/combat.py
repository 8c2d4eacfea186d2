"""A fight by turns: attack, defend or flee, half a minute for each decision, until somebody falls.

    python -m examples.combat

What it shows: an outcome out of a loop of waits. Each turn is one `select` of the player's decision and a timer for
those who do not decide. The dice are plain `ctx.random`: nothing is replayed, so nothing has to be deterministic. A
pause for the animation is one line, `await sleep(...)`; what the player decides meanwhile waits in the inbox.

The lines that matter are the `match` and the three below it. Everything else is the rules of the game.
"""

from __future__ import annotations

import enum
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
    sleep,
    timer,
    workflow,
)

from .stage import Stage
from .world import announce, character, hurt, me, move_gold, name_of, tell, world

TURN = timedelta(seconds=30)
ANIMATION = timedelta(milliseconds=300)

module = Module("combat")
module.include(world)


class CombatTimer(Timer):
    TURN = "turn"


class Attack(Signal): ...


class Defend(Signal): ...


class Flee(Signal): ...


class CombatInit(Struct):
    attacker: int
    """Decides each turn."""
    defender: int
    """Strikes back."""


class Outcome(enum.Enum):
    VICTORY = "victory"
    DEFEAT = "defeat"
    FLED = "fled"


class CombatResult(Struct):
    outcome: Outcome
    turns: int


@workflow
async def combat(ctx: WorkflowContext, init: CombatInit) -> CombatResult:
    turns = 0
    announce(ctx, f"{name_of(ctx, init.attacker)} fights {name_of(ctx, init.defender)}.")
    while True:
        turns += 1
        defends = False
        match await select(timer(CombatTimer.TURN, after=TURN), Attack, Defend, Flee):
            case Attack():
                if strike(ctx, init.attacker, init.defender) == 0:
                    take_purse(ctx, init.attacker, init.defender)
                    return CombatResult(Outcome.VICTORY, turns)
            case Defend() | CombatTimer.TURN:  # who does not decide, defends
                defends = True
            case Flee():
                announce(ctx, f"{name_of(ctx, init.attacker)} runs away.")
                return CombatResult(Outcome.FLED, turns)
        await sleep(ANIMATION)
        if strike(ctx, init.defender, init.attacker, parried=defends) == 0:
            take_purse(ctx, init.defender, init.attacker)
            return CombatResult(Outcome.DEFEAT, turns)


def strike(ctx: ReducerContext, by: int, at: int, *, parried: bool = False) -> int:
    """One blow, a third of it when parried, half as much again one time in five; the hit points that are left."""
    damage = character(ctx, by).strength
    if parried:
        damage //= 3
    elif ctx.random.random() < 0.2:
        damage += damage // 2
    left = hurt(ctx, at, damage)
    announce(ctx, f"{name_of(ctx, by)} hits {name_of(ctx, at)} for {damage}; {left} left.")
    return left


def take_purse(ctx: ReducerContext, winner: int, loser: int) -> None:
    """The winner gets the loser's gold."""
    announce(ctx, f"{name_of(ctx, loser)} falls.")
    if gold := character(ctx, loser).gold:
        move_gold(ctx, loser, winner, gold)
        tell(ctx, winner, f"You find {gold} gold.")


engine = install(module, [combat], testing=True)


@module.reducer
def fight(ctx: ReducerContext, enemy: u64) -> int:
    """Begin a fight; its entity is the one who decides."""
    attacker = me(ctx)
    if any(row.status is WorkflowStatus.Suspended for row in ctx.db[Workflow].where(entity_id=attacker.id)):
        raise ReducerError("you are in a fight already")
    if character(ctx, enemy).hp == 0 or attacker.hp == 0:
        raise ReducerError("that would be no fight")
    init = CombatInit(attacker=attacker.id, defender=enemy)
    return engine.start(ctx, combat, init, entity_id=attacker.id)


@module.reducer
def attack(ctx: ReducerContext) -> None:
    """Decide: attack."""
    _decide(ctx, Attack())


@module.reducer
def defend(ctx: ReducerContext) -> None:
    """Decide: defend."""
    _decide(ctx, Defend())


@module.reducer
def flee(ctx: ReducerContext) -> None:
    """Decide: run."""
    _decide(ctx, Flee())


def _decide(ctx: ReducerContext, decision: Signal) -> None:
    if not engine.signal_entity(ctx, me(ctx).id, decision):
        raise ReducerError("you are in no fight")


def main() -> None:
    """Ann beats a wolf, hesitating once."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann", hp=60)
    wolf = stage.place("the wolf", hp=30, strength=12, gold=7)
    fight_id = ann.call(fight, wolf)
    ann.call(attack)
    stage.wait(seconds=31)  # she does not decide in time, so she defends
    ann.call(attack)
    stage.wait(seconds=1)
    ann.call(attack)
    stage.wait(seconds=1)
    print(f"{'':12}{stage.flows.result(fight_id)}; ann has {ann.hp} hp and {ann.gold} gold")


if __name__ == "__main__":
    main()
