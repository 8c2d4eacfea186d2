"""Files that only their owner may read: written whole or not at all, refused when others can read them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from gamedb.errors import StorageError

_OTHERS: Final = 0o077


def write_secret(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file of mode 0600. `StorageError` when that cannot be, or it is there and `replace` is not given."""
    try:
        _write(path, text, replace)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None


def _write(path: Path, text: str, replace: bool) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)
            os.unlink(temporary)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read_secret(path: Path) -> str:
    """The text of a secret file; `StorageError` when others can read it, too."""
    try:
        mode = path.stat().st_mode & 0o777
        if mode & _OTHERS:
            raise StorageError(f"{path} can be read by others (mode {mode:04o}); run: chmod 600 {path}")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def secret_directory(path: Path) -> None:
    """Make a directory that only its owner may enter, unless it is there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be made: {error.strerror}") from None
