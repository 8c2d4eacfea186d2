"""The messages between client and server, as Structs.

The fields are column types, so that `bsatn` reads and writes a message as any other value. The order of the fields, and
of the variants in a union, is that of the wire: do not sort them.
"""

from __future__ import annotations

import enum

from gamedb.schema import Struct
from gamedb.types import ConnectionId, Identity, i64, u8, u16, u32, u64

# --- client to server ---


class UnsubscribeFlags(enum.Enum):
    DEFAULT = 0
    SEND_DROPPED_ROWS = 1


class Subscribe(Struct, tag=True, kw_only=True):
    request_id: u32
    query_set_id: u32
    queries: list[str]


class Unsubscribe(Struct, tag=True, kw_only=True):
    request_id: u32
    query_set_id: u32
    flags: UnsubscribeFlags = UnsubscribeFlags.DEFAULT


class OneOffQuery(Struct, tag=True, kw_only=True):
    request_id: u32
    query: str


class CallReducer(Struct, tag=True, kw_only=True):
    request_id: u32
    flags: u8 = 0
    reducer: str
    arguments: bytes


class CallProcedure(Struct, tag=True, kw_only=True):
    request_id: u32
    flags: u8 = 0
    procedure: str
    arguments: bytes


ClientMessage = Subscribe | Unsubscribe | OneOffQuery | CallReducer | CallProcedure


# --- server to client ---


class FixedSize(Struct, tag=True):
    row_size: u16


class RowOffsets(Struct, tag=True):
    starts: list[u64]


class RowList(Struct):
    """Rows of one table, one after the other, as their codec reads them."""

    hint: FixedSize | RowOffsets
    data: bytes


class TableRows(Struct):
    table: str
    rows: RowList


class PersistentRows(Struct, tag=True):
    inserts: RowList
    deletes: RowList


class EventRows(Struct, tag=True):
    events: RowList


class TableUpdate(Struct):
    table: str
    rows: list[PersistentRows | EventRows]


class QuerySetUpdate(Struct):
    query_set_id: u32
    tables: list[TableUpdate]


class InitialConnection(Struct, tag=True):
    identity: Identity
    connection_id: ConnectionId
    token: str


class SubscribeApplied(Struct, tag=True):
    request_id: u32
    query_set_id: u32
    tables: list[TableRows]


class DroppedRows(Struct):
    tables: list[TableRows]


class UnsubscribeApplied(Struct, tag=True):
    request_id: u32
    query_set_id: u32
    dropped: DroppedRows | None


class SubscriptionError(Struct, tag=True):
    request_id: u32 | None
    query_set_id: u32
    error: str


class TransactionUpdate(Struct, tag=True):
    query_sets: list[QuerySetUpdate]


class QueryRows(Struct, tag=True):
    tables: list[TableRows]


class QueryFailed(Struct, tag=True):
    error: str


class OneOffQueryResult(Struct, tag=True):
    request_id: u32
    result: QueryRows | QueryFailed


class ReducerOk(Struct, tag=True):
    value: bytes
    query_sets: list[QuerySetUpdate]


class ReducerOkEmpty(Struct, tag=True):
    pass


class ReducerFailed(Struct, tag=True):
    """The reducer refused; `error` is the BSATN of its text."""

    error: bytes


class InternalError(Struct, tag=True):
    error: str


class ReducerResult(Struct, tag=True):
    request_id: u32
    timestamp_micros: i64
    outcome: ReducerOk | ReducerOkEmpty | ReducerFailed | InternalError


class ProcedureReturned(Struct, tag=True):
    value: bytes


class ProcedureResult(Struct, tag=True):
    status: ProcedureReturned | InternalError
    timestamp_micros: i64
    duration_micros: i64
    request_id: u32


ServerMessage = (
    InitialConnection
    | SubscribeApplied
    | UnsubscribeApplied
    | SubscriptionError
    | TransactionUpdate
    | OneOffQueryResult
    | ReducerResult
    | ProcedureResult
)
