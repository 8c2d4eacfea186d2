"""Who calls the scheduler: a thread or an asyncio loop, asleep until something is due. By hand it is `db.run_due()`.

Here are also the threads in which scheduled procedures run beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Final

from gamedb.clock import Clock
from gamedb.scheduler import ENDED, Scheduler

THREAD_BATCH: Final = 1000
LOOP_BATCH: Final = 100
"""How many rows fire before the driver looks whether it shall stop, or lets the loop do other work."""


class SchedulerThread:
    """Drives a scheduler from a thread of its own, asleep until something is due."""

    def __init__(self, scheduler: Scheduler, clock: Clock, name: str) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"gamedb-scheduler-{name}", daemon=True)
        scheduler.on_wake(self._wake.set)
        self._off_change = clock.on_change(self._wake.set)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._fire_until_stopped()
        except BaseException as error:  # also sys.exit() in a reducer: nobody else looks at this thread
            self._scheduler.report_end(error)

    def _fire_until_stopped(self) -> None:
        while not self._stopped:
            self._wake.clear()
            due = self._scheduler.next_due()
            seconds = None if due is None else self._clock.wait_seconds(due)
            if seconds is None or seconds > 0:
                self._wake.wait(seconds)
            else:
                # nobody would see what is raised here, so whatever a reducer raises is its failure
                self._scheduler.run_due(limit=THREAD_BATCH, pooled=True, failures=BaseException)

    def stop(self, *, wait: bool = True) -> None:
        """Stop after the firing that is under way, and wait for its end."""
        self._stopped = True
        self._wake.set()
        if wait and threading.current_thread() is not self._thread:
            self._thread.join()
        self._scheduler.off_wake(self._wake.set)
        self._off_change()


async def drive(scheduler: Scheduler, clock: Clock) -> None:
    """Drive a scheduler from an asyncio loop until cancelled."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # a loop that was closed under its task hears nothing any more
            loop.call_soon_threadsafe(changed.set)

    scheduler.on_wake(wake)
    off_change = clock.on_change(wake)
    try:
        while True:
            changed.clear()
            due = scheduler.next_due()
            seconds = None if due is None else clock.wait_seconds(due)
            if seconds is None or seconds > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await changed.wait()
            else:
                scheduler.run_due(limit=LOOP_BATCH, pooled=True)
                await asyncio.sleep(0)
    except ENDED as error:
        scheduler.report_end(error)
    finally:
        scheduler.off_wake(wake)
        off_change()
