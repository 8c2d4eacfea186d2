"""The line that tells an operator how far loading is, when it takes long enough to wonder."""

from __future__ import annotations

import time
from typing import Final, TextIO

_QUIET_SECONDS: Final = 1.0
_SECONDS_BETWEEN_LINES: Final = 5.0


class Progress:
    """Counts loaded rows; silent for the first second."""

    def __init__(self, label: str, stream: TextIO | None) -> None:
        self._label = label
        self._stream = stream
        self._started = time.monotonic()
        self._next = self._started + _QUIET_SECONDS
        self._rows = 0
        self._shown = False

    def add(self, table: str, rows: int) -> None:
        """So many more rows of this table are loaded."""
        self._rows += rows
        now = time.monotonic()
        if now >= self._next:
            self._show(now, f"at table {table}")

    def finish(self) -> None:
        """Everything is loaded."""
        if self._shown:
            self._show(time.monotonic(), "done", last=True)

    def _show(self, now: float, where: str, last: bool = False) -> None:
        stream = self._stream
        if stream is None:
            return
        line = f"gamedb: loading {self._label}: {self._rows:,} rows in {now - self._started:.1f} s, {where}"
        if stream.isatty():
            stream.write(f"\r{line}\x1b[K" + ("\n" if last else ""))
            self._next = now + 0.2
        else:
            stream.write(f"{line}\n")
            self._next = now + _SECONDS_BETWEEN_LINES
        stream.flush()
        self._shown = True
