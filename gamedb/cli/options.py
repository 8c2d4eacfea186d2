"""Options that several commands have, and what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

DEFAULT_SERVER: Final = "http://127.0.0.1:3000"
DEFAULT_LISTEN: Final = "127.0.0.1:3000"
DEFAULT_DATA: Final = Path("data")

DataDir = Annotated[
    Path, typer.Option("--data-dir", metavar="DIR", help="Where databases, keys and the owner's token are.")
]
ServerUrl = Annotated[str, typer.Option("--server", metavar="URL", help="The running server.", envvar="GAMEDB_SERVER")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        help="Who you are; by default the owner, by the token in the data directory. 'none': a stranger.",
        envvar="GAMEDB_TOKEN",
        show_envvar=True,
    ),
]
DatabaseName = Annotated[str, typer.Argument(metavar="DATABASE", help="Its name on the server.", show_default=False)]


def shown(path: Path | str) -> str:
    """A path as short as it can be written."""
    text, here = str(path), os.getcwd() + os.sep
    return text.removeprefix(here)
