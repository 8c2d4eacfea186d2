"""Workflows: starts, signals, timers, procedures, broadcasts, children, resuming, and a million that wait.

`gamedb` is durable with group commit: times include the last flush. `gamedb-memory` stores nothing. Each runs with
the journal (the timeline in `workflow_event`) on and off; with --quick only `gamedb` does, and the crowd has no
journal. One driver, one thread: a signal is sent when the one before has been handled. Ten steps are ten calls of a
procedure that does nothing, one after the other, in 32 workflows at once.

With the extra `bench` installed, DBOS on SQLite and Restate run `workflow-signal` and `workflow-ten-steps`, too; see
`workflow_dbos` and `workflow_restate` for their settings. The ratios compare with `gamedb`, journal on, since they keep
a record of each step as well. They confirm each signal when it is on disk, and Restate is called over a socket;
`workflow-signal` is in process and waits for the disk once, at the end. `workflow-signal-confirmed` waits for each
signal, in 64 threads, and is compared with their `workflow-signal`, too.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import workflow_dbos, workflow_restate
from benchmarks.common import Measure, isolated, options, percentile, report, report_ratios, rss_mb, scratch, timed
from benchmarks.workflow_game import (
    Add,
    Buff,
    Count,
    buff,
    build,
    counter,
    listener,
    parent,
    ten_steps,
    ticker,
    veteran,
)
from gamedb import Database, ManualClock, ReducerContext
from workflow_module import Workflows

ENDLESS = 10**12
HOUR = timedelta(hours=1)
DATABASE: dict[str, Any] = {"quiet": True, "slow_reducer": HOUR}
"""Long transactions are on purpose here: nothing watches for them."""
PER_TRANSACTION = 1_000
TARGETS = 100
"""How many workflows share the signals and the ticks."""
AT_ONCE = 32
"""How many workflows of ten steps run at once."""
SENDERS = 64
"""How many threads wait for the confirmation of their signal."""

Sizes = dict[str, int]
FULL: Sizes = {
    "starts": 20_000,
    "signals": 50_000,
    "confirmed": 20_000,
    "ticks": 50_000,
    "ten_steps": 1_000,
    "broadcasts": 10,
    "listeners": 10_000,
    "children": 1_000,
    "families": 3,
    "veterans": 40,
    "crowd": 1_000_000,
    "fired": 1_000_000,
}
QUICK: Sizes = {
    "starts": 1_500,
    "signals": 4_000,
    "confirmed": 2_000,
    "ticks": 4_000,
    "ten_steps": 60,
    "broadcasts": 1,
    "listeners": 10_000,
    "children": 1_000,
    "families": 1,
    "veterans": 2,
    "crowd": 100_000,
    "fired": 10_000,
}


def batches(db: Database, count: int, body: Callable[[ReducerContext, int], object]) -> None:
    """`body(ctx, i)` for each i, many in one transaction."""

    def plant(ctx: ReducerContext, first: int, last: int) -> None:
        for number in range(first, last):
            body(ctx, number)

    for first in range(0, count, PER_TRANSACTION):
        db.execute("plant", plant, (first, min(first + PER_TRANSACTION, count)))


def run_flows(path: str | None, journal: bool, sizes: Sizes) -> Measure:
    """The workloads of one database: a measure for each of them."""
    clock = ManualClock()
    with Database(build(journal), path, clock=clock, **DATABASE) as db:
        flows = Workflows(db)
        return {
            "workflow-start": run_start(db, flows, sizes["starts"]),
            "workflow-signal": run_signal(db, flows, sizes["signals"]),
            "workflow-timer": run_timer(db, flows, clock, sizes["ticks"]),
            "workflow-broadcast": run_broadcast(db, flows, sizes["listeners"], sizes["broadcasts"]),
            "workflow-children": run_children(db, flows, clock, sizes["children"], sizes["families"]),
        }


def run_start(db: Database, flows: Workflows, count: int) -> Measure:
    return timed(lambda i: flows.start(counter, Count(ENDLESS)), count, db.flush)


def run_signal(db: Database, flows: Workflows, count: int) -> Measure:
    targets = [flows.start(counter, Count(ENDLESS)) for _ in range(TARGETS)]
    message = Add(1)
    return timed(lambda i: flows.signal(targets[i % TARGETS], message), count, db.flush)


def run_confirmed(path: str, journal: bool, count: int) -> Measure:
    """Signals from many threads, each of which waits until its signal is on disk before it sends the next."""
    numbers = iter(range(count))
    samples: list[float] = []
    with Database(build(journal), path, clock=ManualClock(), **DATABASE) as db:
        flows = Workflows(db)
        targets = [flows.start(counter, Count(ENDLESS)) for _ in range(TARGETS)]

        def sender() -> None:
            for number in numbers:
                before = time.perf_counter()
                flows.signal(targets[number % TARGETS], Add(1))
                db.flush()
                samples.append(time.perf_counter() - before)

        threads = [threading.Thread(target=sender) for _ in range(SENDERS)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
    return {
        "per_second": round(count / seconds),
        "p50_ms": round(percentile(samples, 0.5) * 1000, 3),
        "p99_ms": round(percentile(samples, 0.99) * 1000, 3),
    }


def run_timer(db: Database, flows: Workflows, clock: ManualClock, count: int) -> Measure:
    for _ in range(TARGETS):
        flows.start(ticker, Count(count // TARGETS))
    started = time.perf_counter()
    fired = 0
    while fired < count:
        clock.advance(1)
        fired += db.run_due()
    db.flush()
    return {"per_second": round(fired / (time.perf_counter() - started))}


def run_ten_steps(path: str | None, journal: bool, count: int) -> Measure:
    """`AT_ONCE` at a time, driven by a thread as in a game."""
    running: deque[tuple[int, int]] = deque()
    with Database(build(journal), path, **DATABASE) as db:
        flows = Workflows(db)
        db.run()

        def finish() -> None:
            number, workflow_id = running.popleft()
            assert flows.wait(workflow_id) == number + 10

        running.append((0, flows.start(ten_steps, Count(0))))
        finish()
        started = time.perf_counter()
        for number in range(count):
            if len(running) == AT_ONCE:
                finish()
            running.append((number, flows.start(ten_steps, Count(number))))
        while running:
            finish()
        db.flush()
        return {"per_second": round(count / (time.perf_counter() - started), 1)}


def run_broadcast(db: Database, flows: Workflows, listeners: int, count: int) -> Measure:
    """`per_second` are signals delivered; the latency is that of a broadcast to all."""
    batches(db, listeners, lambda ctx, _: flows.engine.start(ctx, listener, Count(ENDLESS)))
    db.flush()
    samples = []
    started = time.perf_counter()
    for _ in range(count):
        before = time.perf_counter()
        assert flows.broadcast(Add(1), "all") == listeners
        samples.append(time.perf_counter() - before)
    db.flush()
    seconds = time.perf_counter() - started
    return {"per_second": round(listeners * count / seconds), "p50_ms": round(percentile(samples, 0.5) * 1000, 3)}


def run_children(db: Database, flows: Workflows, clock: ManualClock, children: int, families: int) -> Measure:
    """`per_second` are children started and joined; the latency is that of a whole family."""
    samples = []
    started = time.perf_counter()
    for _ in range(families):
        before = time.perf_counter()
        workflow_id = flows.start(parent, Count(children))
        clock.advance(1)
        db.run_due()
        assert flows.result(workflow_id) == children * (children - 1) // 2
        samples.append(time.perf_counter() - before)
    db.flush()
    seconds = time.perf_counter() - started
    return {"per_second": round(children * families / seconds), "p50_ms": round(percentile(samples, 0.5) * 1000, 3)}


def run_resume(path: str, journal: bool, veterans: int) -> Measure:
    """Signals to workflows that have taken 5 steps and 5,000, by turns, after reopening: a measure for each."""
    with Database(build(journal), path, clock=ManualClock(), **DATABASE) as db:
        flows = Workflows(db)
        pairs = [(flows.start(veteran, Count(5)), flows.start(veteran, Count(5_000))) for _ in range(veterans)]
    samples: tuple[list[float], list[float]] = ([], [])
    clock = time.perf_counter
    with Database(build(journal), path, clock=ManualClock(), **DATABASE) as db:
        flows = Workflows(db)
        flows.signal(flows.start(veteran, Count(0)), Add(1))
        for _ in range(2_000 // veterans):
            for pair in pairs:
                for workflow_id, times in zip(pair, samples, strict=True):
                    before = clock()
                    flows.signal(workflow_id, Add(1))
                    times.append(clock() - before)
        young, old = (flows.get(workflow_id).steps for workflow_id in pairs[0])
        assert old - young == 4_995
    return {
        steps: {
            "per_second": round(1 / percentile(times, 0.5)),
            "p50_ms": round(percentile(times, 0.5) * 1000, 5),
            "p99_ms": round(percentile(times, 0.99) * 1000, 5),
        }
        for steps, times in zip(("5", "5000"), samples, strict=True)
    }


def run_crowd(path: str, journal: bool, count: int, fired: int) -> Measure:
    """Start a crowd that waits, the first `fired` of them for an hour, the rest for longer."""
    before = rss_mb()
    with Database(build(journal), path, clock=ManualClock(), **DATABASE) as db:
        engine = Workflows(db).engine
        inits = Buff(HOUR), Buff(10 * HOUR)
        started = time.perf_counter()
        batches(db, count, lambda ctx, i: engine.start(ctx, buff, inits[i >= fired]))
        db.flush()
        seconds = time.perf_counter() - started
        mb = rss_mb() - before
    return {"per_second": round(count / seconds), "mb": round(mb), "bytes_each": round(mb * 1024 * 1024 / count)}


def run_crowd_open(path: str, journal: bool, count: int, fired: int) -> Measure:
    """Open the crowd's file again, send one of them a signal, and let those that are due go on."""
    before = rss_mb()
    clock = ManualClock()
    started = time.perf_counter()
    with Database(build(journal), path, clock=clock, **DATABASE) as db:
        flows = Workflows(db)
        flows.signal(count, Add(1))
        opening = time.perf_counter() - started
        mb = rss_mb() - before
        clock.advance(HOUR)
        started = time.perf_counter()
        assert db.run_due(limit=count + 1) == fired
        db.flush()
        firing = time.perf_counter() - started
        assert flows.result(1) == 1
    return {
        "open": {"per_second": round(count / opening), "seconds": round(opening, 2), "mb": round(mb)},
        "fire": {"per_second": round(fired / firing)},
    }


def measure_ours(directory: Path, args: Any, sizes: Sizes) -> tuple[dict[str, dict[bool, Measure]], dict[str, float]]:
    """Print the lines of our systems; the measures of `gamedb` by workload and journal, and ratios among them."""
    found: dict[str, dict[bool, Measure]] = {}
    systems = args.system or (["gamedb"] if args.quick else ["gamedb", "gamedb-memory"])
    ratios: dict[str, float] = {}
    for system in systems:
        if system not in ("gamedb", "gamedb-memory"):
            continue
        for journal in (True, False):
            name = f"{system}-{journal}"
            path = str(directory / f"{name}.db") if system == "gamedb" else None
            flows = isolated(run_flows, path=path, journal=journal, sizes=sizes)
            peak = flows.pop("peak_mb")
            flows = {workload: {**measure, "peak_mb": peak} for workload, measure in flows.items()}
            steps_path = None if path is None else str(directory / f"{name}-steps.db")
            flows["workflow-ten-steps"] = isolated(
                run_ten_steps, path=steps_path, journal=journal, count=sizes["ten_steps"]
            )
            if system == "gamedb":
                flows["workflow-signal-confirmed"] = isolated(
                    run_confirmed,
                    path=str(directory / f"{name}-confirmed.db"),
                    journal=journal,
                    count=sizes["confirmed"],
                )
            for workload, measure in flows.items():
                report(workload, system, {"journal": journal, **_sizes_of(workload, sizes)}, measure)
                if system == "gamedb":
                    found.setdefault(workload, {})[journal] = measure
            if system != "gamedb":
                continue
            resume = isolated(run_resume, path=str(directory / f"{name}-resume.db"), journal=journal,
                              veterans=sizes["veterans"])  # fmt: skip
            for steps in ("5", "5000"):
                report("workflow-resume", system, {"journal": journal, "steps": int(steps)}, resume[steps])
            ratios[f"resume: 5,000 steps/5 steps, journal {_word(journal)}"] = (
                resume["5000"]["p50_ms"] / resume["5"]["p50_ms"]
            )
            if args.quick and journal:
                continue
            crowd = {"path": str(directory / f"{name}-crowd.db"), "journal": journal, "count": sizes["crowd"],
                     "fired": sizes["fired"]}  # fmt: skip
            parameters = {"journal": journal, "workflows": sizes["crowd"]}
            report("workflow-crowd-start", system, parameters, isolated(run_crowd, **crowd))
            opened = isolated(run_crowd_open, **crowd)
            report("workflow-crowd-open", system, parameters, {**opened["open"], "peak_mb": opened["peak_mb"]})
            report("workflow-crowd-fire", system, {**parameters, "fired": sizes["fired"]}, opened["fire"])
    return found, ratios


def _word(journal: bool) -> str:
    return "on" if journal else "off"


def _sizes_of(workload: str, sizes: Sizes) -> dict[str, int]:
    names = {
        "workflow-start": ["starts"],
        "workflow-signal": ["signals"],
        "workflow-signal-confirmed": ["confirmed", "senders"],
        "workflow-timer": ["ticks"],
        "workflow-ten-steps": ["ten_steps", "at_once"],
        "workflow-broadcast": ["listeners", "broadcasts"],
        "workflow-children": ["children", "families"],
    }
    return {name: {**sizes, "at_once": AT_ONCE, "senders": SENDERS}[name] for name in names[workload]}


def measure_peers(directory: Path, args: Any) -> dict[str, Measure]:
    """Print the lines of the others, or why they are left out; their measures by workload and system."""
    found: dict[str, Measure] = {}
    for name, peer in (("dbos", workflow_dbos), ("restate", workflow_restate)):
        if args.system and name not in args.system:
            continue
        missing = peer.missing(find_spec)
        if missing:
            print_note(name, missing)
            continue
        try:
            measures = isolated(peer.run, directory=str(directory / name), quick=args.quick)
        except SystemExit as error:
            print_note(name, str(error))
            continue
        peak = measures.pop("peak_mb")
        parameters = measures.pop("parameters")
        for workload, measure in measures.items():
            report(workload, name, parameters[workload], {"peak_mb": peak, **measure})
            found[f"{workload} {name}"] = measure
    return found


def print_note(system: str, note: str) -> None:
    """Say why a system is left out."""
    print(json.dumps({"note": f"{system} is left out: {note}"}), flush=True)


def main() -> None:
    """Measure all systems, and print their lines."""
    args = options(__doc__ or "")
    sizes = QUICK if args.quick else FULL
    with scratch() as directory:
        ours, ratios = measure_ours(directory, args, sizes)
        peers = measure_peers(directory, args)
    for workload, measures in ours.items():
        ratios[f"{workload}: journal off/on"] = measures[False]["per_second"] / measures[True]["per_second"]
        for name in ("dbos", "restate"):
            peer = peers.get(f"{workload.removesuffix('-confirmed')} {name}")
            if peer is not None:
                ratios[f"{workload}: gamedb/{name}"] = measures[True]["per_second"] / peer["per_second"]
    report_ratios(ratios)


if __name__ == "__main__":
    main()
