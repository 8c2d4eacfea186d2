"""What tools for operators ask first: `GET /v1/databases`, and `GET /v1/database/{db}/describe`.

A schema tells tables and functions; a description has what libraries know beside them (`Module.on_describe`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamedb.errors import TokenError
from gamedb.module import Resolved
from gamedb.server.credentials import credentials
from gamedb.server.http.answers import Refused, guarded
from gamedb.server.http.databases import Visit, for_database
from gamedb.server.http.status import version
from gamedb.server.server import Server
from gamedb.wire.sats_json import dumps


def routes(server: Server) -> list[Route]:
    """The routes below `/v1`."""

    async def databases(request: Request) -> Response:
        caller = await credentials(server.authenticator, request.headers.get("authorization"))
        if caller.anonymous:
            raise TokenError("missing", "this is for operators; send Authorization: Bearer OWNER_TOKEN")
        found = [one for one in server.hosted.values() if one.may_operate(caller.claims.identity)]
        if not found:
            raise Refused(403, f"identity {caller.claims.identity} operates no database here; send the owner's token")
        listed = [{"name": one.name, "identity": one.identity.hex()} for one in found]
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
