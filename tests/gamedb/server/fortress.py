"""The game of the security tests: something of every kind that is not for everybody, served with its real files."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gamedb import (
    AutoInc,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    Row,
    ScheduleAt,
    ViewContext,
    u64,
)
from gamedb.server.background import in_thread
from gamedb.server.limits import Limits
from gamedb.server.site import Site, open_site
from workflow_module import Signal, Struct, WorkflowContext, install, signal, workflow


class Town(Row):
    """Everybody sees it."""

    id: PrimaryKey[u64]
    name: str


class Letter(Row):
    """Public, but a visibility filter shows each reader their own."""

    id: PrimaryKey[AutoInc[u64]] = 0
    to: Index[Identity]
    town: Index[u64] = 1
    text: str


class Vault(Row):
    """Private."""

    id: PrimaryKey[u64]
    town: Index[u64] = 1
    text: str


class Bomb(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt


class Go(Signal): ...


class Nothing(Struct): ...


@workflow
async def patrol(ctx: WorkflowContext, init: Nothing) -> None:
    await signal(Go)


TREASURE = "the treasure lies under the oak"


def fortress() -> Module:
    module = Module("fortress")
    module.table(public=True)(Town)
    module.table(public=True)(Letter)
    module.table(Vault)
    module.table(scheduled="explode")(Bomb)
    module.client_visibility_filter("SELECT * FROM letter WHERE to = :sender")
    install(module, [patrol], public=False)

    @module.init
    def init(ctx: ReducerContext) -> None:
        ctx.db[Town].insert(Town(id=1, name="Rome"))
        ctx.db[Vault].insert(Vault(id=1, text=TREASURE))

    @module.reducer
    def write(ctx: ReducerContext, to: Identity, text: str) -> None:
        ctx.db[Letter].insert(Letter(to=to, text=text))

    @module.reducer
    def set_password(ctx: ReducerContext, password: str) -> None:
        ctx.db[Vault].upsert(Vault(id=2, text=password))
        ctx.db[Town].upsert(Town(id=2, name="touched"))

    @module.reducer(private=True)
    def open_vault(ctx: ReducerContext) -> None:
        ctx.db[Town].upsert(Town(id=9, name="opened"))

    @module.reducer
    def explode(ctx: ReducerContext, bomb: Bomb) -> None:
        ctx.db[Town].upsert(Town(id=9, name="exploded"))

    @module.client_connected
    def came(ctx: ReducerContext) -> None: ...

    @module.procedure(private=True)
    async def back_up(ctx: ProcedureContext) -> str:
        return TREASURE

    @module.view(public=False)
    def inside(ctx: ViewContext) -> list[Vault]:
        return list(ctx.db[Vault])

    return module


class Answer(NamedTuple):
    status: int
    text: str
    headers: Any


class Fortress:
    """The served game, seen from outside."""

    def __init__(self, site: Site, url: str, directory: Path, port: int) -> None:
        self.site = site
        self.url = url
        self.port = port
        self.directory = directory
        self.db: Database = site.server.hosted["fortress"].db

    def request(
        self, method: str, path: str, body: bytes | None = None, token: str | None = None, **headers: str
    ) -> Answer:
        """Over a real socket."""
        request = urllib.request.Request(f"{self.url}{path}", body, dict(headers), method=method)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return Answer(answer.status, answer.read().decode(errors="replace"), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(errors="replace"), error.headers)

    def call(self, function: str, *arguments: Any, token: str | None = None) -> Answer:
        body = json.dumps(arguments).encode()
        headers = {"Content-Type": "application/json"}
        return self.request("POST", f"/v1/database/fortress/call/{function}", body, token, **headers)

    def sql(self, query: str, token: str | None = None) -> Answer:
        return self.request("POST", "/v1/database/fortress/sql", query.encode(), token)

    def stranger(self) -> tuple[str, str]:
        """The identity and token of somebody new."""
        made = json.loads(self.request("POST", "/v1/identity", b"").text)
        return made["identity"], made["token"]


@contextmanager
def serving(directory: Path, *, limits: Limits | None = None) -> Iterator[Fortress]:
    """The fortress, with a page, on a free port."""
    static = directory / "public"
    static.mkdir()
    (static / "index.html").write_text("<h1>Fortress")
    (static / ".env").write_text("KEY=hidden")
    (static / "sub").mkdir()
    (static / "sub" / "page.js").write_text("1")
    (directory / "outside.txt").write_text(TREASURE)
    (static / "link").symlink_to(directory / "outside.txt")
    with (
        open_site({"fortress": fortress()}, directory / "data", limits=limits, quiet=True) as site,
        in_thread(site.server, static=static) as running,
    ):
        yield Fortress(site, running.url, directory, running.port)
