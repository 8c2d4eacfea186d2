"""What players do with their hands: fight, drink, dispel, pick herbs, take on quests.

Each reducer checks who calls, what they have and how far away it is, and then sends a signal to a workflow, or starts
one. The ones that also bots use take the character as an argument.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import Module, ReducerContext, ReducerError, u64
from workflow_module import Signal, Workflow, WorkflowStatus

from .. import boss_fight, buff, combat, quest
from ..boss_fight import Encounter, RaidMember
from ..buff import BuffInit, Dispel, Refresh, Stack
from ..combat import Attack, CombatInit, Defend, Flee
from ..quest import Abandon, Collect, ItemCollected, Kill, QuestInit, Reach
from ..world import Character, Effect, Item, character, halt, me, name_of, whereabouts
from .realm import (
    Figure,
    Role,
    figure,
    free_things,
    is_a,
    need_near,
    pay_bank,
    plant,
    the_place,
)

REACH = 110
"""How far a blow, a spell or a hand reaches, in steps."""
HIT_PAUSE = timedelta(seconds=1)
POTIONS = {
    "strength": timedelta(seconds=60),
    "swiftness": timedelta(seconds=30),
    "healing": timedelta(seconds=20),
}
POTION_PRICE = 5
DISPEL_PRICE = 10
MILLER = "the miller"
QUEST_REWARD = 40
QUEST_TIME = timedelta(minutes=10)

deeds = Module("deeds")


# --- fighting


@deeds.reducer
def attack(ctx: ReducerContext, target: u64) -> None:
    """Strike the dragon, a minion or a foe. Whoever strikes the dragon is one of the raid."""
    strike(ctx, me(ctx), target)


@deeds.reducer
def defend(ctx: ReducerContext) -> None:
    """In a fight: parry this turn."""
    _decide(ctx, Defend())


@deeds.reducer
def flee(ctx: ReducerContext) -> None:
    """Leave a fight."""
    _decide(ctx, Flee())


def strike(ctx: ReducerContext, hero: Character, target: int) -> None:
    """One blow, if the hero stands, is near and has caught breath."""
    able(hero)
    row = figure(ctx, hero.id)
    if row.ready_at > ctx.now:
        raise ReducerError("you are still catching your breath")
    victim = character(ctx, target)
    raid, foe = _is_raid_target(ctx, victim), is_a(ctx, target, Role.Foe)
    if not raid and not foe:
        raise ReducerError(f"{victim.name} is no enemy of yours")
    need_near(ctx, hero, victim.name, whereabouts(ctx, target), REACH)
    if raid:
        _join_raid(ctx, hero)
        boss_fight.strike(ctx, hero, target)
    else:
        _strike_foe(ctx, hero, victim)
    row = figure(ctx, hero.id)
    ctx.db[Figure].update(row.replace(ready_at=ctx.now + HIT_PAUSE))


def _is_raid_target(ctx: ReducerContext, victim: Character) -> bool:
    if is_a(ctx, victim.id, Role.Boss):
        if ctx.db[Encounter].get(victim.id) is None:
            raise ReducerError(f"{victim.name} sleeps; wait until it wakes")
        return True
    return ctx.db[Figure].get(victim.id) is None and victim.name.endswith(" minion")


def _join_raid(ctx: ReducerContext, hero: Character) -> None:
    (fight,) = ctx.db[Encounter]
    if ctx.db[RaidMember].find(hero=hero.id) is None:
        ctx.db[RaidMember].insert(RaidMember(boss=fight.boss, hero=hero.id))


def _strike_foe(ctx: ReducerContext, hero: Character, foe: Character) -> None:
    row = figure(ctx, foe.id)
    if foe.hp == 0:
        raise ReducerError(f"{foe.name} has fallen already")
    if row.opponent not in (None, hero.id):
        raise ReducerError(f"{name_of(ctx, row.opponent or 0)} fights {foe.name} already")
    current = live(ctx, hero.id, "combat")
    if current is None:
        init = CombatInit(attacker=hero.id, defender=foe.id)
        halt(ctx, hero.id)
        halt(ctx, foe.id)
        ctx.db[Figure].update(row.replace(opponent=hero.id, engaged_at=ctx.now))
        combat.engine.start(ctx, combat.combat, init, entity_id=hero.id, signals=[Attack()])
    elif row.opponent != hero.id:
        raise ReducerError("one fight at a time")
    else:
        combat.engine.signal(ctx, current.id, Attack())


def _decide(ctx: ReducerContext, decision: Signal) -> None:
    current = live(ctx, me(ctx).id, "combat")
    if current is None:
        raise ReducerError("you are in no fight")
    combat.engine.signal(ctx, current.id, decision)


def able(hero: Character) -> None:
    """Refuse what needs legs."""
    if hero.hp == 0:
        raise ReducerError("you have fallen; you will be carried to the fountain")


def live(ctx: ReducerContext, who: int, kind: str) -> Workflow | None:
    """The workflow of this type that somebody is in, if any."""
    for row in ctx.db[Workflow].where(entity_id=who):
        if row.workflow_type == kind and row.status is WorkflowStatus.Suspended:
            return row
    return None


# --- potions and spells


@deeds.reducer
def drink(ctx: ReducerContext, potion: str) -> None:
    """A herb, or some gold, for a potion. One of a kind that works already stacks, and starts its time anew."""
    quaff(ctx, me(ctx), potion)


def quaff(ctx: ReducerContext, hero: Character, potion: str) -> None:
    """Drink, as a player or as one that the game plays."""
    able(hero)
    if potion not in POTIONS:
        raise ReducerError(f"there is no potion of {potion!r}; there are {', '.join(POTIONS)}")
    herbs = [item for item in free_things(ctx, hero.id) if item.kind == "herb"]
    if herbs:
        plant(ctx, herbs[0])
    elif hero.gold < POTION_PRICE:
        raise ReducerError(f"a potion costs a herb or {POTION_PRICE} gold; you have {hero.gold}")
    else:
        pay_bank(ctx, hero.id, POTION_PRICE)
    enchant(ctx, hero.id, potion, POTIONS[potion])


@deeds.reducer
def dispel(ctx: ReducerContext, target: u64, kind: str) -> None:
    """Take an effect off oneself or off somebody near, for some gold."""
    hero, victim = me(ctx), character(ctx, target)
    able(hero)
    need_near(ctx, hero, victim.name, whereabouts(ctx, target), REACH)
    found = live_buff(ctx, target, kind)
    if found is None:
        raise ReducerError(f"there is no {kind} on {victim.name}")
    if hero.gold < DISPEL_PRICE:
        raise ReducerError(f"to dispel costs {DISPEL_PRICE} gold; you have {hero.gold}")
    pay_bank(ctx, hero.id, DISPEL_PRICE)
    buff.engine.signal(ctx, found.id, Dispel())


def enchant(ctx: ReducerContext, target: int, kind: str, duration: timedelta) -> None:
    """A new buff, or a stack more of the one that is there."""
    found = live_buff(ctx, target, kind)
    if found is None:
        init = BuffInit(bearer=target, duration=duration, kind=kind)
        buff.engine.start(ctx, buff.buff, init, entity_id=target)
    else:
        buff.engine.signal(ctx, found.id, Stack(n=1))
        buff.engine.signal(ctx, found.id, Refresh())


def live_buff(ctx: ReducerContext, target: int, kind: str) -> Workflow | None:
    """The buff of this kind on somebody; what a running workflow knows is a look at its state."""
    effect = next((e for e in ctx.db[Effect].where(character_id=target) if e.kind == kind), None)
    if effect is None:
        return None
    for row in ctx.db[Workflow].where(entity_id=target):
        if row.workflow_type == "buff" and row.status is WorkflowStatus.Suspended:
            init: BuffInit = buff.buff.view(row.state_data).init
            if init.kind == kind:
                if effect.until > ctx.now:
                    return row
                buff.engine.wake(ctx, row.id)  # its time is over, only nobody has looked yet
    return None


# --- herbs and quests


@deeds.reducer
def pick_up(ctx: ReducerContext, item_id: u64) -> None:
    """Take something from the ground."""
    hero, item = me(ctx), ctx.db[Item].get(item_id)
    able(hero)
    if item is None or item.owner_id is not None:
        raise ReducerError("there is nothing to pick up any more")
    need_near(ctx, hero, f"the {item.kind}", item.at, REACH)
    ctx.db[Item].update(item.replace(owner_id=hero.id))
    quest.engine.broadcast(ctx, ItemCollected(item.kind), quest.key(hero.id, item.kind))


@deeds.reducer
def accept_quest(ctx: ReducerContext, giver: u64) -> None:
    """Take on what the miller has to offer, once at a time."""
    hero, miller = me(ctx), character(ctx, giver)
    able(hero)
    if not is_a(ctx, giver, Role.Folk) or miller.name != MILLER:
        raise ReducerError(f"{miller.name} has no quest for you")
    need_near(ctx, hero, miller.name, miller.at, REACH)
    if live(ctx, hero.id, "quest") is not None:
        raise ReducerError("one quest at a time")
    if miller.gold < QUEST_REWARD:
        raise ReducerError(f"{miller.name} is out of gold; come back later")
    init = QuestInit(
        hero=hero.id,
        giver=giver,
        objectives=[Kill("a wolf", 2), Collect("herb", 2), Reach(the_place("oak"))],
        reward=QUEST_REWARD,
        time_limit=QUEST_TIME,
    )
    quest.engine.start(ctx, quest.quest, init, entity_id=hero.id)


@deeds.reducer
def abandon_quest(ctx: ReducerContext) -> None:
    """Give one's quest up."""
    current = live(ctx, me(ctx).id, "quest")
    if current is None:
        raise ReducerError("you have no quest")
    quest.engine.signal(ctx, current.id, Abandon())
