"""What the workloads share: measuring, one fresh process for each system, and the JSON lines."""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Measure = dict[str, Any]
"""`per_second`, `p50_ms`, `p99_ms`, `peak_mb` and what else a workload tells of a system."""


def options(description: str) -> argparse.Namespace:
    """`--quick` and `--system NAME` (only that one)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="under 30 seconds")
    parser.add_argument("--system", action="append", help="measure only this system (may be repeated)")
    return parser.parse_args()


def percentile(samples: list[float], share: float) -> float:
    """The value below which this share (0..1) of the samples lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(operation: Callable[[int], object], count: int, finish: Callable[[], object] = lambda: None) -> Measure:
    """Run `operation(i)` for i from 0 to `count`, then `finish`; the throughput includes both.

    Latencies are of more operations, up to 20,000, after that: reading the clock twice for each would slow the others.
    """
    started = time.perf_counter()
    for i in range(count):
        operation(i)
    finish()
    seconds = time.perf_counter() - started
    clock = time.perf_counter
    samples = []
    for i in range(count, count + min(count, 20_000)):
        before = clock()
        operation(i)
        samples.append(clock() - before)
    finish()
    return {
        "per_second": round(count / seconds),
        "p50_ms": round(percentile(samples, 0.50) * 1000, 5),
        "p99_ms": round(percentile(samples, 0.99) * 1000, 5),
    }


def rss_mb() -> float:
    """The memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def peak_mb() -> float:
    """The most memory that this process ever had."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(kilobytes / (1024 if sys.platform != "darwin" else 1024 * 1024), 1)


def _child(pipe: Any, function: Callable[..., Measure], arguments: dict[str, Any]) -> None:
    logging.getLogger("gamedb").setLevel(logging.ERROR)  # large transactions are slow reducers, on purpose
    measure = function(**arguments)
    measure.setdefault("peak_mb", peak_mb())
    pipe.send(measure)


def isolated(function: Callable[..., Measure], **arguments: Any) -> Measure:
    """Run a module-level function in a fresh process; its measure."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, function, arguments))
    process.start()
    send.close()
    try:
        measure: Measure = receive.recv()
    except EOFError:
        raise SystemExit(f"{function.__name__}({arguments}) ended without a result") from None
    finally:
        process.join()
    return measure


def report(workload: str, system: str, parameters: dict[str, Any], measure: Measure) -> None:
    """Print one line."""
    line: dict[str, Any] = {"workload": workload, "system": system, "parameters": parameters}
    for key in ("per_second", "p50_ms", "p99_ms", "peak_mb"):
        value = measure.get(key)
        line[key] = float(f"{value:.4g}") if isinstance(value, float) else value
    line.update({key: value for key, value in measure.items() if key not in line})
    print(json.dumps(line), flush=True)


def report_ratios(ratios: dict[str, float]) -> None:
    """Print the last line."""
    print(json.dumps({"ratio": {name: round(ratio, 3) for name, ratio in ratios.items()}}), flush=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for files, on the disk of the project rather than in memory."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory:
        yield Path(directory)
