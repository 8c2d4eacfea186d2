"""What the driver needs of a game that is killed, and what such a game gets: a life that may end at any moment."""

from __future__ import annotations

import os
import random
import zlib
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from gamedb import Commit, Database, ManualClock, Module, SystemClock
from gamedb.storage import open_storage
from gamedb.system import SYSTEM_TABLES


class HurriedClock(SystemClock):
    """A clock that really runs, `speed` times as fast as the system's, from a moment that it is told."""

    def __init__(self, start: int, speed: int) -> None:
        self._start = start
        self._speed = speed
        self._began = super().micros()

    def micros(self) -> int:
        """The time now."""
        return self._start + (super().micros() - self._began) * self._speed

    def wait_seconds(self, due: int) -> float | None:
        """How long to sleep until `due`."""
        return min(max(0.0, (due - self.micros()) / self._speed / 1_000_000), 60.0)


class Told:
    """What the killed processes had said about one file, in lines of a word and numbers."""

    def __init__(self) -> None:
        self.highest: Counter[str] = Counter()
        """The highest number for each word: `flushed` is a transaction that was on disk, `id` one that was taken."""
        self.digests: dict[int, int] = {0: 0}
        """What was in the tables after each transaction of the last life."""
        self.opened = False
        """Whether the last one had the file open."""

    def begin(self, db: Database) -> None:
        """Another life begins with what is in this database."""
        self.highest["flushed"] = db.last_tx_id
        self.digests = {db.last_tx_id: digest(db)}
        self.opened = False

    def hear(self, line: str) -> None:
        """Take one line."""
        word, *numbers = line.split()
        if word == "tx":
            self.digests[int(numbers[0])] = int(numbers[1])
        elif word == "open":
            self.opened = True
        else:
            self.highest[word] = max(self.highest[word], int(numbers[0]))

    def check(self, module: Module, path: Path) -> None:
        """What is in the file is exactly what was in the tables after a transaction, and not before a flushed one."""
        resolved = module.resolve()
        schemas = {**resolved.tables, **SYSTEM_TABLES}
        storage = open_storage(path, schemas, resolved.migrations, name=resolved.name, progress=None)
        try:
            there = sum(_of_row(name, row) for name, rows in storage.load() for row in rows)
        finally:
            storage.close()
        found, last, flushed = storage.last_tx_id, max(self.digests), self.highest["flushed"]
        assert found >= flushed, f"transaction {flushed} was told to be on disk, and the file ends at {found}"
        if found <= last:
            assert there == self.digests[found], f"the tables are not what they were after transaction {found}"
        else:  # it was killed before it could tell
            assert found == last + 1 or not self.opened, f"the file ends at {found}, and was told to end at {last}"


class Life:
    """One process: from when it opens the file until it is killed."""

    def __init__(self, db: Database, path: Path, rng: random.Random, descriptor: int) -> None:
        self.db = db
        self.path = path
        self.rng = rng
        self._descriptor = descriptor
        self._digest = digest(db)
        self._tell_digest(db.last_tx_id)
        db.observe(self._committed)

    def say(self, word: str, *numbers: int) -> None:
        """Tell it to the one who kills: a pipe keeps it when this process is gone."""
        os.write(self._descriptor, f"{' '.join(map(str, (word, *numbers)))}\n".encode())

    def flush(self) -> None:
        """Wait until all is on disk, and say so."""
        number = self.db.last_tx_id
        self.db.flush()
        self.say("flushed", number)

    def _committed(self, commit: Commit) -> None:
        for name, changes in commit.changes.items():
            self._digest += sum(_of_row(name, row) for row in changes.inserted)
            self._digest -= sum(_of_row(name, row) for row in changes.deleted)
        self._tell_digest(commit.tx_id)

    def _tell_digest(self, tx_id: int) -> None:
        self.say("tx", tx_id, self._digest)


class Game:
    """A module that is played while it is killed."""

    name: str
    module: Module
    kills: ClassVar[int] = 10
    """How often in `make test`."""
    speed: ClassVar[int] = 1
    """How fast its time goes."""
    pause: timedelta = timedelta(0)
    """How much time may pass between two lives, at most."""

    def live(self, life: Life) -> None:
        """Play for ever."""
        raise NotImplementedError

    def look(self, db: Database, path: Path, told: Told, rng: random.Random) -> None:
        """Check what was found, and go on with it for a while."""
        raise NotImplementedError

    def finish(self, path: Path, clock: ManualClock) -> None:
        """Play to the end what the last kill has left."""


def digest(db: Database) -> int:
    """A sum over all rows, the database's own included, which changes with each of them."""
    return sum(_of_row(name, row) for name, table in db.store.tables.items() for row in table.rows.values())


def _of_row(table: str, row: object) -> int:
    return zlib.crc32(f"{table} {row!r}".encode())
