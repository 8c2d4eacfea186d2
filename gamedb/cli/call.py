"""`gamedb call`: a reducer or procedure of a running database."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer
from typer.core import TyperCommand

from gamedb.cli.options import DEFAULT_DATA, DEFAULT_SERVER, DatabaseName, DataDir, ServerUrl, Token
from gamedb.cli.output import fail
from gamedb.cli.remote import Remote
from gamedb.cli.values import Typed

_MINUS: Final = "\ufffe"
"""Stands for a minus while options are told from arguments."""


class NegativeNumbers(TyperCommand):
    """A command for which -5 is an argument, not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, [re.sub(r"^-(?=[0-9.])", _MINUS, arg) for arg in args])
        for name, value in ctx.params.items():
            if isinstance(value, str):
                ctx.params[name] = value.replace(_MINUS, "-")
            elif isinstance(value, list):
                ctx.params[name] = [text.replace(_MINUS, "-") for text in value]
        return rest


def call(
    database: DatabaseName,
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="The reducer or procedure.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="In order.", show_default=False)
    ] = None,
    as_json: Annotated[
        str | None,
        typer.Option("--json", metavar="JSON", help="All arguments as one JSON array, or as an object by name."),
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    token: Token = None,
    data_dir: DataDir = DEFAULT_DATA,
) -> None:
    """Call a reducer or procedure of a running database, as its owner.

    An argument is written as the value itself where that is clear: text, a number, true, a variant of an enum, a time
    (2026-11-29T12:00:00Z), an identity, null. Anything else is JSON. The result of a procedure is printed as JSON; a
    reducer prints nothing. It returns when what it changed is on disk.

    Exit code: [bold]0[/bold] done, [bold]1[/bold] the game or the server refused, [bold]2[/bold] it could not be asked.

    Examples:
      gamedb call arena join ann
      gamedb call arena damage 1 5
      gamedb call arena drop sword BOW '{"x": 1.5, "y": 2}'
      gamedb call arena damage --json '{"player_id": 1, "amount": 5}'
      gamedb call arena join eve --token none
    """
    if arguments and as_json is not None:
        fail("arguments stand either one by one or in --json, not both.")
    remote = Remote(server, database, token, data_dir)
    if as_json is not None:
        body = as_json
        try:
            json.loads(body)
        except ValueError as error:
            fail(f"--json is no JSON: {error}.", "In a shell it needs quotes around it: --json '[1, \"ann\"]'")
    else:
        typed = Typed(remote.get_json("/schema?version=10")) if arguments else None
        body = json.dumps([] if typed is None else typed.arguments(function, arguments or []))
    answer = remote.post(f"/call/{quote(function, safe='')}", body.encode(), "application/json")
    if answer:
        typer.echo(answer.decode())
