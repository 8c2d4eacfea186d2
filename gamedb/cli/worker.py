"""`gamedb worker`: does work of a served game in a process of its own. What the work is, libraries know."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import uuid
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.loading import Target, load_module, resolve
from gamedb.cli.options import DEFAULT_DATA, DEFAULT_SERVER, DataDir, Token
from gamedb.cli.output import fail
from gamedb.cli.remote import token_for
from gamedb.cli.start import LogLevel, log
from gamedb.errors import GamedbError, NotAllowed
from gamedb.jobs import CONCURRENCY, DRAIN_SECONDS, LEASE_SECONDS, WorkerJob
from gamedb.module import Module

NAME_CHARACTERS_MAX: Final = 100

Queues = Annotated[
    list[str], typer.Option("--queue", metavar="NAME", help="Whence work is taken. Repeatable.", show_default=False)
]
Uri = Annotated[
    str, typer.Option("--uri", "--server", metavar="URL", help="The running server.", envvar="GAMEDB_SERVER")
]
DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="NAME", help="Its name on the server; by default the module's."),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=1000, help="How many pieces of work it does at once.")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="TEXT", help="How logs call it; by default by machine and process.")
]
Lease = Annotated[
    float,
    typer.Option(
        "--lease", metavar="SECONDS", min=1, max=86_400, help="After how long of silence another takes its work."
    ),
]
Drain = Annotated[
    float, typer.Option("--drain", metavar="SECONDS", min=0, help="How long running work may go on at the end.")
]


def worker(
    target: Target,
    queues: Queues,
    uri: Uri = DEFAULT_SERVER,
    database: DatabaseOption = None,
    token: Token = None,
    data_dir: DataDir = DEFAULT_DATA,
    concurrency: Concurrency = CONCURRENCY,
    name: Name = None,
    lease: Lease = LEASE_SECONDS,
    drain: Drain = DRAIN_SECONDS,
    log_level: LogLevel = "info",
) -> None:
    """Run the procedures that a served game leaves to this queue, until Ctrl-C or SIGTERM.

    It needs the game's code and an operator's token; the owner's is found in the data directory. It connects again
    by itself when the server was away. Start as many as you like, on any machine: each piece of work goes to one of
    them, and to another one if that dies.

    At the end it takes no more, finishes what runs for up to --drain seconds, and gives back the rest; a second
    signal gives it back at once. Exit code: [bold]0[/bold] after an orderly end, [bold]2[/bold] when it cannot work.

    Examples:
      gamedb worker arena:module --queue llm
      gamedb worker arena:module --queue llm --queue images --uri https://game.example.com --token "$TOKEN"
      gamedb worker arena:module --queue gpu --concurrency 1 --lease 60
    """
    log(log_level)
    module = load_module(target)
    if not resolve(module).workers:
        fail(
            f"module {module.name!r} leaves no work to workers.",
            "Procedures of workflows do: @module.procedure(queue=...) and install(module, [...]).",
        )
    if name is not None and not 1 <= len(name) <= NAME_CHARACTERS_MAX:
        fail(f"--name must be text of 1 to {NAME_CHARACTERS_MAX} characters.")
    who, hint = token_for(token, data_dir, urlsplit(uri).hostname or "")
    unique = f"{name or f'{socket.gethostname()}-{os.getpid()}'}#{uuid.uuid4().hex[:8]}"
    try:
        asyncio.run(_work(module, uri, database or module.name, who, queues, unique, concurrency, lease, drain))
    except NotAllowed as error:
        fail(str(error), hint)
    except GamedbError as error:
        fail(str(error))


async def _work(
    module: Module,
    uri: str,
    database: str,
    token: str | None,
    queues: list[str],
    name: str,
    concurrency: int,
    lease: float,
    drain: float,
) -> None:
    from gamedb.client import connect  # slow to import

    stopping, hurry = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (hurry if stopping.is_set() else stopping).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    async with connect(uri, database, token=token, module=module) as client:
        job = WorkerJob(
            client=client,
            module=module,
            queues=list(dict.fromkeys(queues)),
            name=name,
            stopping=stopping,
            concurrency=concurrency,
            lease_seconds=lease,
            drain_seconds=drain,
            hurry=hurry,
        )
        _announce(job, uri, database)
        await asyncio.gather(*[function(job) for function in module.resolve().workers])


def _announce(job: WorkerJob, uri: str, database: str) -> None:
    out = Console(highlight=False, soft_wrap=True)
    text = Text.assemble(("worker ", "bold"), job.name, f" takes from {', '.join(job.queues)} of {database} at {uri}")
    out.print(text)
    sys.stdout.flush()
