"""The state of a server's databases in Prometheus' text form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from gamedb.server.health import health_of
from gamedb.server.hosted import Hosted
from gamedb.server.limits import RATES
from gamedb.server.measures import BUCKETS

_BOUNDS: Final = [*(f"{bound:g}" for bound in BUCKETS), "+Inf"]
_PROCESS: Final = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)


def metrics_text(databases: Iterable[Hosted], refused: Mapping[str, int] | None = None) -> bytes:
    """The metrics of these databases and of the process. `refused`: how often limits by address were reached."""
    return generate_latest(_Collected(list(databases), refused or {}))


class _Collected:
    def __init__(self, databases: list[Hosted], refused: Mapping[str, int]) -> None:
        self._databases = databases
        self._refused = refused

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()
        yield from self._counters()
        yield self._durations()
        yield from self._rows()
        for collector in _PROCESS:
            yield from collector.collect()

    def _gauges(self) -> list[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"gamedb_{name}", text, labels=["database"])
            for name, text in (
                ("healthy", "Whether the database does its work, 1 or 0."),
                ("connections", "Open websockets."),
                ("live_queries", "Distinct queries that clients follow."),
                ("queued_bytes", "Updates that wait for clients to read them, in bytes."),
                ("queued_bytes_largest", "Of the client that has the most."),
                ("schedule_lag_seconds", "The age of the oldest scheduled row that should have fired."),
                ("durable_lag_seconds", "How long what is committed has been waiting for the disk."),
                ("delivery_lag_seconds", "How long the oldest update has been waiting for its client."),
                ("durable_transactions_behind", "Committed transactions that are not on disk yet."),
            )
        }
        told = GaugeMetricFamily("gamedb_health", "What libraries tell to health.", labels=["database", "name"])
        for hosted in self._databases:
            health, db = health_of(hosted), hosted.db
            for name, number in health.numbers.items():
                told.add_metric([hosted.name, name], number)
            queued = [session.bytes_waiting for session in hosted.sessions]
            values = {
                "healthy": 0 if health.problems else 1,
                "connections": len(queued),
                "live_queries": hosted.hub.live_queries if hosted.is_served else 0,
                "queued_bytes": sum(queued),
                "queued_bytes_largest": max(queued, default=0),
                "schedule_lag_seconds": health.overdue_seconds,
                "durable_lag_seconds": health.write_lag_seconds,
                "delivery_lag_seconds": health.delivery_lag_seconds,
                "durable_transactions_behind": db.last_tx_id - db.durable_tx_id,
            }
            for name, value in values.items():
                gauges[name].add_metric([hosted.name], value)
        return [*gauges.values(), told]

    def _counters(self) -> list[Metric]:
        transactions = CounterMetricFamily("gamedb_transactions", "Committed transactions.", labels=["database"])
        sent = CounterMetricFamily("gamedb_sent_bytes", "Sent over websockets.", labels=["database"])
        frames = CounterMetricFamily("gamedb_sent_frames", "Websocket frames sent.", labels=["database"])
        calls = CounterMetricFamily("gamedb_calls", "Reducer calls over websockets.", labels=["database"])
        for hosted in self._databases:
            transactions.add_metric([hosted.name], hosted.db.last_tx_id)
            if hosted.is_served:
                counters = hosted.hub.counters
                sent.add_metric([hosted.name], counters.frame_bytes)
                frames.add_metric([hosted.name], counters.frames)
                calls.add_metric([hosted.name], counters.calls)
        return [transactions, sent, frames, calls, self._refusals()]

    def _refusals(self) -> Metric:
        family = CounterMetricFamily("gamedb_refused", "What was past a limit of rates.", labels=["limit"])
        refused = Counter(dict.fromkeys(RATES, 0))
        refused.update(self._refused)
        for hosted in self._databases:
            if hosted.is_served:
                refused.update(hosted.hub.counters.refused)
        for limit, count in refused.items():
            family.add_metric([limit], count)
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "gamedb_transaction_seconds",
            "How long transactions took, by the name of the reducer.",
            labels=["database", "name"],
        )
        for hosted in self._databases:
            measures = hosted.measures
            for name, durations in list(measures.durations.items()) if measures is not None else ():
                counts = list(accumulate(durations.buckets))
                pairs = list(zip(_BOUNDS, map(float, counts), strict=True))
                family.add_metric([hosted.name, name], pairs, durations.seconds)
        return family

    def _rows(self) -> Iterator[Metric]:
        rows = GaugeMetricFamily("gamedb_rows", "Rows of each table.", labels=["database", "table"])
        for hosted in self._databases:
            for table in hosted.db.game_tables:
                rows.add_metric([hosted.name, table.schema.name], len(table.rows))
        yield rows
        counted: dict[tuple[str, tuple[str, ...]], GaugeMetricFamily] = {}
        for hosted in self._databases:
            for counter in hosted.measures.rows if hosted.measures is not None else ():
                key = (counter.table, counter.columns)
                if key not in counted:
                    name = f"gamedb_rows_of_{counter.table}_by_{'_and_'.join(counter.columns)}"
                    counted[key] = GaugeMetricFamily(
                        name, f"Rows of {counter.table}.", labels=["database", *counter.columns]
                    )
                for values, count in counter.counts().items():
                    counted[key].add_metric([hosted.name, *values], count)
        yield from counted.values()
