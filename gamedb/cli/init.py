"""`gamedb init`: a new game that runs, as a place to begin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.output import fail

SCAFFOLD: Final = Path(__file__).parent / "scaffold"
ITS_NAME: Final = "my-game"
"""What the game of the scaffold is called, wherever it stands in its files."""
_FILES: Final = {
    "game.py": "game.py",
    "public/index.html": "public/index.html",
    "tests/test_game.py": "tests/test_game.py",
    "pytest.ini": "pytest.ini",
    "README.md": "README.md",
    "gitignore": ".gitignore",
}


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The game; a directory of this name is made.", show_default=False)
    ],
) -> None:
    """Make a new game that runs: tables and reducers, tests, and a page for browsers.

    Examples:
      gamedb init arena
    """
    if not re.match(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z", name):
        fail(
            f"a game cannot be called {name!r}.", "Use lower-case letters and digits, with - between words: star-arena"
        )
    directory = Path(name)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        fail(f"{directory} is there already, and not empty.", "Choose another name, or change to another directory.")
    try:
        for source, place in _FILES.items():
            text = (SCAFFOLD / source).read_text(encoding="utf-8").replace(ITS_NAME, name)
            (directory / place).parent.mkdir(parents=True, exist_ok=True)
            (directory / place).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{directory} cannot be written: {error.strerror}.")
    out = Console(highlight=False, soft_wrap=True)
    for place in _FILES.values():
        out.print(Text(f"  {directory / place}"))
    out.print(Text("Try it:", style="bold"))
    for line in (f"cd {name}", "gamedb dev game:module --static public"):
        out.print(Text(f"  {line}", style="cyan"))
    out.print(Text("and open http://127.0.0.1:3000/ in a browser."))
    out.print(Text.assemble("and test it:  ", ("pip install pytest && pytest", "cyan")))
