"""What the games that search for lost property share: a world to begin with, random play, and what must always hold.

A game knows an example: what players may do in it, and what its tables say of each other. It does not know whether
Hypothesis plays it on a manual clock, or a process that is killed on a real one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from examples.world import Character, HeldGold, Item, item_counts, total_gold
from gamedb import Database, Identity, Module, ReducerContext, ReducerError, Row
from workflow_module import (
    PendingProcedure,
    Signal,
    Timer,
    Workflow,
    WorkflowDefinition,
    WorkflowEvent,
    Workflows,
    WorkflowSignal,
    WorkflowStatus,
    WorkflowSubscription,
    WorkflowTimer,
)
from workflow_module.definition import StateView

T = TypeVar("T")
R = TypeVar("R", bound=Row)

Action = Callable[[], object]

FINISHED = (WorkflowStatus.Completed, WorkflowStatus.Cancelled)


class Running(Protocol):
    """A game that is open."""

    db: Database
    flows: Workflows


class Choices(Protocol):
    """Where chance comes from."""

    def number(self, low: int, high: int) -> int:
        """A number, both ends included."""


class Play:
    """Somebody plays: what actions choose with."""

    def __init__(self, running: Running, choices: Choices) -> None:
        self.running = running
        self.number = choices.number

    @property
    def db(self) -> Database:
        """The game as it is open now."""
        return self.running.db

    def one_of(self, choices: Sequence[T]) -> T:
        """One of these; `ReducerError` when there are none, as when a player asks in vain."""
        if not choices:
            raise ReducerError("there is nothing to choose")
        return choices[self.number(0, len(choices) - 1)]

    def row(self, table: type[R], **equalities: Any) -> R:
        """A row of a table."""
        key = self.db.tables[table].data.schema.primary_key or ""
        return self.one_of(sorted(self.db.read(table).where(**equalities), key=lambda row: getattr(row, key)))

    def player(self) -> Character:
        """Somebody who plays."""
        return self.one_of(players(self.db))

    def call(self, player: Character, reducer: Callable[..., T], *args: Any) -> T:
        """Call a reducer as this player."""
        assert player.identity is not None
        return self.db.caller(player.identity).call(reducer, *args)

    def item(self) -> int:
        """The id of a thing."""
        return self.row(Item).id

    def rarely(self, action: Action) -> Action:
        """An action that would end too much, if it came as often as the others."""
        return lambda: self.number(1, 20) == 1 and action()

    def cancel(self) -> None:
        """Cancel a workflow."""
        self.running.flows.cancel(self.row(Workflow).id)

    def resume(self) -> int:
        """Try again what has failed; how many there were."""
        failed = [row.id for row in self.db.read(Workflow) if row.status is WorkflowStatus.Failed]
        for workflow_id in failed:
            self.running.flows.resume(workflow_id)
        return len(failed)


class Game:
    """An example as it is played."""

    module: ClassVar[Module]
    players: ClassVar[tuple[str, ...]] = ("ann", "bob", "cleo")
    purse: ClassVar[int] = 100
    """With how much gold a player comes."""
    bag: ClassVar[tuple[str, ...]] = ()
    """With which things."""
    hp: ClassVar[int] = 100
    pause: ClassVar[timedelta] = timedelta(minutes=1)
    """How long nobody may play, at most, while it waits for a process."""
    days: ClassVar[int] = 1
    """After how many days without players nothing goes on but what would for ever."""

    def begin(self, db: Database) -> None:
        """Make the world, all of it in one transaction, where there is none yet."""
        if db.read(Character).count():
            return
        with db.transaction(name="begin") as ctx:
            for number, name in enumerate(self.players, 1):
                player = Character(
                    name=name, identity=Identity.from_int(number), gold=self.purse, hp=self.hp, hp_max=self.hp
                )
                player = ctx.db[Character].insert(player)
                for kind in self.bag:
                    ctx.db[Item].insert(Item(kind=f"{name}'s {kind}", owner_id=player.id))
            self.furnish(ctx)

    def furnish(self, ctx: ReducerContext) -> None:
        """Put into the world what there is besides the players."""

    def actions(self, play: Play) -> tuple[Action, ...]:
        """What may happen; each picks its arguments by itself."""
        raise NotImplementedError

    def end(self, play: Play) -> None:
        """End what would go on for ever."""

    def worth(self, things: Counter[str]) -> object:
        """What of the things in the world never changes."""
        return things

    def sums(self, db: Database) -> object:
        """What of the world never changes."""
        return total_gold(db), self.worth(item_counts(db))

    def calls(self, running: Running) -> set[tuple[str, int]]:
        """Which procedures must have been called by which workflows."""
        return set()

    def check(self, running: Running) -> None:
        """What must hold between any two transactions."""
        db = running.db
        check_workflows(db)
        live = {row.id for row in db.read(Workflow) if row.status not in FINISHED}
        assert {row.holder for row in db.read(HeldGold)} <= live, "gold is held for nobody"
        assert {item.holder for item in db.read(Item)} <= live | {None}, "a thing is held for nobody"

    def check_end(self, running: Running) -> None:
        """What must hold besides when every workflow has ended."""
        left = [row for row in running.db.read(Workflow) if row.status not in FINISHED]
        assert not left, f"{left[0]} has not ended"


def players(db: Database) -> list[Character]:
    """Those who play, in order."""
    return sorted((row for row in db.read(Character) if row.identity is not None), key=lambda row: row.id)


def check_workflows(db: Database) -> None:
    """No step failed but for a call, and nothing is left of the workflows that have ended."""
    rows = {row.id: row for row in db.read(Workflow)}
    for row in rows.values():
        by_call = "ProcedureFailed" in (row.error or "")
        assert row.status is not WorkflowStatus.Failed or by_call, row.error
        parent = rows.get(row.parent_id or 0)
        if parent is not None and parent.status in FINISHED:
            assert row.status in FINISHED, f"workflow {row.id} has outlived its parent"
    finished = {row.id for row in rows.values() if row.status in FINISHED}
    for table in (WorkflowTimer, WorkflowSignal, PendingProcedure, WorkflowSubscription):
        left = [row for row in db.read(table) if row.workflow_id in finished]
        assert not left, f"a workflow has ended, and there is still {left[0]}"


class Moment(NamedTuple):
    """One entry of a workflow's timeline, with its state before and after it."""

    id: int
    """The workflow's."""
    at: datetime
    kind: str
    detail: str
    before: StateView | None
    after: StateView

    def got(self, *signals: type[Signal]) -> Any:
        """The signal that it got, if it is one of these."""
        name = self.detail.partition("(")[0]
        known = {signal.__name__: signal for signal in signals}
        return eval(self.detail, dict(known)) if self.kind == "step" and name in known else None

    def fired(self, timer: Timer) -> bool:
        """Whether it is this timer's firing."""
        return self.kind == "step" and self.detail == repr(timer)


def timeline(running: Running, workflow: WorkflowDefinition[Any, Any]) -> Iterator[Moment]:
    """What the workflows of a type have done, in the order of the transactions."""
    types = {row.id: row.workflow_type for row in running.db.read(Workflow)}
    states: dict[int, StateView] = {}
    for event in sorted(running.db.read(WorkflowEvent), key=lambda event: event.id):
        workflow_id = event.workflow_id
        if types[workflow_id] == workflow.name:
            before, after = states.get(workflow_id), workflow.view(event.state_data)
            states[workflow_id] = after
            yield Moment(workflow_id, event.at, event.kind, event.detail, before, after)


def live(running: Running, workflow: WorkflowDefinition[Any, Any]) -> dict[int, StateView]:
    """The states of the workflows of a type that have not ended."""
    rows = [row for row in running.db.read(Workflow) if row.workflow_type == workflow.name]
    return {row.id: workflow.view(row.state_data) for row in rows if row.status not in FINISHED}


class Ledger:
    """What everybody owns, held or not: as it was at the beginning, and then as the workflows say that it moved."""

    def __init__(self, game: Game, db: Database) -> None:
        self._db = db
        ids = {player.name: player.id for player in players(db)}
        self.gold = Counter(dict.fromkeys(ids.values(), game.purse))
        self.owners = {item.id: ids[item.kind.partition("'")[0]] for item in db.read(Item)}

    def move_gold(self, source: int, target: int, amount: int) -> None:
        """Gold changes hands."""
        self.gold[source] -= amount
        self.gold[target] += amount

    def check(self) -> None:
        """The tables say the same."""
        gold = Counter({row.id: row.gold for row in self._db.read(Character)})
        gold.update(held(self._db))
        assert gold == self.gold, "the purses are not what was earned and paid"
        assert {item.id: item.owner_id for item in self._db.read(Item)} == self.owners, "a thing is not its owner's"


def held(db: Database, holder: int | None = None) -> Counter[int]:
    """How much of whose gold is in escrow."""
    rows = list(db.read(HeldGold)) if holder is None else db.read(HeldGold).where(holder=holder)
    amounts: Counter[int] = Counter()
    for row in rows:
        amounts[row.owner_id] += row.amount
    return amounts


def things_held(db: Database, holder: int) -> set[int]:
    """Which things are in escrow."""
    return {item.id for item in db.read(Item).where(holder=holder)}
