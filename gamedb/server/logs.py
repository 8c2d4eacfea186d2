"""The log of one database as a server keeps it: the last entries in memory, all of them in files, followers.

An entry is one line of JSON, in the fields that SpacetimeDB has. Whatever goes wrong with keeping an entry never
reaches the code that logged it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from gamedb.database import Database
from gamedb.errors import StorageError

ENTRIES_MAX: Final = 10_000
"""Entries in memory."""
MEMORY_BYTES_MAX: Final = 8 << 20
"""Their bytes in memory; the oldest go."""
MESSAGE_CHARACTERS_MAX: Final = 16_384
TRACE_FRAMES_MAX: Final = 50
FILE_BYTES_MAX: Final = 8 << 20
"""From this size on a file is put aside and a new one begun."""
FILES_MAX: Final = 4
"""Files of a database, the current one among them; the oldest is deleted."""
FOLLOWERS_MAX: Final = 100
FOLLOWED_MAX: Final = 2_000
"""Entries that wait for one follower; more are left out, and the follower is told how many."""
_LEVELS: Final = ((logging.ERROR, "Error"), (logging.WARNING, "Warn"), (logging.INFO, "Info"), (logging.DEBUG, "Debug"))


class TooManyFollowers(Exception):
    """There are `FOLLOWERS_MAX` already."""


class Logs:
    """Keeps what a database and its game log.

    `path`: the file, or `None` to keep nothing over a restart. `level`: from which level on entries are kept.
    """

    def __init__(self, path: Path | None = None, *, level: int = logging.INFO) -> None:
        self._entries: deque[bytes] = deque(maxlen=ENTRIES_MAX)
        self._bytes = 0
        self._followers: list[Follower] = []
        self._level = level
        self._file = None if path is None else _LogFile(path)
        self._detach: Callable[[], None] | None = None
        if self._file is not None:
            for line in self._file.tail():
                self._remember(line)

    def attach(self, db: Database, name: str) -> None:
        """Take in the log of a database from now on; `name` is that of its logger."""
        logger = db.log = logging.getLogger(f"gamedb.{name}")
        handler = _Handler(self, db)
        before = logger.level
        handler.setLevel(self._level)
        if logger.getEffectiveLevel() > self._level:
            logger.setLevel(self._level)
        logger.addHandler(handler)

        def detach() -> None:
            logger.removeHandler(handler)
            logger.setLevel(before)

        self._detach = detach

    def close(self) -> None:
        """Take in nothing any more, end the followers. Twice is once."""
        detach, self._detach = self._detach, None
        if detach is not None:
            detach()
        for follower in list(self._followers):
            follower.end()
        if self._file is not None:
            self._file.close()

    def last(self, count: int | None = None) -> list[bytes]:
        """The last entries, the oldest first, as lines."""
        entries = list(self._entries)
        return entries if count is None else entries[max(0, len(entries) - count) :]

    @contextmanager
    def follow(self) -> Iterator[Follower]:
        """Later entries as they come, for the running asyncio loop. `TooManyFollowers` at the limit."""
        if len(self._followers) >= FOLLOWERS_MAX:
            raise TooManyFollowers
        follower = Follower(asyncio.get_running_loop())
        self._followers.append(follower)
        try:
            yield follower
        finally:
            self._followers.remove(follower)

    def add(self, entry: dict[str, Any]) -> None:
        """Keep an entry."""
        line = msgspec.json.encode(entry) + b"\n"
        self._remember(line)
        for follower in list(self._followers):
            follower.add(line)
        if self._file is not None:  # last, as its disk may be full
            self._file.write(line)

    def _remember(self, line: bytes) -> None:
        if len(self._entries) == ENTRIES_MAX:
            self._bytes -= len(self._entries.popleft())
        self._entries.append(line)
        self._bytes += len(line)
        while self._bytes > MEMORY_BYTES_MAX:
            self._bytes -= len(self._entries.popleft())


class Follower:
    """Somebody who reads along; a slow one misses entries and slows nobody."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: deque[bytes] = deque()
        self._missed = 0
        self._changed = asyncio.Event()
        self._ended = False

    def add(self, line: bytes) -> None:
        """From any thread."""
        if len(self._lines) >= FOLLOWED_MAX:
            self._missed += 1
            return
        self._lines.append(line)
        if len(self._lines) == 1:
            self._wake()

    def end(self) -> None:
        """From any thread: there will be no more."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:  # the loop is closed
            self._ended = True

    async def batches(self, seconds: float) -> AsyncIterator[bytes]:
        """What came, joined; an empty batch after so many seconds in which nothing did. Ends with the log."""
        while True:
            if not self._lines and not self._ended:
                try:
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
                except TimeoutError:
                    yield b""
                    continue
            self._changed.clear()
            batch = []
            while self._lines:
                batch.append(self._lines.popleft())
            missed, self._missed = self._missed, 0
            if missed:
                entry = {"level": "Warn", "ts": 0, "message": f"{missed} entries were left out, as they came too fast"}
                batch.append(msgspec.json.encode(entry) + b"\n")
            if batch:
                yield b"".join(batch)
            elif self._ended:
                return


class _Handler(logging.Handler):
    """From records of `logging` to entries."""

    def __init__(self, logs: Logs, db: Database) -> None:
        super().__init__()
        self._logs = logs
        self._db = db

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._logs.add(entry_of(record, self._running()))
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Nothing: a full disk must not fail, nor fill the terminal of, what merely logged."""

    def _running(self) -> str | None:
        running = self._db.running
        return running[0] if running is not None and self._db._is_inside() else None


def entry_of(record: logging.LogRecord, running: str | None = None) -> dict[str, Any]:
    """A record as an entry; `running` is the reducer that logged it."""
    level = next((name for number, name in _LEVELS if record.levelno >= number), "Trace")
    error = record.exc_info[1] if record.exc_info else None
    entry: dict[str, Any] = {
        "level": "Panic" if error is not None and level == "Error" else level,
        "ts": int(record.created * 1_000_000),
        "target": record.module,
        "filename": os.path.basename(record.pathname),
        "line_number": record.lineno,
        "function": running or getattr(record, "gamedb_function", record.funcName),
        "message": _message(record),
    }
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)[-TRACE_FRAMES_MAX:]
        entry["trace"] = [
            {"module_name": f"{os.path.basename(frame.filename)}:{frame.lineno}", "func_name": frame.name}
            for frame in frames
        ]
    return entry


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception as error:  # a format that does not fit its arguments
        text = f"{record.msg!r} (its arguments do not fit: {error})"
    text = text.encode(errors="replace").decode()
    if len(text) > MESSAGE_CHARACTERS_MAX:
        text = f"{text[:MESSAGE_CHARACTERS_MAX]}... ({len(text)} characters)"
    return text


class _LogFile:
    """Lines in a file; a full one is put aside under a number."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror}") from None
        self._size = path.stat().st_size
        if self._size:
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                whole = file.read() == b"\n"
            if not whole:  # a crash cut the last line off
                self.write(b"\n")

    def tail(self) -> list[bytes]:
        """The whole lines at the end that fit into memory."""
        with self._path.open("rb") as file:
            skipped = max(0, self._size - MEMORY_BYTES_MAX)
            file.seek(skipped)
            lines = file.read().splitlines(keepends=True)
        return [line for line in lines[1 if skipped else 0 :] if line.endswith(b"}\n")][-ENTRIES_MAX:]

    def write(self, line: bytes) -> None:
        """Add a line."""
        if self._size + len(line) > FILE_BYTES_MAX and self._size:
            self._put_aside()
        self._size += len(line)
        self._file.write(line)

    def _put_aside(self) -> None:
        self._file.close()
        try:
            for number in range(FILES_MAX - 1, 0, -1):
                older = self._path if number == 1 else self._numbered(number - 1)
                if older.exists():
                    os.replace(older, self._numbered(number))
        finally:  # whatever came of that, logging goes on
            self._file = self._path.open("ab", buffering=0)
            self._size = 0

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def close(self) -> None:
        """Release the file."""
        self._file.close()
