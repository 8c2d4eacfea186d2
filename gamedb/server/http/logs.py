"""`GET /v1/database/{db}/logs`: what the game logged, for its owner and operators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gamedb.server.http.answers import Refused
from gamedb.server.http.databases import Visit, for_database
from gamedb.server.logs import Follower, TooManyFollowers
from gamedb.server.server import Server

LOOK_SECONDS: Final = 1.0
"""How often a follower that hears nothing is looked after: whether it has gone, whether the server ends."""
_HEADERS: Final = {"cache-control": "no-cache"}


def routes(server: Server) -> list[Route]:
    """The route."""
    return [Route("/database/{db}/logs", for_database(server, _logs))]


async def _logs(visit: Visit) -> Response:
    if not visit.operates:
        raise Refused(403, "only the owner of the database and operators may read its logs; send their token")
    query = visit.request.query_params
    count = _count(query.get("num_lines"))
    logs = visit.hosted.logs
    if query.get("follow") != "true":
        return Response(b"".join(logs.last(count)), media_type="application/x-ndjson", headers=_HEADERS)
    following = logs.follow()
    try:
        follower = following.__enter__()
    except TooManyFollowers:
        raise Refused(503, "too many clients follow this log already; end one of them") from None
    first = b"".join(logs.last(0 if count is None else count))

    async def lines() -> AsyncIterator[bytes]:
        try:
            yield first
            async for batch in _batches(visit, follower):
                yield batch
        finally:
            following.__exit__(None, None, None)

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=_HEADERS)


async def _batches(visit: Visit, follower: Follower) -> AsyncIterator[bytes]:
    async for batch in follower.batches(LOOK_SECONDS):
        if batch:
            yield batch
        elif visit.server.closing or await visit.request.is_disconnected():
            return


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise Refused(400, f"num_lines={text[:20]!r} is not a number of lines")
    return count
