"""What each route below `/v1/database/{db}` needs first: who asks, and for which database.

Every answer of these routes, refusals included, says in its headers who the caller is.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from blake3 import blake3
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gamedb.errors import TokenError
from gamedb.server.credentials import Credentials
from gamedb.server.hosted import Hosted
from gamedb.server.http.answers import Handler, Refused, caller_of, guarded, refusal
from gamedb.server.server import Server
from gamedb.types import Identity

_NAME: Final = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*\Z")
_IDENTITY: Final = re.compile(r"[0-9a-fA-F]{64}\Z")
NAME_CHARACTERS_MAX: Final = 200


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a database."""

    request: Request
    server: Server
    hosted: Hosted
    caller: Credentials

    @property
    def identity(self) -> Identity:
        """Who asks."""
        return self.caller.claims.identity

    @property
    def operates(self) -> bool:
        """Whether the caller is the owner or an operator of the database."""
        return self.hosted.may_operate(self.identity)


def for_database(server: Server, handler: Callable[[Visit], Awaitable[Response]]) -> Handler:
    """A handler of requests to a database as an endpoint."""

    async def answer(request: Request) -> Response:
        caller = await caller_of(server, request)
        try:
            hosted = find_database(server, request.path_params["db"])
            response = await handler(Visit(request=request, server=server, hosted=hosted, caller=caller))
        except ClientDisconnect:
            raise
        except Exception as error:
            response = refusal(error).response()
        response.headers["spacetime-identity"] = caller.claims.identity.hex()
        response.headers["spacetime-identity-token"] = caller.token
        return response

    return guarded(answer)


async def operated(server: Server, request: Request) -> list[Hosted]:
    """The databases that the caller operates; nobody's token, or that of nobody here, is refused."""
    caller = await caller_of(server, request)
    if caller.anonymous:
        raise TokenError("missing", "this is for operators; send Authorization: Bearer OWNER_TOKEN")
    found = [one for one in server.hosted.values() if one.may_operate(caller.claims.identity)]
    if not found:
        raise Refused(403, f"identity {caller.claims.identity} operates no database here; send the owner's token")
    return found


def find_database(server: Server, name: str) -> Hosted:
    """The database with this name or identity; `Refused` says which there are when there is none."""
    hosted = server.find(name)
    if hosted is not None:
        return hosted
    if _IDENTITY.match(name):
        raise Refused(404, "No such database.")
    if len(name) > NAME_CHARACTERS_MAX or not _NAME.match(name):
        raise Refused(400, "a database name has lower-case letters and digits, with '-' or '_' between them")
    raise Refused(404, f"`{name}` not found")


def _program(hosted: Hosted) -> str:
    """A digest of what the module declares."""
    module = hosted.db.module
    tables = [[t.name, [[c.name, c.type.describe()] for c in t.columns]] for t in module.tables.values()]
    functions = [[f.name, f.kind, f.signature] for f in module.functions.values()]
    return blake3(msgspec.json.encode([tables, functions])).hexdigest()


def routes(server: Server) -> list[Route]:
    """The routes that only tell about a database."""

    async def about(visit: Visit) -> Response:
        owner = visit.hosted.owner
        return JSONResponse(
            {
                "database_identity": visit.hosted.identity.hex(),
                "owner_identity": (visit.hosted.identity if owner is None else owner).hex(),
                "host_type": "python",
                "initial_program": _program(visit.hosted),
            }
        )

    async def identity(visit: Visit) -> Response:
        return PlainTextResponse(visit.hosted.identity.hex())

    async def names(visit: Visit) -> Response:
        return JSONResponse({"names": [visit.hosted.name]})

    async def subscribe(_visit: Visit) -> Response:
        raise Refused(426, "this is for websockets; connect to it with a client SDK", {"upgrade": "websocket"})

    return [
        Route("/database/{db}", for_database(server, about)),
        Route("/database/{db}/identity", for_database(server, identity)),
        Route("/database/{db}/names", for_database(server, names)),
        Route("/database/{db}/subscribe", for_database(server, subscribe)),
    ]
