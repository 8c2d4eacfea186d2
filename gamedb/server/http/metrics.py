"""`/metrics`, for Prometheus: of the databases that the caller operates, as it names private tables and reducers.

A scraper sends the owner's token (`authorization: credentials_file: data/owner.token` in its configuration).
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gamedb.errors import TokenError
from gamedb.server.credentials import credentials
from gamedb.server.http.answers import Refused, guarded
from gamedb.server.metrics import metrics_text
from gamedb.server.server import Server

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(server: Server) -> list[Route]:
    """The route, which is not below `/v1`."""

    async def metrics(request: Request) -> Response:
        caller = await credentials(server.authenticator, request.headers.get("authorization"))
        if caller.anonymous:
            raise TokenError("missing", "metrics are for operators; send Authorization: Bearer OWNER_TOKEN")
        operated = [one for one in server.hosted.values() if one.may_operate(caller.claims.identity)]
        if not operated:
            raise Refused(403, f"identity {caller.claims.identity} operates no database here; send the owner's token")
        return Response(metrics_text(operated), media_type=MEDIA_TYPE)

    return [Route("/metrics", guarded(metrics))]
