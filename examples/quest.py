"""A quest: kill, collect and reach, in any order, for a reward that is set aside from the start.

    python -m examples.quest

What it shows: filtered broadcasts. The game says what happens (`EnemyKilled`, `ItemCollected`, `PlaceReached`) with a
key that names who did what, and knows nothing of quests. A quest subscribes to the very keys that its objectives need,
so a hundred thousand open quests cost a kill nothing: only those that wait for it are looked at.

The lines that matter are the `for` with its `subscribe`, and the loop below. `progress` is an ordinary list; the quest
log of the client reads it from the workflow's state (`Workflows.view`, or `state_data` as JSON).
"""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TypeAlias

from gamedb import Module, ReducerContext, ReducerError, u32, u64
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, subscribe, timer, workflow

from .stage import Stage
from .world import (
    Character,
    Item,
    Point,
    character,
    give_back,
    hand_over,
    hold_gold,
    hurt,
    me,
    move_to,
    tell,
    world,
)

module = Module("quest")
module.include(world)


class QuestTimer(Timer):
    EXPIRE = "expire"


class EnemyKilled(Signal):
    """Broadcast with the key `hero:name of the enemy`."""

    name: str


class ItemCollected(Signal):
    """Broadcast with the key `hero:kind of the item`."""

    kind: str


class PlaceReached(Signal):
    """Broadcast with the key `hero:x,y`."""

    place: Point


class Abandon(Signal): ...


class Kill(Struct, tag=True):
    name: str
    count: int = 1


class Collect(Struct, tag=True):
    kind: str
    count: int = 1


class Reach(Struct, tag=True):
    place: Point
    count: int = 1


Objective: TypeAlias = Kill | Collect | Reach


class QuestInit(Struct):
    hero: int
    giver: int
    objectives: list[Objective]
    reward: int
    time_limit: timedelta


class Outcome(enum.Enum):
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    EXPIRED = "expired"


class QuestResult(Struct):
    outcome: Outcome


@workflow
async def quest(ctx: WorkflowContext, init: QuestInit) -> QuestResult:
    progress = [0 for _ in init.objectives]
    expires = ctx.now + init.time_limit
    hold_gold(ctx, ctx.workflow_id, init.giver, init.reward)
    try:
        for objective in init.objectives:
            match objective:
                case Kill(name):
                    subscribe(EnemyKilled, key(init.hero, name))
                case Collect(kind):
                    subscribe(ItemCollected, key(init.hero, kind))
                case Reach(place):
                    subscribe(PlaceReached, key(init.hero, place))
        while not all_done(init, progress):
            match await select(timer(QuestTimer.EXPIRE, at=expires), EnemyKilled, ItemCollected, PlaceReached, Abandon):
                case QuestTimer.EXPIRE:
                    tell(ctx, init.hero, "You took too long.")
                    return QuestResult(Outcome.EXPIRED)
                case Abandon():
                    return QuestResult(Outcome.ABANDONED)
                case EnemyKilled(name):
                    progress = advanced(ctx, init, progress, Kill, name)
                case ItemCollected(kind):
                    progress = advanced(ctx, init, progress, Collect, kind)
                case PlaceReached(place):
                    progress = advanced(ctx, init, progress, Reach, place)
        hand_over(ctx, ctx.workflow_id, init.giver, init.hero)
        tell(ctx, init.hero, f"Well done! Here are {init.reward} gold.")
        return QuestResult(Outcome.COMPLETED)
    finally:
        give_back(ctx, ctx.workflow_id)


def key(hero: int, what: str | Point) -> str:
    """The key of a broadcast: whose deed, and what was done."""
    return f"{hero}:{label(what)}"


def label(what: str | Point) -> str:
    """What a deed was about, for people."""
    return f"{what.x},{what.y}" if isinstance(what, Point) else what


def all_done(init: QuestInit, progress: list[int]) -> bool:
    """Whether nothing is left to do."""
    return all(done >= objective.count for done, objective in zip(progress, init.objectives, strict=True))


def advanced(
    ctx: ReducerContext, init: QuestInit, progress: list[int], deed: type[Objective], what: str | Point
) -> list[int]:
    """The progress after one more deed; the hero is told."""
    after = list(progress)
    for n, objective in enumerate(init.objectives):
        if isinstance(objective, deed) and target(objective) == what and after[n] < objective.count:
            after[n] += 1
            tell(ctx, init.hero, f"{deed.__name__} {label(what)}: {after[n]} of {objective.count}")
    return after


def target(objective: Objective) -> str | Point:
    """What an objective is about."""
    match objective:
        case Kill(name):
            return name
        case Collect(kind):
            return kind
        case Reach(place):
            return place


engine = install(module, [quest], testing=True)


@module.reducer
def accept_quest(ctx: ReducerContext, giver: u64) -> int:
    """Take on what this character has to offer, once at a time."""
    hero = me(ctx)
    if character(ctx, giver).gold < 50:
        raise ReducerError(f"{character(ctx, giver).name} has nothing for you")
    init = QuestInit(
        hero=hero.id,
        giver=giver,
        objectives=[Kill("goblin", 2), Collect("herb"), Reach(Point(9, 9))],
        reward=50,
        time_limit=timedelta(hours=1),
    )
    return engine.start(ctx, quest, init, entity_id=hero.id)


@module.reducer
def abandon_quest(ctx: ReducerContext, quest_id: u64) -> None:
    """Give a quest up."""
    engine.signal(ctx, quest_id, Abandon())


@module.reducer
def strike(ctx: ReducerContext, enemy: u64, damage: u32) -> None:
    """Hit somebody; whoever has no hit points left is gone."""
    victim = character(ctx, enemy)
    if hurt(ctx, enemy, damage) == 0:
        ctx.db[Character].delete(enemy)
        hero = me(ctx).id
        engine.broadcast(ctx, EnemyKilled(victim.name), key(hero, victim.name))


@module.reducer
def pick_up(ctx: ReducerContext, item_id: u64) -> None:
    """Take something from the ground."""
    hero, item = me(ctx), ctx.db[Item].get(item_id)
    if item is None or item.owner_id is not None:
        raise ReducerError("there is nothing to pick up")
    ctx.db[Item].update(item.replace(owner_id=hero.id))
    engine.broadcast(ctx, ItemCollected(item.kind), key(hero.id, item.kind))


@module.reducer
def walk(ctx: ReducerContext, to: Point) -> None:
    """Go somewhere."""
    hero = me(ctx).id
    move_to(ctx, hero, to)
    engine.broadcast(ctx, PlaceReached(to), key(hero, to))


def main() -> None:
    """A quest is done in any order."""
    stage = Stage(module)
    stage.narrate()
    ann = stage.join("ann")
    miller = stage.place("the miller", gold=50)
    goblins = [stage.place("goblin", hp=10) for _ in range(2)]
    herb = stage.drop("herb")
    quest_id = ann.call(accept_quest, miller)
    ann.call(strike, goblins[0], 10)
    stage.wait(minutes=5)
    ann.call(walk, Point(9, 9))
    ann.call(pick_up, herb)
    print(f"{'':12}quest log: {stage.flows.view(quest_id).progress}; the miller has set the reward aside")
    ann.call(strike, goblins[1], 10)
    print(f"{'':12}{stage.flows.result(quest_id)}; ann has {ann.gold} gold")


if __name__ == "__main__":
    main()
