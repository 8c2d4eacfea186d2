"""How commands speak: results on stdout, errors on stderr with what to type next, JSON for programs."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from typing import Any, Final, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

REFUSED: Final = 1
"""Exit code: the question was answered, with no."""
NOT_DONE: Final = 2
"""Exit code: the command could not do its work."""

_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@contextmanager
def results() -> Iterator[Console]:
    """The console for results: as wide as the terminal; 80 columns and no trailing blanks when there is none."""
    out = Console(highlight=False)
    if out.is_terminal:
        yield out
        return
    with out.capture() as captured:
        yield out
    for line in captured.get().splitlines():
        print(line.rstrip())


def help_text(command: Callable[..., None]) -> str:
    """The help of a command from its docstring: paragraphs flow, the lines below `Examples` stand as they are."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    shown = []
    for paragraph in paragraphs:
        title, _, rest = paragraph.partition("\n")
        if title == "Examples:":
            lines = [f"  [cyan]{escape(line.strip())}[/cyan]" for line in rest.splitlines()]
            shown.append("\n".join(["[bold]Examples[/bold]", *lines]))
        else:
            shown.append(paragraph.replace("\n", " "))
    return "\n\n".join(shown)


def fail(problem: str, hint: str = "", code: int = NOT_DONE) -> NoReturn:
    """End the command with an error for a person: what is wrong, and what to do."""
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    err.print(Text.assemble(("error: ", "bold red"), harmless(problem)))
    if hint:
        err.print(Text(harmless(hint)))
    raise typer.Exit(code)


def prints_aside() -> AbstractContextManager[object]:
    """While code of a game runs in a command: what it prints goes to stderr, as stdout is for the result."""
    return redirect_stdout(sys.stderr)


def harmless(text: str) -> str:
    """A text that others wrote, without what steers a terminal: such characters are spelled out."""
    return _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def print_json(value: Any) -> None:
    """A value as indented JSON, for programs and for people with jq."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.flush()
