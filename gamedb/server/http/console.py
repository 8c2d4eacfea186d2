"""`/console/`: the page for operators, where the package has it built; else a text that says how to build it.

The page itself is for everybody and holds nothing; all that it shows it asks of `/v1` with the token of who uses it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from gamedb.server.http.files import PublicFiles

CONSOLE: Final = Path(__file__).parents[2] / "console"
"""Where `make console` puts it, and wheels have it."""
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""Only its own scripts run. The SDK makes decoders with `Function`, which is what 'unsafe-eval' is for."""
NOT_BUILT: Final = 'not built: run "make console" in the clone of gamedb, and install again'


def is_built(directory: Path | None = None) -> bool:
    """Whether there is a console to be served."""
    return ((directory or CONSOLE) / "index.html").is_file()


def routes(directory: Path | None = None) -> list[BaseRoute]:
    """The routes of the page."""
    if is_built(directory):
        return [Mount("/console", app=_Page(directory or CONSOLE))]
    return [Route("/console", _to_slash), Route("/console/{rest:path}", _not_built)]


class _Page(PublicFiles):
    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["content-security-policy"] = POLICY
        response.headers["referrer-policy"] = "no-referrer"
        return response


async def _to_slash(request: Request) -> Response:
    return RedirectResponse("/console/")


async def _not_built(request: Request) -> Response:
    return PlainTextResponse(f"The console is {NOT_BUILT}.\n", 404)
