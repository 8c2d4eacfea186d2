"""A directory of databases as one server: what `gamedb start` opens, also for programs that want the same.

DIRECTORY/NAME.db      each database, unless it is on a database server
DIRECTORY/keys/        the keys that sign tokens
DIRECTORY/owner.token  who holds it is an operator of all of them
DIRECTORY/logs/        what the games log
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from gamedb.database import Database
from gamedb.errors import SchemaError, StorageError
from gamedb.module import Module
from gamedb.server.auth import Authenticator, owner_token
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.limits import Limits
from gamedb.server.logs import Logs
from gamedb.server.oidc import TrustedIssuer
from gamedb.server.server import Server
from gamedb.types import Identity

OWNER_TOKEN: Final = "owner.token"
KEYS: Final = "keys"
LOGS: Final = "logs"
DATABASE_NAME: Final = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*\Z")
NAME_CHARACTERS_MAX: Final = 100


class Site:
    """What is open: the server over it, and who owns it."""

    def __init__(self, server: Server, owner: Identity, token: str, places: Mapping[str, str]) -> None:
        self.server = server
        self.owner = owner
        self.owner_token = token
        self.places = places
        """Where each database is kept, for people."""


def check_name(name: str) -> str:
    """The name of a database, if it can be one: it stands in URLs and is a file name."""
    if len(name) > NAME_CHARACTERS_MAX or not DATABASE_NAME.match(name):
        raise SchemaError(f"database name {name!r}: use lower-case letters and digits, with '-' or '_' between them")
    return name


@contextmanager
def open_site(
    games: Mapping[str, Module],
    data_dir: Path | None,
    *,
    url: str | None = None,
    operators: Iterable[Identity] = (),
    issuers: Iterable[TrustedIssuer] = (),
    limits: Limits | None = None,
    proxies: Iterable[str] = (),
    quiet: bool = False,
) -> Iterator[Site]:
    """Open the databases of these games by their names, and close them at the end.

    `data_dir` is made when it is not there; with `None` nothing is kept. `url`: the databases are on that server, and
    the rest is in the directory. `issuers`: whose tokens are accepted beside our own. `proxies`: whose
    `X-Forwarded-For` is believed. Raises `GamedbError`s.
    """
    for name in games:
        check_name(name)
    if url is not None:
        _check_schemas(games)
    with ExitStack() as opened:
        authenticator = _authenticator(data_dir, issuers)
        if data_dir is None:
            claims, token = authenticator.issue()
        else:
            claims, token = owner_token(data_dir / OWNER_TOKEN, authenticator)
        hosted, places = [], {}
        for name, module in games.items():
            target = url if url is not None else None if data_dir is None else data_dir / f"{name}.db"
            db = opened.enter_context(Database(module, target, quiet=quiet))
            db.operators.update(operators)
            logs = Logs(None if data_dir is None else data_dir / LOGS / f"{name}.log")
            opened.callback(logs.close)
            hosted.append(Hosted(db, name=name, owner=claims.identity, limits=limits, logs=logs))
            places[name] = "memory; nothing is kept" if target is None else _shown(target)
        yield Site(Server(hosted, authenticator, limits=limits, proxies=proxies), claims.identity, token, places)


def _authenticator(data_dir: Path | None, issuers: Iterable[TrustedIssuer]) -> Authenticator:
    if data_dir is None:
        return Authenticator(Keys(None), issuers=issuers)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the data directory {data_dir} cannot be made: {error.strerror}; make it for this user, or choose another"
        ) from None
    return Authenticator(Keys(data_dir / KEYS), issuers=issuers)


def _check_schemas(games: Mapping[str, Module]) -> None:
    modules = [module.name for module in games.values()]
    if len(set(modules)) < len(modules):
        raise SchemaError(
            "two databases of one module cannot be on one database server, as the schema there has the module's name; "
            "use files, or a Module with another name"
        )


def _shown(target: Path | str) -> str:
    if isinstance(target, Path):
        return str(target)
    return re.sub(r"//([^:/@]+):[^@]*@", r"//\1:***@", target)
