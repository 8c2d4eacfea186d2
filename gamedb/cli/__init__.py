"""The command `gamedb`: one file for each subcommand, each a thin shell over something that can be called from Python.

`loading` finds the module that a command is about, `output` says how results and errors look.
"""

from __future__ import annotations

import platform
import sqlite3
from importlib import metadata
from typing import Annotated

import typer

from gamedb.cli.check import check
from gamedb.cli.describe import describe
from gamedb.cli.generate import generate
from gamedb.cli.output import help_text

app = typer.Typer(
    name="gamedb",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(help=help_text(describe))(describe)
app.command(help=help_text(check))(check)
app.command(help=help_text(generate))(generate)


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
    "Start with: [bold cyan]gamedb describe examples.quickstart:module[/bold cyan]"
)
def gamedb(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Look at a game module, and at what opening its database would do."""


def main() -> None:
    """The entry point of the command."""
    app(prog_name="gamedb")
