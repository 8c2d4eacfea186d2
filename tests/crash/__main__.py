"""`python -m tests.crash auction --kills 1000`: kill one game, or all of them, until the first fault."""

from __future__ import annotations

import argparse
import logging
import random

from tests.crash.driver import kill_often
from tests.crash.games import GAMES

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", choices=[*GAMES, []], metavar=f"{{{','.join(GAMES)}}}")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in arguments.games or GAMES:
        kill_often(GAMES[name], arguments.kills, arguments.seed, show=True)
