"""How HTTP answers look when something is wrong: a status, and a text that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from gamedb.errors import DatabaseClosed, QueryError, StorageError, TokenError, WireError
from gamedb.server.admission import TooMany
from gamedb.server.credentials import Credentials, credentials
from gamedb.server.server import Server

_log: Final = logging.getLogger("gamedb.server")

Handler = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers

    def response(self) -> Response:
        """The answer itself."""
        return PlainTextResponse(self.text, self.status, self.headers)


def refusal(error: Exception) -> Refused:
    """What an exception means over HTTP. An unexpected one is logged, and told without its text."""
    match error:
        case Refused():
            return error
        case TooMany():
            return Refused(429, str(error), {"retry-after": str(error.retry_seconds)})
        case TokenError(code="issuer_unreachable"):
            return Refused(503, str(error), {"retry-after": "30"})
        case TokenError(code="scheme"):
            return Refused(400, str(error))
        case TokenError(code=code):
            return Refused(
                401, str(error), {"www-authenticate": f'Bearer error="invalid_token", error_description="{code}"'}
            )
        case WireError() | QueryError():
            return Refused(400, str(error))
        case DatabaseClosed() | StorageError():
            return Refused(503, str(error))
        case HTTPException():
            return Refused(error.status_code, error.detail, error.headers)
    _log.error("an HTTP request failed: %r", error, exc_info=error)
    return Refused(500, "internal error; the server's log says more")


def guarded(handler: Handler) -> Handler:
    """The handler with its errors as answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:
            return refusal(error).response()

    return answer


def address_of(server: Server, request: Request) -> str:
    """Where a request comes from."""
    peer = "" if request.client is None else request.client.host
    return server.admission.proxies.client(peer, request.headers.getlist("x-forwarded-for"))


async def caller_of(server: Server, request: Request) -> Credentials:
    """Who makes a request; somebody new when it shows no token, which each address may be only so often."""
    shown = request.headers.get("authorization")
    if shown is None or not shown.strip():
        server.admission.new_identity(address_of(server, request))
    return await credentials(server.authenticator, shown)


async def read_body(request: Request, bytes_max: int) -> bytes:
    """The body of a request; refuses one that is longer before it is all here."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            text = f"the body is longer than {bytes_max} bytes; send less at a time"
            raise Refused(413, text, {"connection": "close"})  # the rest of it is not read
    return bytes(body)
