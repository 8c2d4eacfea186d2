"""DBOS on SQLite for `benchmarks.workflows`. Needs the package `dbos`.

Settings: SQLite as the system database, as its documentation has it when no server is wanted. The file is put into WAL
mode first, which DBOS does not do itself and which saves syncs; each commit is synced (synchronous=FULL), as ours are.
Notifications are looked for every millisecond, the shortest interval it takes (the default is a second); up to 64
threads; logging at ERROR.
Workflows are sync functions, run many at a time: the throughput is of all together.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Measure = dict[str, Any]
AT_ONCE = 32


def missing(find_spec: Callable[[str], object]) -> str:
    """What has to be installed first; empty when nothing."""
    return "" if find_spec("dbos") else "the package dbos is not installed (pip install 'gamedb[bench]')"


def run(directory: str, quick: bool) -> Measure:
    """Both workloads."""
    from dbos import DBOS, DBOSConfig

    Path(directory).mkdir()
    with closing(sqlite3.connect(f"{directory}/dbos.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{directory}/dbos.sqlite",
        "notification_listener_polling_interval_sec": 0.001,
        "max_executor_threads": 64,
        "log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.step()
    def add_one(n: int) -> int:
        return n + 1

    @DBOS.workflow()
    def ten_steps(n: int) -> int:
        for _ in range(10):
            n = add_one(n)
        return n

    @DBOS.workflow()
    def counter(n: int) -> int:
        total = 0
        while total < n:
            total += DBOS.recv("add", timeout_seconds=600)
        return total

    DBOS.launch()
    try:
        DBOS.start_workflow(ten_steps, 1).get_result()
        workflows = 64 if quick else 256
        started = time.perf_counter()
        running: list[Any] = []
        for n in range(workflows):
            if len(running) == AT_ONCE:
                _finish(running)
            running.append((n, DBOS.start_workflow(ten_steps, n)))
        _finish(running)
        steps = {"per_second": round(workflows / (time.perf_counter() - started), 1)}

        targets, each = 16, 10 if quick else 50
        handles = [DBOS.start_workflow(counter, each) for _ in range(targets)]
        time.sleep(0.5)
        started = time.perf_counter()
        for _ in range(each):
            for handle in handles:
                DBOS.send(handle.workflow_id, 1, "add")
        for handle in handles:
            assert handle.get_result() == each
        signals = {"per_second": round(targets * each / (time.perf_counter() - started), 1)}
    finally:
        DBOS.destroy()
    return {
        "workflow-ten-steps": steps,
        "workflow-signal": signals,
        "parameters": {
            "workflow-ten-steps": {"ten_steps": workflows, "at_once": AT_ONCE},
            "workflow-signal": {"signals": targets * each, "workflows": targets},
        },
    }


def _finish(running: list[Any]) -> None:
    while running:
        n, handle = running.pop()
        assert handle.get_result() == n + 10
