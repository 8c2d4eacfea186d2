"""A module of odd names and rare types: its bindings must be TypeScript all the same."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from uuid import UUID

from gamedb import (
    ConnectionId,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    Row,
    ScheduleAt,
    Struct,
    Unique,
    ViewContext,
    u8,
    u32,
    u64,
)

module = Module("odd-names")


class Array(Struct):
    function: u32
    default: str


class Object(Struct, tag=True):
    new: u8


class String(Struct, tag="my-string"):
    delete: bool


class Infer(enum.Enum):
    NAME = 1
    default = 2
    index = 3
    primaryKey = 4
    value = 5


class Uint8Array(Struct):
    inner: list[Uint8Array]
    data: bytes


class Promise(Struct):
    itself: Promise | None
    many: list[Promise | None] | None
    at: ScheduleAt
    moment: datetime
    span: timedelta
    uid: UUID
    who: Identity
    link: ConnectionId
    numbers: list[u64]


class Mode(enum.Enum):
    A = 1
    B = 2


@module.table(public=True)
class Class(Row):
    default: PrimaryKey[Mode]
    function: Unique[str]
    var: Index[u32]
    let_it: Index[bytes]
    array_: Array
    un: Object | String
    infer: Unique[Infer | None]
    constructor: u32
    prototype_: str
    rec_tree: Uint8Array
    maybe_promise: Promise | None
    promises: list[Promise]
    float_index: Index[float]
    opt_index: Index[u32 | None]
    uuid_key: Unique[UUID]
    some_time: Unique[datetime]
    some_span: Index[timedelta]
    who_is: Unique[Identity]
    conn_id: Index[ConnectionId]
    flag_: Index[bool]
    enum_index: Index[Mode]
    count: Index[u32]


@module.table(public=True)
class Function(Row):
    key_col: PrimaryKey[bytes]
    schedule_col: ScheduleAt


@module.table(public=True, indexes=[("a_b", "c"), ("c", "a_b")])
class Types(Row):
    a_b: u32
    c: u32


@module.table
class Hidden(Row):
    id: PrimaryKey[u64]


@module.reducer
def delete(ctx: ReducerContext, new: u32, class_: str, arguments: Promise | None = None) -> None: ...


@module.reducer
def types(ctx: ReducerContext) -> None: ...


@module.reducer
def camelCase(ctx: ReducerContext, camelArg: u32) -> None: ...


@module.reducer(private=True)
def secret(ctx: ReducerContext, hidden: Hidden) -> None: ...


@module.procedure
async def index(ctx: ProcedureContext, default: list[Mode]) -> list[Object | String]:
    return []


@module.procedure
async def void(ctx: ProcedureContext) -> None: ...


@module.view
def package(ctx: ViewContext) -> list[Types]:
    return []


@module.view
def with_a_parameter(ctx: ViewContext, n: u32) -> list[Types]:
    return []
