"""The processes that are soaked: a server and a worker, each one life after the other, on the same data."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

import httpx

from tests.soak.game import QUEUE
from tests.soak.logs import look_at_log
from tests.soak.report import Report

ROOT: Final = Path(__file__).parents[2]
GAME: Final = "tests.soak.game:module"
DATABASE: Final = "soak"
START_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 60.0
LEASE_SECONDS: Final = 5


def free_port() -> int:
    """Some port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Child:
    """A process that is started again and again. That it ends by itself is a fault."""

    name = "child"

    def __init__(self, data: Path, report: Report) -> None:
        self.data = data
        self.report = report
        self.version = 1
        self.lives = 0
        self.born = 0.0
        self.log = Path()
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Its number while it is alive."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.born

    def _arguments(self) -> list[str]:
        raise NotImplementedError

    async def launch(self) -> None:
        """Begin a life, without waiting for anything."""
        async with self._lock:
            await self._launch()

    async def _launch(self) -> None:
        self.lives += 1
        self.log = self.data / f"{self.name}-{self.lives:03}.log"
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONFAULTHANDLER": "1",
            "PYTHONWARNINGS": "default::ResourceWarning",
            "SOAK_VERSION": str(self.version),
        }
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "gamedb", *self._arguments(), cwd=ROOT, env=environment, stdout=output,
                stderr=output, stdin=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        self.born = time.monotonic()

    async def kill(self) -> None:
        """SIGKILL, at whatever it is."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM: it must end in order."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        await self._wait(-number if number is signal.SIGKILL else 0, number)

    async def _wait(self, wanted: int, number: signal.Signals | None = None) -> None:
        """Wait for its end, after a signal or not: it must come soon, and with this exit code."""
        async with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            if number is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            try:
                async with asyncio.timeout(END_SECONDS_MAX):
                    code = await process.wait()
            except TimeoutError:
                process.send_signal(signal.SIGABRT)  # so that its log says where it is
                code = await process.wait()
            if code != wanted and not self._may_end_with(code):
                text = f"{code} after {number.name if number else 'a deploy'}, not {wanted}: see {self.log}"
                self.report.fault(f"exit code of the {self.name}", text)
            look_at_log(self.log, self.report)

    def _may_end_with(self, code: int) -> bool:
        """Whether it had a reason to end like that."""
        return False

    async def look(self) -> None:
        """Report it if it has ended by itself."""
        process = self._process
        if process is not None and process.returncode is not None:
            self._process = None
            self.report.fault(f"the {self.name} ended by itself", f"code {process.returncode}, see {self.log}")


class Server(Child):
    """`gamedb start`, always at the same port."""

    name = "server"

    def __init__(self, data: Path, report: Report) -> None:
        super().__init__(data, report)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.serving = False
        """Whether it has answered in this life, and nobody has ended it."""

    def _arguments(self) -> list[str]:
        listen = f"127.0.0.1:{self.port}"
        return ["start", GAME, "--listen", listen, "--data-dir", str(self.data), "--log-level", "warning"]

    async def start(self) -> None:
        """Begin a life, and return when it serves."""
        await self.launch()
        async with httpx.AsyncClient() as client:
            while self.age < START_SECONDS_MAX and self.pid is not None:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/v1/ping")).status_code == 200:
                        self.serving = True
                        return
                await asyncio.sleep(0.05)
        self.report.fault("the server did not start", f"in {self.age:.0f} s, see {self.log}")
        raise ConnectionError("no server")

    async def _end(self, number: signal.Signals) -> None:
        self.serving = False
        await super()._end(number)

    @property
    def token(self) -> str:
        """The owner's."""
        return (self.data / "owner.token").read_text().strip()


class Worker(Child):
    """`gamedb worker` for the queue of the game."""

    name = "worker"

    def __init__(self, data: Path, report: Report, url: str) -> None:
        super().__init__(data, report)
        self._url = url

    def _arguments(self) -> list[str]:
        return [
            "worker", GAME, "--queue", QUEUE, "--uri", self._url, "--data-dir", str(self.data),
            "--lease", str(LEASE_SECONDS), "--drain", "5", "--log-level", "warning",
        ]  # fmt: skip

    def _may_end_with(self, code: int) -> bool:
        """It gives up when it finds no server at its very beginning, and handles no signals before that."""
        log = self.log.read_text()
        return (code == 2 and "cannot connect" in log) or (code == -signal.SIGTERM and "takes from" not in log)

    async def look(self) -> None:
        process = self._process
        if process is not None and process.returncode is not None and self._may_end_with(process.returncode):
            self._process = None
            await self.launch()
        else:
            await super().look()

    async def refused(self) -> None:
        """Wait until it has seen that the server has another version of the game; 2 is its exit code for that."""
        await self._wait(2)
