"""Runs pending procedures: attempts, backoff, timeouts, heartbeats. For workers elsewhere see `leases` and `worker`.

A pending procedure is a scheduled row: `gamedb`'s scheduler starts its attempts, also after a crash. Each attempt runs
outside of transactions; what came of it is written in one. Results of an attempt that is not the present one are
ignored, so a thread that cannot be stopped does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Concatenate, Final, ParamSpec, overload

import msgspec

from gamedb import DatabaseClosed, ProcedureContext, ReducerContext, StorageError, UnknownName

from .codec import decode, encode
from .definition import procedure_result
from .engine import Engine, local_state
from .errors import StateError
from .language import parameter_types
from .local import LocalState, Rooms
from .queues import offered, parked
from .refusals import BadPayload
from .surroundings import surroundings
from .tables import PendingProcedure, ProcedureStatus
from .threads import Threads
from .timeline import note_for
from .tracebacks import error_text
from .waits import Backoff

P = ParamSpec("P")

CANCEL_SECONDS_MAX: Final = 1.0
"""How long a cancelled async procedure may clean up before it is left alone."""


class StepContext(ProcedureContext):
    """What a procedure gets when a workflow calls it.

    `step_key` is the same for all attempts of the call, `attempt_key` changes after a recorded failure: give one of
    them to the outside world, so that it can recognise a repeat. After a crash the attempt runs again with the same
    keys.
    """

    __slots__ = ("_beat", "_seconds", "_unwanted", "attempt", "attempt_key", "step_key", "workflow_id")

    workflow_id: int
    """The workflow that made the call."""
    attempt: int
    """The number of this attempt, from 1."""
    step_key: str
    """The same for all attempts of the call."""
    attempt_key: str
    """Another one after each failure that was recorded."""

    def __init__(self, ctx: ProcedureContext, pending: PendingProcedure, unwanted: asyncio.Event) -> None:
        self.share(ctx, pending.procedure)
        self.begin(pending, unwanted)

    def begin(self, pending: PendingProcedure, unwanted: asyncio.Event) -> None:
        """Take what is of this attempt alone. For those who make one."""
        self.workflow_id = pending.workflow_id
        self.attempt = pending.attempt
        self.step_key = pending.step_key
        self.attempt_key = f"{pending.step_key}-{pending.attempt}"
        self._unwanted = unwanted
        self._seconds = surroundings.get().seconds  # here, as a thread would have those of nobody
        self._beat = self._seconds()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more; an async procedure is cancelled, a sync one may look."""
        return self._unwanted.is_set()

    @overload
    async def call(self, reducer: Callable[Concatenate[Any, P], Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    async def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> None: ...
    async def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> None:
        """Call a reducer of the game, wherever the procedure runs. `ReducerError` has the text of a refusal."""
        with self.transaction() as tx:
            function = found_reducer(tx.functions, reducer)
            function.invoke(tx, *function.arguments_from(args, kwargs))

    def heartbeat(self) -> None:
        """Say that the attempt is alive; one with a `heartbeat=` fails when it is silent for longer."""
        self._beat = self._seconds()

    @property
    def silent_seconds(self) -> float:
        """How long the attempt has said nothing."""
        return self._seconds() - self._beat


def found_reducer(functions: Mapping[str, Any], reducer: Any) -> Any:
    """The declared reducer of this name, or that is this function."""
    for function in functions.values():
        if function.kind == "reducer" and function.lifecycle is None and reducer in (function.name, function.function):
            return function
    raise UnknownName(f"the game has no reducer {getattr(reducer, '__name__', reducer)!r}")


def is_final(pending: PendingProcedure, error: Exception) -> bool:
    """Whether an error ends the call, though attempts are left."""
    names = [f"{cls.__module__}:{cls.__qualname__}" for cls in type(error).__mro__]
    return isinstance(error, StateError) or any(name in names for name in pending.non_retryable)


class AttemptTimeout(Exception):
    """An attempt took longer than its timeout, or was silent for longer than its heartbeat."""


class AttemptAbandoned(Exception):
    """Nobody waits for the attempt any more: the workflow has ended, or gone on."""


class Procedures:
    """What starts, ends and hands out attempts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = Threads("gamedb-attempt")

    # --- here

    async def run(self, ctx: ProcedureContext, scheduled: PendingProcedure) -> None:
        """One attempt of a procedure of this process; or the end of a worker's lease."""
        loop = asyncio.get_running_loop()
        unwanted = asyncio.Event()
        local = local_state(ctx)

        def look() -> None:
            try:
                with ctx.transaction() as tx:  # whoever wants to drop the call may still be rolled back
                    wanted = self._engine.pending(tx, scheduled.id, scheduled.attempt) is not None
            except (DatabaseClosed, StorageError):  # nothing that comes of it could be kept
                wanted = False
            if not wanted:
                unwanted.set()

        local.attempts[scheduled.id] = lambda: loop.call_soon_threadsafe(look)
        try:
            await self._run(ctx, local, scheduled, unwanted)
        finally:
            local.attempts.pop(scheduled.id, None)

    async def _run(
        self, ctx: ProcedureContext, local: LocalState, scheduled: PendingProcedure, unwanted: asyncio.Event
    ) -> None:
        with ctx.transaction() as tx:
            pending = tx.db[PendingProcedure].get(scheduled.id)
            if pending is None or pending.scheduled_at != scheduled.scheduled_at:
                return
            if not self._engine.has_code(tx, pending.workflow_id):  # `recover` lets it go on when the code is back
                tx.db[PendingProcedure].update(parked(pending))
                return
            if pending.queue is not None:
                if pending.status is ProcedureStatus.Running:
                    self.failed(tx, pending, "LeaseExpired", f"worker {pending.worker!r} did not answer in time")
                else:  # the pause before its next attempt is over
                    tx.db[PendingProcedure].update(offered(tx, pending))
                return
        try:
            await ctx.durable()  # or a crash could undo the call, and make it again with another step_key
            result = await self.call(StepContext(ctx, pending, unwanted), pending, unwanted, local.rooms)
            with ctx.transaction() as tx:
                current = self._engine.pending(tx, pending.id, pending.attempt)
                if current is not None:
                    local.attempts.pop(pending.id, None)
                    self._engine.procedure_succeeded(tx, current, result)
        except Exception as error:
            self._record_failure(ctx, pending, error)

    async def call(self, step: StepContext, pending: PendingProcedure, unwanted: asyncio.Event, rooms: Rooms) -> str:
        """The result of one attempt as JSON; raises what the procedure raised, or why it was ended."""
        function = self._engine.procedure(pending.procedure)
        function = getattr(function, "function", function)
        args, kwargs = _arguments(function, pending.arguments)
        runs = surroundings.get().stand_in(pending.procedure, function)
        if inspect.iscoroutinefunction(runs):
            task = asyncio.ensure_future(_guarded(runs(step, *args, **kwargs)))
            value = await _watched(task, unwanted, step, pending)
        else:
            async with rooms.here():
                work = _in_thread(self._threads, lambda: runs(step, *args, **kwargs))
                value = await _watched(work, unwanted, step, pending)
        return encode(value, procedure_result(function), f"the result of {pending.procedure}").decode()

    def _record_failure(self, ctx: ProcedureContext, pending: PendingProcedure, error: Exception) -> None:
        final = is_final(pending, error)
        with ctx.transaction() as tx:
            current = self._engine.pending(tx, pending.id, pending.attempt)
            if current is not None:
                self.failed(tx, current, type(error).__name__, error_text(error), final=final)

    def failed(
        self, tx: ReducerContext, pending: PendingProcedure, error_type: str, error: str, *, final: bool = False
    ) -> None:
        """An attempt has failed: plan the next one, or give up."""
        text = f"{error_type}: {error}"
        count = pending.attempt - pending.attempts_before
        tx.log.warning(
            "attempt %d of %d of %s (workflow %d) failed: %s",
            count,
            pending.attempts_max,
            pending.procedure,
            pending.workflow_id,
            text,
        )
        if final or count >= pending.attempts_max:
            self._engine.procedure_failed(tx, pending, error_type, error)
            return
        backoff = Backoff(
            timedelta(seconds=pending.backoff_first_seconds),
            pending.backoff_factor,
            timedelta(seconds=pending.backoff_cap_seconds),
        )
        next_at = tx.now + backoff.delay(count)
        if next_at == pending.scheduled_at:  # the scheduler takes a row that did not move for one that is done with
            next_at -= timedelta(microseconds=1)
        tx.db[PendingProcedure].update(
            pending.replace(
                scheduled_at=next_at,
                status=ProcedureStatus.Pending,
                attempt=pending.attempt + 1,
                worker=None,
                last_error=text,
            )
        )
        note_for(self._engine.run(tx), pending.workflow_id, "attempt_failed", f"{pending.procedure}: {text}")


def _arguments(function: Any, text: str) -> tuple[list[Any], dict[str, Any]]:
    """The typed arguments; `BadPayload` when the procedure's parameters have changed so that they do not fit."""
    positional, by_name = parameter_types(function)
    args, kwargs = msgspec.json.decode(text, type=tuple[list[msgspec.Raw], dict[str, msgspec.Raw]])
    if len(args) > len(positional):
        raise BadPayload(f"{function.__name__} takes {len(positional)} arguments, and the call has {len(args)}")
    try:
        return (
            [decode(bytes(raw), kind) for raw, kind in zip(args, positional, strict=False)],
            {name: decode(bytes(raw), by_name[name]) for name, raw in kwargs.items()},
        )
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise BadPayload(f"the arguments of {function.__name__} do not fit its parameters: {error}") from None


async def _guarded(work: Awaitable[Any]) -> Any:
    """A procedure may not end the loop that it runs on."""
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise RuntimeError(f"the procedure raised {error!r}") from error


async def _watched(
    work: asyncio.Future[Any], unwanted: asyncio.Event, step: StepContext, pending: PendingProcedure
) -> Any:
    """The result of an attempt, unless it takes too long or nobody waits for it any more: then it is cancelled."""
    work.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody looks at what is abandoned
    try:
        return await _limited(work, unwanted, step, pending)
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=CANCEL_SECONDS_MAX)
            if not work.done() or not isinstance(work, asyncio.Task):
                step.log.warning("attempt %d of %s cannot be stopped, and was abandoned", step.attempt, step.name)


async def _limited(
    work: asyncio.Future[Any], unwanted: asyncio.Event, step: StepContext, pending: PendingProcedure
) -> Any:
    """The result of an attempt, `AttemptTimeout` when it takes too long or is silent for too long, or
    `AttemptAbandoned` as soon as it is `unwanted`.
    """
    dropped = asyncio.ensure_future(unwanted.wait())
    try:
        return await _until_done(work, dropped, step, pending)
    finally:
        dropped.cancel()


async def _until_done(
    work: asyncio.Future[Any], dropped: asyncio.Future[Any], step: StepContext, pending: PendingProcedure
) -> Any:
    seconds = surroundings.get().seconds
    deadline = None if pending.timeout_seconds is None else seconds() + pending.timeout_seconds
    while not work.done():
        left = [] if deadline is None else [deadline - seconds()]
        if pending.heartbeat_seconds is not None:
            left.append(pending.heartbeat_seconds - step.silent_seconds)
        if left and min(left) <= 0:
            if deadline is not None and deadline <= seconds():
                raise AttemptTimeout(f"the attempt took longer than {pending.timeout_seconds:g} s")
            raise AttemptTimeout(f"the attempt was silent for {pending.heartbeat_seconds:g} s")
        await asyncio.wait({work, dropped}, timeout=min(left) if left else None, return_when=asyncio.FIRST_COMPLETED)
        if dropped.done() and not work.done():
            raise AttemptAbandoned(f"nobody waits for {pending.procedure} any more")
    if work.cancelled():
        raise RuntimeError("the procedure cancelled itself")
    return work.result()


def _in_thread(threads: Threads, work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Run a sync procedure in a thread of its own: one that never ends is left alone, and keeps nobody waiting."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
            future.exception()  # an abandoned attempt has nobody who looks at it

    def target() -> None:
        value, failure = None, None
        try:
            value = work()
        except Exception as error:
            failure = error
        except BaseException as error:
            failure = RuntimeError(f"the procedure ended its thread: {error!r}")
        with contextlib.suppress(RuntimeError):  # the loop is gone: the attempt was abandoned
            loop.call_soon_threadsafe(settle, value, failure)

    threads.run(target)
    return future
