"""The HTTP API below `/v1`, `/metrics` and static files: `routes(server)` for a Starlette app.

One file for each group of routes. Websockets come beside it, as uvicorn hands them to `WebSocket`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from gamedb.server.http import call, console, databases, describe, identities, logs, metrics, schema, sql, status
from gamedb.server.http.answers import Refused, guarded
from gamedb.server.http.files import PublicFiles
from gamedb.server.server import Server

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CORS_HEADERS: Final = ("authorization", "accept", "content-type")
PREFLIGHT_SECONDS: Final = 86_400
NO_PAGE: Final = """A gamedb server. It serves no page of a game: gamedb start ... --static DIR gives it one.

/v1/database/NAME/subscribe   where clients connect (any SpacetimeDB SDK)
/v1/health                    whether all is well
"""
CONSOLE_LINE: Final = "/console/                     the page for operators\n"


def routes(server: Server, *, static: Path | None = None) -> list[BaseRoute]:
    """All routes of a server; with `static`, everything else is a file of that directory."""
    groups = (status, identities, databases, describe, call, schema, sql, logs)
    known = [route for group in groups for route in group.routes(server)]
    api = Router([*known, Route("/{rest:path}", _unknown, methods=METHODS)])
    found: list[BaseRoute] = [Mount("/v1", app=_cors(api)), *metrics.routes(server)]
    found += console.routes()
    if static is not None:
        found.append(Mount("/", app=PublicFiles(static)))
    else:
        found.append(Route("/", _no_page))
    return found


async def _no_page(request: Request) -> Response:
    return PlainTextResponse(NO_PAGE + (CONSOLE_LINE if console.is_built() else ""))


def _cors(app: Router) -> CORSMiddleware:
    return CORSMiddleware(
        app,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=CORS_HEADERS,
        expose_headers=["*"],
        max_age=PREFLIGHT_SECONDS,
    )


@guarded
async def _unknown(request: Request) -> Response:
    raise Refused(
        404, f"there is no {request.method} {request.url.path[:200]} here; see docs/server.md for what there is"
    )
