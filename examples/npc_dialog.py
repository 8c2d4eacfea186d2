"""A talk with a smith: options, consequences, and a player who may walk away without a word.

    python -m examples.npc_dialog

What it shows: a conversation is a loop of "show, and wait for an answer". `node` is a variable, so the place in the
talk is stored with the workflow, and the text is not: correct a typo, deploy, and running talks show the new text. A
minute of silence ends the talk; each answer starts the minute anew, which is what `after=` means.

The lines that matter are the `match` in the loop: what came, and then what the chosen option does.
"""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TypeAlias

from gamedb import Module, PrimaryKey, ReducerContext, ReducerError, Row, u32, u64
from workflow_module import Signal, Struct, Timer, WorkflowContext, install, select, timer, workflow

from .stage import Stage
from .world import Item, character, me, move_gold, move_item, tell, world

SILENCE = timedelta(seconds=60)

module = Module("npc_dialog")
module.include(world)


class Goto(Struct):
    node: str


class Buy(Struct):
    kind: str
    price: int
    node: str
    """Where the talk goes on when the player could not pay."""


class End(Struct): ...


Action: TypeAlias = Goto | Buy | End


class Node(Struct):
    text: str
    options: list[tuple[str, Action]]


TALK = {
    "greeting": Node(
        "Welcome to my forge. What do you need?",
        [("A sword.", Goto("swords")), ("Who are you?", Goto("story")), ("Nothing.", End())],
    ),
    "swords": Node("A fine one, for 40 gold.", [("Here you are.", Buy("sword", 40, "poor")), ("Too much.", End())]),
    "poor": Node("Come back with more gold, or find me a fair one to sell.", [("I shall.", End())]),
    "story": Node("The smith. My mother was the smith before me.", [("Good to know.", Goto("greeting"))]),
}


@module.table(public=True)
class DialogWindow(Row):
    """What a player sees of a talk."""

    player: PrimaryKey[u64]
    dialog_id: u64
    text: str
    options: list[str]


class DialogTimer(Timer):
    SILENCE = "silence"


class Choose(Signal):
    option: int


class WalkAway(Signal): ...


class DialogInit(Struct):
    npc: int
    player: int
    start: str = "greeting"


class Outcome(enum.Enum):
    ENDED = "ended"
    BOUGHT = "bought"
    ABANDONED = "abandoned"


@workflow
async def npc_dialog(ctx: WorkflowContext, init: DialogInit) -> Outcome:
    node = init.start
    try:
        while True:
            show(ctx, init, node)
            match await select(timer(DialogTimer.SILENCE, after=SILENCE), Choose, WalkAway):
                case DialogTimer.SILENCE | WalkAway():
                    return Outcome.ABANDONED
                case Choose(option) if 0 <= option < len(TALK[node].options):
                    match TALK[node].options[option][1]:
                        case Goto(following):
                            node = following
                        case Buy(kind, price, otherwise):
                            if buy(ctx, init, kind, price):
                                return Outcome.BOUGHT
                            node = otherwise
                        case End():
                            return Outcome.ENDED
    finally:
        ctx.db[DialogWindow].delete(init.player)


def show(ctx: WorkflowContext, init: DialogInit, node: str) -> None:
    """Open the window, or turn its page."""
    options = [label for label, _ in TALK[node].options]
    row = DialogWindow(player=init.player, dialog_id=ctx.workflow_id, text=TALK[node].text, options=options)
    ctx.db[DialogWindow].upsert(row)


def buy(ctx: ReducerContext, init: DialogInit, kind: str, price: int) -> bool:
    """One of the smith's things for the player's gold; False when either is lacking."""
    stock = [item for item in ctx.db[Item].where(owner_id=init.npc) if item.kind == kind and item.holder is None]
    if not stock or character(ctx, init.player).gold < price:
        return False
    move_gold(ctx, init.player, init.npc, price)
    move_item(ctx, stock[0].id, init.npc, init.player)
    tell(ctx, init.player, f"You buy a {kind}.")
    return True


engine = install(module, [npc_dialog], testing=True)


@module.reducer
def talk_to(ctx: ReducerContext, npc: u64) -> int:
    """Begin to talk. One talk at a time."""
    player = me(ctx)
    if ctx.db[DialogWindow].get(player.id) is not None:
        raise ReducerError("you are talking already")
    return engine.start(ctx, npc_dialog, DialogInit(npc=character(ctx, npc).id, player=player.id))


@module.reducer
def choose(ctx: ReducerContext, option: u32) -> None:
    """Say one of the lines offered."""
    window = _window(ctx)
    if option >= len(window.options):
        raise ReducerError(f"there are {len(window.options)} options")
    engine.signal(ctx, window.dialog_id, Choose(option=option))


@module.reducer
def walk_away(ctx: ReducerContext) -> None:
    """Leave without a word."""
    engine.signal(ctx, _window(ctx).dialog_id, WalkAway())


def _window(ctx: ReducerContext) -> DialogWindow:
    window = ctx.db[DialogWindow].get(me(ctx).id)
    if window is None:
        raise ReducerError("nobody talks to you")
    return window


def main() -> None:
    """Ann asks a question and buys a sword."""
    stage = Stage(module)
    ann = stage.join("ann", gold=50)
    smith = stage.place("the smith")
    stage.drop("sword", smith)
    dialog = ann.call(talk_to, smith)
    for option in (1, 0, 0, 0):
        window = stage.db.read(DialogWindow).get(ann.id)
        assert window is not None
        print(f"the smith: {window.text}\n      ann: {window.options[option]}")
        ann.call(choose, option)
    print(f"{stage.flows.result(dialog)}; ann has {ann.gold} gold and {ann.things}")


if __name__ == "__main__":
    main()
