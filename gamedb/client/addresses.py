"""Where a database is: the URLs under the address that a user gives, and what is asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from gamedb.errors import ConnectionLost, NotAllowed, SchemaError, UnknownName

HTTP_SECONDS_MAX: Final = 20.0
_SCHEMES: Final = {"ws": "http", "http": "http", "wss": "https", "https": "https"}


class Address(msgspec.Struct, frozen=True):
    """A database on a server."""

    base: str
    """`http(s)://host:port`, with a path in front if there is one."""
    database: str

    @property
    def schema_url(self) -> str:
        """Where the description of the database is."""
        return f"{self.base}/v1/database/{quote(self.database, safe='')}/schema?version=10"

    def socket_url(self, confirmed: bool | None) -> str:
        """Where websockets are opened."""
        query = {"compression": "None"}
        if confirmed is not None:
            query["confirmed"] = str(confirmed).lower()
        path = f"/v1/database/{quote(self.database, safe='')}/subscribe"
        return f"ws{self.base.removeprefix('http')}{path}?{urllib.parse.urlencode(query)}"


def address(uri: str, database: str) -> Address:
    """The address of a database; `SchemaError` for what is none."""
    parts = urlsplit(uri)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise SchemaError(f"uri={uri!r}: write it like ws://127.0.0.1:3000 (or wss, http, https)")
    if not database:
        raise SchemaError("database='': give the name of a database")
    return Address(f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}", database)


def authorization(token: str | None) -> dict[str, str]:
    """The headers that say who asks."""
    return {"Authorization": f"Bearer {token}"} if token else {}


async def fetch_definition(where: Address, token: str | None) -> Any:
    """The module definition, as JSON builtins."""
    return await asyncio.to_thread(_fetch, where, token)


def _fetch(where: Address, token: str | None) -> Any:
    request = urllib.request.Request(where.schema_url, headers=authorization(token))
    try:
        with urllib.request.urlopen(request, timeout=HTTP_SECONDS_MAX) as response:
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(2000).decode(errors="replace").strip()
        raise refusal(error.code, text, where) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise ConnectionLost(f"cannot connect to {where.base}: {reason}") from None
    except ValueError as error:
        raise SchemaError(f"{where.schema_url} does not give JSON: {error}") from None


def refusal(status: int, text: str, where: Address) -> Exception:
    """The error for an HTTP status that is none of success."""
    if status in (400, 401, 403):
        return NotAllowed(f"the server refuses this client ({status}): {text}")
    if status == 404:
        return UnknownName(f"{where.base} has no database {where.database!r}: {text}")
    return ConnectionLost(f"the server at {where.base} cannot serve this client now ({status}): {text}")
