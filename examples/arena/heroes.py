"""Players: they enter, walk, and talk.

A character belongs to an identity, so somebody who comes back (another tab, a reload, a server that was killed) finds
theirs as it was.
"""

from __future__ import annotations

from datetime import timedelta

from gamedb import ConnectionId, Index, Module, PrimaryKey, ReducerContext, ReducerError, Row, i32, u64

from ..combat import Flee
from ..combat import engine as fights
from ..world import Character, Item, Point, character, me
from .deeds import able, live
from .realm import (
    HEIGHT,
    WIDTH,
    ChatLine,
    Figure,
    Role,
    bank,
    figure,
    free_things,
    grant,
    near_to,
    proclaim,
    settle,
    stroll,
    the_place,
)

WELCOME_GOLD = 100
NAME_LENGTH_MAX = 16
TEXT_LENGTH_MAX = 160
CHAT_PAUSE = timedelta(seconds=1)
HEROES_MAX = 500
FIRST = ("Ash", "Bryn", "Corin", "Dara", "Elm", "Fenn", "Greta", "Hale", "Iris", "Joss", "Kestrel", "Lark", "Moss")
LAST = ("wood", "brook", "field", "stone", "wind", "thorn", "vale", "moor", "crest", "fell")

heroes = Module("heroes")


@heroes.table
class Visit(Row):
    """A connection of somebody who plays. Others may connect as well: an operator's console, a script."""

    connection_id: PrimaryKey[ConnectionId]
    character_id: Index[u64]


@heroes.reducer
def enter(ctx: ReducerContext) -> None:
    """Come and play, for the first time or again. The page calls it in each of its connections; twice is once."""
    if ctx.connection_id is None:
        raise ReducerError("only who has a connection can enter")
    if ctx.db[Visit].get(ctx.connection_id) is not None:
        return
    hero = ctx.db[Character].find(identity=ctx.sender) or _welcome(ctx)
    if not ctx.db[Visit].count(character_id=hero.id):
        proclaim(ctx, f"{hero.name} enters the arena.")
    ctx.db[Visit].insert(Visit(connection_id=ctx.connection_id, character_id=hero.id))
    ctx.db[Figure].update(figure(ctx, hero.id).replace(online=True, left_at=None))


@heroes.client_disconnected
def left(ctx: ReducerContext) -> None:
    """A connection has ended; with the last one in which somebody plays, their character rests."""
    visit = ctx.db[Visit].get(ctx.connection_id) if ctx.connection_id is not None else None
    if visit is None:
        return
    ctx.db[Visit].delete(visit)
    if ctx.db[Visit].count(character_id=visit.character_id):
        return
    ctx.db[Figure].update(figure(ctx, visit.character_id).replace(online=False, left_at=ctx.now))
    proclaim(ctx, f"{character(ctx, visit.character_id).name} leaves.")
    fights.signal_entity(ctx, visit.character_id, Flee())


def _welcome(ctx: ReducerContext) -> Character:
    if sum(1 for row in ctx.db[Character] if row.identity is not None) >= HEROES_MAX:
        raise ReducerError(f"the arena is full: there are {HEROES_MAX} heroes already")
    taken = {row.name for row in ctx.db[Character]}
    name = next(n for n in iter(lambda: _some_name(ctx), None) if n not in taken)
    hero = ctx.db[Character].insert(
        Character(name=name, identity=ctx.sender, hp=120, hp_max=120, at=near_to(ctx, the_place("fountain"), 60))
    )
    settle(ctx, hero, Role.Hero, bot=False)
    grant(ctx, hero.id, WELCOME_GOLD)
    for item in free_things(ctx, bank(ctx))[:1]:
        ctx.db[Item].update(item.replace(owner_id=hero.id))
    return hero


def _some_name(ctx: ReducerContext) -> str:
    return f"{ctx.random.choice(FIRST)} {ctx.random.choice(FIRST)}{ctx.random.choice(LAST)}"


@heroes.reducer
def move(ctx: ReducerContext, x: i32, y: i32) -> None:
    """Set out for a place on the map."""
    hero = me(ctx)
    able(hero)
    if not (0 <= x <= WIDTH and 0 <= y <= HEIGHT):
        raise ReducerError(f"({x}, {y}) is not on the map, which is {WIDTH} by {HEIGHT} steps")
    if live(ctx, hero.id, "combat") is not None:
        raise ReducerError("you are in a fight: win it, or flee")
    stroll(ctx, hero.id, Point(x, y))


@heroes.reducer
def say(ctx: ReducerContext, text: str) -> None:
    """Say something that everybody hears."""
    hero = me(ctx)
    words = " ".join(text.split())
    if not words:
        raise ReducerError("say something")
    if len(words) > TEXT_LENGTH_MAX:
        raise ReducerError(f"{len(words)} characters are too many; {TEXT_LENGTH_MAX} at most")
    spoken = [line.at for line in ctx.db[ChatLine] if line.author_id == hero.id]
    if spoken and ctx.now - max(spoken) < CHAT_PAUSE:
        raise ReducerError("not so fast: one line a second")
    speak(ctx, hero, words)


def speak(ctx: ReducerContext, who: Character, text: str) -> None:
    """A line of chat."""
    ctx.db[ChatLine].insert(ChatLine(at=ctx.now, author_id=who.id, author=who.name, text=text))


@heroes.reducer
def rename(ctx: ReducerContext, name: str) -> None:
    """Choose another name."""
    hero = me(ctx)
    wanted = " ".join(name.split())
    if not 2 <= len(wanted) <= NAME_LENGTH_MAX or not wanted.isprintable():
        raise ReducerError(f"a name has 2 to {NAME_LENGTH_MAX} characters")
    if any(other.id != hero.id for other in ctx.db[Character].where(name=wanted)) or wanted.endswith(" minion"):
        raise ReducerError(f"somebody is called {wanted} already")
    ctx.db[Character].update(hero.replace(name=wanted))
