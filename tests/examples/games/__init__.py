"""The examples as games of chance: played by Hypothesis with crashes, and by a process that is killed."""

from __future__ import annotations

from tests.examples.games.auctions import Auctions
from tests.examples.games.base import Game
from tests.examples.games.expeditions import Expeditions
from tests.examples.games.forges import Forges
from tests.examples.games.raids import Raids
from tests.examples.games.sales import Sales
from tests.examples.games.trades import Trades

GAMES: dict[str, Game] = {
    "auction": Auctions(),
    "boss_fight": Raids(),
    "parent_child": Expeditions(),
    "production": Forges(),
    "sale_settlement": Sales(),
    "trade": Trades(),
}
