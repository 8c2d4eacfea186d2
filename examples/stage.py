"""A stage for scenes and tests: a game on a manual clock, with players who act, and time that passes when told.

stage = Stage(module)
ann = stage.join("ann", gold=100)
ann.call(place_bid, auction_id, 60)
stage.wait(minutes=5)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from gamedb import Commit, Database, Identity, ManualClock, Module
from workflow_module import Workflows

from .world import Character, Chat, Item, Notice, Point

ORIGIN = Point()

P = ParamSpec("P")
T = TypeVar("T")


class Player:
    """One who is on stage: calls reducers as themselves."""

    def __init__(self, stage: Stage, character_id: int, identity: Identity) -> None:
        self._stage = stage
        self.id = character_id
        self.identity = identity

    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a reducer as this player."""
        return self._stage.db.caller(self.identity).call(reducer, *args, **kwargs)

    @property
    def row(self) -> Character:
        """The character as it is now."""
        row = self._stage.db.read(Character).get(self.id)
        assert row is not None, "the character is gone"
        return row

    @property
    def gold(self) -> int:
        """What is in the purse; gold in escrow is not."""
        return self.row.gold

    @property
    def hp(self) -> int:
        """Hit points."""
        return self.row.hp

    @property
    def things(self) -> list[str]:
        """The kinds of what this player owns, sorted."""
        return sorted(item.kind for item in self._stage.db.read(Item).where(owner_id=self.id))

    @property
    def heard(self) -> list[str]:
        """The lines that only this player got, in order."""
        return [line.text for line in sorted(self._stage.db.read(Notice).where(to_id=self.id), key=lambda n: n.id)]


class Stage:
    """A database with nothing real around it."""

    def __init__(
        self, module: Module, path: str | os.PathLike[str] | None = None, *, clock: ManualClock | None = None
    ) -> None:
        self.module = module
        self.clock = clock if clock is not None else ManualClock()
        self.open(path)

    def open(self, path: str | os.PathLike[str] | None) -> None:
        """Open the game, at the clock's time."""
        self.db = Database(self.module, path, clock=self.clock, seed=1, quiet=True)
        self.flows = Workflows(self.db)

    def join(self, name: str, *, gold: int = 0, items: tuple[str, ...] = (), hp: int = 100) -> Player:
        """A player enters, with what they bring along."""
        with self.db.transaction(name="join") as ctx:
            identity = Identity.from_int(1 + len(ctx.db[Character]))
            row = ctx.db[Character].insert(Character(name=name, identity=identity, gold=gold, hp=hp, hp_max=hp))
            for kind in items:
                ctx.db[Item].insert(Item(kind=kind, owner_id=row.id))
        return Player(self, row.id, identity)

    def place(self, name: str, *, gold: int = 0, hp: int = 100, strength: int = 10, at: Point = ORIGIN) -> int:
        """Put a character on the map that the game plays; its id."""
        with self.db.transaction(name="place") as ctx:
            row = Character(name=name, gold=gold, hp=hp, hp_max=hp, strength=strength, at=at)
            return ctx.db[Character].insert(row).id

    def drop(self, kind: str, owner_id: int | None = None) -> int:
        """Make a thing, on the ground or somebody's; its id."""
        with self.db.transaction(name="drop") as ctx:
            return ctx.db[Item].insert(Item(kind=kind, owner_id=owner_id)).id

    def character(self, character_id: int) -> Character:
        """A character as it is now."""
        row = self.db.read(Character).get(character_id)
        assert row is not None, "the character is gone"
        return row

    @property
    def announced(self) -> list[str]:
        """The lines for everybody, in order."""
        return [line.text for line in sorted(self.db.read(Chat), key=lambda c: c.id)]

    def wait(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass. Whatever falls due meanwhile fires at its own moment."""
        until = self.clock.now + timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self.db.run_due()
        while (due := self.db.next_due) is not None and due <= until:
            self.clock.set(max(due, self.clock.now))
            self.db.run_due()
        self.clock.set(until)

    def narrate(self) -> None:
        """Print every line from now on, with the seconds since now."""
        began = self.clock.now

        def show(line: Chat | Notice, whom: str = "") -> None:
            print(f"{(line.at - began).total_seconds():8.1f} s  {whom}{line.text}")

        def on_lines(commit: Commit) -> None:
            announced, noticed = commit.of(Chat), commit.of(Notice)
            for line in announced.inserted if announced is not None else []:
                show(line)
            for notice in noticed.inserted if noticed is not None else []:
                reader = self.db.read(Character).get(notice.to_id)
                show(notice, "" if reader is None else f"(to {reader.name}) ")

        self.db.subscribe([Chat, Notice], on_lines)
