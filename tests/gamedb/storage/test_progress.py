"""The line that tells how far loading is."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from conftest import schemas
from tables import Player

from gamedb.storage import open_storage
from gamedb.storage.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the progress line reads; set its only element."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_quick_loading_is_silent(tmp_path: Path) -> None:
    stream = io.StringIO()
    tables = schemas(Player)
    storage = open_storage(tmp_path / "a.db", tables, progress=stream)
    storage.write(1, {"player": {1: Player(id=1, name="Ada")}})
    assert len(list(storage.load())) == 1
    storage.close()
    assert stream.getvalue() == ""


def test_a_log_gets_a_line_now_and_then(seconds: list[float]) -> None:
    stream = io.StringIO()
    progress = Progress("arena.db", stream)
    for second in range(1, 8):
        seconds[0] = 100.0 + second
        progress.add("player", 1_000_000)
    progress.finish()
    assert stream.getvalue().splitlines() == [
        "gamedb: loading arena.db: 1,000,000 rows in 1.0 s, at table player",
        "gamedb: loading arena.db: 6,000,000 rows in 6.0 s, at table player",
        "gamedb: loading arena.db: 7,000,000 rows in 7.0 s, done",
    ]


def test_a_terminal_gets_one_line_that_changes(seconds: list[float]) -> None:
    stream = Terminal()
    progress = Progress("arena.db", stream)
    seconds[0] = 101.5
    progress.add("player", 10)
    progress.finish()
    assert stream.getvalue().count("\r") == 2
    assert stream.getvalue().endswith("10 rows in 1.5 s, done\x1b[K\n")


def test_nothing_is_written_without_a_stream(seconds: list[float]) -> None:
    progress = Progress("arena.db", None)
    seconds[0] = 200.0
    progress.add("player", 10)
    progress.finish()
