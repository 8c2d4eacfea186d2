"""What a client shows to say who it is: an `Authorization` header, or a token in the URL.

Nothing shown makes a new identity; anything shown that is not right is a `TokenError`, never an anonymous caller.
"""

from __future__ import annotations

import msgspec

from gamedb.errors import TokenError
from gamedb.server.auth import Authenticator, Claims


class Credentials(msgspec.Struct, frozen=True):
    """Who a client is, and the token that says so."""

    claims: Claims
    token: str
    """The one that was shown, or a new one that does not expire."""
    anonymous: bool
    """Whether nothing was shown, and the identity is new."""


async def credentials(
    authenticator: Authenticator, authorization: str | None, query_token: str | None = None
) -> Credentials:
    """From the header, which wins, or from the query parameter `token`."""
    token = query_token
    if authorization is not None and authorization.strip():
        token = bearer_token(authorization)
    if not token:
        claims, token = authenticator.issue()
        return Credentials(claims, token, True)
    return Credentials(await authenticator.verify(token), token, False)


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization: Bearer` header; `TokenError` for other schemes."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer":
        raise TokenError("scheme", f"Authorization: {scheme[:20]!r} is not supported; send Authorization: Bearer TOKEN")
    return token.strip()
