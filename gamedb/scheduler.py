"""Scheduled tables: fires each row's reducer at its time, in the order (due time, id).

What is due is derived from committed rows alone. One heap holds (due, id, table) for every pending row; entries whose
row has gone or moved are skipped when they come up. Intervals keep their phase in the `gamedb_schedule` table.
It knows no storage; `gamedb.database` gives it transactions, `gamedb.drivers` decides when it runs.
"""

from __future__ import annotations

import heapq
import logging
import operator
import threading
from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar, cast

from gamedb.clock import Clock
from gamedb.columns import from_micros, micros_of, to_micros
from gamedb.context import ReducerContext
from gamedb.errors import DatabaseClosed, StorageError
from gamedb.functions import Function
from gamedb.schema import Row
from gamedb.store import RowChange, Store, TableData
from gamedb.system import ScheduleState
from gamedb.workers import LoopWorkers, Workers

T = TypeVar("T")

FIRINGS_MAX: Final = 1_000_000
"""How many rows one `run_due` fires at most without the clock moving."""
PROCEDURE_THREADS_MAX: Final = 32
"""How many scheduled sync procedures run at once."""
ASYNC_PROCEDURES_MAX: Final = 1_000
"""How many scheduled async procedures run at once."""
HEAP_CHECK_EVERY: Final = 256
"""After how many new entries the scheduler looks whether most of its heap is stale."""
ENDED: Final = (DatabaseClosed, StorageError)
"""What is raised when the database takes nothing any more: it was closed, or cannot write."""
_LATEST: Final = to_micros(datetime.max.replace(tzinfo=UTC))

Entry = tuple[int, int, int]
"""(due in microseconds, scheduled_id, number of the table)."""


class Host(Protocol):
    """What the scheduler needs of its database."""

    clock: Clock
    log: logging.Logger
    store: Store
    lock: threading.RLock

    def execute(self, name: str, body: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Run `body(ctx, *arguments)` in a transaction as the database itself."""

    def run_procedure(self, function: Function, arguments: tuple[Any, ...]) -> Any:
        """Run a procedure as the database itself, in this thread."""

    async def run_procedure_async(self, function: Function, arguments: tuple[Any, ...]) -> Any:
        """Run an async procedure as the database itself, on the running loop."""

    def report_failure(self, name: str, error: BaseException) -> None:
        """Log an exception of a scheduled function."""


class Scheduler:
    """The heap of what is due, and the firing of it."""

    def __init__(self, host: Host, functions: dict[str, Function]) -> None:
        self._host = host
        self._tables = [t for t in host.store.tables.values() if t.schema.scheduled is not None]
        self._numbers = {table.schema.name: number for number, table in enumerate(self._tables)}
        self._functions = [functions[t.schema.scheduled or ""] for t in self._tables]
        self._number_of = {table: number for number, table in enumerate(self._tables)}
        self._at_of: list[Callable[[Row], Any]] = [
            operator.attrgetter(t.schema.schedule_column or "") for t in self._tables
        ]
        self._states = host.store.tables["gamedb_schedule"]
        self.tables = frozenset((*self._tables, self._states)) if self._tables else frozenset()
        """The tables whose changes it has to see."""
        self._heap: list[Entry] = []
        self._coming: list[Entry] = []
        """What becomes due by the transaction that is being committed."""
        self._unchecked = 0
        """How many entries have come since it was last looked whether most of them are stale."""
        self._wakers: list[Callable[[], None]] = []
        self._in_flight: set[tuple[int, int]] = set()
        self._threads: Workers | None = None
        self._loop: LoopWorkers | None = None
        self._closed = False

    # --- following the tables

    def rebuild(self) -> None:
        """Make the heap afresh from the rows (after loading, and when most of it is stale)."""
        heap: list[Entry] = []
        for number, table in enumerate(self._tables):
            at_of = self._at_of[number]
            for key, row in table.rows.items():
                at = at_of(row)
                due = to_micros(at) if type(at) is datetime else self._due(number, key, row)
                if due is not None:
                    heap.append((due, cast("int", key), number))
        heapq.heapify(heap)
        self._heap = heap

    def begin_lost_phases(self) -> None:
        """After loading: interval rows that have no phase begin one now, and phases without a row end.

        Such rows were written while their table was not scheduled or had another name, or by a migration.
        """
        rows = {
            self._phase_name(number, key): at
            for number, table in enumerate(self._tables)
            for key, row in table.rows.items()
            if isinstance(at := self._at_of[number](row), timedelta)
        }
        lost = {name: at for name, at in rows.items() if name not in self._states.rows}
        stale = [key for key in self._states.rows if key not in rows]
        if not self._tables or not (lost or stale):
            return

        def body(ctx: ReducerContext) -> None:
            for name, at in lost.items():
                self._set_phase(name, ctx.micros + micros_of(at))
            for key in stale:
                self._states.remove(key)

        self._host.execute("", body, ())

    def before_commit(self, changes: list[tuple[TableData, list[RowChange]]], ctx: ReducerContext) -> bool:
        """Within the transaction of these changes: begin and end the phases of interval rows; whether it did any.

        What is due by the changes is noted on the way, for `after_commit`.
        """
        self._coming = coming = []
        phases = False
        for table, rows in changes:
            number = self._number_of.get(table)
            if number is not None:
                at_of = self._at_of[number]
                for key, old, new in rows:
                    before = None if old is None else at_of(old)
                    after = None if new is None else at_of(new)
                    if type(after) is datetime:
                        coming.append((to_micros(after), cast("int", key), number))
                    if type(before) is timedelta or type(after) is timedelta:
                        phases = self._keep_phase(number, key, before, after, ctx) or phases
            elif table is self._states:
                for _, _, state in rows:
                    if isinstance(state, ScheduleState):
                        name, _, scheduled_id = state.key.rpartition("/")
                        coming.append((to_micros(state.next_at), int(scheduled_id), self._numbers[name]))
        return phases

    def _keep_phase(self, number: int, key: Any, before: Any, after: Any, ctx: ReducerContext) -> bool:
        """A row had the interval `before`, or has the interval `after`; whether that changes anything."""
        if before == after:
            return False
        name = self._phase_name(number, key)
        if type(after) is timedelta:
            self._coming.append((self._set_phase(name, ctx.micros + micros_of(after)), key, number))
        else:
            self._states.remove(name)
        return True

    def _phase_name(self, number: int, key: Any) -> str:
        return f"{self._tables[number].schema.name}/{key}"

    def _set_phase(self, name: str, next_micros: int) -> int:
        due = min(next_micros, _LATEST)
        state = ScheduleState(key=name, next_at=from_micros(due))
        (self._states.update if name in self._states.rows else self._states.insert)(state)
        return due

    def after_commit(self) -> None:
        """Take in what `before_commit` found."""
        coming = self._coming
        if not coming:
            return
        heap = self._heap
        first = heap[0] if heap else None
        for entry in coming:
            heapq.heappush(heap, entry)
        if heap[0] is not first:
            self.wake()
        self._unchecked += len(coming)
        if self._unchecked >= HEAP_CHECK_EVERY:
            self._unchecked = 0
            if len(heap) > 1024 + 2 * sum(len(t.rows) for t in self._tables):
                self.rebuild()

    def _due(self, number: int, key: Any, row: Row) -> int | None:
        at = self._at_of[number](row)
        if type(at) is datetime:
            return to_micros(at)
        state = self._states.rows.get(self._phase_name(number, key))
        return to_micros(state.next_at) if isinstance(state, ScheduleState) else None

    # --- waking whoever drives it

    def on_wake(self, waker: Callable[[], None]) -> None:
        """Call `waker` whenever something became due earlier than all else."""
        self._wakers.append(waker)

    def off_wake(self, waker: Callable[[], None]) -> None:
        """Undo `on_wake`."""
        self._wakers.remove(waker)

    def wake(self) -> None:
        """Tell the drivers to look again."""
        for waker in list(self._wakers):
            waker()

    def next_due(self) -> int | None:
        """When the earliest pending row is due, in microseconds; `None` when nothing is pending."""
        with self._host.lock:
            heap = self._heap
            while heap:
                due, key, number = heap[0]
                row = self._tables[number].rows.get(key)
                if row is not None and self._due(number, key, row) == due and (number, key) not in self._in_flight:
                    return due
                heapq.heappop(heap)
            return None

    # --- firing

    def run_due(
        self, *, limit: int = FIRINGS_MAX, pooled: bool = False, failures: type[BaseException] = Exception
    ) -> int:
        """Fire what is due now, and what becomes due by it; how many rows fired, at most `limit`.

        `pooled`: procedures run in threads beside it, not one after the other. `failures`: what a reducer may raise
        and only fails itself by it; anything else ends the round, and the row is still there.
        """
        fired = 0
        while fired < limit:
            with self._host.lock:
                if not self._heap or self._heap[0][0] > self._host.clock.micros():
                    break
                entry = heapq.heappop(self._heap)
            try:
                if self._functions[entry[2]].kind == "procedure":
                    fired += self._fire_procedure(entry, pooled)
                else:
                    fired += self._fire(entry, failures)
            except BaseException:  # the loop ends here (Ctrl-C, say), and the row is still there
                with self._host.lock:
                    heapq.heappush(self._heap, entry)
                raise
        return fired

    def _fire(self, entry: Entry, failures: type[BaseException]) -> bool:
        """Fire one entry of the heap; False when its row has gone or moved."""
        function = self._functions[entry[2]]
        try:
            return self._host.execute(function.name, self._claim_and_run, (entry, function.invoke))
        except BaseException as error:
            if not isinstance(error, failures) and isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            if self._closed and isinstance(error, DatabaseClosed):
                raise
            claimed = self._host.execute(function.name, self._claim, (entry,)) is not None
            self._host.report_failure(function.name, error)  # not before: if the database has ended, that was the error
            return claimed

    def _claim_and_run(self, ctx: ReducerContext, entry: Entry, invoke: Callable[..., Any]) -> bool:
        row = self._claim(ctx, entry)
        if row is None:
            return False
        invoke(ctx, row)
        if self._current(entry) is not None:  # it put the very same row back, which is no change that would be seen
            heapq.heappush(self._heap, entry)
        return True

    def _current(self, entry: Entry) -> Row | None:
        """The row of an entry; `None` when it has gone or is due at another time by now."""
        due, key, number = entry
        row = self._tables[number].rows.get(key)
        return None if row is None or self._due(number, key, row) != due else row

    def _claim(self, ctx: ReducerContext, entry: Entry) -> Row | None:
        """In a transaction: delete the one-shot row, or move the interval on. `None` when the row has changed."""
        row = self._current(entry)
        if row is None:
            return None
        due, key, number = entry
        at = self._at_of[number](row)
        if type(at) is datetime:
            self._tables[number].remove(key)
        else:
            step = micros_of(at)
            missed = max(0, ctx.micros - due) // step
            self._set_phase(self._phase_name(number, key), due + (missed + 1) * step)
        return row

    def _fire_procedure(self, entry: Entry, pooled: bool) -> bool:
        """An interval moves on first; a one-shot row goes after its procedure, which a crash therefore repeats."""
        _, key, number = entry
        function = self._functions[number]
        with self._host.lock:
            row = self._current(entry)
            if row is None or (number, key) in self._in_flight:
                return False
            self._in_flight.add((number, key))
        once = type(self._at_of[number](row)) is datetime
        try:
            if not once:
                row = self._host.execute(function.name, self._claim, (entry,))
        except BaseException:
            self._in_flight.discard((number, key))
            raise
        if row is None:
            self._land(number, key)
        elif not pooled:
            self._run_procedure(entry, row, once, (Exception, CancelledError))
        elif function.is_async:
            if self._loop is None:
                self._loop = LoopWorkers(ASYNC_PROCEDURES_MAX, "gamedb-procedures")
            self._loop.submit(lambda: self._run_on_loop(entry, row, once))
        else:
            if self._threads is None:
                self._threads = Workers(PROCEDURE_THREADS_MAX, "gamedb-procedure")
            self._threads.submit(self._run_in_thread, entry, row, once)
        return True

    def _run_in_thread(self, entry: Entry, row: Row, once: bool) -> None:
        try:
            self._run_procedure(entry, row, once, (BaseException,))
        except ENDED:
            pass  # the row is still there: it fires again when the database is opened
        except BaseException as error:  # nobody else looks at what a thread of the pool raises
            self._host.report_failure(self._functions[entry[2]].name, error)

    async def _run_on_loop(self, entry: Entry, row: Row, once: bool) -> None:
        function = self._functions[entry[2]]
        try:
            await self._host.run_procedure_async(function, (row,))
        except BaseException as error:
            self._host.report_failure(function.name, error)
        with suppress(*ENDED):  # the row is still there: it fires again when the database is opened
            self._procedure_ended(entry, once)

    def _run_procedure(self, entry: Entry, row: Row, once: bool, failures: tuple[type[BaseException], ...]) -> None:
        _, key, number = entry
        function = self._functions[number]
        try:
            self._host.run_procedure(function, (row,))
        except failures as error:
            self._host.report_failure(function.name, error)
        except BaseException:
            self._in_flight.discard((number, key))
            raise
        self._procedure_ended(entry, once)

    def _procedure_ended(self, entry: Entry, once: bool) -> None:
        _, key, number = entry
        if once:
            self._host.execute(self._functions[number].name, self._claim, (entry,))
        self._land(number, key)

    def _land(self, number: int, key: int) -> None:
        """A procedure has ended: what its row waits for next may have come up, and been skipped, meanwhile."""
        with self._host.lock:
            self._in_flight.discard((number, key))
            row = self._tables[number].rows.get(key)
            due = None if row is None else self._due(number, key, row)
            if due is not None:
                heapq.heappush(self._heap, (due, key, number))
                self.wake()

    def report_end(self, error: BaseException) -> None:
        """Its driver has stopped: say so once. Most often the database takes nothing any more (a full disk, say)."""
        if self._closed and isinstance(error, DatabaseClosed):
            return
        refused = isinstance(error, ENDED)
        text = error if refused else repr(error)
        self._host.log.error("schedules stopped: %s", text, exc_info=None if refused else error)

    def run_procedures_in(self, threads: Workers, loop: LoopWorkers) -> None:
        """Run procedures there, in place of threads and a loop of its own: for simulations."""
        self._threads, self._loop = threads, loop

    def forget_threads(self) -> None:
        """After a fork: the threads of procedures are not in this process."""
        self._threads = self._loop = None
        self._in_flight.clear()

    def close(self, *, wait: bool = True) -> None:
        """End the threads of procedures, and wait for the procedures that are running (other than the caller)."""
        self._closed = True
        if self._threads is not None:
            self._threads.stop(wait=wait)
        if self._loop is not None:
            self._loop.stop(wait=wait)
