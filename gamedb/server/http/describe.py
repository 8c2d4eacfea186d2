"""What tools for operators ask first: `GET /v1/databases`, and `GET /v1/database/{db}/describe`.

A schema tells tables and functions; a description has what libraries know beside them (`Module.on_describe`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamedb.resolved import Resolved
from gamedb.server.http.answers import Refused, guarded
from gamedb.server.http.databases import Visit, for_database, operated
from gamedb.server.http.status import version
from gamedb.server.server import Server
from gamedb.wire.sats_json import dumps


def routes(server: Server) -> list[Route]:
    """The routes below `/v1`."""

    async def databases(request: Request) -> Response:
        listed = [{"name": one.name, "identity": one.identity.hex()} for one in await operated(server, request)]
        return JSONResponse({"version": version(), "databases": listed})

    return [
        Route("/databases", guarded(databases)),
        Route("/database/{db}/describe", for_database(server, _describe)),
    ]


async def _describe(visit: Visit) -> Response:
    if not visit.operates:
        raise Refused(403, "only the owner of the database and operators may ask for this; send their token")
    body = await asyncio.to_thread(_described, visit.hosted.db.module)
    return Response(body, media_type="application/json")


def _described(module: Resolved) -> bytes:
    found: dict[str, Any] = {"module": module.name}
    for function in module.describers:
        found.update(function())
    return dumps(found)
