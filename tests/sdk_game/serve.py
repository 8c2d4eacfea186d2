"""Serves the game: python -m tests.sdk_game.serve HOST:PORT DIRECTORY."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from gamedb import Database
from tests.sdk_game.game import module


async def main(listen: str, directory: str) -> None:
    with Database(module, Path(directory) / "sdk-game.db") as db:
        await db.serve(listen, ready=lambda serving: _stop_on_sigterm(serving))


def _stop_on_sigterm(serving: object) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.stop)  # type: ignore[attr-defined]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
