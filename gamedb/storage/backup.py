"""A copy of a stored SQLite database, which may be open and written to meanwhile: one moment of it, whole and checked.

Knows files alone, and no `Database`; called by `gamedb backup`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from gamedb.errors import ForeignFile, StorageError
from gamedb.storage.sqlite import check_file, check_header


def copy_database(source: Path, target: Path) -> None:
    """Copy a database into a new file, synced to disk. `ForeignFile` when `source` is none of ours, or is damaged.

    A reader keeps nobody from writing (SQLite in WAL mode), so a game that has it open notices nothing. Not for a file
    that this very process has open.
    """
    check_header(str(source))
    try:
        # For writing, as otherwise a file that nobody has open could not be read safely while somebody opens it.
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.backup(writing)  # all pages under one snapshot; the last thing that it does is to sync
    except sqlite3.Error as error:
        raise StorageError(f"{source} cannot be copied to {target}: {error}") from None
    try:
        check_file(str(target))
    except ForeignFile as error:
        raise ForeignFile(f"the copy of {source} is not sound, so {source} is probably damaged: {error}") from None
