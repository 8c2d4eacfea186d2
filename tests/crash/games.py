"""All games that get killed, by name."""

from __future__ import annotations

from tests.crash.game import Game
from tests.crash.transfers import Transfers
from tests.crash.workflows import Killed
from tests.examples.games import GAMES as EXAMPLES

GAMES: dict[str, Game] = {
    game.name: game for game in (Transfers(), *(Killed(name, example) for name, example in EXAMPLES.items()))
}
