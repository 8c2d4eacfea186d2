"""A small module with one of each thing that is generated."""

from __future__ import annotations

import enum

from gamedb import (
    AutoInc,
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
    u32,
    u64,
)


class Status(enum.Enum):
    ACTIVE = 1
    Banned = 2


class Place(Struct):
    x_pos: u32


class Account(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    email: Unique[str]
    team_id: Index[u32] = 7
    nickname: str | None = None
    status: Status


class Reminder(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


class Ping(Row):
    place: Place


class Secret(Row):
    owner: PrimaryKey[Identity]


def ran(*_arguments: object) -> None:
    raise AssertionError("a function of the module was run")


def sample() -> Module:
    """A module of its own for each test."""
    module = Module("sample")
    module.table(public=True, indexes=[("team_id", "status")])(Account)
    module.table(public=True, event=True)(Ping)
    module.table(Secret)
    module.table(scheduled="send_reminder")(Reminder)

    @module.reducer
    def add_account(ctx: ReducerContext, email: str, status: Status) -> None:
        ran()

    @module.reducer
    def send_reminder(ctx: ReducerContext, reminder: Reminder) -> None:
        ran()

    @module.reducer(private=True)
    def sweep(ctx: ReducerContext) -> None:
        ran()

    @module.init
    def init(ctx: ReducerContext) -> None:
        ran()

    @module.client_connected
    def joined(ctx: ReducerContext) -> None:
        ran()

    @module.procedure
    async def count_team(ctx: ProcedureContext, team: u32) -> u64:
        ran()
        return 0

    @module.procedure
    async def refresh(ctx: ProcedureContext) -> None:
        ran()

    @module.view
    def my_account(ctx: ViewContext) -> Account | None:
        ran()

    @module.view(public=False)
    def hidden_view(ctx: ViewContext) -> list[Account]:
        ran()
        return []

    module.client_visibility_filter("SELECT * FROM account WHERE team_id = 1")
    module.on_open(ran)
    module.on_check(ran)
    return module
