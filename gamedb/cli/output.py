"""How commands speak: results on stdout, errors on stderr with what to type next, JSON for programs."""

from __future__ import annotations

import sys
from typing import Any, Final, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.text import Text

REFUSED: Final = 1
"""Exit code: the question was answered, with no."""
NOT_DONE: Final = 2
"""Exit code: the command could not do its work."""


def console() -> Console:
    """The console for results; as wide as the terminal, 80 columns when there is none."""
    return Console(highlight=False, soft_wrap=False)


def fail(problem: str, hint: str = "", code: int = NOT_DONE) -> NoReturn:
    """End the command with an error for a person: what is wrong, and what to do."""
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    err.print(Text.assemble(("error: ", "bold red"), problem))
    if hint:
        err.print(Text(hint))
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """A value as indented JSON, for programs and for people with jq."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.flush()
