"""`python -m tests.soak --minutes 30`, which is `make soak MINUTES=30`."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.plan import plan
from tests.soak.soak import Soak
from tests.soak.summary import json_line, summary

ABOUT = """
Use, abuse, kill and restart a served game for as long as you like, and see that nothing is lost.

A real server (`gamedb start`, its files in a directory of its own, real websockets) serves the arena with its bots,
trades and errands. Players make numbered gifts and keep a book of those that were confirmed to them; watchers compare
what they are shown with queries; visitors come and go, some do not read, some send rubbish; an operator cancels and
resumes workflows; a worker has work of its own. Meanwhile the server is killed (SIGKILL), stopped (SIGTERM) and, once,
replaced by another version of the game; the worker is killed, too. For the last part of the time the server lives on,
for its memory to be measured.
"""

CHECKED = """
What is checked, all the time and at the end:
  - each gift that was confirmed is in its ledger, and no ledger has gifts that nobody made
  - gold (in purses and in escrow) and things of each kind are as many as at first, on disk and in tables of clients
  - what a client with confirmed reads was shown is not taken back; the tables of clients are what queries give
  - each unfinished workflow has a timer, a call or a child that wakes it, and none is overdue
  - slow readers are let go of; nonsense is refused; all others go on meanwhile
  - without clients: no connections, queries, queued bytes or players online are left
  - memory, files, threads, write-ahead log and database file stay within the rules of tests/soak/usage.py
  - the server and the worker end in order when told to, and their logs have no error that is not expected

Exit code: 0 when all that holds, 1 when something does not. Then the data directory is kept, with the logs of each life
of the processes, and --seed repeats the plan (not the exact interleaving).

Examples:
  make soak MINUTES=30
  python -m tests.soak --minutes 0.5
  python -m tests.soak --minutes 480 --seed 7 --data-dir /var/tmp/soak
"""


def main() -> int:
    """Parse the arguments, run, tell."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=ABOUT, epilog=CHECKED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=30.0, metavar="N", help="how long; 30 by default, 0.4 at least"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="what happens when; by default another one each time")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="where, and keep it; by default a temporary one")
    parser.add_argument("--plan", action="store_true", help="only show what would happen when")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 30)
    if arguments.minutes < 0.4:
        parser.error(f"--minutes {arguments.minutes:g} is too short; 0.4 at least")
    if arguments.plan:
        for deed in plan(seed, arguments.minutes * 60):
            print(f"{deed.at_seconds:8.1f} s  {deed.what}")
        return 0
    if arguments.data_dir is not None and arguments.data_dir.exists() and any(arguments.data_dir.iterdir()):
        parser.error(f"--data-dir {arguments.data_dir} is not empty; name a new directory")
    data = arguments.data_dir or Path(tempfile.mkdtemp(prefix="soak-"))
    data.mkdir(parents=True, exist_ok=True)
    soak = Soak(data, seed, arguments.minutes * 60)
    print(f"seed {seed}, data in {data}", file=sys.stderr)
    try:
        asyncio.run(soak.run())
    except (asyncio.CancelledError, KeyboardInterrupt):
        print(f"ended from outside; the data is kept in {data}", file=sys.stderr)
        return 130
    print(summary(soak))
    print(json_line(soak))
    if soak.report.faults:
        print(f"FAILED; the data is kept in {data}, and --seed {seed} repeats the plan", file=sys.stderr)
        return 1
    if arguments.data_dir is None:
        shutil.rmtree(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
