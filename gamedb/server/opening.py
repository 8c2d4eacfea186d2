"""How a websocket is opened: which database, which protocol, who it is. Headers and query in, an `Opening` out.

Knows no socket; the refusals are HTTP answers. A token that was shown and is not right is refused, never taken for
nobody's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec

from gamedb.errors import StorageError, TokenError
from gamedb.identity import new_connection_id
from gamedb.server.admission import Follow
from gamedb.server.credentials import credentials
from gamedb.server.hosted import Hosted
from gamedb.server.server import Server
from gamedb.server.session import Caller
from gamedb.types import ConnectionId

PROTOCOL_V3: Final = "v3.bsatn.spacetimedb"
PROTOCOL_V2: Final = "v2.bsatn.spacetimedb"
PROTOCOLS: Final = (PROTOCOL_V3, PROTOCOL_V2)
"""What we speak, the best first."""
COMPRESSIONS: Final = ("None", "Gzip", "Brotli")
"""What a client may allow; we always send plain bytes, as official clients apply compressed messages out of order."""
QUERY_FIELDS_MAX: Final = 100
_PATH: Final = re.compile(r"/v1/database/([^/?#]+)/subscribe/?\Z")


class Refusal(Exception):
    """A websocket that is not opened, with the HTTP status and text that say why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Opening(msgspec.Struct, frozen=True):
    """A websocket that may be opened."""

    hosted: Hosted
    protocol: str
    caller: Caller


async def opening(
    server: Server,
    target: str,
    headers: Mapping[str, str],
    offered: list[str],
    *,
    address: str = "",
    follow: Follow | None = None,
) -> Opening:
    """Look at the request for a websocket; `Refusal` says why not. `target`: path and query. `headers`: lower-case."""
    path, _, query_text = target.partition("?")
    match = _PATH.search(path)
    if match is None:
        raise Refusal(404, "there is no websocket here; connect to /v1/database/NAME/subscribe")
    name = unquote(match[1])
    if server.closing:
        raise Refusal(503, "the server is shutting down")
    hosted = server.find(name)
    if hosted is None:
        raise Refusal(404, f"`{name[:100]}` not found")
    protocol = next((known for known in PROTOCOLS if known in offered), None)
    if protocol is None:
        raise Refusal(400, f"no valid protocol selected; offer one of {', '.join(PROTOCOLS)}")
    try:
        query = dict(parse_qsl(query_text, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX))
    except ValueError:
        raise Refusal(400, f"the URL has more than {QUERY_FIELDS_MAX} query parameters") from None
    compression = query.get("compression", "None")
    if compression not in COMPRESSIONS:
        raise Refusal(400, f"compression={compression[:20]}: use one of {', '.join(COMPRESSIONS)}")
    confirmed = _flag(query, "confirmed", default=True)
    connection_id = _connection_id(query.get("connection_id"))
    try:
        async with asyncio.timeout(server.limits.handshake_seconds_max):
            who = await credentials(server.authenticator, headers.get("authorization"), query.get("token"))
    except TokenError as error:
        raise Refusal(400 if error.code == "scheme" else 401, str(error)) from None
    except StorageError as error:  # keys that are gone
        raise Refusal(503, str(error)) from None
    except TimeoutError:
        raise Refusal(503, "the issuer of the token did not answer in time; try again later") from None
    caller = Caller(
        identity=who.claims.identity,
        connection_id=connection_id,
        token=who.token,
        several=protocol == PROTOCOL_V3,
        confirmed=confirmed,
        address=address,
        follow=follow,
    )
    return Opening(hosted, protocol, caller)


def _flag(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = query.get(name)
    if value is None:
        return default
    if value not in ("true", "false"):
        raise Refusal(400, f"{name}={value[:20]}: use true or false")
    return value == "true"


def _connection_id(text: str | None) -> ConnectionId:
    if text is None:
        return new_connection_id()
    try:
        connection_id = ConnectionId.from_hex(text)
    except ValueError:
        raise Refusal(400, "connection_id: use 32 hex digits") from None
    if not connection_id.to_int():
        raise Refusal(400, "connection_id: zero is nobody's")
    return connection_id
