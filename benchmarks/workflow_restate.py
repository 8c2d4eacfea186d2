"""Restate for `benchmarks.workflows`. Needs the packages `restate-sdk` and `hypercorn`, and `restate-server`.

`npm install @restatedev/restate-server` puts the server into `node_modules/.bin`, which is looked at besides PATH.

Settings: one server with its defaults (log synced, one replica) but for telemetry, and the service on Hypercorn over
HTTP/2, as the SDK's documentation has it, in a process of its own. Calls come over 64 kept connections and wait for
their answer, so many are in flight: the throughput is of all together. A signal is a call to a virtual object that
reads and writes its state, the shortest way to "something came in, state went out" there; ten steps are ten `ctx.run`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Measure = dict[str, Any]
CONNECTIONS = 64
TARGETS = 100
START_SECONDS_MAX = 60


def missing(find_spec: Callable[[str], object]) -> str:
    """What has to be installed first; empty when nothing."""
    for name in ("restate", "hypercorn"):
        if not find_spec(name):
            return f"the package {name} is not installed (pip install 'gamedb[bench]')"
    if server() is None:
        return "there is no restate-server (npm install @restatedev/restate-server)"
    return ""


def server() -> str | None:
    """The path of the server's program."""
    local = Path("node_modules/.bin/restate-server")
    return shutil.which("restate-server") or (str(local.resolve()) if local.exists() else None)


def run(directory: str, quick: bool) -> Measure:
    """Both workloads, with a server and a service of their own."""
    Path(directory).mkdir()
    node, ingress, admin, service = _free_ports(4)
    program = server()
    assert program is not None
    environment = {
        **os.environ,
        "RESTATE_BIND_PORT": str(node),
        "RESTATE_INGRESS__BIND_PORT": str(ingress),
        "RESTATE_ADMIN__BIND_PORT": str(admin),
        "RESTATE_BIND_IP": "127.0.0.1",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error",
    }
    serve = [sys.executable, "-m", "hypercorn", "--bind", f"127.0.0.1:{service}", "--log-level", "error",
             "benchmarks.workflow_restate_app:app"]  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []
    with Path(directory, "log").open("wb") as log:
        try:
            processes += [
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
                for command in ([program, "--no-logo", "--base-dir", f"{directory}/data"], serve)
            ]
            _register(admin, service, processes)
            calls = 2_000 if quick else 20_000
            workflows = 300 if quick else 2_000
            asyncio.run(_calls(ingress, "Steps/ten", CONNECTIONS, lambda i: i))
            steps = asyncio.run(_calls(ingress, "Steps/ten", workflows, lambda i: i))
            asyncio.run(_calls(ingress, "Counter/{key}/add", TARGETS, lambda i: 1))
            signals = asyncio.run(_calls(ingress, "Counter/{key}/add", calls, lambda i: 1))
            signals["peak_mb"] = steps["peak_mb"] = _rss_mb(processes)
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return {
        "workflow-ten-steps": steps,
        "workflow-signal": signals,
        "parameters": {
            "workflow-ten-steps": {"ten_steps": workflows, "at_once": CONNECTIONS},
            "workflow-signal": {"signals": calls, "workflows": TARGETS, "at_once": CONNECTIONS},
        },
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _register(admin: int, service: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """Tell the server of the service, as soon as both are up."""
    body = json.dumps({"uri": f"http://127.0.0.1:{service}"}).encode()
    until = time.monotonic() + START_SECONDS_MAX
    while True:
        request = urllib.request.Request(
            f"http://127.0.0.1:{admin}/deployments", body, {"content-type": "application/json"}
        )
        try:
            urllib.request.urlopen(request, timeout=10).read()
            return
        except OSError as error:
            if time.monotonic() > until or any(process.poll() is not None for process in processes):
                raise SystemExit(f"restate-server does not start: {error}") from None
            time.sleep(0.2)


async def _calls(port: int, target: str, count: int, argument: Callable[[int], int]) -> Measure:
    """`count` calls over all connections."""
    numbers = iter(range(count))
    samples: list[float] = []

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = json.dumps(argument(number)).encode()
            path = target.format(key=number % TARGETS)
            before = time.perf_counter()
            writer.write(
                f"POST /{path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not head.startswith(b"http/1.1 200"):
                raise SystemExit(f"restate answered {head.decode()!r}")
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
            samples.append(time.perf_counter() - before)
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*[one_connection() for _ in range(CONNECTIONS)])
    seconds = time.perf_counter() - started
    samples.sort()
    return {
        "per_second": round(count / seconds, 1),
        "p50_ms": round(samples[len(samples) // 2] * 1000, 3),
        "p99_ms": round(samples[len(samples) * 99 // 100] * 1000, 3),
    }


def _rss_mb(processes: list[subprocess.Popen[bytes]]) -> float:
    """The memory of the server and the service."""
    import psutil

    found = 0
    for process in processes:
        root = psutil.Process(process.pid)
        found += sum(each.memory_info().rss for each in [root, *root.children(recursive=True)])
    return round(found / 1024 / 1024, 1)
