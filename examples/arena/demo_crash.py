"""Kills the arena in the middle, starts it again, and shows that everything went on.

    python -m examples.arena.demo_crash

The server is a process of its own. After some seconds of play it is killed with SIGKILL, which no program can catch;
a few seconds later it is started again. What is shown side by side is read from its SQLite file with plain SQL: what
was running when it was killed with what was left to go, and what is running afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

PLAY_SECONDS: Final = 45.0
DOWN_SECONDS: Final = 4.0
CATCH_UP_SECONDS: Final = 2.0
START_SECONDS_MAX: Final = 60.0
WIDTH: Final = 110
"""Of the table, where nobody says how wide the terminal is."""
NAMES: Final = {
    "patrol sleep": "walks on",
    "combat sleep": "strikes back",
    "respawn sleep": "is back",
    "arrival": "arrives",
    "bite": "bites",
    "end": "ends",
    "enrage": "enrages",
    "expire": "expires",
    "fire_breath": "breathes fire",
    "phase": "changes",
    "turn": "turn is over",
    "wake": "wakes",
}
"""What a timer means, by its name, or by the workflow's and its name."""


class Run(NamedTuple):
    """A workflow that waits, with its next deadline."""

    workflow_id: int
    kind: str
    about: str
    step: str
    state: str
    timer: str
    due: datetime | None


class Snapshot(NamedTuple):
    """What the database file says at a moment."""

    at: datetime
    runs: dict[int, Run]
    ended: frozenset[int]
    """The workflows that have come to their end."""


def main() -> None:
    """Play, kill, look, start, look."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = WIDTH
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        data = Path(folder)
        out.print("[bold]The arena starts.[/] Bots drink, bid, patrol and wake the dragon.")
        with server(data) as process:
            pause(out, PLAY_SECONDS, "It plays")
            process.send_signal(signal.SIGKILL)
            process.wait()
        before = look(data, datetime.now(UTC))
        out.print(f"[bold red]kill -9[/] at {before.at:%H:%M:%S}. Nobody could save anything.")
        pause(out, DOWN_SECONDS, "It is down")
        starting = time.monotonic()
        with server(data):
            answered = time.monotonic() - starting
            out.print(
                f"[bold green]It is up again.[/] It was down for {DOWN_SECONDS:g} s on purpose, and answered "
                f"{answered:.1f} s after its start."
            )
            pause(out, CATCH_UP_SECONDS, "It does what came due")
            after = look(data, datetime.now(UTC))
    out.print(comparison(before, after))
    lost = lost_between(before, after)
    out.print(verdict(before, after, lost))
    sys.exit(1 if lost else 0)


def pause(out: Console, seconds: float, text: str) -> None:
    """Let time pass, and say so: where nobody sees the seconds count down, once and at the beginning."""
    if not out.is_terminal:
        out.print(f"{text} for {seconds:g} s.")
    with out.status(text) as status:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            status.update(f"{text} ({left:.0f} s)")
            time.sleep(min(left, 0.5))


@contextlib.contextmanager
def server(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The arena in a process of its own, until the end of the `with`."""
    port = free_port()
    command = [sys.executable, "-m", "gamedb", "start", f"{__package__}.module:module"]
    command += ["--listen", f"127.0.0.1:{port}", "--data-dir", str(data), "--log-level", "error"]
    root = Path(__file__).parents[2]
    log = data / "server.log"
    with log.open("ab") as output:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=output, stderr=output)
    try:
        wait_for(f"http://127.0.0.1:{port}/v1/health", process, log)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def free_port() -> int:
    """Some port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server answers."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with code {process.returncode}:\n{log.read_text()}")
        with contextlib.suppress(OSError), urlopen(url, timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"the server did not answer within {START_SECONDS_MAX:.0f} s:\n{log.read_text()}")


# --- what the file says


def look(data: Path, at: datetime) -> Snapshot:
    """Every workflow that waits, with the deadline that comes first."""
    (path,) = data.rglob("*.db")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        rows = db.execute(
            """
            SELECT w.id, w.workflow_type, w.entity_id, w.current_step, w.state_data, t.timer_name, t.due_at
            FROM workflow w LEFT JOIN workflow_timer t ON t.workflow_id = w.id
            WHERE w.status = 'Suspended' ORDER BY w.workflow_type, w.id, t.due_at DESC
            """
        ).fetchall()
        ended = db.execute("SELECT id FROM workflow WHERE status IN ('Completed', 'Cancelled')").fetchall()
        people = dict(db.execute("SELECT id, name FROM character"))
        things = dict(db.execute("SELECT id, kind FROM item"))
    runs = {}
    for workflow_id, kind, entity, step, state, timer, due in rows:  # the last one is the deadline that comes first
        about = things.get(entity, "") if kind == "auction" else people.get(entity, "")
        moment = None if due is None else datetime.fromisoformat(due)
        runs[workflow_id] = Run(workflow_id, kind, about, step, variables(kind, state), timer or "", moment)
    return Snapshot(at, runs, frozenset(workflow_id for (workflow_id,) in ended))


def variables(kind: str, state: bytes) -> str:
    """What is worth knowing of a workflow's variables."""
    known = json.loads(state)
    init = known.get("init") or {}
    match kind:
        case "buff":
            return f"{init['kind']} ×{known['stacks']}"
        case "auction":
            return f"price {known['price']}"
        case "boss_fight":
            return f"phase {known['phase']}"
        case "patrol":
            return f"{known['fights']} fights"
        case "combat":
            return f"turn {known['turns']}"
        case "day_night":
            return f"day {init['number']}"
        case "respawn":
            return str(init["name"])
    return ""


# --- side by side


def comparison(before: Snapshot, after: Snapshot) -> Table:
    """One line for each workflow."""
    table = Table(title="What was left when it was killed, and what is left now", title_style="bold")
    for column in ("workflow", "of", "state", "waits until it", "left before", "left after", ""):
        table.add_column(column, justify="right" if column.startswith("left") else "left")
    for run in before.runs.values():
        now = after.runs.get(run.workflow_id)
        shown = now or run
        table.add_row(
            f"{run.kind.replace('_', ' ')} [dim]#{run.workflow_id}[/]",
            run.about,
            changed(run.state, shown.state),
            NAMES.get(f"{run.kind} {run.timer}") or NAMES.get(run.timer, run.timer),
            left(run.due, before.at),
            "" if now is None else left(now.due, after.at),
            went_on(run, after),
        )
    return table


def changed(before: str, after: str) -> str:
    """A state, and what has become of it."""
    return before if before == after else f"{before} [dim]→[/] {after}"


def left(due: datetime | None, now: datetime) -> str:
    """So many seconds."""
    return "" if due is None else f"{(due - now).total_seconds():.1f} s"


def went_on(run: Run, after: Snapshot) -> str:
    """What has become of it."""
    now = after.runs.get(run.workflow_id)
    if now is not None:
        return "[green]goes on[/]" if now.due == run.due else "[green]goes on, next step[/]"
    if run.workflow_id not in after.ended:
        return "[red]lost[/]"
    return "[yellow]its time came[/]" if run.due is not None and run.due <= after.at else "[yellow]is done[/]"


def lost_between(before: Snapshot, after: Snapshot) -> list[Run]:
    """What was running, and neither runs nor has ended."""
    return [run for n, run in before.runs.items() if n not in after.runs and n not in after.ended]


def verdict(before: Snapshot, after: Snapshot, lost: list[Run]) -> str:
    """In one sentence."""
    kept = sum(workflow_id in after.runs for workflow_id in before.runs)
    if lost:
        return f"[bold red]{len(lost)} of {len(before.runs)} workflows were lost.[/]"
    return (
        f"[bold green]Nothing was lost:[/] {kept} of {len(before.runs)} workflows go on, "
        f"{len(before.runs) - kept} came to their end while the arena was down or just after."
    )


if __name__ == "__main__":
    main()
