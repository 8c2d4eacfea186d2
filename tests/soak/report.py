"""What a soak has found and counted, as the rest of it tells."""

from __future__ import annotations

import sys
import time
from collections import Counter


class Report:
    """Faults by kind, and numbers. One kind of fault is told once, and counted on."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        """What happened how often."""
        self.notes: list[str] = []
        """What is worth reading at the end."""
        self.latencies: list[float] = []
        """How many seconds each confirmed gift of a player took."""
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun

    def fault(self, kind: str, text: str) -> None:
        """Something that must not be."""
        self.counts[f"fault: {kind}"] += 1
        if kind not in self.faults:
            self.faults[kind] = text
            self.say(f"FAULT, {kind}: {text}")

    def expect(self, true: bool, kind: str, text: str) -> None:
        """A fault unless this is so."""
        if not true:
            self.fault(kind, text)

    def note(self, text: str) -> None:
        """A line for the end, too."""
        self.notes.append(text)
        self.say(text)

    def say(self, text: str) -> None:
        """A line of progress, on stderr."""
        minutes, seconds = divmod(int(self.seconds), 60)
        print(f"{minutes:3}:{seconds:02} {text}", file=sys.stderr, flush=True)
