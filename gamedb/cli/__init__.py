"""The command `gamedb`: one file for each subcommand, each a thin shell over something that can be called from Python.

`loading` finds the module that a command is about, `output` says how results and errors look.
"""

from __future__ import annotations

import platform
import sqlite3
from importlib import metadata
from typing import Annotated

import typer

from gamedb.cli import token
from gamedb.cli.backup import backup
from gamedb.cli.call import NegativeNumbers, call
from gamedb.cli.check import check
from gamedb.cli.describe import describe
from gamedb.cli.dev import dev
from gamedb.cli.generate import generate
from gamedb.cli.init import init
from gamedb.cli.logs import logs
from gamedb.cli.output import help_text
from gamedb.cli.sql import sql
from gamedb.cli.start import start
from gamedb.cli.worker import worker

app = typer.Typer(
    name="gamedb",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (init, start, dev, call, sql, logs, worker, backup, describe, check, generate):
    app.command(cls=NegativeNumbers if _command is call else None, help=help_text(_command))(_command)
app.add_typer(token.app, name="token", help="The owner's token, new identities, new signing keys.")


def _version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        version = metadata.version("gamedb")
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    typer.echo(f"gamedb {version}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}")
    raise typer.Exit


@app.callback(
    epilog="A module is named as [bold]package.file:object[/bold], where [bold]object[/bold] is the gamedb.Module; "
    "the current directory is searched first. "
    "Start with: [bold cyan]gamedb init arena[/bold cyan]"
)
def gamedb(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Serve games, ask and call running ones, and look at what a game module declares."""


def main() -> None:
    """The entry point of the command."""
    app(prog_name="gamedb")
