"""What bots say."""

from __future__ import annotations

from typing import Final

from gamedb import ReducerContext

from ..auction import Lot
from ..boss_fight import Encounter
from ..day_night import WorldTime
from ..world import Item
from .realm import ChatLine

ALWAYS: Final = (
    "Anyone for the wolves' den?",
    "I could swear that well was on the other side yesterday.",
    "Strength potions. Never leave home without.",
    "Has anybody seen my other glove?",
    "Sir Aldo walks the same round since I was a child.",
    "Herbs grow by the oak. You did not hear it from me.",
    "The miller pays well, if you do not mind wolves.",
    "Old Hexa is about. Keep ten gold for a dispel.",
    "One day I will buy that crown.",
    "Somebody outbid me at the last second. Again.",
)
ASLEEP: Final = (
    "It sleeps. Drink something before it wakes.",
    "Who comes to the lair?",
    "Next time we get it before it is angry.",
)
PHASES: Final = {
    1: ("Everybody on the dragon!", "It is awake. To the lair!"),
    2: ("Minions first!", "Left one, then the right one.", "Do not waste blows on the dragon now."),
    3: ("Fire. Step back if you are hurt.", "Keep your potions at hand.", "Hot. Very hot."),
    4: ("Nearly there!", "All in now!", "It bleeds. Do not stop."),
}
TIMES: Final = {
    "dawn": ("Good morning, all.", "First light. My favourite."),
    "day": ("Fine day for a bargain.",),
    "dusk": ("It gets dark early in these parts.",),
    "night": ("I hear something in the dark.", "Stars are out."),
}


def something_to_say(ctx: ReducerContext) -> str:
    """A line that fits the moment."""
    lines = list(ALWAYS)
    phases = [fight.phase for fight in ctx.db[Encounter]]
    lines += (PHASES[phases[0]] if phases else ASLEEP) * 3
    for time in ctx.db[WorldTime]:
        lines += TIMES[time.phase]
    for lot in sorted(ctx.db[Lot], key=lambda row: row.auction_id):
        item = ctx.db[Item].get(lot.item_id)
        if item is not None:
            lines.append(f"{lot.asking} for that {item.kind}? Hm.")
    said = {line.text for line in ctx.db[ChatLine]}
    return ctx.random.choice([line for line in lines if line not in said] or lines)
