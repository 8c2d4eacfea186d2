"""What `make test COVERAGE=1` says of the coverage, and when it fails."""

from __future__ import annotations

import io
import json

import pytest

from tests import coverage_report


def summary(lines: tuple[int, int], branches: tuple[int, int]) -> dict[str, int]:
    """Of (covered, all) lines and branches, as `coverage json` writes it."""
    return {
        "covered_lines": lines[0],
        "num_statements": lines[1],
        "missing_lines": lines[1] - lines[0],
        "covered_branches": branches[0],
        "num_branches": branches[1],
        "missing_branches": branches[1] - branches[0],
    }


def run(monkeypatch: pytest.MonkeyPatch, totals: dict[str, int], files: dict[str, dict[str, int]]) -> int:
    found = {"totals": totals, "files": {name: {"summary": counts} for name, counts in files.items()}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(found)))
    return coverage_report.main()


def test_the_files_that_miss_most_come_first_and_those_that_miss_nothing_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "whole.py": summary((10, 10), (0, 0)),
        "small.py": summary((9, 10), (4, 4)),
        "branches.py": summary((100, 100), (12, 20)),
    }
    assert run(monkeypatch, summary((1190, 1200), (92, 100)), files) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["100.00%", "0", "60.00%", "8", "branches.py"],
        ["90.00%", "1", "100.00%", "0", "small.py"],
        ["99.17%", "10", "92.00%", "8", "all", "3", "files"],
    ]


def test_it_stays_short(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    files = {f"{number}.py": summary((number, 100), (0, 0)) for number in range(90)}
    run(monkeypatch, summary((95, 100), (90, 100)), files)
    assert len(capsys.readouterr().out.splitlines()) == 1 + coverage_report.FILES_SHOWN_MAX + 1


@pytest.mark.parametrize(
    ("lines", "branches", "said"),
    [
        ((9_500, 10_000), (900, 1_000), []),
        ((9_499, 10_000), (1_000, 1_000), ["9,499 of 10,000 lines are covered: 94.99 %, but 95 % must be"]),
        ((10_000, 10_000), (899, 1_000), ["899 of 1,000 branches are covered: 89.90 %, but 90 % must be"]),
        ((0, 0), (0, 0), ["no lines were measured", "no branches were measured"]),
    ],
    ids=["at the limits", "lines below", "branches below", "nothing"],
)
def test_lines_and_branches_have_a_limit_each(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lines: tuple[int, int],
    branches: tuple[int, int],
    said: list[str],
) -> None:
    assert run(monkeypatch, summary(lines, branches), {}) == (1 if said else 0)
    refusals = capsys.readouterr().err.splitlines()
    assert len(refusals) == len(said)
    for refusal, text in zip(refusals, said, strict=True):
        assert text in refusal
