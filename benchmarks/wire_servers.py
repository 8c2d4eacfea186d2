"""The servers of the workload `wire`, each in a process of its own. The first line that they print is their port.

`python -m benchmarks.wire_servers bank FILE ACCOUNTS`, `... crowd FILE`, `... broadcast BYTES`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from datetime import datetime, timedelta

from benchmarks.transfer import module as bank
from benchmarks.transfer import open_accounts
from gamedb import Database, Module, PrimaryKey, ReducerContext, Row, ScheduleAt, f32, u64
from gamedb.server.serve import Serving, loop_factory

MOVERS = 100
TICK = timedelta(milliseconds=50)

crowd = Module("crowd")


@crowd.table(public=True)
class Mover(Row):
    id: PrimaryKey[u64]
    x: f32
    y: f32
    made_at: datetime


@crowd.table(scheduled="move")
class MoveTimer(Row):
    scheduled_id: PrimaryKey[u64]
    scheduled_at: ScheduleAt


@crowd.init
def init(ctx: ReducerContext) -> None:
    for number in range(MOVERS):
        ctx.db[Mover].insert(Mover(id=number, x=0.0, y=0.0, made_at=ctx.now))
    ctx.db[MoveTimer].insert(MoveTimer(scheduled_id=1, scheduled_at=TICK))


@crowd.reducer
def move(ctx: ReducerContext, timer: MoveTimer) -> None:
    movers, now = ctx.db[Mover], ctx.now
    for mover in movers:
        movers.update(mover.replace(x=mover.x + 1.0, made_at=now))


async def serve(module: Module, path: str, accounts: int) -> None:
    with Database(module, path) as db:
        if accounts:
            db.call(open_accounts, accounts)
            db.flush()

        def ready(serving: Serving) -> None:
            print(serving.port, flush=True)

        await db.serve("127.0.0.1:0", ready=ready)


async def broadcast(size: int) -> None:
    """What the `websockets` package does by itself: one message of this size to all, twenty times a second."""
    from websockets.asyncio.server import ServerConnection, broadcast, serve

    connections: set[ServerConnection] = set()

    async def handle(connection: ServerConnection) -> None:
        connections.add(connection)
        try:
            await connection.wait_closed()
        finally:
            connections.discard(connection)

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        due = time.monotonic()
        while True:
            due += TICK.total_seconds()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            micros = time.time_ns() // 1000
            broadcast(connections, micros.to_bytes(8, "little") + bytes(size - 8))


def main() -> None:
    """Run the server that the arguments name until the process is ended."""
    logging.getLogger("gamedb").setLevel(logging.ERROR)
    kind, *rest = sys.argv[1:]
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if kind == "bank":
            runner.run(serve(bank, rest[0], int(rest[1])))
        elif kind == "crowd":
            runner.run(serve(crowd, rest[0], 0))
        else:
            runner.run(broadcast(int(rest[0])))


if __name__ == "__main__":
    main()
