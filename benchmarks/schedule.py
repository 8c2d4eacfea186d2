"""A million pending one-shot rows: inserting them, the memory, firing them all, and opening the file again.

The reducer does nothing: what is measured is the scheduler, the transaction and the deleted row. `heapq` is a bare
heap of (due, id) with a call for each entry, the ceiling for Python.
"""

from __future__ import annotations

import heapq
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.common import Measure, isolated, options, report, report_ratios, rss_mb, scratch
from gamedb import AutoInc, Database, ManualClock, Module, PrimaryKey, ReducerContext, Row, ScheduleAt, u64

PER_TRANSACTION = 10_000
SPREAD_SECONDS = 3_600

module = Module("timers")


@module.table(scheduled="fire")
class Timer(Row):
    scheduled_id: PrimaryKey[AutoInc[u64]] = 0
    scheduled_at: ScheduleAt
    target: u64


@module.reducer
def fire(ctx: ReducerContext, timer: Timer) -> None:
    pass


@module.reducer
def plant(ctx: ReducerContext, first: u64, count: u64) -> None:
    now = ctx.now
    insert = ctx.db[Timer].insert
    for number in range(first, first + count):
        delay = timedelta(seconds=(number * 7919) % SPREAD_SECONDS)
        insert(Timer(scheduled_at=now + delay, target=number))


def run_insert(path: str | None, rows: int) -> Measure:
    before = rss_mb()
    with Database(module, path, clock=ManualClock()) as db:
        started = time.perf_counter()
        for first in range(0, rows, PER_TRANSACTION):
            db.call(plant, first, PER_TRANSACTION)
        db.flush()
        seconds = time.perf_counter() - started
        bytes_each = round((rss_mb() - before) * 1024 * 1024 / rows)
    return {"per_second": round(rows / seconds), "bytes_a_row": bytes_each}


def run_open(path: str, rows: int) -> Measure:
    started = time.perf_counter()
    with Database(module, path, clock=ManualClock()) as db:
        assert db.next_due is not None
        seconds = time.perf_counter() - started
        assert db.read(Timer).count() == rows
    return {"per_second": round(rows / seconds), "seconds": round(seconds, 2)}


def run_fire(path: str | None, rows: int) -> Measure:
    clock = ManualClock()
    with Database(module, path, clock=clock, quiet=True) as db:
        if path is None:
            for first in range(0, rows, PER_TRANSACTION):
                db.call(plant, first, PER_TRANSACTION)
        clock.advance(SPREAD_SECONDS)
        started = time.perf_counter()
        fired = db.run_due(limit=rows + 1)
        db.flush()
        seconds = time.perf_counter() - started
        assert fired == rows
    return {"per_second": round(rows / seconds)}


def run_heapq(rows: int) -> Measure:
    heap = [((number * 7919) % SPREAD_SECONDS, number) for number in range(rows)]
    heapq.heapify(heap)

    def nothing(_number: int) -> None:
        pass

    started = time.perf_counter()
    while heap:
        _, number = heapq.heappop(heap)
        nothing(number)
    return {"per_second": round(rows / (time.perf_counter() - started))}


def main() -> None:
    """Measure, and print the lines."""
    args = options(__doc__ or "")
    rows = 100_000 if args.quick else 1_000_000
    parameters = {"rows": rows}
    with scratch() as directory:
        path = str(Path(directory, "timers.db"))
        insert = isolated(run_insert, path=path, rows=rows)
        report("schedule-insert", "gamedb", parameters, insert)
        report("schedule-insert", "gamedb-memory", parameters, isolated(run_insert, path=None, rows=rows))
        report("schedule-open", "gamedb", parameters, isolated(run_open, path=path, rows=rows))
        fire = isolated(run_fire, path=path, rows=rows)
        report("schedule-fire", "gamedb", parameters, fire)
        memory = isolated(run_fire, path=None, rows=rows)
        report("schedule-fire", "gamedb-memory", parameters, memory)
        bare = isolated(run_heapq, rows=rows)
        report("schedule-fire", "heapq", parameters, bare)
    report_ratios(
        {
            "fire: gamedb/heapq": fire["per_second"] / bare["per_second"],
            "fire: gamedb/gamedb-memory": fire["per_second"] / memory["per_second"],
        }
    )


if __name__ == "__main__":
    main()
