"""The game of the server's tests, as a module that the command line finds."""

from __future__ import annotations

from tests.gamedb.server.http_game import game

module = game()
