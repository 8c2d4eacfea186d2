"""A raid boss: four phases, minions, fire, and one enrage that ticks through all of it.

    python -m examples.boss_fight

What it shows: a long script that reads from top to bottom, and three ways in which things happen at once.

- `enrage` is computed once and is an arm of every wait. It is the same deadline in phase 1 and in phase 4.
- The minions of phase 2 are children. `gather(*[spawn(...) ...])` is one arm of the `select`: the phase ends when all
  of them are dead, and when the enrage or a wipe wins instead, the children are cancelled and leave the stage in their
  own `finally`.
- The fire of phase 3 is a second deadline in the same loop.

The loops ask the tables for the boss's health; the broadcast only tells them when to look. `RaidLost` is raised from a
subroutine that waits, and caught in the workflow: exceptions go their usual way. The loot is rolled in a procedure and
its result recorded, so a crash after the roll does not roll again.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from gamedb import (
    AutoInc,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    Unique,
    u8,
    u64,
)
from workflow_module import (
    Signal,
    Struct,
    Timer,
    WorkflowContext,
    call,
    gather,
    install,
    select,
    spawn,
    subroutine,
    subscribe,
    timer,
    workflow,
)

from .stage import Player, Stage
from .world import (
    Character,
    Effect,
    Item,
    Point,
    announce,
    character,
    clear_effect,
    hurt,
    me,
    move_gold,
    move_item,
    name_of,
    set_effect,
    tell,
    world,
)

ENRAGE = timedelta(minutes=8)
FIRE_BREATH = timedelta(seconds=15)
BITE = timedelta(seconds=5)
SIDES = {"left": -75, "right": 75}
"""Where the minions appear, beside the boss."""

module = Module("boss_fight")
module.include(world)


@module.table(public=True)
class RaidMember(Row):
    """Who fights which boss."""

    id: PrimaryKey[AutoInc[u64]] = 0
    boss: Index[u64]
    hero: Unique[u64]


@module.table(public=True)
class Encounter(Row):
    """A running fight, as clients see it."""

    boss: PrimaryKey[u64]
    phase: u8
    enrages_at: datetime
    breathes_at: datetime | None = None
    """When the next fire comes."""


class BossTimer(Timer):
    ENRAGE = "enrage"
    FIRE_BREATH = "fire_breath"
    BITE = "bite"


class HealthChanged(Signal):
    """Broadcast with the one who was hit as key."""


class Wiped(Signal):
    """Broadcast with the boss as key: nobody of the raid stands any more."""


class AddInit(Struct):
    boss: int
    side: str
    hp: int = 30


@workflow
async def boss_add(ctx: WorkflowContext, init: AddInit) -> None:
    add = summon(ctx, init)
    subscribe(HealthChanged, add)
    next_bite = ctx.now + BITE
    try:
        while health(ctx, add) > 0:
            match await select(timer(BossTimer.BITE, at=next_bite), HealthChanged):
                case BossTimer.BITE:
                    bite_somebody(ctx, init.boss, add)
                    next_bite += BITE
    finally:
        ctx.db[Character].delete(add)


class BossFightInit(Struct):
    boss: int
    enrage: timedelta = ENRAGE
    minion_hp: int = 30


class Outcome(enum.Enum):
    VICTORY = "victory"
    WIPE = "wipe"
    ENRAGED = "enraged"


class BossFightResult(Struct):
    outcome: Outcome
    phase: int
    """The one that it ended in."""


class RaidLost(Exception):
    """With the outcome."""


@workflow
async def boss_fight(ctx: WorkflowContext, init: BossFightInit) -> BossFightResult:
    boss = init.boss
    enrage = ctx.now + init.enrage
    phase = 1
    subscribe(HealthChanged, boss)
    subscribe(Wiped, boss)
    try:
        announce(ctx, "Phase 1: the boss awakens!")
        show_phase(ctx, boss, phase, enrage)
        await fight_down_to(ctx, boss, 70, enrage)

        phase = 2
        announce(ctx, "Phase 2: minions, attack!")
        show_phase(ctx, boss, phase, enrage)
        set_effect(ctx, boss, "immune", 1, until=enrage)
        match await select(
            gather(
                *[spawn(boss_add, AddInit(boss=boss, side=side, hp=init.minion_hp)) for side in SIDES],
                return_exceptions=True,  # a minion that an operator cancelled is gone like any other
            ),
            timer(BossTimer.ENRAGE, at=enrage),
            Wiped,
        ):
            case BossTimer.ENRAGE:
                raise RaidLost("enraged")
            case Wiped():
                raise RaidLost("wipe")
        clear_effect(ctx, boss, "immune")

        phase = 3
        announce(ctx, "Phase 3: flames erupt!")
        next_breath = ctx.now + FIRE_BREATH
        while health(ctx, boss) > 30:
            show_phase(ctx, boss, phase, enrage, next_breath)
            match await select(
                timer(BossTimer.ENRAGE, at=enrage), timer(BossTimer.FIRE_BREATH, at=next_breath), HealthChanged, Wiped
            ):
                case BossTimer.ENRAGE:
                    raise RaidLost("enraged")
                case Wiped():
                    raise RaidLost("wipe")
                case BossTimer.FIRE_BREATH:
                    breathe_fire(ctx, boss)
                    next_breath += FIRE_BREATH

        phase = 4
        announce(ctx, "Phase 4: finish it!")
        show_phase(ctx, boss, phase, enrage)
        strengthen(ctx, boss, percent=50)
        await fight_down_to(ctx, boss, 0, enrage)

        announce(ctx, f"Victory! {name_of(ctx, boss)} is dead.")
        winners = await call(roll_loot, boss, attempts=3)
        share_out(ctx, boss, winners)
        return BossFightResult(Outcome.VICTORY, phase)
    except RaidLost as lost:
        announce(ctx, f"The raid is lost: {lost}.")
        for hero in standing(ctx, boss):
            hurt(ctx, hero, character(ctx, hero).hp)
        return BossFightResult(Outcome(str(lost)), phase)
    finally:
        clear_effect(ctx, boss, "immune")
        ctx.db[RaidMember].delete_where(boss=boss)
        ctx.db[Encounter].delete(boss)


@subroutine
async def fight_down_to(ctx: WorkflowContext, boss: int, percent: int, enrage: datetime) -> None:
    """Wait until the boss has this much health left; `RaidLost` when that does not come to pass."""
    while health(ctx, boss) > percent:
        match await select(timer(BossTimer.ENRAGE, at=enrage), HealthChanged, Wiped):
            case BossTimer.ENRAGE:
                raise RaidLost("enraged")
            case Wiped():
                raise RaidLost("wipe")


@module.procedure
def roll_loot(ctx: ProcedureContext, boss: u64) -> list[u64]:
    """For each thing of the boss, by id, who of those who still stand gets it."""
    with ctx.transaction() as tx:
        return [tx.random.choice(standing(tx, boss)) for _ in belongings(tx, boss)]


# --- the rules


def health(ctx: ReducerContext, who: int) -> int:
    """In percent, rounded up: 0 is dead."""
    row = character(ctx, who)
    return -(-100 * row.hp // row.hp_max)


def standing(ctx: ReducerContext, boss: int) -> list[int]:
    """The members of the raid that have hit points."""
    heroes = sorted(member.hero for member in ctx.db[RaidMember].where(boss=boss))
    return [hero for hero in heroes if character(ctx, hero).hp > 0]


def show_phase(ctx: ReducerContext, boss: int, phase: int, enrage: datetime, breath: datetime | None = None) -> None:
    """Write what clients see."""
    ctx.db[Encounter].upsert(Encounter(boss=boss, phase=phase, enrages_at=enrage, breathes_at=breath))


def summon(ctx: ReducerContext, init: AddInit) -> int:
    """A minion, at the boss's side; its id."""
    lair = character(ctx, init.boss).at
    at = Point(lair.x + SIDES[init.side], lair.y)
    row = Character(name=f"the {init.side} minion", hp=init.hp, hp_max=init.hp, strength=4, at=at)
    return ctx.db[Character].insert(row).id


def wound(ctx: ReducerContext, boss: int, hero: int, amount: int) -> None:
    """Hurt a member of the raid; when nobody stands any more, the fight hears of it."""
    if hurt(ctx, hero, amount) == 0:
        announce(ctx, f"{name_of(ctx, hero)} falls.")
        if not standing(ctx, boss):
            engine.broadcast(ctx, Wiped(), boss)


def bite_somebody(ctx: ReducerContext, boss: int, add: int) -> None:
    """A minion goes for one of the raid."""
    if heroes := standing(ctx, boss):
        wound(ctx, boss, ctx.random.choice(heroes), character(ctx, add).strength)


def breathe_fire(ctx: ReducerContext, boss: int) -> None:
    """Everybody burns."""
    announce(ctx, "The boss breathes fire.")
    for hero in standing(ctx, boss):
        wound(ctx, boss, hero, character(ctx, boss).strength)


def strengthen(ctx: ReducerContext, who: int, percent: int) -> None:
    """More strength, for good."""
    row = character(ctx, who)
    ctx.db[Character].update(row.replace(strength=row.strength + row.strength * percent // 100))


def belongings(ctx: ReducerContext, who: int) -> list[int]:
    """The ids of what somebody owns, in order."""
    return sorted(item.id for item in ctx.db[Item].where(owner_id=who))


def share_out(ctx: ReducerContext, boss: int, winners: list[int]) -> None:
    """The boss's things to the winners, its gold to all that stand."""
    for item_id, hero in zip(belongings(ctx, boss), winners, strict=True):
        move_item(ctx, item_id, boss, hero)
        tell(ctx, hero, "You find something in the ashes.")
    heroes = standing(ctx, boss)
    gold = character(ctx, boss).gold
    for n, hero in enumerate(heroes):
        move_gold(ctx, boss, hero, gold // len(heroes) + (n < gold % len(heroes)))


engine = install(module, [boss_fight, boss_add], testing=True)


@module.reducer
def pull(ctx: ReducerContext, boss: u64, raid: list[u64]) -> int:
    """Begin the fight."""
    if ctx.db[RaidMember].count(boss=boss) or character(ctx, boss).hp == 0:
        raise ReducerError("this boss is busy")
    for hero in sorted(set(raid)):
        if character(ctx, hero).hp == 0:
            raise ReducerError(f"{name_of(ctx, hero)} cannot stand")
        if ctx.db[RaidMember].find(hero=hero) is not None:
            raise ReducerError(f"{name_of(ctx, hero)} is in a fight already")
        ctx.db[RaidMember].insert(RaidMember(boss=boss, hero=hero))
    if not raid:
        raise ReducerError("who fights?")
    return engine.start(ctx, boss_fight, BossFightInit(boss=boss), entity_id=boss)


@module.reducer
def hit(ctx: ReducerContext, target: u64) -> None:
    """Hit the boss or a minion. The boss hits back."""
    strike(ctx, me(ctx), target)


def strike(ctx: ReducerContext, hero: Character, target: int) -> None:
    """Hit somebody, as a player or as one that the game plays."""
    victim = character(ctx, target)
    member = ctx.db[RaidMember].find(hero=hero.id)
    if member is None or hero.hp == 0:
        raise ReducerError("you are not fighting")
    if any(effect.kind == "immune" for effect in ctx.db[Effect].where(character_id=target)):
        raise ReducerError(f"{victim.name} is immune")
    if hurt(ctx, target, hero.strength) > 0 and target == member.boss:
        wound(ctx, target, hero.id, victim.strength // 5)
    engine.broadcast(ctx, HealthChanged(), target)


def main() -> None:
    """Two heroes bring a dragon down."""
    stage = Stage(module)
    stage.narrate()
    heroes: list[Player] = [stage.join(name, hp=150) for name in ("ann", "bob")]
    dragon = stage.place("the dragon", hp=200, strength=20, gold=101)
    stage.drop("fang", dragon)
    stage.drop("scale", dragon)
    fight = heroes[0].call(pull, dragon, [hero.id for hero in heroes])

    def all_hit_while(name: str, percent: int) -> None:
        while (found := stage.db.read(Character).where(name=name)) and found[0].hp * 100 > percent * found[0].hp_max:
            for hero in heroes:
                if hero.hp and stage.db.read(Character).get(found[0].id):
                    hero.call(hit, found[0].id)
            stage.wait(seconds=2)

    all_hit_while("the dragon", 70)
    all_hit_while("the left minion", 0)
    all_hit_while("the right minion", 0)
    stage.wait(seconds=20)
    all_hit_while("the dragon", 0)
    stage.wait(seconds=1)
    print(f"{'':12}{stage.flows.result(fight)}")
    for hero in heroes:
        print(f"{'':12}{hero.row.name}: {hero.hp} hp, {hero.gold} gold, {hero.things}")


if __name__ == "__main__":
    main()
