"""The limits of a server: each has a name, a default, and an error that names it."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server lets one client have. Past a limit that client gets an error; nobody else notices."""

    connections_max: int = 20_000
    """Open websockets of the whole server; more are refused with 503."""
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
    query_set_seconds_max: float = 1.0
    """How long the first answers of a query set may take, as all else waits for them; a set that takes longer fails."""
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
