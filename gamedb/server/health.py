"""Whether a hosted database does its work: schedules fire, commits reach the disk, updates reach clients.

A database can answer calls while its schedules or deliveries stand still, so each is looked at by itself.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from gamedb.columns import to_micros
from gamedb.errors import DatabaseClosed, SchemaError
from gamedb.health_report import HealthReport
from gamedb.schema import Row
from gamedb.server.hosted import Hosted

OVERDUE_SECONDS_MAX: Final = 30.0
"""How late the oldest scheduled firing may be."""
WRITE_LAG_SECONDS_MAX: Final = 30.0
"""How long what is committed may wait for the disk."""
DELIVERY_LAG_SECONDS_MAX: Final = 30.0
"""How long the oldest update may wait for its client."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one database."""

    overdue_seconds: float
    """The age of the oldest scheduled row that should have fired; 0 when none is due."""
    write_lag_seconds: float
    delivery_lag_seconds: float
    numbers: dict[str, float]
    """What libraries tell (`Module.on_health`), by name; for operators."""
    problems: tuple[str, ...]
    """What is wrong, each with what it hints at; nothing when the database is healthy."""


def health_of(hosted: Hosted) -> Health:
    """Look at a database now."""
    db = hosted.db
    overdue, write_lag, delivery_lag = overdue_seconds(hosted), seconds(db.write_lag), hosted.delivery_lag_seconds()
    problems = []
    if db.failure is not None:
        problems.append(f"it takes no transactions: {db.failure}")
    if overdue > OVERDUE_SECONDS_MAX:
        problems.append(f"a scheduled row is {overdue:.0f} s late: schedules have stopped, or reducers are too slow")
    if write_lag > WRITE_LAG_SECONDS_MAX:
        problems.append(f"commits have been waiting for the disk for {write_lag:.0f} s")
    if delivery_lag > DELIVERY_LAG_SECONDS_MAX:
        problems.append(f"an update has been waiting for its client for {delivery_lag:.0f} s")
    report = HealthReport(partial(_count, hosted), read=db.read, seconds_since=partial(_seconds_since, hosted))
    for function in db.module.health_checks:
        with suppress(DatabaseClosed):  # which `failure` has told
            function(report)
    problems += report.problems
    return Health(
        overdue_seconds=overdue,
        write_lag_seconds=write_lag,
        delivery_lag_seconds=delivery_lag,
        numbers=report.numbers,
        problems=tuple(problems),
    )


def _count(hosted: Hosted, row: type[Row], values: dict[str, Any]) -> int:
    measures = hosted.measures
    if measures is None:  # it is not served
        return 0
    table = hosted.db.tables[row].data.schema.name
    for counter in measures.rows:
        if counter.table == table and values.keys() <= set(counter.columns):
            return counter.count(values)
    raise SchemaError(f"nobody counts rows of {table!r} by {', '.join(values)}; ask for that with Module.count_rows")


def _seconds_since(hosted: Hosted, moment: datetime) -> float:
    since = max(to_micros(moment), hosted.served_since_micros)
    return max(0.0, (hosted.db.clock.micros() - since) / 1_000_000)


def overdue_seconds(hosted: Hosted) -> float:
    """The age of the oldest scheduled row that should have fired."""
    due = None if hosted.db.failure is not None else hosted.db.next_due
    return 0.0 if due is None else max(0.0, (hosted.db.clock.micros() - to_micros(due)) / 1_000_000)


def seconds(duration: timedelta) -> float:
    """A duration as seconds."""
    return duration.total_seconds()
