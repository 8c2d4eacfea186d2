"""What stands in the log of a process: nothing that is not expected there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.soak.game import ON_PURPOSE
from tests.soak.report import Report

RECORD: Final = re.compile(r"^\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR|CRITICAL) ", re.MULTILINE)
TROUBLE: Final = re.compile(r"Exception ignored|was never|ResourceWarning|Fatal Python error")
"""What Python itself prints, behind whatever record came before it."""
EXPECTED: Final = (
    ON_PURPOSE,
    r"was closed: 1008 too slow",
    r"was closed: 1011 malformed message",
    r"table 'ledger' differs between the server and the module",  # a worker after a deploy
)
"""Warnings and errors that are no faults."""


def look_at_log(log: Path, report: Report) -> None:
    """Report what a process has logged and should not have."""
    for level, text in records(log.read_text(errors="replace")):
        is_expected = any(re.search(expected, text) for expected in EXPECTED)
        is_error = level in ("ERROR", "CRITICAL") or "Traceback (most recent" in text
        if TROUBLE.search(text) or (is_error and not is_expected):
            report.fault(f"{level} in a log: {shape(text)}", f"{log}:\n{text}")
        elif level == "WARNING" and not is_expected:
            report.counts[f"warning: {shape(text.splitlines()[0])}"] += 1


def records(text: str) -> Iterator[tuple[str, str]]:
    """Each record with its level, and what was printed beside records with none."""
    starts = [match.start() for match in RECORD.finditer(text)] + [len(text)]
    yield "", text[: starts[0]]
    for start, end in itertools.pairwise(starts):
        match = RECORD.match(text[start:])
        assert match is not None
        yield match[1], text[start + match.end() : end].rstrip()


def shape(text: str) -> str:
    """The last line of a record without what differs from one to the next."""
    return re.sub(r"\b[0-9a-f]{16,}\b|\d+", "N", text.strip().splitlines()[-1] if text.strip() else "")[:100]
