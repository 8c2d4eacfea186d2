"""`gamedb generate`: bindings for clients, and the module definition that SpacetimeDB's own generators read."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from gamedb.cli.loading import Target, load_module, resolve
from gamedb.cli.output import fail
from gamedb.codegen.files import write_files
from gamedb.codegen.module_def import module_def
from gamedb.codegen.typescript import typescript
from gamedb.errors import GamedbError
from gamedb.resolved import Resolved
from gamedb.wire.sats_json import dumps


class Language(enum.Enum):
    """What can be generated."""

    TYPESCRIPT = "typescript"
    MODULE_DEF = "module-def"


def generate(
    target: Target,
    language: Annotated[Language, typer.Option("--lang", help="What to generate.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="The directory for bindings; the file for a module definition."),
    ] = None,
    include_private: Annotated[
        bool, typer.Option("--include-private", help="Also what clients may not use: for tools of the operator.")
    ] = False,
) -> None:
    """Write client bindings, or the definition that other generators read.

    [bold]typescript[/bold]: bindings for the npm package spacetimedb, into a directory. Files there that were not
    generated are left alone; generated ones that are out of date are removed. [bold]module-def[/bold]: JSON for
    "spacetime generate --module-def", which writes bindings for Unity, Unreal, Rust and others; to stdout without
    --out.

    The module's file is imported; none of its functions are run.

    Examples:
      gamedb generate game:module --lang typescript --out client/src/module_bindings
      gamedb generate arena:module --lang module-def --out arena.json
      spacetime generate --lang csharp --out-dir Assets/Bindings --module-def arena.json
    """
    module = resolve(load_module(target))
    try:
        if language is Language.MODULE_DEF:
            _write_definition(module, out)
        else:
            _write_typescript(module, out, include_private)
    except GamedbError as error:
        fail(f"module {module.name!r} cannot be written as {language.value}: {error}")
    except OSError as error:
        fail(str(error))


def _write_definition(module: Resolved, out: Path | None) -> None:
    text = dumps(module_def(module)).decode()
    if out is None:
        typer.echo(text)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"{text}\n", encoding="utf-8")
        typer.echo(f"wrote {out}")


def _write_typescript(module: Resolved, out: Path | None, include_private: bool) -> None:
    if out is None:
        fail("bindings are many files; say where they go.", "Add, for instance: --out src/module_bindings")
    result = write_files(out, typescript(module, include_private=include_private))
    for name in result.removed:
        typer.echo(f"removed {out / name}")
    typer.echo(f"{out}: {len(result.written)} files written, {len(result.unchanged)} unchanged")
