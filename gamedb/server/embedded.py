"""`Database.serve`: a game that serves its own database from its own loop, with no command line around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from gamedb.database import Database
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.http.files import check_directory
from gamedb.server.keys import Keys
from gamedb.server.limits import Limits
from gamedb.server.serve import Serving, serve
from gamedb.server.server import Server
from gamedb.storage.backend import parse
from gamedb.types import Identity

KEYS_SUFFIX = ".keys"


async def serve_database(
    db: Database,
    listen: str,
    *,
    name: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    operators: Iterable[Identity] = (),
    static: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    proxies: Iterable[str] = (),
    ready: Callable[[Serving], None] | None = None,
) -> None:
    """As `Database.serve`."""
    stored = None if db.path is None else parse(db.path)
    file = Path(stored) if isinstance(stored, str) else None
    directory = Path(keys) if keys is not None else None if file is None else Path(f"{file}{KEYS_SUFFIX}")
    pages = db.module.built_static if static is None else Path(static)
    if pages is not None:
        check_directory(pages, *(path for path in (file, directory) if path is not None))
    hosted = Hosted(db, name=name, limits=limits)
    db.operators.update(operators)
    server = Server([hosted], Authenticator(Keys(directory), clock=db.clock), limits=limits, proxies=proxies)
    try:
        await serve(server, listen, static=pages, ready=ready)
    finally:
        hosted.logs.close()
