"""The bytes of messages between client and server.

The functions of the server's side (from `frame` on) take parts that are encoded already, so that rows are encoded once
for many clients. Every WebSocket message of a server begins with one byte, the kind of compression; ours is always
none: official clients apply compressed and plain messages out of order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from gamedb.columns import column_type
from gamedb.errors import WireError
from gamedb.types import ConnectionId, Identity
from gamedb.wire.bsatn import Codec, codec
from gamedb.wire.message_types import (
    CallProcedure,
    CallReducer,
    ClientMessage,
    DroppedRows,
    EventRows,
    FixedSize,
    InitialConnection,
    InternalError,
    OneOffQuery,
    OneOffQueryResult,
    PersistentRows,
    ProcedureResult,
    ProcedureReturned,
    QueryFailed,
    QueryRows,
    QuerySetUpdate,
    ReducerFailed,
    ReducerOk,
    ReducerOkEmpty,
    ReducerResult,
    RowList,
    RowOffsets,
    ServerMessage,
    Subscribe,
    SubscribeApplied,
    SubscriptionError,
    TableRows,
    TableUpdate,
    TransactionUpdate,
    Unsubscribe,
    UnsubscribeApplied,
    UnsubscribeFlags,
)

__all__ = [
    "DEFAULT_LIMITS",
    "CallProcedure",
    "CallReducer",
    "ClientMessage",
    "DroppedRows",
    "EventRows",
    "FixedSize",
    "InitialConnection",
    "InternalError",
    "Limits",
    "OneOffQuery",
    "OneOffQueryResult",
    "PersistentRows",
    "ProcedureResult",
    "ProcedureReturned",
    "QueryFailed",
    "QueryRows",
    "QuerySetUpdate",
    "ReducerFailed",
    "ReducerOk",
    "ReducerOkEmpty",
    "ReducerResult",
    "RowList",
    "RowOffsets",
    "ServerMessage",
    "Subscribe",
    "SubscribeApplied",
    "SubscriptionError",
    "TableRows",
    "TableUpdate",
    "TransactionUpdate",
    "Unsubscribe",
    "UnsubscribeApplied",
    "UnsubscribeFlags",
    "decode_client",
    "decode_server",
    "encode_client",
    "event_update",
    "frame",
    "initial_connection",
    "one_off_error",
    "one_off_result",
    "procedure_error",
    "procedure_returned",
    "query_set_update",
    "reducer_error",
    "reducer_internal_error",
    "reducer_ok",
    "subscribe_applied",
    "subscription_error",
    "table_rows",
    "table_update",
    "transaction_update",
    "unsubscribe_applied",
]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one WebSocket message of a client may hold."""

    payload_bytes_max: int = 32 * 1024 * 1024
    messages_max: int = 16_384
    queries_max: int = 4_096
    """Queries of one query set."""


DEFAULT_LIMITS: Final = Limits()

_CLIENT: Final[Codec] = codec(column_type(ClientMessage, "a message of a client"))
_SERVER: Final[Codec] = codec(column_type(ServerMessage, "a message of a server"))


def decode_client(payload: bytes, limits: Limits = DEFAULT_LIMITS, *, single: bool = False) -> list[ClientMessage]:
    """The messages in one WebSocket message of a client, at least one; `single`: exactly one, as protocol v2 has it."""
    if len(payload) > limits.payload_bytes_max:
        raise WireError(f"a message of {len(payload)} bytes; at most {limits.payload_bytes_max} are allowed")
    messages: list[ClientMessage] = _decode(_CLIENT, payload, 0, 1 if single else limits.messages_max)
    for message in messages:
        if type(message) is CallReducer or type(message) is CallProcedure:
            if message.flags != 0:
                raise WireError(f"a call with flags {message.flags}; only 0 is known")
        elif type(message) is Subscribe and len(message.queries) > limits.queries_max:
            raise WireError(f"a query set of {len(message.queries)} queries; at most {limits.queries_max} are allowed")
    return messages


def decode_server(payload: bytes, *, single: bool = False) -> list[ServerMessage]:
    """The messages in one WebSocket message of a server, at least one, behind its compression byte."""
    if not payload or payload[0] != 0:
        kind = "empty" if not payload else f"compressed (kind {payload[0]})"
        raise WireError(f"the message is {kind}; connect with compression=None")
    messages: list[ServerMessage] = _decode(_SERVER, payload, 1, 1 if single else len(payload))
    return messages


def _decode(messages: Codec, payload: bytes, at: int, count_max: int) -> list[Any]:
    if at == len(payload):
        raise WireError("the message is empty")
    result: list[Any] = []
    while at < len(payload):
        if len(result) == count_max:
            raise WireError(f"more than {count_max} message{'s' * (count_max > 1)} in one of {len(payload)} bytes")
        message, at = messages.decode(payload, at)
        result.append(message)
    return result


def encode_client(message: ClientMessage) -> bytes:
    """The bytes of one message of a client; on protocol v3 several may follow each other."""
    return _CLIENT.encode(message)


def frame(messages: Iterable[bytes]) -> bytes:
    """The WebSocket message of a server with these messages; protocol v2 allows one only."""
    return b"\x00" + b"".join(messages)


_COUNT: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<BII")
_REDUCER_HEAD: Final = struct.Struct("<BIqB")
_OK_HEAD: Final = struct.Struct("<BIqBI")
_OK_NOTHING: Final = struct.Struct("<BIqBII")
_PROCEDURE_TAIL: Final = struct.Struct("<qqI")


def _sized(data: bytes) -> bytes:
    return _COUNT.pack(len(data)) + data


def _text(text: str) -> bytes:
    return _sized(text.encode(errors="replace"))


def _list(items: Sequence[bytes]) -> bytes:
    return b"".join((_COUNT.pack(len(items)), *items))


def table_rows(name: str, row_list: bytes) -> bytes:
    """The rows of one table in an answer; `row_list` as by `encode_row_list`."""
    return _text(name) + row_list


def table_update(name: str, inserts_list: bytes, deletes_list: bytes) -> bytes:
    """The changes of one table, as two row lists."""
    return b"".join((_text(name), b"\x01\x00\x00\x00\x00", inserts_list, deletes_list))


def event_update(name: str, events_list: bytes) -> bytes:
    """The rows that an event table had in a transaction, as a row list."""
    return b"".join((_text(name), b"\x01\x00\x00\x00\x01", events_list))


def query_set_update(query_set_id: int, tables: Sequence[bytes]) -> bytes:
    """The changes of one query set: what `table_update` and `event_update` gave."""
    return _COUNT.pack(query_set_id) + _list(tables)


def initial_connection(identity: Identity, connection_id: ConnectionId, token: str) -> bytes:
    """The first message on a connection."""
    return b"".join((b"\x00", identity[::-1], connection_id[::-1], _text(token)))


def subscribe_applied(request_id: int, query_set_id: int, tables: Sequence[bytes]) -> bytes:
    """The rows of a new query set: what `table_rows` gave."""
    return _HEAD.pack(1, request_id, query_set_id) + _list(tables)


def unsubscribe_applied(request_id: int, query_set_id: int, tables: Sequence[bytes] | None) -> bytes:
    """The end of a query set, with the rows that it had last, or without them (`None`)."""
    head = _HEAD.pack(2, request_id, query_set_id)
    return head + b"\x01" if tables is None else head + b"\x00" + _list(tables)


def subscription_error(request_id: int | None, query_set_id: int, error: str) -> bytes:
    """The failure of a query set. Without a request id, official clients end the whole connection."""
    request = b"\x01" if request_id is None else b"\x00" + _COUNT.pack(request_id)
    return b"".join((b"\x03", request, _COUNT.pack(query_set_id), _text(error)))


def transaction_update(query_sets: Sequence[bytes]) -> bytes:
    """What one transaction changed in the query sets of a client: what `query_set_update` gave."""
    return b"\x04" + _list(query_sets)


def one_off_result(request_id: int, tables: Sequence[bytes]) -> bytes:
    """The rows of a one-off query: what `table_rows` gave."""
    return b"".join((b"\x05", _COUNT.pack(request_id), b"\x00", _list(tables)))


def one_off_error(request_id: int, error: str) -> bytes:
    """The failure of a one-off query."""
    return b"".join((b"\x05", _COUNT.pack(request_id), b"\x01", _text(error)))


def reducer_ok(request_id: int, timestamp_micros: int, value: bytes, query_sets: Sequence[bytes]) -> bytes:
    """A call that committed, with what it changed in the caller's query sets."""
    if not query_sets and not value:  # most calls of a game that has many clients
        return _OK_NOTHING.pack(6, request_id, timestamp_micros, 0, 0, 0)
    head = _OK_HEAD.pack(6, request_id, timestamp_micros, 0, len(value))
    return b"".join((head, value, _list(query_sets)))


def reducer_error(request_id: int, timestamp_micros: int, error: str) -> bytes:
    """A call that its reducer refused, with the text for the caller."""
    return _REDUCER_HEAD.pack(6, request_id, timestamp_micros, 2) + _sized(_text(error))


def reducer_internal_error(request_id: int, timestamp_micros: int, error: str) -> bytes:
    """A call that failed otherwise: an unknown reducer, arguments that do not fit, a bug."""
    return _REDUCER_HEAD.pack(6, request_id, timestamp_micros, 3) + _text(error)


def procedure_returned(request_id: int, timestamp_micros: int, duration_micros: int, value: bytes) -> bytes:
    """The result of a procedure, as bytes of its type."""
    tail = _PROCEDURE_TAIL.pack(timestamp_micros, duration_micros, request_id)
    return b"".join((b"\x07\x00", _sized(value), tail))


def procedure_error(request_id: int, error: str, timestamp_micros: int = 0, duration_micros: int = 0) -> bytes:
    """The failure of a procedure."""
    tail = _PROCEDURE_TAIL.pack(timestamp_micros, duration_micros, request_id)
    return b"".join((b"\x07\x01", _text(error), tail))
