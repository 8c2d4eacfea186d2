"""Workers of a game in this very process: a client without a network, and a game whose calls all go to workers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from engine_support import Game

from gamedb import ConnectionId, Identity, NotAllowed, ReducerError, Row, UnknownName, WorkerJob
from gamedb.errors import CallFailed, ConnectionLost
from workflow_module import PendingProcedure
from workflow_module.tables import WorkflowQueue
from workflow_module.worker import Worker

OPERATOR = Identity(b"\xee" * 32)
QUEUE = "mail"
PASSES_MAX = 10_000


class DirectTable:
    """The rows of one table that a client has heard of, and whom it tells of changes."""

    def __init__(self, row: type[Row], key: str) -> None:
        self.row, self.key = row, key
        self.filters: list[tuple[str, str]] = []
        self.rows: dict[Any, Any] = {}
        self.callbacks: dict[str, list[Callable[..., object]]] = {"insert": [], "update": [], "delete": []}

    def on_insert(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        return self._on("insert", callback)

    def on_update(self, callback: Callable[[Any, Any], object]) -> Callable[[], None]:
        return self._on("update", callback)

    def on_delete(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        return self._on("delete", callback)

    def _on(self, what: str, callback: Callable[..., object]) -> Callable[[], None]:
        self.callbacks[what].append(callback)
        return lambda: self.callbacks[what].remove(callback)

    def tell(self, what: str, *rows: Any) -> None:
        for callback in list(self.callbacks[what]):
            callback(*rows)


class DirectClient:
    """What a worker needs of `gamedb.client.Client`, over a database of this process. Its connection can be lost."""

    def __init__(self, game: Game, identity: Identity = OPERATOR) -> None:
        self.game = game
        self.identity = identity
        self.connection_id = ConnectionId(b"\x01" * 16)
        self.calls: list[tuple[Any, ...]] = []
        self.lose_answers = 0
        self._loop = asyncio.get_running_loop()
        self._tables = {"pending_procedure": DirectTable(PendingProcedure, "id")}
        self._tables["workflow_queue"] = DirectTable(WorkflowQueue, "name")
        self._on_connect: list[Callable[[], object]] = []
        self._on_disconnect: list[Callable[[Exception], object]] = []
        self._end: Exception | None = None
        self._connected = asyncio.Event()
        self._connected.set()
        self._subscription = game.db.subscribe([PendingProcedure, WorkflowQueue], self._committed)

    def table(self, name: str) -> DirectTable:
        if self.identity not in self.game.db.operators:
            raise UnknownName(f"the server has no table {name!r} for this client")
        return self._tables[name]

    async def subscribe(self, *queries: str) -> None:
        for query in queries:
            found = re.fullmatch(r"SELECT \* FROM (\w+) WHERE (\w+) = '((?:[^']|'')*)'", query)
            assert found is not None, query
            self._tables[found[1]].filters.append((found[2], found[3].replace("''", "'")))
        self.sync()

    async def call(self, name: str, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        if not self._connected.is_set():
            raise ConnectionLost("there is no connection")
        self.calls.append((name, *args))
        try:
            self.game.db.caller(self.identity).call(name, *args, **kwargs)
        except (ReducerError, NotAllowed):
            raise
        except Exception as error:
            raise CallFailed(str(error)) from None
        if self.lose_answers:
            self.lose_answers -= 1
            self.lose()
            self._loop.call_soon(self.find)
            raise ConnectionLost("it may or may not have happened")
        self.sync()

    async def wait_connected(self) -> None:
        await self._connected.wait()
        if self._end is not None:
            raise self._end

    def on_connect(self, callback: Callable[[], object]) -> Callable[[], None]:
        self._on_connect.append(callback)
        return lambda: self._on_connect.remove(callback)

    def on_disconnect(self, callback: Callable[[Exception], object]) -> Callable[[], None]:
        self._on_disconnect.append(callback)
        return lambda: self._on_disconnect.remove(callback)

    def lose(self) -> None:
        """The connection breaks: nothing is heard or said."""
        self._connected.clear()
        for callback in list(self._on_disconnect):
            callback(ConnectionLost("it broke"))

    def end(self, error: Exception) -> None:
        """There will be no connection any more, for this reason."""
        self.lose()
        self._end = error
        self._connected.set()

    def find(self) -> None:
        """There is a connection again."""
        self._connected.set()
        self.sync()
        for callback in list(self._on_connect):
            callback()

    def close(self) -> None:
        self._connected.clear()
        self._subscription.close()

    def _committed(self, _commit: object) -> None:
        self._loop.call_soon_threadsafe(self.sync)

    def sync(self) -> None:
        """Hear of everything that has changed."""
        if not self._connected.is_set():
            return
        for table in self._tables.values():
            now = {}
            for row in self.game.db.read(table.row):
                if any(getattr(row, column) == value for column, value in table.filters):
                    now[getattr(row, table.key)] = row
            before, table.rows = table.rows, now
            for key in {**before, **now}:
                old, new = before.get(key), now.get(key)
                if old is None:
                    table.tell("insert", new)
                elif new is None:
                    table.tell("delete", old)
                elif old != new:
                    table.tell("update", old, new)


class WorkerAtHand:
    """A worker on the running loop."""

    def __init__(self, game: Game, name: str = "w1", **options: Any) -> None:
        game.db.operators.add(OPERATOR)
        self.client = DirectClient(game)
        self.beats = asyncio.Event()
        options = {"queues": [QUEUE], **options}
        self.job = WorkerJob(
            client=self.client,  # type: ignore[arg-type]
            module=game.module,
            name=name,
            stopping=asyncio.Event(),
            **options,
        )
        self.worker = Worker(self.job, sleep=self._sleep)
        self.task = asyncio.ensure_future(self.worker.run())

    async def _sleep(self, _seconds: float) -> None:
        await self.beats.wait()
        self.beats.clear()

    def beat(self) -> None:
        """It is time to say that it lives."""
        self.beats.set()

    async def stop(self) -> None:
        """An orderly end."""
        self.job.stopping.set()
        await self.task
        self.client.close()

    async def kill(self) -> None:
        """Its process dies: from now on nothing is heard of it."""
        self.client.close()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Let the loop go on until it is so."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


class RemoteGame(Game):
    """A game whose procedures all have a queue; whenever what is due is done, a worker takes and runs all calls."""

    def open(self) -> None:
        super().open()
        self.engine.declared_queue = lambda _ctx, _name: QUEUE  # type: ignore[method-assign]

    def due(self) -> int:
        fired = self.db.run_due()
        for _ in range(PASSES_MAX):
            if not any(row.offered for row in self.calls()):
                return fired
            asyncio.run(self._work())
            fired += self.db.run_due()
        raise AssertionError("the calls have no end")

    async def _work(self) -> None:
        worker = WorkerAtHand(self)
        await until(lambda: not any(row.worker == "w1" or row.offered for row in self.calls()))
        await worker.stop()

    def advance(self, by: float) -> None:
        end = self.clock.now.timestamp() + by
        self.due()
        while (due := self.db.next_due) is not None and due.timestamp() <= end:
            if due > self.clock.now:
                self.clock.set(due)
            self.due()
        self.clock.advance(end - self.clock.now.timestamp())
        self.due()
