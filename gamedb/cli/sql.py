"""`gamedb sql`: a question to a running database."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gamedb.cli.options import DEFAULT_DATA, DEFAULT_SERVER, DatabaseName, DataDir, ServerUrl, Token
from gamedb.cli.output import fail, harmless, print_json, results
from gamedb.cli.remote import Remote
from gamedb.cli.values import as_plain, as_text

_NUMBERS: Final = frozenset(f"{sign}{bits}" for sign in "UI" for bits in (8, 16, 32, 64, 128)) | {"F32", "F64"}


def sql(
    database: DatabaseName,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="SQL; without it, stdin is read.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: an array of objects, one for each row.")
    ] = False,
    server: ServerUrl = DEFAULT_SERVER,
    token: Token = None,
    data_dir: DataDir = DEFAULT_DATA,
) -> None:
    """Ask a running database in SQL. It only reads; to change something, call a reducer.

    The owner and operators ask the storage engine itself (SQLite, or PostgreSQL), in all of its SQL, over what is
    committed. With another token it is the language of subscriptions, over what that identity may see.

    Examples:
      gamedb sql arena "SELECT name, hp FROM player WHERE hp < 50 ORDER BY hp"
      gamedb sql arena "SELECT count(*) AS players FROM player" --json
      gamedb sql arena < report.sql
    """
    if query is None:
        if sys.stdin.isatty():
            fail("which question?", 'For instance: gamedb sql arena "SELECT * FROM player"')
        query = sys.stdin.read()
    remote = Remote(server, database, token, data_dir)
    [answer] = json.loads(remote.post("/sql", query.encode(), "text/plain"))
    elements = answer["schema"]["elements"]
    names = [element["name"].get("some", f"column{number}") for number, element in enumerate(elements, 1)]
    kinds = [element["algebraic_type"] for element in elements]
    if as_json:
        names = _distinct(names)
        rows = [[as_plain(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in answer["rows"]]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    _show(names, kinds, answer["rows"], answer["total_duration_micros"])


def _distinct(names: list[str]) -> list[str]:
    """The names of columns as those of fields: a second `id` is `id_2`."""
    found: dict[str, None] = {}
    for name in names:
        number, field = 1, name
        while field in found:
            number += 1
            field = f"{name}_{number}"
        found[field] = None
    return list(found)


def _show(names: list[str], kinds: list[dict[str, Any]], rows: list[list[Any]], micros: int) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, kind in zip(names, kinds, strict=True):
        right = not _NUMBERS.isdisjoint(kind)
        table.add_column(
            Text(harmless(name)), justify="right" if right else "left", overflow="fold", header_style="bold"
        )
    for row in rows:
        table.add_row(*(Text(harmless(as_text(value, kind))) for value, kind in zip(row, kinds, strict=True)))
    with results() as out:
        out.print(table)
        out.print(Text(f"{len(rows)} row{'' if len(rows) == 1 else 's'} ({micros / 1000:.1f} ms)", style="dim"))
