"""`gamedb start`: serve one or several games."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.loading import load_module, resolve
from gamedb.cli.options import DEFAULT_DATA, DEFAULT_LISTEN, DataDir, shown
from gamedb.cli.output import fail, harmless
from gamedb.errors import DatabaseLocked, GamedbError, SchemaChangeRefused
from gamedb.identity import is_sound
from gamedb.module import Module
from gamedb.types import Identity

if TYPE_CHECKING:
    from gamedb.server.site import Site

STOPPED: Final = "Stopped; everything is on disk."
LEVELS: Final = ("debug", "info", "warning", "error")

Listen = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Where clients come; port 0 takes a free one.")
]
Static = Annotated[
    Path | None,
    typer.Option(
        "--static",
        metavar="DIR",
        help="A directory of files for browsers, such as the game's page; by default what the module declares.",
    ),
]
Databases = Annotated[
    list[str] | None,
    typer.Option("--database", metavar="NAME=MODULE:OBJECT", help="One more database, under this name. Repeatable."),
]
Operators = Annotated[
    list[str] | None,
    typer.Option("--operator", metavar="IDENTITY", help="Who may do everything, beside the owner. Repeatable."),
]
Issuers = Annotated[
    list[str] | None,
    typer.Option(
        "--issuer",
        metavar="URL=AUDIENCE",
        help="Accept tokens that this OpenID Connect issuer made for this audience (your client id there). Repeatable.",
    ),
]
LimitSettings = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=NUMBER", help="Change what clients may use up. Repeatable."),
]
ProxyNames = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        metavar="ADDRESS",
        help="Believe the X-Forwarded-For of this proxy: an address, or a network such as 10.0.0.0/8. Repeatable.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Keep the databases on this server: postgresql://user@host/name."),
]
Memory = Annotated[bool, typer.Option("--memory", help="Keep nothing: for tests and benchmarks.")]
LogLevel = Annotated[str, typer.Option("--log-level", metavar="LEVEL", help=f"What is logged: {', '.join(LEVELS)}.")]
Again = Annotated[bool, typer.Option("--again", hidden=True, help="Where everything is was told already.")]
Supervised = Annotated[bool, typer.Option("--supervised", hidden=True, help="Stop when stdin says so, or ends.")]


def start(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:OBJECT]", help="The game, such as game:module.", show_default=False),
    ] = None,
    databases: Databases = None,
    listen: Listen = DEFAULT_LISTEN,
    data_dir: DataDir = DEFAULT_DATA,
    operators: Operators = None,
    issuers: Issuers = None,
    static: Static = None,
    limits: LimitSettings = None,
    proxies: ProxyNames = None,
    url: Url = None,
    memory: Memory = False,
    log_level: LogLevel = "info",
    supervised: Supervised = False,
    again: Again = False,
) -> None:
    """Serve a game, until Ctrl-C or SIGTERM.

    Clients connect with any SpacetimeDB SDK, by the name of the database: that of its module, or the one given with
    --database. The first start makes the data directory, the keys that sign tokens, and the owner's token: whoever
    holds it may do everything.

    At the end nothing new is accepted, clients are told, what is committed is on disk. Exit code: [bold]0[/bold]
    after an orderly end, [bold]2[/bold] when it cannot start.

    Examples:
      gamedb start game:module
      gamedb start arena:module --listen 0.0.0.0:3000 --static public
      gamedb start --database eu=arena:module --database us=arena:module
      gamedb start arena:module --issuer https://accounts.example.com=my-game
    """
    log(log_level)
    games = find_games(target, databases or [])
    try:
        _serve(
            games,
            listen,
            data_dir,
            operators or [],
            issuers or [],
            static,
            limits or [],
            proxies or [],
            url,
            memory,
            supervised,
            again,
        )
        if not supervised:
            typer.echo("Stopped." if memory else STOPPED)
    except SchemaChangeRefused as error:
        fail(str(error), "See what a change would do before a start: gamedb check MODULE:OBJECT")
    except DatabaseLocked as error:
        fail(str(error), "Is the game served already? Stop it there, or use another --data-dir.")
    except GamedbError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _serve(
    games: dict[str, Module],
    listen: str,
    data_dir: Path,
    operators: list[str],
    issuers: list[str],
    static: Path | None,
    limits: list[str],
    proxies: list[str],
    url: str | None,
    memory: bool,
    supervised: bool,
    again: bool,
) -> None:
    from gamedb.server.addresses import Proxies
    from gamedb.server.http.files import check_directory  # the server is slow to import
    from gamedb.server.limits import limits_from
    from gamedb.server.oidc import TrustedIssuer
    from gamedb.server.serve import Serving, bind, run
    from gamedb.server.site import check_name, open_site

    if memory and url is not None:
        fail("--memory and --url exclude each other.")
    where = None if memory else data_dir
    chosen = limits_from(limits)
    Proxies(proxies)  # before a large database is loaded
    trusted = [TrustedIssuer.parse(text) for text in issuers]
    named = [operator(text) for text in operators]
    for name in games:
        check_name(name)
    if static is None:
        static = next(filter(None, (module.resolve().built_static for module in games.values())), None)
    if static is not None:
        check_directory(static, *([data_dir] if where is not None or data_dir.exists() else []))
    bind(listen).close()  # before a large database is loaded
    with open_site(games, where, url=url, operators=named, issuers=trusted, limits=chosen, proxies=proxies) as site:

        def ready(running: Serving) -> None:
            if again:
                typer.echo("Served again; the data is kept.")
            else:
                announce(running.url, site, where, static)
            if supervised:
                _obey_stdin(site, running.stop)

        run(site.server, listen, static=static, ready=ready)


def find_games(target: str | None, databases: list[str]) -> dict[str, Module]:
    """The modules by the names of their databases."""
    games: dict[str, Module] = {}
    if target is not None:
        module = load_module(target)
        games[module.name] = module
    for text in databases:
        name, equals, named = text.partition("=")
        if not equals or not name or not named:
            fail(f"--database {text!r}: write NAME=MODULE:OBJECT, such as eu=arena:module")
        if name in games:
            fail(f"two databases are to be served as {name!r}; give one of them another name")
        games[name] = load_module(named)
    if not games:
        fail("which game?", "Name its module: gamedb start game:module   (gamedb init makes a new game)")
    for module in games.values():
        resolve(module)
    return games


def operator(text: str) -> Identity:
    """The identity that somebody typed; ends the command when it cannot be one."""
    try:
        identity = Identity.from_hex(text)
    except ValueError:
        fail(f"--operator {text!r}: an identity is written as 64 hex digits, such as c200ef88...")
    if not is_sound(identity):
        fail(f"--operator {text}: this is no identity, as its checksum is wrong; is a digit mistyped?")
    return identity


def announce(url: str, site: Site, data_dir: Path | None, static: Path | None) -> None:
    """Print where everything is, now that clients can come."""
    from gamedb.server.http.console import NOT_BUILT, is_built
    from gamedb.server.site import OWNER_TOKEN

    lines: list[tuple[str, str, str]] = []
    for name, place in site.places.items():
        lines += [(name, f"{url}/v1/database/{name}", "cyan"), ("  data", shown(place), "")]
    if static is not None:
        lines.append(("page", f"{url}/", "cyan"))
    if is_built():
        lines.append(("console", f"{url}/console/#token={site.owner_token}", "cyan"))
    else:
        lines.append(("console", NOT_BUILT, "yellow"))
    lines.append(("owner token", site.owner_token if data_dir is None else shown(data_dir / OWNER_TOKEN), ""))
    width = max(len(title) for title, _, _ in lines) + 2
    out = Console(highlight=False, soft_wrap=True)
    for title, text, style in lines:
        out.print(Text.assemble((title.ljust(width), "" if title.startswith(" ") else "bold"), (text, style)))
    out.print(Text("Serving. Ctrl-C stops it.", style="dim"))
    sys.stdout.flush()


def _obey_stdin(site: Site, stop: Callable[[], None]) -> None:
    """Stop when a line comes, which is what clients are told, or when whoever holds the other end has gone."""

    def wait() -> None:
        line = sys.stdin.readline().strip()
        if line:
            site.server.goodbye = line
        stop()

    threading.Thread(target=wait, name="gamedb-supervised", daemon=True).start()


class _Harmless(logging.Formatter):
    """What is logged may hold what players wrote."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def log(level: str) -> None:
    """Show what games and the server log, on stderr."""
    if level.lower() not in LEVELS:
        fail(f"--log-level {level!r}: use one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler()
    handler.setLevel(level.upper())  # a served database logs more, for those who look at its log
    handler.setFormatter(_Harmless("%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("gamedb").setLevel(level.upper())
