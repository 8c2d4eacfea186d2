"""How a database ends: closed where it is awkward, forgotten, at the end of the interpreter, in a forked process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Database,
    DatabaseClosed,
    DatabaseLocked,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    Row,
    ScheduleAt,
    TransactionError,
    u64,
)

TIMEOUT = 60  # seconds; of what does not come, on a machine that is busy as well
SECOND = timedelta(seconds=1)


class Thing(Row):
    id: PrimaryKey[AutoInc[u64]] = 0


class Beat(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt


class Job(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt


class Game:
    """A busy database: `busy` starts a schedule that fires as fast as it can; `act` is what its procedure does."""

    def __init__(self, path: Path | None) -> None:
        self.act: Any = lambda: None
        self.started = threading.Event()
        module = self.module = Module("ending")
        module.table(Thing)
        module.table(scheduled="beat")(Beat)
        module.table(scheduled="work")(Job)

        @module.reducer
        def beat(_ctx: ReducerContext, row: Beat) -> None:
            self.started.set()

        @module.procedure
        def work(_ctx: ProcedureContext, row: Job) -> None:
            self.started.set()
            self.act()

        @module.procedure
        async def later(_ctx: ProcedureContext) -> None:
            """Nothing, but on a loop."""

        @module.reducer
        def make(ctx: ReducerContext) -> None:
            ctx.db[Thing].insert(Thing())

        self.db = Database(module, path)

    def run(self, row: type[Beat] | type[Job]) -> None:
        self.db.run()
        with self.db.transaction() as ctx:
            ctx.db[row].insert(row(at=timedelta(microseconds=1)))
        assert self.started.wait(TIMEOUT)


def in_thread(function: Any) -> None:
    """Run to the end, or fail instead of hanging."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    assert not thread.is_alive(), "it hangs"


def test_a_callback_may_close_the_database_while_the_schedule_is_busy(tmp_path: Path) -> None:
    game = Game(tmp_path / "game.db")
    game.run(Beat)
    game.db.subscribe(Thing, lambda _commit: game.db.close())
    in_thread(lambda: game.db.call("make"))
    with pytest.raises(DatabaseClosed):
        game.db.call("make")
    with Database(game.module, tmp_path / "game.db") as again:
        assert again.read(Thing).count() == 1


def test_a_callback_may_close_the_database_while_a_procedure_is_running(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    game = Game(tmp_path / "game.db")
    closed = threading.Event()
    ended: list[BaseException] = []

    def act() -> None:
        closed.wait(TIMEOUT)
        try:
            game.db.call("make")
        except DatabaseClosed as error:
            ended.append(error)
        finally:
            game.started.set()

    game.act = act
    game.run(Job)
    game.started.clear()
    game.db.subscribe(Thing, lambda _commit: game.db.close())
    in_thread(lambda: game.db.call("make"))
    closed.set()
    assert game.started.wait(TIMEOUT)
    assert len(ended) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_procedure_may_close_its_database(tmp_path: Path) -> None:
    game = Game(tmp_path / "game.db")
    closed = threading.Event()

    def act() -> None:
        game.db.close()
        closed.set()

    game.act = act
    game.run(Job)
    assert closed.wait(TIMEOUT)
    game.db.close()
    Database(game.module, tmp_path / "game.db").close()


def test_whoever_closes_second_returns_when_the_file_is_free(tmp_path: Path) -> None:
    for number in range(20):
        game = Game(tmp_path / f"{number}.db")
        game.db.call("make")
        first = threading.Thread(target=game.db.close)
        first.start()
        game.db.close()
        Database(game.module, tmp_path / f"{number}.db").close()
        first.join()


def test_an_async_procedure_called_in_a_callback_inside_a_loop_is_refused() -> None:
    game = Game(None)
    errors: list[BaseException] = []

    def callback(_commit: Any) -> None:
        try:
            game.db.call_procedure("later")
        except TransactionError as error:
            errors.append(error)

    async def main() -> None:
        game.db.call("make")

    with game.db.subscribe(Thing, callback):
        in_thread(lambda: asyncio.run(main()))
    assert "could never begin" in str(errors[0])
    game.db.close()


def test_a_database_that_nobody_closed_is_closed_when_it_is_collected(tmp_path: Path) -> None:
    game = Game(tmp_path / "game.db")
    game.db.call("make")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del game
        gc.collect()
    assert [w.category for w in caught if "was not closed" in str(w.message)] == [ResourceWarning]
    for _ in range(2000):  # a thread is writing, and then releases the file
        try:
            with Game(tmp_path / "game.db").db as db:
                assert db.read(Thing).count() == 1
            return
        except DatabaseLocked:
            threading.Event().wait(0.01)
    pytest.fail("the file stays locked")


SCRIPT = """
import threading, time
from datetime import timedelta
from pathlib import Path
from test_endings import Beat, Game, Job, Thing
game = Game(Path({path!r}))
game.act = lambda: threading.Event().wait()
{body}
print(game.db.last_tx_id, flush=True)
"""


def finish(path: Path, body: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(path=str(path), body=body)
    search = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command, env = [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": search}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=True)


@pytest.mark.parametrize(
    "body", ["", "game.run(Beat)", "game.run(Job)"], ids=["idle", "busy", "a procedure that waits"]
)
def test_the_end_of_the_interpreter_writes_what_is_committed_and_does_not_hang(tmp_path: Path, body: str) -> None:
    done = finish(tmp_path / "game.db", f"{body}\nfor _ in range(100): game.db.call('make')")
    assert done.stderr == ""
    with Database(Game(None).module, tmp_path / "game.db") as db:
        assert db.last_tx_id >= int(done.stdout)
        assert db.read(Thing).count() == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_told_to_open_its_own_database_and_harms_nothing(tmp_path: Path) -> None:
    body = """
import os
game.db.run()
game.db.call("make")
child = os.fork()
if child == 0:
    for act in (lambda: game.db.call("make"), game.db.flush, lambda: list(game.db.read(Thing)), game.db.run):
        try:
            act()
            print("accepted")
        except Exception as error:
            print(type(error).__name__, "is a fork" in str(error))
    game.db.close()
    raise SystemExit
os.waitpid(child, 0)
game.db.call("make")
game.db.flush()
"""
    done = finish(tmp_path / "game.db", body)
    assert done.stdout.splitlines()[:4] == ["DatabaseClosed True"] * 4
    with Database(Game(None).module, tmp_path / "game.db") as db:
        assert db.read(Thing).count() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_database_in_memory_goes_on_in_a_forked_process(tmp_path: Path) -> None:
    body = """
import os
memory = Game(None).db
memory.call("make")
child = os.fork()
if child == 0:
    memory.call("make")
    print("things", memory.read(Thing).count())
    raise SystemExit
os.waitpid(child, 0)
"""
    assert "things 2" in finish(tmp_path / "game.db", body).stdout
