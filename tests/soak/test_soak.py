"""Half a minute of it: two kills, a deploy, a slow reader, a dead worker; and what would be seen if something broke."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from tests.soak.book import Book
from tests.soak.logs import look_at_log
from tests.soak.plan import FIRST, plan
from tests.soak.report import Report
from tests.soak.soak import Soak
from tests.soak.summary import json_line, summary
from tests.soak.usage import LIFE_SECONDS_MIN, Sample, Usage


def test_a_short_soak_finds_nothing(tmp_path: Path) -> None:
    soak = Soak(tmp_path, seed=1, seconds=24)
    asyncio.run(soak.run())
    counts = soak.report.counts
    assert soak.report.faults == {}, f"{summary(soak)}\nrepeat it: python -m tests.soak --minutes 0.4 --seed 1"
    assert counts["kill"] >= 2
    assert counts["deploy"] == 1
    happened = ("confirmed gifts", "caches compared", "sums of the world", "looks at the world", "looks into ledgers")
    assert all(
        counts[what] for what in (*happened, "visits", "pranks", "slow readers let go", "looks at an empty server")
    ), counts
    assert '"faults": 0' in json_line(soak)


def test_the_same_seed_plans_the_same_and_the_shortest_plan_has_everything() -> None:
    assert plan(7, 1800) == plan(7, 1800) != plan(8, 1800)
    short = [deed.what for deed in plan(7, 24)]
    assert short.count("deploy") == 1
    assert [what for what in short if what != "deploy"][: len(FIRST)] == list(FIRST)
    long = [deed.what for deed in plan(7, 1800) if deed.at_seconds > 1800 * 0.75]
    assert long
    assert not {"kill", "early kill", "stop", "deploy"} & set(long)


def test_a_book_knows_what_its_ledger_may_say() -> None:
    book = Book()
    book.confirm(book.next(to=2, gold=3))
    book.next(to=2, gold=4)
    assert "gift 1 was confirmed, and the ledger ends at 0" in (book.look(0, 0) or "")
    assert "gifts that nobody made" in (book.look(2, 99) or "")
    first = Book()
    first.next(to=2, gold=3)
    assert first.look(0, 0) is None  # it never arrived
    first.next(to=5, gold=6)
    other = Book()
    other.next(to=2, gold=3)
    digest = next(iter(other._possible[1]))
    assert first.look(1, digest) is None  # the one before it came late, and the new one was refused
    assert first.next(to=1, gold=1) == 2


def test_a_log_may_have_what_is_expected_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "Serving. Ctrl-C stops it.\n"
        "12:00:00 ERROR   gamedb.soak: workflow 1 (errand) failed:\nTraceback (most recent call last):\n"
        "RuntimeError: fails on purpose\n"
        "12:00:01 WARNING uvicorn.error: Invalid HTTP request received.\n"
        "12:00:01 WARNING gamedb.soak: give has been running:\n  te = TracebackException(type(value))\n"
    )
    report = Report()
    look_at_log(log, report)
    assert report.faults == {}
    assert report.counts["warning: uvicorn.error: Invalid HTTP request received."] == 1
    with log.open("a") as file:
        file.write(
            "12:00:02 ERROR   gamedb.soak: it fails on purpose\nsocket.py:1: ResourceWarning: unclosed <socket>\n"
        )
        file.write("12:00:02 WARNING asyncio: hm\nTraceback (most recent call last):\nKeyError: 7\n")
        file.write("12:00:03 ERROR   gamedb.soak: workflow 7 had lost a timer\n")
    look_at_log(log, report)
    assert sorted(report.faults) == [
        "ERROR in a log: gamedb.soak: workflow N had lost a timer",
        "ERROR in a log: socket.py:N: ResourceWarning: unclosed <socket>",
        "WARNING in a log: KeyError: N",
    ]


def test_memory_that_grows_within_a_life_or_over_all_is_a_fault(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "soak.db") as db:
        db.execute("CREATE TABLE t (a)")
    db.close()

    def judged(*memories: list[float]) -> list[str]:
        report = Report()
        usage = Usage(tmp_path / "soak.db", report)
        for life, samples in enumerate(memories):
            ages = [LIFE_SECONDS_MIN * n / (len(samples) - 1) for n in range(len(samples))]
            usage.samples += [Sample(0, life, age, mb, 9, 9, 1, 1) for age, mb in zip(ages, samples, strict=True)]
        usage.judge()
        return list(report.faults)

    flat = [100.0 + n % 5 for n in range(60)]
    assert judged(flat, flat, flat) == []
    assert judged(flat, [100.0 + 2 * n for n in range(60)]) == ["memory grows"]
    assert judged(flat, flat, [140.0] * 60) == ["memory grows"]
