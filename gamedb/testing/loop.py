"""`SimulatedLoop`: an asyncio loop in simulated time. It has neither sockets nor threads, and never sleeps.

Callbacks run in the order in which they were asked for. The time is that of a `ManualClock`; whoever owns both moves
the clock to `next_due` and calls `turn`. Coroutines notice nothing: `asyncio.sleep(60)` takes a simulated minute.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gamedb.clock import ManualClock
from gamedb.workers import LoopWorkers, Workers

if TYPE_CHECKING:
    _Loop = Any  # of the abstract methods of a loop, many have to do with sockets and are not here
else:
    _Loop = asyncio.AbstractEventLoop


class SimulatedLoop(_Loop):  # type: ignore[misc]
    """The loop of one life of a simulated process."""

    def __init__(self, clock: ManualClock, context: contextvars.Context) -> None:
        self._clock = clock
        self._context = context
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._running = False
        self._closed = False
        self.failures: list[BaseException] = []
        """What callbacks raised, and nobody has seen."""

    # --- for its owner

    def next_due(self) -> int | None:
        """When there is something to do next, in microseconds; `None` when nothing is to come."""
        if self._ready:
            return self._clock.micros()
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def turn(self) -> bool:
        """Run what is due by now and what comes of it; says whether there was anything."""
        worked = False
        while True:
            now = self._clock.micros()
            while self._timers and self._timers[0][0] <= now:
                self._ready.append(heapq.heappop(self._timers)[2])
            if not self._ready or self._closed:
                return worked
            worked = True
            self._run(self._ready.popleft())

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        outer = events._get_running_loop()
        events._set_running_loop(self)
        running, self._running = self._running, True
        try:
            handle._run()
        finally:
            self._running = running
            events._set_running_loop(outer)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a coroutine, in the context of the simulation."""
        return self.create_task(work, context=self._context.copy())

    def close(self) -> None:
        """The process has ended: nothing runs any more. What coroutines do in `finally` comes to nothing."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            if coroutine is not None:
                with suppress(BaseException):
                    coroutine.close()

    # --- for asyncio

    def time(self) -> float:
        """The simulated time in seconds."""
        return self._clock.micros() / 1_000_000

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether a callback is running."""
        return self._running

    def is_closed(self) -> bool:
        """Whether its process has ended."""
        return self._closed

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Call at the next turn."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self._closed:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """The same: there are no other threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call when so many simulated seconds have passed."""
        return self._call_at(self._clock.micros() + round(max(0.0, delay) * 1_000_000), callback, args, context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call at a simulated time."""
        return self._call_at(round(when * 1_000_000), callback, args, context)

    def _call_at(
        self, micros: int, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(micros / 1_000_000, callback, args, self, context)
        if not self._closed:
            heapq.heappush(self._timers, (micros, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """`next_due` leaves it out."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None, **kwargs: Any
    ) -> asyncio.Task[Any]:
        """A task that begins at the next turn."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context, **kwargs)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run it here and now: what is simulated has no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def shutdown_asyncgens(self) -> None:
        """There is nothing to do."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an exception that nobody has seen, for the owner to raise."""
        error = context.get("exception")
        if not self._closed and isinstance(error, BaseException):
            self.failures.append(error)


def _absent(name: str) -> Callable[..., Any]:
    def method(self: SimulatedLoop, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name}: a simulation has no network, processes or signals; what needs them is replaced by sim.fake(...)"
        )

    return method


for _name in (
    *("getaddrinfo", "getnameinfo", "create_connection", "create_server", "create_unix_connection"),
    *("create_unix_server", "create_datagram_endpoint", "connect_accepted_socket", "start_tls", "sendfile"),
    *("connect_read_pipe", "connect_write_pipe", "subprocess_exec", "subprocess_shell", "add_signal_handler"),
    *("add_reader", "add_writer", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"),
    *("sock_sendall", "sock_sendto", "sock_connect", "sock_accept", "sock_sendfile"),
):
    setattr(SimulatedLoop, _name, _absent(_name))


class LoopTasks(LoopWorkers):
    """Scheduled async procedures, on the simulated loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._simulated = loop

    def submit(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work()`."""
        self._simulated.spawn(work())

    def stop(self, *, wait: bool = True) -> None:
        """They end with their loop."""


class LoopCalls(Workers):
    """Scheduled sync procedures, one after the other on the simulated loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._simulated = loop

    def submit(self, task: Callable[..., None], *arguments: Any) -> None:
        """Run `task(*arguments)`."""
        self._simulated.call_soon(task, *arguments)

    def stop(self, *, wait: bool = True) -> None:
        """They end with their loop."""
