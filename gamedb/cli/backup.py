"""`gamedb backup`: a copy of a data directory, also while it is served."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.options import DEFAULT_DATA, DataDir, shown
from gamedb.cli.output import fail
from gamedb.errors import GamedbError


def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Where the copy goes; it is made.", show_default=False)],
    data_dir: DataDir = DEFAULT_DATA,
) -> None:
    """Copy a data directory, also while it is served: databases, signing keys, the owner's token.

    Each database is copied as it is at one moment, and the copy is checked. The directory has its name only once all
    of it is on disk. It holds secrets, and is for its owner only. To restore it, stop the server and put it in the
    place of the data directory, or start with --data-dir DIR.

    Databases on PostgreSQL (--url) are not in the data directory: copy them with pg_dump.

    Exit code: [bold]0[/bold] done, [bold]2[/bold] nothing was copied.

    Examples:
      gamedb backup backups/monday
      gamedb backup /backups/$(date +%F) --data-dir /var/lib/arena
    """
    from gamedb.server.embedded import KEYS_SUFFIX  # the server is slow to import
    from gamedb.server.site import KEYS, OWNER_TOKEN
    from gamedb.storage.sqlite import sync

    if target.exists():
        fail(f"{shown(target)} is there already.", "A copy is a new directory: choose another name.")
    if target.absolute().is_relative_to(data_dir.absolute()):
        fail(f"{shown(target)} lies in the data directory {shown(data_dir)}.", "Choose a place outside of it.")
    databases = sorted(data_dir.glob("*.db"))
    secrets = [data_dir / OWNER_TOKEN, *sorted(data_dir.glob(f"{KEYS}/*.pem"))]
    secrets += sorted(data_dir.glob(f"*{KEYS_SUFFIX}/*.pem"))
    secrets = [path for path in secrets if path.exists()]
    if not databases and not secrets:
        fail(f"there is no database in {shown(data_dir)}.", "Say where the data is with --data-dir DIR.")
    unfinished = target.with_name(f".{target.name}.unfinished")
    out = Console(highlight=False, soft_wrap=True)
    try:
        _copy(data_dir, databases, secrets, unfinished, out)
        unfinished.rename(target)
        sync(target.parent)
    except (GamedbError, OSError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        fail(f"nothing was copied. {why}")
    out.print(Text(f"{shown(target)} is complete."))


def _copy(data_dir: Path, databases: Iterable[Path], secrets: Iterable[Path], target: Path, out: Console) -> None:
    from gamedb.server.secrets import read_secret, write_secret
    from gamedb.storage.backup import copy_database
    from gamedb.storage.sqlite import sync

    shutil.rmtree(target, ignore_errors=True)  # of a copy that was interrupted
    target.mkdir(mode=0o700, parents=True)
    for source in databases:
        copy = target / source.name
        copy_database(source, copy)
        copy.chmod(0o600)
        out.print(Text(f"  {source.name}  {copy.stat().st_size / 1_000_000:.1f} MB"))
    for source in secrets:
        copy = target / source.relative_to(data_dir)
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(copy, read_secret(source))
        out.print(Text(f"  {source.relative_to(data_dir)}"))
    for directory in (*(path for path in target.iterdir() if path.is_dir()), target):
        sync(directory)
