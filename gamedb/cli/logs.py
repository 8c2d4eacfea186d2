"""`gamedb logs`: what a running database has logged."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.options import DEFAULT_DATA, DEFAULT_SERVER, DatabaseName, DataDir, ServerUrl, Token
from gamedb.cli.output import harmless
from gamedb.cli.remote import Remote

_STYLES: Final = {"Panic": "bold red", "Error": "red", "Warn": "yellow", "Info": "", "Debug": "dim", "Trace": "dim"}


def logs(
    database: DatabaseName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on, and show what comes.")] = False,
    num_lines: Annotated[int, typer.Option("--num-lines", "-n", metavar="N", min=0, help="The last so many.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object a line.")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    token: Token = None,
    data_dir: DataDir = DEFAULT_DATA,
) -> None:
    """Show what a running database and its game have logged: ctx.log of reducers, failures with their traces.

    Examples:
      gamedb logs arena -f
      gamedb logs arena -n 1000 --json | jq 'select(.level == "Panic")'
    """
    remote = Remote(server, database, token, data_dir)
    out = Console(highlight=False, soft_wrap=True)
    try:
        for line in remote.lines(f"/logs?num_lines={num_lines}{'&follow=true' if follow else ''}"):
            if as_json:
                typer.echo(line.decode().rstrip())
            else:
                _show(out, json.loads(line))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _show(out: Console, entry: dict[str, Any]) -> None:
    moment = datetime.fromtimestamp(entry.get("ts", 0) / 1_000_000).astimezone()
    level = entry.get("level", "Info")
    style = _STYLES.get(level, "")
    function = entry.get("function") or ""
    out.print(
        Text.assemble(
            (f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} ", "dim"),
            (f"{level:<5} ", style),
            (f"{function}: " if function else "", "cyan"),
            (harmless(entry.get("message", "")), style),
        )
    )
    for frame in entry.get("trace", []):
        out.print(Text(f"    {frame.get('module_name', '')} in {frame.get('func_name', '')}", style="dim"))
