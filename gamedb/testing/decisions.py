"""What `explore` decides in a run, one thing at a time: each a value, so that a run can be repeated, cut and told."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Act(msgspec.Struct, frozen=True, tag=True):
    """An actor does its next step."""

    actor: str
    """The name of its function."""

    def __str__(self) -> str:
        return f"{self.actor} goes on"


class Pass(msgspec.Struct, frozen=True, tag=True):
    """Time passes; with `seconds=None`, until just when something is due."""

    seconds: float | None
    """How long."""

    def __str__(self) -> str:
        return "time passes until something is due" if self.seconds is None else f"{self.seconds:g} s pass"


class Die(msgspec.Struct, frozen=True, tag=True):
    """The process dies after so many more commits, and of those that nobody relies on, it loses at most so many."""

    commits: int
    """It dies after one more commit than this; -1: at once."""
    lost: int
    """Of the commits that only the disk could have kept, so many at most."""

    def __str__(self) -> str:
        when = "now" if self.commits < 0 else f"after {self.commits + 1} more commit(s)"
        lost = f"{self.lost} commit(s) that nobody relied on" if self.lost else "nothing"
        return f"the process dies {when}, and loses {lost}"


class Fail(msgspec.Struct, frozen=True, tag=True):
    """Writing to disk fails from now on. So long after it first has, the process is started again.

    Of what was not written by then, at most `lost` commits are not there.
    """

    seconds: float
    """How long after the failed write."""
    lost: int
    """Of what was not written, so many commits at most."""

    def __str__(self) -> str:
        lost = f"{self.lost} commit(s) that nobody relied on" if self.lost else "nothing"
        when = f"{self.seconds:g} s later" if self.seconds else "at once"
        return f"the next write to disk fails; {when} the process is started again, and has lost {lost}"


class Slow(msgspec.Struct, frozen=True, tag=True):
    """From now on the disk takes so long for each commit."""

    seconds: float
    """How long."""

    def __str__(self) -> str:
        return f"the disk takes {self.seconds:g} s from now on"


class Jitter(msgspec.Struct, frozen=True, tag=True):
    """From now on messages and procedures take random times."""

    seed: str
    """What the times come from."""

    def __str__(self) -> str:
        return "messages and procedures take random times from now on"


Decision = Act | Pass | Die | Fail | Slow | Jitter


def simpler(decision: Decision) -> Iterator[Decision]:
    """What could be said in its place, and is easier to think about; the simplest first."""
    match decision:
        case Pass(float(seconds)):
            yield Pass(None)
            yield Pass(float(round(seconds)))
        case Die(commits, lost):
            yield Die(-1, 0)
            yield Die(-1, lost)
            yield Die(commits, 0)
        case Fail(seconds, lost):
            yield Fail(0.0, 0)
            yield Fail(0.0, lost)
            yield Fail(seconds, 0)
