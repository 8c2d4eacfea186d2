"""gamedb: an in-process game database.

Tables live in memory, reducers change them in transactions, scheduled tables fire reducers at a time, and what is
committed is on disk. Start with `Module`, `Row` and `Database`.
"""

from typing import TYPE_CHECKING, Any

from gamedb.caller import Caller
from gamedb.checking import CheckReport
from gamedb.clock import Clock, ManualClock, SystemClock
from gamedb.codegen.files import Generation
from gamedb.commit import Commit, TableChanges
from gamedb.context import ProcedureContext, ReducerContext, ViewContext
from gamedb.database import Database
from gamedb.errors import (
    ArgumentError,
    CallFailed,
    ColumnError,
    ConnectionLost,
    ConstraintError,
    DatabaseClosed,
    DatabaseLocked,
    ForeignFile,
    GamedbError,
    NotAllowed,
    QueryError,
    ReducerError,
    RowNotFound,
    SchemaChangeRefused,
    SchemaError,
    StorageError,
    TokenError,
    TransactionError,
    UnknownName,
    WireError,
    WriteFailed,
)
from gamedb.health_report import HealthReport
from gamedb.jobs import WorkerJob
from gamedb.module import Module
from gamedb.schema import AutoInc, Index, PrimaryKey, Row, Struct, Unique
from gamedb.store import ReadTable, Table
from gamedb.subscriptions import Subscription, ViewChange
from gamedb.types import (
    ConnectionId,
    Identity,
    ScheduleAt,
    f32,
    i8,
    i16,
    i32,
    i64,
    i128,
    i256,
    u8,
    u16,
    u32,
    u64,
    u128,
    u256,
)

if TYPE_CHECKING:
    from gamedb.storage import MigrationContext as MigrationContext

__all__ = [
    "ArgumentError",
    "AutoInc",
    "CallFailed",
    "Caller",
    "CheckReport",
    "Clock",
    "ColumnError",
    "Commit",
    "ConnectionId",
    "ConnectionLost",
    "ConstraintError",
    "Database",
    "DatabaseClosed",
    "DatabaseLocked",
    "ForeignFile",
    "GamedbError",
    "Generation",
    "HealthReport",
    "Identity",
    "Index",
    "ManualClock",
    "Module",
    "NotAllowed",
    "PrimaryKey",
    "ProcedureContext",
    "QueryError",
    "ReadTable",
    "ReducerContext",
    "ReducerError",
    "Row",
    "RowNotFound",
    "ScheduleAt",
    "SchemaChangeRefused",
    "SchemaError",
    "StorageError",
    "Struct",
    "Subscription",
    "SystemClock",
    "Table",
    "TableChanges",
    "TokenError",
    "TransactionError",
    "Unique",
    "UnknownName",
    "ViewChange",
    "ViewContext",
    "WireError",
    "WorkerJob",
    "WriteFailed",
    "f32",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i256",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "u256",
]


def __getattr__(name: str) -> Any:
    if name == "MigrationContext":  # for annotations; its room is slow to import
        from gamedb.storage import MigrationContext

        return MigrationContext
    raise AttributeError(f"module 'gamedb' has no attribute {name!r}")
