"""`/metrics`, for Prometheus: of the databases that the caller operates, as it names private tables and reducers.

A scraper sends the owner's token (`authorization: credentials_file: data/owner.token` in its configuration).
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gamedb.server.http.answers import guarded
from gamedb.server.http.databases import operated
from gamedb.server.metrics import metrics_text
from gamedb.server.server import Server

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def routes(server: Server) -> list[Route]:
    """The route, which is not below `/v1`."""

    async def metrics(request: Request) -> Response:
        return Response(metrics_text(await operated(server, request), server.admission.refused), media_type=MEDIA_TYPE)

    return [Route("/metrics", guarded(metrics))]
