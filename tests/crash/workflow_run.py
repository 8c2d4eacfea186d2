"""`python -m tests.crash.workflow_run --kills 1000`: play workflows, kill, look; until the first fault."""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from gamedb import Database
from tests.crash import workflow_game as game
from tests.crash.run import Told, play_and_kill
from tests.crash.workflow_game import Account, Done, Held
from workflow_module import PendingProcedure, Workflow, WorkflowSignal, WorkflowTimer

KILLS_A_FILE = 10
END_SECONDS_MAX = 60
FINISHED = ("Completed", "Cancelled")


def _child(path: str, seed: int, send: Connection[object, object]) -> None:
    game.play(path, seed, send.fileno())


class Complaints(logging.Handler):
    """What a database had to repair."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def look(path: Path, told: Told) -> int:
    """Open the file, and check it; how many workflows there are."""
    with opened(path) as db:
        check(db, told)
        check_outside(path)
        return db.read(Workflow).count()


def opened(path: Path) -> Database:
    """The database, which must have nothing to repair."""
    complaints = Complaints()
    log = logging.getLogger("gamedb.flows")
    log.addHandler(complaints)
    log.disabled = False
    try:
        db = Database(game.module, path, quiet=True)
    finally:
        log.removeHandler(complaints)
    assert complaints.texts == []
    log.setLevel(logging.ERROR)
    return db


def check(db: Database, told: Told) -> None:
    """What must hold at any time."""
    rows = list(db.read(Workflow))
    loans = [row for row in rows if row.workflow_type == "loan"]
    assert len(loans) >= told.flushed, f"{told.flushed} workflows were on disk, and {len(loans)} are left"
    told.flushed = len(loans)
    assert all(row.status.value != "Failed" for row in rows), [row.error for row in rows if row.error]

    gold = sum(row.gold for row in db.read(Account)) + sum(row.gold for row in db.read(Held))
    assert gold == game.ACCOUNTS * game.START_GOLD, "gold was made or lost"

    twice = [key for key, count in Counter((row.nonce, row.step) for row in db.read(Done)).items() if count > 1]
    assert twice == [], f"an effect came twice: {twice}"
    steps = Counter(row.nonce for row in db.read(Done))
    for row in loans:
        if row.status.value == "Completed":
            nonce = row.correlation_id or ""
            rounds = db_rounds(row)
            assert steps[nonce] == rounds, f"{nonce} did {steps[nonce]} of {rounds} steps"
            assert all(steps[f"{nonce}/{part}"] == 1 for part in "h12")
    finished = {row.id for row in rows if row.status.value in FINISHED}
    for table in (WorkflowTimer, WorkflowSignal, PendingProcedure):
        assert not any(row.workflow_id in finished for row in db.read(table)), f"{table.__name__} of a finished one"


def db_rounds(row: Workflow) -> int:
    """How many steps a loan has."""
    rounds = json.loads(row.state_data)["init"]["rounds"]
    assert isinstance(rounds, int)
    return rounds


def check_outside(path: Path) -> None:
    """Each call has one step key, whoever was killed when."""
    keys: dict[str, str] = {}
    outside = path.with_suffix(".outside")
    for line in outside.read_text().splitlines() if outside.exists() else ():
        nonce, step_key, attempt_key = line.split()
        assert keys.setdefault(nonce, step_key) == step_key, f"the call of {nonce} got another step key"
        assert attempt_key.startswith(step_key)


def play_to_the_end(path: Path, told: Told) -> None:
    """Whatever was killed: everything ends, and all gold is back in the accounts."""
    game.Outside.path = str(path.with_suffix(".outside"))
    with opened(path) as db:
        db.run()
        deadline = time.monotonic() + END_SECONDS_MAX
        while any(row.status.value not in FINISHED for row in db.read(Workflow)):
            assert time.monotonic() < deadline, "a workflow never wakes up"
            time.sleep(0.02)
        check(db, told)
        check_outside(path)
        assert db.read(Held).count() == 0
        called = {line.split()[0] for line in path.with_suffix(".outside").read_text().splitlines()}
        for row in db.read(Workflow):
            assert row.status.value == "Completed"
            if row.workflow_type == "loan":
                assert row.correlation_id in called
                assert f"{row.correlation_id}/s" in called


def main(kills: int, seed: int, show: bool = False) -> None:
    """Kill as often; raises `AssertionError` with the seed at the first fault."""
    rng = random.Random(seed)
    done = flows = 0
    with tempfile.TemporaryDirectory() as directory:
        while done < kills:
            path, told = Path(directory, f"{done}.db"), Told()
            try:
                for _ in range(min(KILLS_A_FILE, kills - done)):
                    play_and_kill(path, rng, told, _child)
                    done += 1
                    flows = look(path, told)
                    if show:
                        print(f"\r{done} kills, {flows} workflows in the file", end="", file=sys.stderr, flush=True)
                play_to_the_end(path, told)
            except Exception as error:
                raise AssertionError(f"after kill {done} with seed {seed}: {error}") from error
    if show:
        print(f"\nok: {kills} kills, seed {seed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    main(arguments.kills, arguments.seed, show=True)
