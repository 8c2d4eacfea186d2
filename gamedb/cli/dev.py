"""`gamedb dev`: serve a game while it is being written.

The game runs in a process of its own. When a file is saved, another process checks the new code against the stored
tables; only when that goes well is the old process told to end and a new one begun. So no code that cannot work, and
no trace of old code, is ever served.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from gamedb.cli.options import DEFAULT_DATA, DEFAULT_LISTEN, DataDir
from gamedb.cli.output import REFUSED, fail
from gamedb.cli.start import STOPPED, Issuers, Listen, LogLevel, Operators, Static

STOP_SECONDS_MAX: Final = 30.0
"""How long the old process may take to end."""
CODE_CHANGED: Final = "the game's code was changed; connect again"
TABLES_CHANGED: Final = "the tables were changed; reload the page or restart the client"
_GAMEDB: Final = (sys.executable, "-m", "gamedb")


def dev(
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:OBJECT", help="The game, such as game:module.", show_default=False),
    ],
    listen: Listen = DEFAULT_LISTEN,
    data_dir: DataDir = DEFAULT_DATA,
    static: Static = None,
    operators: Operators = None,
    issuers: Issuers = None,
    log_level: LogLevel = "debug",
) -> None:
    """Serve a game, and again whenever one of its Python files is saved. The data is kept.

    A syntax error, or a change that the stored tables cannot follow, is shown, and the old code goes on. With a new
    version clients are disconnected and told why; SDKs that reconnect by themselves are back in a second.

    Examples:
      gamedb dev game:module
      gamedb dev arena:module --static public
    """
    options = ["--listen", listen, "--data-dir", str(data_dir), "--log-level", log_level]
    options += ["--static", str(static)] if static is not None else []
    for name, values in (("--operator", operators), ("--issuer", issuers)):
        for value in values or []:
            options += [name, value]
    game = _Game(target, listen, data_dir, options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        game.reload()
        for files in _saved(Path.cwd(), data_dir):
            game.say(f"{', '.join(files)} changed")
            game.reload()
    except KeyboardInterrupt:
        pass
    finally:
        if game.stop("the server is shutting down"):
            game.say(STOPPED)


class _Game:
    """The process that serves, and the checks before it is replaced."""

    def __init__(self, target: str, listen: str, data_dir: Path, options: list[str]) -> None:
        self._target = target
        self._data_dir = data_dir
        self._options = options
        self._moves = listen.endswith(":0")  # each process takes another free port
        self._process: subprocess.Popen[str] | None = None
        self._out = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str, style: str = "cyan") -> None:
        """A line of our own between those of the game."""
        self._out.print(Text.assemble(("dev: ", "bold"), (text, style)))

    def reload(self) -> None:
        """Serve the code as it is now, if it can be served."""
        check = subprocess.run(
            [*_GAMEDB, "check", self._target, "--data-dir", str(self._data_dir), "--json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if check.returncode not in (0, REFUSED):
            sys.stderr.write(check.stderr)
            return self._keep("this code cannot be loaded")
        found = json.loads(check.stdout)
        if not found["opens"]:
            for refusal in found["refusals"]:
                self.say(f"- {refusal}", "red")
            return self._keep("the stored tables do not fit this code")
        self._show_steps(found)
        again = ["--again"] if self._is_running() and not self._moves else []
        self.stop(TABLES_CHANGED if found["clients_must_reload"] else CODE_CHANGED)
        self._process = subprocess.Popen(
            [*_GAMEDB, "start", self._target, *self._options, "--supervised", *again],
            stdin=subprocess.PIPE, text=True, start_new_session=True,  # Ctrl-C is for us; it gets our goodbye
        )  # fmt: skip

    def _show_steps(self, found: dict[str, Any]) -> None:
        if found["exists"]:
            for step in found["steps"]:
                self.say(step["text"])
        for note in found["notes"]:
            self.say(note, "yellow")

    def _keep(self, why: str) -> None:
        self.say(f"{why}; {'the old code goes on' if self._is_running() else 'put it right and save'}", "yellow")

    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, goodbye: str) -> bool:
        """End the process gracefully, if there is one; whether it has ended well, with all it had on disk."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return False
        try:
            process.stdin.write(f"{goodbye}\n")
            process.stdin.close()
        except OSError:  # it has ended by itself
            pass
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.say(f"the old code did not end within {STOP_SECONDS_MAX:g} s and was killed", "red")
            process.kill()
            process.wait()
        return process.returncode == 0


def _saved(directory: Path, data_dir: Path) -> Iterable[list[str]]:
    """The names of the Python files that were saved, each time some were."""
    import watchfiles

    class Watched(watchfiles.PythonFilter):
        def __call__(self, change: watchfiles.Change, path: str) -> bool:
            return super().__call__(change, path) and not path.startswith(f"{data_dir.resolve()}{os.sep}")

    try:
        for changes in watchfiles.watch(directory, watch_filter=Watched(), raise_interrupt=True):
            yield sorted({os.path.relpath(path, directory) for _, path in changes})
    except (OSError, RuntimeError) as error:
        fail(f"the files below {directory} cannot be watched: {error}")
