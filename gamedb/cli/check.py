"""`gamedb check`: what opening the database with this module would change, or why it would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gamedb.checking import CheckResult
from gamedb.checking import check as check_database
from gamedb.cli.loading import Target, database_file, load_module, resolve
from gamedb.cli.output import REFUSED, print_json, prints_aside, results


def check(
    target: Target,
    data_dir: Annotated[
        Path,
        typer.Option("--data-dir", metavar="DIR", help="The directory that holds <module name>.db.", show_default=True),
    ] = Path("data"),
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="A database server instead: postgresql://user@host/name."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")] = False,
) -> None:
    """Say what opening the database with this code would do. Changes nothing.

    Run it before a deploy, also while the game is running. It lists each step that opening takes by itself, whether
    connected clients must reload for it, and the migrations that would run. When opening would refuse, it lists
    every reason with a remedy.

    Exit code: [bold]0[/bold] it opens, [bold]1[/bold] it would be refused, [bold]2[/bold] the question could not be
    asked (no such module, for instance).

    Examples:
      gamedb check game:module --data-dir data
      gamedb check arena:module --json | jq .opens
    """
    module = load_module(target)
    resolve(module)
    with prints_aside():  # by migrations that are tried, say
        result = check_database(module, url or database_file(data_dir, module))
    if as_json:
        print_json({"opens": result.opens, "clients_must_reload": result.clients_must_reload, **_plain(result)})
    else:
        with results() as out:
            _show(out, result)
    if not result.opens:
        raise typer.Exit(REFUSED)


def _plain(result: CheckResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


def _show(out: Console, result: CheckResult) -> None:
    out.print(Text(_headline(result), style="bold" if result.opens else "bold red"))
    if result.steps and not result.refusals:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(ratio=1)
        table.add_column(no_wrap=True)
        for step in result.steps:
            reload = Text("clients must reload", style="yellow") if step.clients_must_reload else Text("")
            table.add_row(Text(step.text), reload)
        out.print(Padding(table, (0, 0, 0, 2)))
    for refusal in result.refusals:
        out.print(Padding(_bullet(refusal), (0, 0, 0, 2)))
    if result.refusals:
        out.print("Nothing was changed. Put that right, and check again.")
    if result.notes:
        out.print(Text("Notes", style="bold"))
        for note in result.notes:
            out.print(Padding(_bullet(note), (0, 0, 0, 2)))


def _bullet(text: str) -> Table:
    """A line with a hanging indent."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("-"), Text(text))
    return row


def _headline(result: CheckResult) -> str:
    if result.refusals:
        count = len(result.refusals)
        reasons = f"{count} reason{'s' if count > 1 else ''}"
        return f"{result.target}: opening would be refused, for {reasons}:"
    if not result.exists:
        return f"{result.target} does not exist yet; opening would make it:"
    if not result.steps:
        rest = "read the notes." if result.notes else "nothing to do."
        return f"{result.target} fits module {result.module!r}; {rest}"
    return f"{result.target}: opening would take these steps:"
