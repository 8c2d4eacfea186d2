"""A stage that can lose its process: what was not saved is gone, the rest is opened again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from examples.stage import Stage
from examples.world import Character, HeldGold, Item
from gamedb import Commit, Database, Module


class CrashStage(Stage):
    """Keeps its files; `save` is a flush boundary, `crash` falls back to the last one."""

    def __init__(self, module: Module, folder: Path) -> None:
        self._folder = folder
        self._lives = 0
        super().__init__(module, self._path())
        self._watch: Callable[[], None] = lambda: None
        self.save()

    def _path(self) -> Path:
        (self._folder / str(self._lives)).mkdir()
        return self._folder / str(self._lives) / "game.db"

    def save(self) -> None:
        """Everything until now is on disk, and survives."""
        self.db.flush()
        saved = self._folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        saved.mkdir()
        for file in (self._folder / str(self._lives)).iterdir():
            if not file.name.endswith(".lock"):
                shutil.copy(file, saved / file.name)

    def crash(self) -> None:
        """The process dies, and another one opens what was saved."""
        self.db.close()  # what it still writes goes into files that nobody looks at again
        self._lives += 1
        path = self._path()
        for file in (self._folder / "saved").iterdir():
            shutil.copy(file, path.parent / file.name)
        self.open(path)
        self._watch()

    def guard(self, sums: Callable[[Database], object]) -> None:
        """From now on, no commit may change these sums of the world."""
        right = sums(self.db)

        def look(_commit: Commit) -> None:
            self.looked += 1
            now = sums(self.db)
            if now != right:
                self.wrong.append(f"{now} instead of {right}")

        def watch() -> None:
            self.db.subscribe([Character, HeldGold, Item], look)

        self.looked = 0
        self.wrong: list[str] = []
        self._watch = watch
        watch()
