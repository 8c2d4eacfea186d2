"""A server in a thread of its own: for tests of games, notebooks, and programs that have no event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gamedb.server.serve import Serving, loop_factory, serve
from gamedb.server.server import Server


@contextmanager
def in_thread(server: Server, listen: str = "127.0.0.1:0", *, static: Path | None = None) -> Iterator[Serving]:
    """Serve for as long as the `with` lasts; gives where. Reducers of clients run in that thread."""
    ready = threading.Event()
    started: list[Serving] = []
    failures: list[BaseException] = []

    def began(serving: Serving) -> None:
        started.append(serving)
        ready.set()

    def main() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve(server, listen, static=static, ready=began))
        except BaseException as error:  # it is raised where somebody can see it
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=main, name="gamedb-server", daemon=True)
    thread.start()
    ready.wait()
    try:
        if started:
            yield started[0]
    finally:
        if started:
            started[0].stop()
        thread.join()
    if failures:
        raise failures[0]
