"""The Starlette app of a server: its HTTP routes. Websockets come beside it, as uvicorn hands them to `WebSocket`."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from gamedb.server.http import routes
from gamedb.server.server import Server


def app_of(server: Server, *, static: Path | None = None) -> Starlette:
    """The app; with `static`, what is not part of the API is a file of that directory."""
    found: list[BaseRoute] = [Route("/v1/database/{name}/subscribe", _upgrade)]
    return Starlette(routes=[*found, *routes(server, static=static)])


async def _upgrade(_request: Request) -> Response:
    text = "this is a websocket; connect with the Upgrade header and a SpacetimeDB client"
    return PlainTextResponse(text, 426, headers={"Upgrade": "websocket"})
