"""`/v1/identity`: new identities, tokens for websockets, the public key."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamedb.errors import TokenError
from gamedb.server.auth import Claims
from gamedb.server.credentials import bearer_token
from gamedb.server.http.answers import Refused, address_of, guarded
from gamedb.server.server import Server
from gamedb.types import Identity


def routes(server: Server) -> list[Route]:
    """The routes below `/v1`."""

    async def new(request: Request) -> Response:
        server.admission.new_identity(address_of(server, request))
        claims, token = server.authenticator.issue()
        return JSONResponse({"identity": claims.identity.hex(), "token": token})

    async def websocket_token(request: Request) -> Response:
        claims = await _shown(request)
        return JSONResponse({"token": server.authenticator.issue_for_websocket(claims)})

    async def public_key(_request: Request) -> Response:
        server.authenticator.keys.refresh()
        return Response(server.authenticator.keys.public_pem(), media_type="application/pem-certificate-chain")

    async def verify(request: Request) -> Response:
        claims = await _shown(request)
        wanted = _identity(request)
        if claims.identity != wanted:
            raise Refused(400, f"the token is for identity {claims.identity}, not for {wanted}")
        return Response(status_code=204)

    async def databases(request: Request) -> Response:
        wanted = _identity(request)
        owned = [hosted.identity.hex() for hosted in server.hosted.values() if hosted.owner == wanted]
        return JSONResponse({"identities": owned})

    async def _shown(request: Request) -> Claims:
        header = request.headers.get("authorization", "")
        token = bearer_token(header) if header.strip() else ""
        if not token:
            raise TokenError("missing", "this needs a token; send Authorization: Bearer TOKEN")
        return await server.authenticator.verify(token)

    return [
        Route("/identity", guarded(new), methods=["POST"]),
        Route("/identity/websocket-token", guarded(websocket_token), methods=["POST"]),
        Route("/identity/public-key", guarded(public_key)),
        Route("/identity/{identity}/verify", guarded(verify)),
        Route("/identity/{identity}/databases", guarded(databases)),
    ]


def _identity(request: Request) -> Identity:
    try:
        return Identity.from_hex(request.path_params["identity"])
    except ValueError:
        raise Refused(400, "an identity is written as 64 hex digits") from None
