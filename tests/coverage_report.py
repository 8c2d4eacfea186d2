"""What the tests cover of `gamedb` and `workflow_module`, in short; exit code 1 when that is below a limit.

    python -m coverage json -q -o - | python tests/coverage_report.py

Lines and branches have a limit each: coverage's own `fail_under` is one number for both together, in which many
covered lines hide branches that no test takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

# Percent.
LINES_MIN = 95.0
BRANCHES_MIN = 90.0

FILES_SHOWN_MAX = 25


def report(found: dict[str, Any]) -> Iterator[str]:
    """A row for each of the files that miss most, and one for all. `found`: what `coverage json` writes."""
    summaries = {name: file["summary"] for name, file in found["files"].items()}
    worst = sorted(summaries, key=lambda name: (-_missing(summaries[name]), name))[:FILES_SHOWN_MAX]
    yield "   lines  missing  branches  missing"
    for name in worst:
        if _missing(summaries[name]):
            yield _row(name, summaries[name])
    yield _row(f"all {len(summaries)} files", found["totals"])


def refusals(totals: dict[str, int]) -> Iterator[str]:
    """A line for each limit that the totals are below."""
    for what, covered, count, least in (
        ("lines", totals["covered_lines"], totals["num_statements"], LINES_MIN),
        ("branches", totals["covered_branches"], totals["num_branches"], BRANCHES_MIN),
    ):
        if not count:
            yield f"no {what} were measured: were the tests run under coverage?"
        elif _percent(covered, count) < least:
            found = f"{covered:,} of {count:,} {what} are covered: {_percent(covered, count):.2f} %"
            yield f"{found}, but {least:g} % must be; `python -m coverage html` shows which are not"


def _missing(summary: dict[str, int]) -> int:
    return summary["missing_lines"] + summary["missing_branches"]


def _percent(covered: int, count: int) -> float:
    return 100 * covered / count if count else 100.0


def _row(name: str, summary: dict[str, int]) -> str:
    lines = _percent(summary["covered_lines"], summary["num_statements"])
    branches = _percent(summary["covered_branches"], summary["num_branches"])
    return f"{lines:7.2f}% {summary['missing_lines']:8,} {branches:8.2f}% {summary['missing_branches']:8,}  {name}"


def main() -> int:
    found = json.load(sys.stdin)
    print(*report(found), sep="\n")
    refused = list(refusals(found["totals"]))
    for line in refused:
        print(line, file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
