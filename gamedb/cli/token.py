"""`gamedb token`: the owner's token, new identities, new signing keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.options import DEFAULT_DATA, DataDir, shown
from gamedb.cli.output import fail, help_text, print_json
from gamedb.errors import GamedbError, TokenError

if TYPE_CHECKING:
    from gamedb.server.auth import Authenticator, Claims

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
AsJson = Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")]


def show(
    token: Annotated[
        str | None, typer.Argument(metavar="[TOKEN]", help="By default the owner's.", show_default=False)
    ] = None,
    data_dir: DataDir = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Show whose token it is, and whether this server's keys accept it.

    Examples:
      gamedb token show
      gamedb token show eyJhbGciOi...
    """
    from gamedb.server.secrets import read_secret

    authenticator = _authenticator(data_dir)
    path = data_dir / "owner.token"
    if token is None and not path.exists():
        fail(f"there is no {shown(path)}.", "The first start makes it: gamedb start MODULE:OBJECT")
    try:
        token = token or read_secret(path).strip()
        claims = authenticator.verify_own(token)
    except TokenError as error:
        fail(str(error), code=1)
    except GamedbError as error:
        fail(str(error))
    _show(claims, token, as_json)


def issue(
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="TEXT", help="Whom it is for; the same text is the same identity."),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", metavar="N", min=1, max=36_500, help="How long it is good.")
    ] = None,
    data_dir: DataDir = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make a token: for a player, a game server in another process, or an operator.

    By default it is a new identity each time, and does not expire. To make an operator of it, start the server with
    --operator IDENTITY.

    Examples:
      gamedb token issue
      gamedb token issue --subject matchmaker --days 30
    """
    if subject is not None and not 1 <= len(subject.encode()) <= 128:
        fail("--subject must be text of 1 to 128 bytes.")
    claims, token = _authenticator(data_dir).issue(subject, seconds=None if days is None else days * 86_400)
    _show(claims, token, as_json)


def rotate(data_dir: DataDir = DEFAULT_DATA) -> None:
    """Make a new key, which signs all tokens from now on; a running server takes it up by itself.

    Tokens that older keys signed stay good until you delete the file of their key.

    Examples:
      gamedb token rotate
    """
    try:
        path = _authenticator(data_dir).keys.rotate()
    except GamedbError as error:
        fail(str(error))
    assert path is not None
    older = sorted(found for found in path.parent.glob("*.pem") if found != path)
    typer.echo(f"{shown(path)} signs from now on.")
    typer.echo(f"Older keys still verify: {', '.join(shown(found) for found in older)}. Delete one to end its tokens.")


def _authenticator(data_dir: Path) -> Authenticator:
    from gamedb.server.auth import Authenticator
    from gamedb.server.keys import Keys
    from gamedb.server.site import KEYS

    if not (data_dir / KEYS).is_dir():
        fail(
            f"there are no keys in {shown(data_dir)}.",
            "The first start makes them: gamedb start MODULE:OBJECT   (elsewhere: --data-dir DIR)",
        )
    try:
        return Authenticator(Keys(data_dir / KEYS))
    except GamedbError as error:
        fail(str(error))


def _show(claims: Claims, token: str, as_json: bool) -> None:
    if as_json:
        print_json({"identity": claims.identity.hex(), "subject": claims.subject, "issuer": claims.issuer,
                    "expires_at": claims.expires_at, "token": token})  # fmt: skip
        return
    out = Console(highlight=False, soft_wrap=True)
    for title, text in (("identity", claims.identity.hex()), ("subject", claims.subject), ("token", token)):
        out.print(Text.assemble((f"{title:<10}", "bold"), text))


for _command in (show, issue, rotate):
    app.command(help=help_text(_command))(_command)
