"""Over the websocket: calls and connections of the official SDK, fan-out, large subscriptions, many subscriptions.

Server and clients are processes of their own on this machine, and share its cores. Calls are confirmed: an answer
comes when the transfer is on disk. `node-http-sqlite` is a plain server in Node: HTTP with pipelining, SQLite with a
commit for each transfer (in WebAssembly, so with a rollback journal). `websockets-broadcast` sends one message of the
same size to all clients and does nothing else. The first run fetches the npm packages of benchmarks/node.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import Measure, isolated, options, peak_mb, report, report_ratios, scratch
from benchmarks.transfer import Account, module, open_accounts
from benchmarks.wire_servers import MOVERS
from gamedb import Database, Identity, ReducerContext, u64

NODE = Path(__file__).parent / "node"
ACCOUNTS = 10_000
MESSAGE_BYTES = 2 * 24 * MOVERS + 60
"""What a tick of the crowd takes on the wire."""


@contextmanager
def server(*command: str) -> Iterator[tuple[int, int]]:
    """A server process: its port, and its process id."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait()


def ours(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "benchmarks.wire_servers", *arguments)


def node(script: str, *arguments: object) -> Measure:
    """Run a client to its end; the measure that it prints last."""
    command = ["node", str(NODE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    measure: Measure = json.loads(done.stdout.strip().splitlines()[-1])
    return measure


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peak_of(pid: int) -> float | None:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    return None


def measured(pid: int, script: str, *arguments: object) -> Measure:
    """Run a client, with what it cost the server."""
    before = cpu_seconds(pid)
    measure = node(script, *arguments)
    return {**measure, "server_cpu_seconds": round(cpu_seconds(pid) - before, 2), "peak_mb": peak_of(pid)}


def run_calls(directory: Path, seconds: int) -> dict[str, float]:
    speeds: dict[str, float] = {}
    with server(*ours("bank", str(directory / "bank.db"), str(ACCOUNTS))) as (port, pid):
        for mode in ("batched", "single"):
            measure = measured(pid, "calls.mjs", f"ws://127.0.0.1:{port}", 64, 40, seconds, mode, ACCOUNTS)
            report("wire-calls", f"gamedb-{mode}", {"connections": 64, "in_flight": 40, "seconds": seconds}, measure)
            speeds[f"gamedb-{mode}"] = measure["per_second"]
    with server("node", str(NODE / "http_sqlite.mjs"), str(directory / "http.db"), str(ACCOUNTS)) as (port, pid):
        measure = measured(pid, "http_calls.mjs", f"http://127.0.0.1:{port}", 64, 1, seconds, ACCOUNTS)
        report("wire-calls", "node-http-sqlite", {"connections": 64, "in_flight": 1, "seconds": seconds}, measure)
        speeds["node-http-sqlite"] = measure["per_second"]
    return speeds


def run_fan_out(directory: Path, clients: int, seconds: int) -> dict[str, float]:
    p99 = {}
    for confirmed in ("true", "false"):
        with server(*ours("crowd", str(directory / f"crowd-{clients}-{confirmed}.db"))) as (port, pid):
            measure = measured(pid, "fanout.mjs", f"ws://127.0.0.1:{port}", clients, seconds, "gamedb", confirmed)
        parameters = {"clients": clients, "rows": MOVERS, "ticks_a_second": 20, "confirmed": confirmed == "true"}
        report("wire-fan-out", "gamedb", parameters, measure)
        p99[f"gamedb-{'confirmed' if confirmed == 'true' else 'unconfirmed'}"] = measure["p99_ms"]
    with server(*ours("broadcast", str(MESSAGE_BYTES))) as (port, pid):
        measure = measured(pid, "fanout.mjs", f"ws://127.0.0.1:{port}", clients, seconds, "broadcast", "-")
    report("wire-fan-out", "websockets-broadcast", {"clients": clients, "bytes": MESSAGE_BYTES}, measure)
    p99["websockets-broadcast"] = measure["p99_ms"]
    return p99


class Follower:
    """A client of the hub that keeps nothing."""

    identity = Identity.from_int(1)

    def push(self, message: bytes, tx_id: int) -> None:
        """Take an update."""


def run_subscriptions(count: int, commits: int) -> Measure:
    """What a commit costs that exactly one of many clients with `WHERE id = <their own>` hears of."""
    from gamedb.query import Catalog, Matcher
    from gamedb.server.hub import Hub
    from gamedb.store import ReadTables

    def touch(ctx: ReducerContext, number: u64) -> None:
        row = ctx.db[Account].get(number)
        assert row is not None
        ctx.db[Account].update(row.replace(balance=row.balance + 1))

    with Database(module) as db:
        db.call(open_accounts, max(count, ACCOUNTS))
        catalog = Catalog(db.module)
        hub = Hub(db, Matcher(catalog, ReadTables("bank", db.game_tables)), schedule=lambda _callback: None)
        follower: Any = Follower()
        began = time.perf_counter()
        for number in range(count):
            hub.follow(follower, number, catalog.parse(f"SELECT * FROM account WHERE id = {number}", operator=False))
        opened = time.perf_counter() - began
        samples = []
        for number in range(commits):
            before = time.perf_counter()
            db.execute("touch", touch, (number % min(count, 1000),))
            samples.append((time.perf_counter() - before) * 1000)
        samples.sort()
        assert hub.counters.deltas == commits
    return {
        "per_second": round(1000 / samples[commits // 2]),
        "p50_ms": samples[commits // 2],
        "p99_ms": samples[commits * 99 // 100],
        "opened_per_second": round(count / opened),
        "peak_mb": peak_mb(),
    }


def main() -> None:
    """Measure everything, and print the lines."""
    args = options(__doc__ or "")
    logging.getLogger("gamedb").setLevel(logging.ERROR)
    if shutil.which("node") is None:
        raise SystemExit("this workload needs Node 20 or newer")
    if not (NODE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=NODE, check=True)
    seconds = 3 if args.quick else 10
    ratios: dict[str, float] = {}
    costs = {}
    for count in (10, 100_000):
        measure = isolated(run_subscriptions, count=count, commits=5_000 if args.quick else 50_000)
        report("wire-subscriptions", "gamedb", {"distinct": count}, measure)
        costs[count] = measure["p50_ms"]
    ratios["commit cost: 100,000 subscriptions/10"] = costs[100_000] / costs[10]
    with scratch() as directory:
        speeds = run_calls(directory, seconds)
        for mode in ("batched", "single"):
            ratios[f"calls: gamedb-{mode}/node-http-sqlite"] = speeds[f"gamedb-{mode}"] / speeds["node-http-sqlite"]
        for clients in (200,) if args.quick else (200, 1000):
            p99 = run_fan_out(directory, clients, seconds)
            for system in ("gamedb-confirmed", "gamedb-unconfirmed"):
                ratios[f"fan-out p99, {clients}: {system}/websockets-broadcast"] = (
                    p99[system] / p99["websockets-broadcast"]
                )
        rows = 20_000 if args.quick else 100_000
        with server(*ours("bank", str(directory / "many.db"), str(rows))) as (port, pid):
            uri = f"ws://127.0.0.1:{port}"
            report("wire-connects", "gamedb", {"concurrent": 20}, measured(pid, "connects.mjs", uri, 300, 20))
            measure = measured(pid, "initial.mjs", uri, rows)
            report("wire-initial", "gamedb", {"rows": rows, "beside": "a client that calls every 5 ms"}, measure)
    report_ratios(ratios)


if __name__ == "__main__":
    main()
