"""Everybody who plays, watches, visits and annoys: they come together, and leave together."""

from __future__ import annotations

import asyncio
import traceback
from random import Random
from typing import Final

from tests.soak.players import Caller, Player
from tests.soak.scene import Actor, Scene
from tests.soak.visitors import Vandal, Visitor
from tests.soak.watchers import Watcher, WorldWatcher

PLAYERS: Final = 8
CALLERS: Final = 2
VISITORS: Final = 3


class Crowd:
    """The actors, as tasks while they are here."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        made: list[type[Actor]] = [Player] * PLAYERS + [Caller] * CALLERS + [Visitor] * VISITORS
        made += [WorldWatcher, Watcher, Vandal]
        self._actors = [kind(scene, Random(scene.rng.random())) for kind in made]
        self._actors.append(Watcher(scene, Random(scene.rng.random()), confirmed=False))
        self._tasks: dict[asyncio.Task[None], Actor] = {}

    @property
    def is_here(self) -> bool:
        """Whether anybody is."""
        return bool(self._tasks)

    def enter(self) -> None:
        """All come, as who they were before."""
        for actor in self._actors:
            self._tasks[asyncio.create_task(actor.live())] = actor

    async def leave(self) -> None:
        """All go, in the middle of whatever they do."""
        self.look()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def cut(self) -> None:
        """All connections break, and everybody who has a client connects again."""
        for actor in self._actors:
            if actor.client is not None:
                actor.client.reconnect()

    def look(self) -> None:
        """Report who has failed, and let them go on."""
        for task in [task for task in self._tasks if task.done()]:
            actor = self._tasks.pop(task)
            error = task.exception()
            self._scene.report.fault(f"a {type(actor).__name__} failed", _told(error))
            self._tasks[asyncio.create_task(actor.live())] = actor


def _told(error: BaseException | None) -> str:
    return "".join(traceback.format_exception(error)) if error is not None else "it ended"
