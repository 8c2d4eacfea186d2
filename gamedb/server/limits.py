"""The limits of a server: each has a name, a default, and an error that names it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gamedb.errors import SchemaError


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server lets one client have. Past a limit that client gets an error; nobody else notices."""

    connections_max: int = 20_000
    """Open websockets of the whole server; more are refused with 503."""
    connections_per_address_max: int = 1_000
    """Open websockets from one address (for IPv6: from one /64 network). What comes from this machine is not counted
    by address, as it may be a proxy; see `proxies` of `Database.serve`. More are refused with 429."""
    connects_per_second_max: float = 50.0
    """New websockets a second from one address, on average over ten seconds."""
    identities_per_second_max: float = 20.0
    """New identities a second for one address by HTTP, where each request without a token is somebody new; as above."""
    calls_per_second_max: float = math.inf
    """Reducers and procedures that a connection may call a second, on average over ten seconds; more fail."""
    message_bytes_max: int = 32 << 20
    """One incoming websocket message; a larger one closes the connection (1009)."""
    queued_messages_max: int = 16_384
    """Client messages that were received and not worked off; more close the connection (1013)."""
    queued_bytes_max: int = 32 << 20
    """Updates that wait for a client to read them; more close the connection (1008)."""
    frame_bytes_max: int = 512 << 10
    """How much is packed into one outgoing websocket message; a single larger message goes alone."""
    query_sets_max: int = 2_000
    """Live query sets of a connection; one more fails with an error of its own."""
    queries_max: int = 10_000
    """Live queries of a connection, in all its sets."""
    query_conditions_max: int = 256
    """Comparisons in one query; a longer one fails."""
    query_share_max: float = 0.25
    """How much of the server's time the queries of a connection may take in the long run; more fail. By HTTP, those of
    an address."""
    query_share_per_address_max: float = 0.5
    """As `query_share_max`, for all connections from one address together, so that more of them are no way round it."""
    query_seconds_burst: float = 5.0
    """How much time they may take at once; those of an address four times as much, so that many may come at once."""
    query_set_seconds_max: float = 1.0
    """How long the first answers of a query set may take, as all else waits for them. A set that takes longer fails,
    and so does a query that is answered once."""
    rows_max: int = 1_000_000
    """Rows that a query gives at once; one that would give more fails."""
    procedures_max: int = 1_000
    """Procedures of a connection that run at the same time; one more fails with an error of its own."""
    ping_seconds: float = 15.0
    """How often a connection is asked for a sign of life."""
    silence_seconds_max: float = 30.0
    """A connection from which nothing came for so long is dropped."""
    handshake_seconds_max: float = 20.0
    """How long a request may take to come, and the keys of a foreign issuer; a long body has longer."""
    drain_seconds_max: float = 10.0
    """At the end: how long running procedures and unsent messages are waited for."""


RATES: Final = (
    "connections_per_address_max",
    "connects_per_second_max",
    "identities_per_second_max",
    "calls_per_second_max",
    "query_share_max",
    "query_share_per_address_max",
)
"""Those that an honest client never meets; metrics count how often somebody did."""


def limits_from(settings: Iterable[str]) -> Limits:
    """The limits with these changed, each as `NAME=NUMBER`; `SchemaError` says which there are."""
    fields = {field.name: field.type for field in msgspec.structs.fields(Limits)}
    values: dict[str, Any] = {}
    for text in settings:
        name, _, number = text.partition("=")
        name = name.strip()
        if name not in fields:
            near = difflib.get_close_matches(name, fields, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(fields)}"
            raise SchemaError(f"no limit is called {name!r}; {hint}")
        try:
            values[name] = fields[name](number)
        except ValueError:
            values[name] = math.nan
        if not values[name] > 0:
            kind = "a whole number" if fields[name] is int else "a number"
            raise SchemaError(
                f"limit {name}={number.strip()}: write {kind} above 0, such as {getattr(Limits(), name):g}"
            )
    return Limits(**values)
