"""The same random game in several worlds: what the engine keeps in memory, and what was undone, changes no table."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from engine_support import Bid, Faults, Game, Go, Mark, Stop, define, seconds
from held_shapes import CHANGED, NAMES, SOURCE
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gamedb import Database, GamedbError, ReducerContext
from workflow_module import (
    PendingProcedure,
    UnknownWorkflow,
    Workflow,
    WorkflowAttribute,
    WorkflowError,
    WorkflowEvent,
    Workflows,
    WorkflowSignal,
    WorkflowSubscription,
    WorkflowTimer,
    waiting,
)
from workflow_module.recovery import recover
from workflow_module.tables import ProcedureStatus, WorkflowExpiry, WorkflowQueue, WorkflowStatus, WorkflowWake
from workflow_module.waiting import UNDECIDED, Held, Waiting

GAMES = max(4, int(os.environ.get("GAMEDB_FUZZ_STEPS", "2000")) // 200)
ACTS = 40
TABLES: tuple[type[Any], ...] = (
    Mark,
    Workflow,
    WorkflowTimer,
    WorkflowSignal,
    WorkflowSubscription,
    PendingProcedure,
    WorkflowAttribute,
    WorkflowExpiry,
    WorkflowWake,
    WorkflowQueue,
    WorkflowEvent,
)
CODES = [define(SOURCE), define(CHANGED)]
Act = Callable[["World", ReducerContext], object]
"""Something that is done in a transaction of a world."""


class Undone(Exception):
    pass


# --- the worlds


class World:
    """One game, as it is. The others differ in a single thing, and must come to the same tables."""

    journal = True
    same_keys = True
    """Whether `step_key`, which is random, is the same, too."""

    def __init__(self, directory: Path, limit: int | None) -> None:
        self.code = CODES[0]
        definitions = [self.code[name] for name in NAMES]
        self.game = Game(definitions, self.path(directory), testing=True, journal=self.journal, resumptions_max=limit)
        self.game.quiet()

    def path(self, directory: Path) -> Path | None:
        return None

    def deploy(self, version: int) -> None:
        self.code = CODES[version]
        self.game.definitions = [self.code[name] for name in NAMES]
        self.restart()

    def restart(self) -> None:
        """What opening a file again does, without the file."""
        engine = self.game.engine
        self.game.db.extensions.clear()
        engine._procedures = None
        engine.definitions = {definition.name: definition for definition in self.game.definitions}
        self.game.db.execute("open", lambda ctx: recover(engine.run(ctx)), ())

    def act(self, act: Act) -> object:
        return outcome(self.game.db, self, act)

    def due(self) -> None:
        self.game.due()

    def before(self) -> None:
        """What happens between the acts."""

    def rows(self, table: type[Any]) -> list[Any]:
        return [
            row if table is not PendingProcedure or self.same_keys else row.replace(step_key="")
            for row in self.game.db.read(table)
        ]

    def close(self) -> None:
        self.game.db.close()


def outcome(db: Database, world: World, act: Act) -> object:
    """What an act gives, or with which words it is refused."""
    try:
        return db.execute("act", lambda ctx: act(world, ctx), ())
    except (WorkflowError, GamedbError) as error:
        return f"{type(error).__name__}: {error}"


class Forgetful(World):
    """Nothing is held between the steps, each wait is evaluated, and each is armed anew."""

    def act(self, act: Act) -> object:
        with pytest.MonkeyPatch.context() as patch:
            self.forget(patch)
            return super().act(act)

    def due(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            self.forget(patch)
            super().due()

    def forget(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Held, "take", lambda _self, _row: None)
        patch.setattr(Waiting, "look", lambda *_: UNDECIDED)
        patch.setattr(waiting, "_is_lasting", lambda _wait: False)


class Restarted(World):
    """Restarted between the acts. (What is due at that time may come in another order.)"""

    same_keys = False

    def before(self) -> None:
        db, soon = self.game.db, self.game.clock.now + seconds(60)
        leased = any(
            row.status is ProcedureStatus.Running and row.scheduled_at < soon for row in db.read(PendingProcedure)
        )
        if not leased and (db.next_due is None or db.next_due > self.game.clock.now):
            self.restart()


class Reopened(Restarted):
    """The same with a file, now and then: opening one takes a while."""

    acts = 0

    def path(self, directory: Path) -> Path | None:
        return directory / "game.db"

    def restart(self) -> None:
        self.acts += 1
        if self.acts % 6 == 1:
            self.game.reopen()
            self.game.quiet()

    def deploy(self, version: int) -> None:
        self.acts = 0
        super().deploy(version)


class WithoutJournal(World):
    journal = False
    same_keys = False  # chance goes by the number of the transaction, and some of them change the journal alone


class Twin(World):
    """A second database of the same module does something else all the time."""

    def __init__(self, directory: Path, limit: int | None) -> None:
        super().__init__(directory, limit)
        self.flows = Workflows(Database(self.game.module, clock=self.game.clock, seed=2))

    def before(self) -> None:
        flow = self.flows.start(self.code["racer"], self.code["Shape"](d=2))
        if flow > 1 and self.flows.get(flow - 1).status is WorkflowStatus.Suspended:
            self.flows.signal(flow - 1, Stop())

    def close(self) -> None:
        super().close()
        self.flows.db.close()


# --- what is done


def undone(act: Act) -> Act:
    """The same where the caller rolls it back, but in the transaction of something else."""

    def done(world: World, ctx: ReducerContext) -> object:
        found: object = None
        try:
            with ctx.savepoint():
                found = act(world, ctx)
                raise Undone
        except (Undone, WorkflowError, GamedbError) as error:
            return found, type(error).__name__

    return done


def refused(act: Act) -> Act:
    """The same in a transaction that fails at last."""

    def done(world: World, ctx: ReducerContext) -> object:
        act(world, ctx)
        raise UnknownWorkflow("on purpose")

    return done


class Script:
    """Chooses what is done next, by what is there in the first world."""

    WEIGHTS = (
        ("start", 10),
        ("signal", 20),
        ("broadcast", 5),
        ("entity", 1),
        ("fire", 5),
        ("cancel", 3),
        ("terminate", 1),
        ("delete", 1),
        ("resume", 6),
        ("by_hand", 2),
        ("take", 3),
        ("complete", 5),
        ("fail", 4),
        ("release", 1),
        ("reducer", 1),
    )

    def __init__(self, rng: random.Random, world: World, undoing: bool) -> None:
        self.rng = rng
        self.world = world
        self.undoing = undoing

    def act(self) -> tuple[str, Act]:
        """One act, or several in one transaction."""
        count = 1 if self.rng.random() < 0.8 else 3
        names = self.rng.choices([n for n, _ in self.WEIGHTS], [w for _, w in self.WEIGHTS], k=count)
        acts = [getattr(self, name)() for name in names]
        if self.undoing:
            acts = [undone(act) if self.rng.random() < 0.2 else act for act in acts]

        def all_of(world: World, ctx: ReducerContext) -> object:
            return [act(world, ctx) for act in acts]

        what = " and ".join(names)
        if self.undoing and self.rng.random() < 0.2:
            return f"{what}, refused", refused(all_of)
        return what, all_of

    def flow(self) -> int:
        rows = list(self.world.game.db.read(Workflow))
        live = [row for row in rows if row.status not in (WorkflowStatus.Completed, WorkflowStatus.Cancelled)]
        found = self.rng.choice(live or rows or [None])
        return 1 + self.rng.randrange(9) if found is None or self.rng.random() < 0.05 else found.id

    def message(self) -> Callable[[World], Any]:
        kind, n = self.rng.choice(["Bid", "Bid", "Stop", "Go", "Loot"]), self.rng.randrange(12)
        if kind == "Loot":
            return lambda world: world.code["Loot"]([str(n)])
        return lambda _: Bid(amount=n) if kind == "Bid" else Go(n=n) if kind == "Go" else Stop()

    def start(self) -> Act:
        rng = self.rng
        name, manual, other = rng.choice(NAMES), rng.random() < 0.2, self.flow()
        shape = {"d": rng.randrange(5), "other": other, "left": rng.randrange(4)}
        correlation = rng.choice([None, None, None, "one"])
        signals = [self.message() for _ in range(rng.choice([0, 0, 0, 2]))]
        return lambda world, ctx: world.game.engine.start(
            ctx,
            world.code[name],
            world.code["Shape"](**shape),
            entity_id=other % 3,
            correlation_id=correlation,
            signals=[each(world) for each in signals],
            test_mode=manual,
        )

    def signal(self) -> Act:
        flow, message = self.flow(), self.message()
        return lambda world, ctx: world.game.engine.signal(ctx, flow, message(world))

    def broadcast(self) -> Act:
        key, message = self.rng.randrange(4), self.message()
        return lambda world, ctx: world.game.engine.broadcast(ctx, message(world), key)

    def entity(self) -> Act:
        entity, message = self.rng.randrange(3), self.message()
        return lambda world, ctx: world.game.engine.signal_entity(ctx, entity, message(world))

    def fire(self) -> Act:
        timers = sorted(self.world.game.db.read(WorkflowTimer), key=lambda timer: timer.scheduled_id)
        if not timers:
            return self.start()
        timer = self.rng.choice(timers)
        return lambda world, ctx: world.game.engine.fire_timer(ctx, timer.workflow_id, timer.timer_name)

    def _plain(self, name: str) -> Act:
        flow = self.flow()
        return lambda world, ctx: getattr(world.game.engine, name)(ctx, flow)

    def cancel(self) -> Act:
        return self._plain("cancel")

    def terminate(self) -> Act:
        return self._plain("terminate")

    def delete(self) -> Act:
        return self._plain("delete")

    def resume(self) -> Act:
        rows = [row for row in self.world.game.db.read(Workflow) if row.status is WorkflowStatus.Failed]
        if not rows:
            return self.signal()
        flow = self.rng.choice(rows).id
        return lambda world, ctx: world.game.engine.resume(ctx, flow)

    def by_hand(self) -> Act:
        flow, entity = self.flow(), self.rng.randrange(3)

        def act(_: World, ctx: ReducerContext) -> None:
            row = ctx.db[Workflow].get(flow)
            if row is not None:
                ctx.db[Workflow].update(row.replace(entity_id=entity))

        return act

    def _reducer(self, name: str, *arguments: Any) -> Act:
        return lambda _, ctx: ctx.functions[name].invoke(ctx, *ctx.functions[name].arguments_from(arguments, {}))

    def take(self) -> Act:
        return self._reducer("workflow_procedure_take", "far", "w", self.rng.choice([3.0, 3600.0]), 2)

    def _leased(self, what: str, *arguments: Any) -> Act:
        calls = sorted(self.world.game.db.read(PendingProcedure), key=lambda call: call.id)
        leased = [call for call in calls if call.status is ProcedureStatus.Running]
        if not calls:
            return self.start()
        call = self.rng.choice(leased or calls)
        return self._reducer(f"workflow_procedure_{what}", call.id, call.attempt, *arguments)

    def complete(self) -> Act:
        return self._leased("complete", self.rng.choice(["1", "2", '"no int"']))

    def fail(self) -> Act:
        return self._leased("fail", "Broken", "on purpose")

    def release(self) -> Act:
        return self._leased("release")

    def reducer(self) -> Act:
        return self._reducer("workflow_signal", self.flow(), "Bid", '{"amount": 3}')


def compare(worlds: list[World], log: list[str]) -> None:
    """All tables of all worlds are those of the first."""
    first = worlds[0]
    for table in TABLES:
        expected = {id_of(row): row for row in first.game.db.read(table)}
        for world in worlds[1:]:
            if table is WorkflowEvent and not world.journal:
                continue
            found = {id_of(row): row for row in world.rows(table)}
            wanted = expected
            if table is PendingProcedure and not world.same_keys:
                wanted = {key: row.replace(step_key="") for key, row in expected.items()}
            if found != wanted:
                keys = sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key))
                shown = "\n".join(f"{wanted.get(key)}\n  not {found.get(key)}" for key in keys[:3])
                raise AssertionError(f"{type(world).__name__}, {table.__name__}:\n{shown}\nafter {log[-8:]}")


def id_of(row: Any) -> Any:
    """The first column of every table is its key."""
    return getattr(row, row.__struct_fields__[0])


@settings(
    max_examples=GAMES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # a game does not shrink
)
@given(st.integers(0, 2**32), st.sampled_from([None, None, 3]), st.booleans())
def test_memory_and_restarts_change_no_table(seed: int, limit: int | None, undoing: bool) -> None:
    play(seed, limit, undoing, (World, Forgetful, WithoutJournal, Twin, Restarted))


@pytest.mark.parametrize("seed", range(max(1, GAMES // 20)))
def test_a_file_changes_no_table(seed: int) -> None:
    play(seed, None, False, (World, Reopened))


def play(seed: int, limit: int | None, undoing: bool, kinds: Sequence[type[World]]) -> None:
    """One game. (`undoing` is not for files: ids that were given to what was undone come again when one is opened.)"""
    rng, log, version = random.Random(seed), [f"seed {seed} {limit} {undoing}"], 0
    Faults.on = False
    with tempfile.TemporaryDirectory() as directory, ExitStack() as open_worlds:
        open_worlds.callback(setattr, Faults, "on", False)
        worlds = [kind(Path(directory), limit) for kind in kinds]
        for world in worlds:
            open_worlds.callback(world.close)
        script = Script(rng, worlds[0], undoing)
        for _ in range(ACTS):
            for world in worlds:
                world.before()
            what = rng.choices(["act", "jump", "due", "faults", "back", "deploy"], [20, 4, 5, 3, 0.5, 0.4])[0]
            if what == "act":
                what, act = script.act()
                outcomes = [without_keys(world.act(act)) for world in worlds]
                for world, found in zip(worlds, outcomes, strict=True):
                    assert found == outcomes[0], (type(world).__name__, what, log[-8:])
            elif what in ("jump", "back"):
                by = seconds(rng.choice([0, 1, 1, 2, 3]) if what == "jump" else -1)
                for world in worlds:
                    world.game.clock.set(world.game.clock.now + by)
            elif what == "faults":
                Faults.on = rng.random() < 0.5
            else:
                for world in worlds:
                    world.due()
                if what == "deploy":
                    version = 1 - version
                    for world in worlds:
                        world.deploy(version)
            log.append(what)
            compare(worlds, log)


def without_keys(found: object) -> object:
    """An outcome without what is random in it."""
    if isinstance(found, PendingProcedure):
        return found.replace(step_key="")
    return [without_keys(each) for each in found] if isinstance(found, list | tuple) else found
