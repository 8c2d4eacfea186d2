"""What the server takes: memory, files, threads and disk, over its lives; and the rules that say when it is too much.

A **life** is one process of the server. What it takes is sampled all the time; of the memory the samples between the
start and `WARM_SECONDS` do not count.

- Within a life: the median of the last third is at most `GROWTH_MAX` times that of the first third after warming up,
  and `SLACK_MB` more. Lives that are too short for that say nothing.
- Over all lives: the memory right after a start is at most `GROWTH_MAX` times that of the first restart, plus
  `SLACK_MB`: the rows do not become more, so neither does what is loaded.
- Without clients: files and threads are as many as at the first such moment, plus `SPARE`.
- The write-ahead log is never longer than `WAL_MB_MAX`, and at the end the database file is at most `FILE_FACTOR_MAX`
  times as long as its copy without the free pages, plus `SLACK_MB`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tests.soak.report import Report

WARM_SECONDS: Final = 20.0
LIFE_SECONDS_MIN: Final = 90.0
GROWTH_MAX: Final = 1.1
SLACK_MB: Final = 12.0
SPARE: Final = 8
WAL_MB_MAX: Final = 64.0
FILE_FACTOR_MAX: Final = 3.0
MB: Final = 1 << 20


class Sample(NamedTuple):
    """What the server took at a moment."""

    seconds: float
    """Since the beginning of the soak."""
    life: int
    age: float
    memory_mb: float
    files: int
    threads: int
    file_mb: float
    wal_mb: float


class Usage:
    """The samples of a soak. On systems without `/proc` there are none, and nothing is said."""

    def __init__(self, database: Path, report: Report) -> None:
        self.samples: list[Sample] = []
        self._empty: list[Sample] = []
        self._database = database
        self._report = report

    def take(self, pid: int | None, life: int, age: float, *, empty: bool = False) -> None:
        """Sample a process; `empty` when it has no clients."""
        with contextlib.suppress(OSError):  # it ends at this very moment, or there is no /proc
            place = Path(f"/proc/{pid}")
            pages = int((place / "statm").read_text().split()[1])
            sample = Sample(
                self._report.seconds, life, age, pages * os.sysconf("SC_PAGE_SIZE") / MB,
                len(os.listdir(place / "fd")), len(os.listdir(place / "task")),
                _size_mb(self._database), _size_mb(self._database.with_name(self._database.name + "-wal")),
            )  # fmt: skip
            self.samples.append(sample)
            if empty:
                self._empty.append(sample)

    @property
    def last(self) -> Sample:
        """The latest sample."""
        return self.samples[-1] if self.samples else Sample(0, 0, 0, 0, 0, 0, 0, 0)

    def judge(self) -> None:
        """Report what breaks a rule."""
        if not self.samples:
            self._report.note("memory was not measured: there is no /proc here")
            return
        lives = [list(samples) for _, samples in groupby(self.samples, key=lambda sample: sample.life)]
        for samples in lives:
            self._judge_life(samples)
        births = [samples[0].memory_mb for samples in lives[1:]]  # the first life began without rows
        if births:
            self._compare("memory after a start", births[0], births[-1])
        for what in ("files", "threads"):
            counts = [getattr(sample, what) for sample in self._empty]
            if counts and counts[-1] > counts[0] + SPARE:
                self._report.fault(f"{what} without clients", f"{counts}")
        wal = max(sample.wal_mb for sample in self.samples)
        self._report.expect(wal <= WAL_MB_MAX, "the write-ahead log", f"was {wal:.1f} MB long")
        self._judge_file()

    def _judge_life(self, samples: list[Sample]) -> None:
        warm = [sample.memory_mb for sample in samples if sample.age > WARM_SECONDS]
        if samples[-1].age < LIFE_SECONDS_MIN or len(warm) < 9:
            return
        third = len(warm) // 3
        self._compare(f"memory in life {samples[0].life}", median(warm[:third]), median(warm[-third:]))

    def _compare(self, what: str, before: float, after: float) -> None:
        within = after <= before * GROWTH_MAX + SLACK_MB
        self._report.note(f"{what}: {before:.0f} MB, then {after:.0f} MB")
        self._report.expect(within, "memory grows", f"{what}: {before:.0f} MB, then {after:.0f} MB")

    def _judge_file(self) -> None:
        copy = self._database.with_name("copy.db")
        with contextlib.closing(sqlite3.connect(self._database)) as db:
            db.execute("VACUUM INTO ?", (str(copy),))
        size, least = _size_mb(self._database), _size_mb(copy)
        copy.unlink()
        self._report.note(f"database file: {size:.1f} MB, without free pages {least:.1f} MB")
        self._report.expect(size <= least * FILE_FACTOR_MAX + SLACK_MB, "the database file", f"{size:.1f} MB long")

    def curve(self, lines: int = 24) -> list[str]:
        """Memory, files, threads and disk at so many moments."""
        step = max(1, len(self.samples) // lines)
        title = " minute life  age s  RSS MB  files threads  file MB  WAL MB"
        return [title] + [
            f"{s.seconds / 60:7.1f} {s.life:4} {s.age:6.0f} {s.memory_mb:7.1f} {s.files:6} {s.threads:7}"
            f" {s.file_mb:8.1f} {s.wal_mb:7.1f}"
            for s in self.samples[::step]
        ]


def _size_mb(path: Path) -> float:
    return path.stat().st_size / MB if path.exists() else 0.0
