"""`Worker`: runs calls of a queue in a process of its own, away from the database. What `gamedb worker` does.

It hears of work by subscriptions: the bell of each queue, and the rows that it has leased. A row that comes is an
attempt that begins, a row that goes is one that nobody waits for any more. Connections may come and go meanwhile. It
decides nothing about attempts: the engine does, and refuses what no longer counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn

from gamedb import (
    GamedbError,
    Identity,
    NotAllowed,
    ReducerContext,
    ReducerError,
    TransactionError,
    UnknownName,
    WorkerJob,
)
from gamedb.errors import CallFailed, ConnectionLost

from .engine import engine_of
from .local import Rooms
from .procedures import AttemptAbandoned, Procedures, StepContext, found_reducer, is_final
from .tables import PendingProcedure
from .tracebacks import error_text

_log: Final = logging.getLogger("gamedb.worker")

RETRY_SECONDS: Final = 1.0
"""The pause after a call that the server could not do."""
RELEASE_SECONDS_MAX: Final = 5.0
"""How long the end waits until what was given back is known to the server."""
BEATS_A_LEASE: Final = 3
RESULT_BYTES_MAX: Final = 16 << 20
"""A larger result is a failure that no other attempt would mend: servers close connections over what is too large."""
ERROR_CHARACTERS_MAX: Final = 10_000
"""How much of an error's text is told."""


class ResultTooLarge(Exception):
    """A result that is not told to the server; keep large things elsewhere, and return where they are."""


class RemoteContext(StepContext):
    """A `StepContext` where there is no database at hand."""

    __slots__ = ()

    def transaction(self) -> AbstractContextManager[ReducerContext]:
        raise TransactionError(
            f"{self.name} runs in a worker, away from the database, and cannot open a transaction there; "
            "put what it writes into a reducer, and call that: await ctx.call(reducer, ...)"
        )

    async def durable(self) -> None:
        """All that a worker hears of is on disk."""


class WorkerContext(RemoteContext):
    """That of a real worker."""

    __slots__ = ("_functions", "_job", "_log")

    def __init__(self, job: WorkerJob, functions: Any, pending: PendingProcedure, unwanted: asyncio.Event) -> None:
        self._job = job
        self._functions = functions
        self._log = logging.getLogger(f"gamedb.{job.module.name}")
        self.name = pending.procedure
        self.sender = job.client.identity or Identity(bytes(32))
        self.connection_id = job.client.connection_id
        self.begin(pending, unwanted)

    async def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> None:
        """Call a reducer of the game, as the operator whose token the worker has."""
        function = found_reducer(self._functions, reducer)
        await self._job.client.call(function.name, *function.arguments_from(args, kwargs))

    @property
    def log(self) -> logging.Logger:
        return self._log


class _Attempt:
    """One attempt that this worker has."""

    def __init__(self, pending: PendingProcedure) -> None:
        self.pending = pending
        self.unwanted = asyncio.Event()
        self.given_back = False
        self.task: asyncio.Task[None] | None = None

    def __str__(self) -> str:
        return f"attempt {self.pending.attempt} of {self.pending.procedure} (workflow {self.pending.workflow_id})"


class Worker:
    """Takes and runs calls until its job says to stop."""

    def __init__(self, job: WorkerJob, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._job = job
        self._client = job.client
        self._functions = job.module.resolve().functions
        self._procedures = Procedures(engine_of(self._functions))
        self._rooms = Rooms()
        self._sleep = sleep
        self._listens = False
        self._undo: list[Callable[[], None]] = []
        self._leased: dict[int, _Attempt] = {}
        self._running: set[_Attempt] = set()
        self._news = asyncio.Event()
        self._beat_now = asyncio.Event()

    # --- life

    async def run(self) -> None:
        """Work until `job.stopping`; `GamedbError` says why it cannot."""
        listening = asyncio.create_task(self._listen())
        taking = asyncio.create_task(self._take())
        beating = asyncio.create_task(self._beat())
        stopping = asyncio.create_task(self._job.stopping.wait())
        self._news.set()
        try:
            work: set[asyncio.Task[Any]] = {listening, taking, beating}
            while not stopping.done():
                await asyncio.wait({*work, stopping}, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in work if task.done() and not stopping.done()]:
                    task.result()  # most often the reason why it cannot work
                    work.discard(task)
            self._news.set()
            await self._drain(taking)
        finally:
            for undo in self._undo:
                undo()
            attempts = [attempt.task for attempt in self._running if attempt.task is not None]
            tasks: list[asyncio.Task[Any]] = [listening, taking, beating, stopping, *attempts]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        """Follow the rows that tell of work; there is news when they are there."""
        try:
            mine, bells = self._client.table("pending_procedure"), self._client.table("workflow_queue")
        except UnknownName:
            raise NotAllowed(
                "the server shows no queues to this client: a worker needs the token of an operator, and the game "
                "workflows"
            ) from None
        self._undo = [
            mine.on_insert(self._begin),
            mine.on_update(self._changed),
            mine.on_delete(self._drop),
            bells.on_insert(lambda _: self._news.set()),
            bells.on_update(lambda _old, _new: self._news.set()),
            self._client.on_connect(self._news.set),
            self._client.on_connect(self._beat_now.set),
            self._client.on_disconnect(lambda _: self._beat_now.set()),
        ]
        names = [f"SELECT * FROM workflow_queue WHERE name = {_quoted(queue)}" for queue in self._job.queues]
        await self._client.subscribe(
            f"SELECT * FROM pending_procedure WHERE worker = {_quoted(self._job.name)}", *names
        )
        self._listens = True
        self._news.set()

    async def _drain(self, taking: asyncio.Task[None]) -> None:
        """Let what runs come to its end, and give back the rest."""
        if self._running:
            _log.info("%s stops: %d attempts are running", self._job.name, len(self._running))
        hurry = asyncio.create_task(self._job.hurry.wait())
        ended = asyncio.create_task(self._all_ended(taking))
        try:
            seconds = self._job.drain_seconds
            await asyncio.wait({ended, hurry}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for attempt in list(self._running):
                self._give_back(attempt)
            await asyncio.wait({ended}, timeout=RELEASE_SECONDS_MAX)
        finally:
            hurry.cancel()
            ended.cancel()
            await asyncio.gather(hurry, ended, return_exceptions=True)

    async def _all_ended(self, taking: asyncio.Task[None]) -> None:
        await asyncio.wait({taking})
        while self._running:
            await asyncio.wait({attempt.task for attempt in self._running if attempt.task is not None})

    def _give_back(self, attempt: _Attempt) -> None:
        attempt.given_back = True
        attempt.unwanted.set()

    # --- taking

    async def _take(self) -> None:
        """Take as much as there is room for, whenever there is news: a bell rang, an attempt ended, a connection."""
        job = self._job
        while not job.stopping.is_set():
            await self._news.wait()
            self._news.clear()
            for queue in job.queues if self._listens else ():
                room = job.concurrency - len(self._running)
                if room > 0 and not job.stopping.is_set():
                    arguments = (queue, job.name, job.lease_seconds, room)
                    try:
                        await self._client.call("workflow_procedure_take", *arguments)
                    except ConnectionLost:  # whatever was taken comes as rows
                        await self._client.wait_connected()
                        self._news.set()
                    except CallFailed as error:
                        _log.warning("%s cannot take from %s now: %s", job.name, queue, error)
                        await self._sleep(RETRY_SECONDS)
                        self._news.set()

    def _begin(self, pending: PendingProcedure) -> None:
        attempt = self._leased[pending.id] = _Attempt(pending)
        self._running.add(attempt)
        if self._job.stopping.is_set():
            self._give_back(attempt)
        attempt.task = asyncio.create_task(self._attempt(attempt))

    def _changed(self, old: PendingProcedure, new: PendingProcedure) -> None:
        if old.attempt != new.attempt:
            self._drop(old)
            self._begin(new)

    def _drop(self, pending: PendingProcedure) -> None:
        """A call is not this worker's any more: it has ended, nobody waits for it, or the lease was lost."""
        attempt = self._leased.pop(pending.id, None)
        if attempt is not None:
            attempt.unwanted.set()

    # --- running

    async def _attempt(self, attempt: _Attempt) -> None:
        try:
            await self._run(attempt)
        except GamedbError as error:  # the client is at its end: the lease runs out
            _log.error("%s: what came of %s cannot be told: %s", self._job.name, attempt, error)
        finally:
            self._running.discard(attempt)
            self._news.set()

    async def _run(self, attempt: _Attempt) -> None:
        pending = attempt.pending
        step = WorkerContext(self._job, self._functions, pending, attempt.unwanted)
        try:
            if attempt.given_back:
                raise AttemptAbandoned
            result = await self._procedures.call(step, pending, attempt.unwanted, self._rooms)
            if len(result.encode()) > RESULT_BYTES_MAX:
                raise ResultTooLarge(
                    f"the result of {pending.procedure} has more than {RESULT_BYTES_MAX} bytes of JSON"
                )
        except AttemptAbandoned:
            if attempt.given_back:
                await self._tell(attempt, "release")
            else:
                _log.info("%s: %s was dropped, as nobody waits for it here any more", self._job.name, attempt)
        except Exception as error:
            text = error_text(error)[:ERROR_CHARACTERS_MAX]
            _log.info("%s: %s failed: %s: %s", self._job.name, attempt, type(error).__name__, text)
            final = is_final(pending, error) or isinstance(error, ResultTooLarge)
            await self._tell(attempt, "fail", type(error).__name__, text, final=final)
        else:
            refused = await self._tell(attempt, "complete", result)
            if refused is not None and self._leased.get(pending.id) is attempt:
                await self._tell(attempt, "fail", "ResultRefused", refused, final=True)

    async def _tell(self, attempt: _Attempt, what: str, *arguments: Any, **options: Any) -> str | None:
        """Tell the engine what came of an attempt, until it answers; the text with which it refused, or None."""
        pending, worker = attempt.pending, self._job.name
        while True:
            try:
                await self._client.call(
                    f"workflow_procedure_{what}", pending.id, pending.attempt, *arguments, worker=worker, **options
                )
            except ReducerError as error:
                _log.warning("%s: what came of %s does not count: %s", worker, attempt, error)
                return str(error)
            except ConnectionLost:
                await self._client.wait_connected()
            except CallFailed as error:
                if self._leased.get(pending.id) is not attempt:
                    return str(error)
                _log.warning("%s: what came of %s cannot be told now: %s", worker, attempt, error)
                await self._sleep(RETRY_SECONDS)
            else:
                return None

    # --- leases

    async def _beat(self) -> NoReturn:
        """Say that this worker lives, several times a lease, and as soon as there is a connection again.

        The error is that of a client that will have no connection any more.
        """
        while True:
            await self._client.wait_connected()
            pause = asyncio.ensure_future(self._sleep(self._job.lease_seconds / BEATS_A_LEASE))
            now = asyncio.ensure_future(self._beat_now.wait())
            try:
                await asyncio.wait({pause, now}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                pause.cancel()
                now.cancel()
            self._beat_now.clear()
            await asyncio.gather(*[self._extend(attempt) for attempt in list(self._leased.values())])

    async def _extend(self, attempt: _Attempt) -> None:
        pending, job = attempt.pending, self._job
        with contextlib.suppress(ReducerError, ConnectionLost):  # rows that go, and connections that come, tell of that
            try:
                await self._client.call(
                    "workflow_procedure_heartbeat", pending.id, pending.attempt, job.lease_seconds, worker=job.name
                )
            except CallFailed as error:
                _log.warning("%s: the lease of %s was not extended: %s", job.name, attempt, error)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


async def work(job: WorkerJob) -> None:
    """Run the calls of the job's queues."""
    await Worker(job).run()
