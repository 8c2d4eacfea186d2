"""`/v1/ping` and `/v1/health`."""

from __future__ import annotations

from importlib import metadata

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamedb.server.credentials import credentials
from gamedb.server.health import health_of
from gamedb.server.http.answers import guarded
from gamedb.server.server import Server


def routes(server: Server) -> list[Route]:
    """The routes below `/v1`."""

    async def ping(_request: Request) -> Response:
        return Response()

    async def health(request: Request) -> Response:
        shown = request.headers.get("authorization")
        caller = None if not shown else (await credentials(server.authenticator, shown)).claims.identity
        states = {name: health_of(hosted) for name, hosted in server.hosted.items()}
        told = msgspec.to_builtins(states)
        for name, hosted in server.hosted.items():
            if caller is None or not hosted.may_operate(caller):
                del told[name]["numbers"]  # they may count what is private
        well = not server.closing and not any(state.problems for state in states.values())
        body = {
            "package_name": "gamedb",
            "version": version(),
            "nodes": [],
            "schedulable": well,
            "closing": server.closing,
            "databases": told,
        }
        return JSONResponse(body, 200 if well else 503)

    return [Route("/ping", guarded(ping)), Route("/health", guarded(health))]


def version() -> str:
    """The installed version of gamedb."""
    try:
        return metadata.version("gamedb")
    except metadata.PackageNotFoundError:
        return "0"
