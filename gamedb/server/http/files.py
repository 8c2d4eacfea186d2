"""A directory of static files, such as the page of a game.

Nothing outside of the directory is served, and nothing whose name begins with a dot.
"""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from gamedb.errors import StorageError


class PublicFiles(StaticFiles):
    """The files of a directory; a directory in it is its `index.html`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        if any(part.startswith(".") and part != "." for part in path.replace("\\", "/").split("/")):
            raise HTTPException(404)
        try:
            return await super().get_response(path, scope)
        except (ValueError, OSError):  # a NUL in the path, a name that is too long
            raise HTTPException(404) from None

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers.setdefault("x-content-type-options", "nosniff")
        response.headers.setdefault("cache-control", "no-cache")
        return response


def check_directory(directory: Path, *private: Path) -> None:
    """`StorageError` unless the directory exists, and neither holds what is private (keys, data) nor lies in it."""
    if not directory.is_dir():
        raise StorageError(f"static files: {directory} is not a directory")
    static = directory.resolve()
    for path in private:
        found = path.resolve()
        if static in (found, *found.parents) or found in static.parents:
            raise StorageError(
                f"static files: {directory} and {path} lie in each other, so keys and data would be served to "
                "everybody; move one of them"
            )
