"""Metrics: what is counted, and who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gamedb import AutoInc, Database, ManualClock, Module, PrimaryKey, Row, SchemaError, u64
from gamedb.server import measures as limits
from gamedb.server.measures import OTHER, Measures
from gamedb.server.metrics import metrics_text
from tests.gamedb.server.http_game import Mood, Player, Served, game
from workflow_module import Signal, Struct, WorkflowContext, Workflows, install, signal, workflow

Samples = dict[tuple[str, ...], float]


def samples(text: bytes) -> Samples:
    """By name and the values of the labels, in the order of the labels' names."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[(sample.name, *(sample.labels[label] for label in sorted(sample.labels)))] = sample.value
    return found


@pytest.fixture
def measured(clock: ManualClock) -> Iterator[Served]:
    module = game()
    module.count_rows(Player, "mood", "hp")
    served = Served(Database(module, clock=clock), clock)
    served.db.call("join", "ann")

    async def begin() -> None:
        served.server.begin(asyncio.get_running_loop())

    asyncio.run(begin())
    yield served
    served.server.end()
    served.close()


def test_transactions_are_counted_by_name(measured: Served) -> None:
    for name in ("ben", "eve"):
        measured.db.call("join", name)
    with pytest.raises(ZeroDivisionError):
        measured.db.call("bug")
    found = samples(metrics_text([measured.hosted]))
    assert found["gamedb_transaction_seconds_count", "arena", "join"] == 2
    assert found["gamedb_transaction_seconds_bucket", "arena", "+Inf", "join"] == 2
    assert found["gamedb_transaction_seconds_sum", "arena", "join"] > 0
    assert found["gamedb_transaction_seconds_count", "arena", "bug"] == 1
    assert found["gamedb_transactions_total", "arena"] == measured.db.last_tx_id


def test_rows_are_counted_by_columns(measured: Served) -> None:
    counted = "gamedb_rows_of_player_by_mood_and_hp"
    assert samples(metrics_text([measured.hosted]))[counted, "arena", "100", "CALM"] == 1
    measured.db.call("join", "ben", 5, Mood.ANGRY)
    measured.db.call("join", "eve", 5, Mood.ANGRY)
    measured.db.call("hurt", 1, 95)
    with measured.db.transaction() as ctx:
        ctx.db[Player].delete(2)
    found = samples(metrics_text([measured.hosted]))
    assert {key[2:]: n for key, n in found.items() if key[0] == counted} == {("5", "CALM"): 1, ("5", "ANGRY"): 1}
    assert found["gamedb_rows", "arena", "player"] == 2


def test_the_state_of_the_database(measured: Served, clock: ManualClock) -> None:
    found = samples(metrics_text([measured.hosted]))
    for name in ("connections", "live_queries", "queued_bytes", "schedule_lag_seconds", "durable_lag_seconds",
                 "delivery_lag_seconds", "durable_transactions_behind", "queued_bytes_largest"):  # fmt: skip
        assert found[f"gamedb_{name}", "arena"] == 0
    assert found["gamedb_healthy", "arena"] == 1
    measured.db.close()
    assert samples(metrics_text([measured.hosted]))["gamedb_healthy", "arena"] == 0


def test_the_process_is_among_them(measured: Served) -> None:
    assert any(key[0] == "python_info" for key in samples(metrics_text([measured.hosted])))


def test_names_are_not_without_end(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NAMES_MAX", 3)
    with Database(Module("arena"), clock=clock) as db:
        counted = Measures(db)
        for number in range(10):
            with db.transaction(name=f"name{number}"):
                pass
        counted.close()
        assert set(counted.durations) == {"name0", "name1", "name2", OTHER}
        assert counted.durations[OTHER].count == 7
        with db.transaction(name="name0"):
            pass
        assert counted.durations["name0"].count == 1


def test_only_operators_see_them(measured: Served) -> None:
    assert measured.client.get("/metrics").status_code == 401
    refused = measured.client.get("/metrics", headers=measured.stranger)
    assert refused.status_code == 403
    assert "player" not in refused.text
    answer = measured.client.get("/metrics", headers=measured.owner)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert ("gamedb_rows", "arena", "secret") in samples(answer.content)


class Poke(Signal): ...


class Nothing(Struct): ...


@workflow
async def patient(ctx: WorkflowContext, init: Nothing) -> None:
    await signal(Poke, timeout=timedelta(hours=1))


def test_workflows_are_counted_by_type_and_status(clock: ManualClock) -> None:
    module = Module("arena")
    install(module, [patient])
    with Database(module, clock=clock) as db:
        counted = Measures(db)
        flows = Workflows(db)
        flows.start(patient, Nothing())
        done = flows.start(patient, Nothing())
        flows.signal(done, Poke())
        [workflows, _procedures] = counted.rows
        assert workflows.counts() == {("patient", "Suspended"): 1, ("patient", "Completed"): 1}
        counted.close()


def test_a_count_of_what_is_not_there_is_refused() -> None:
    class Thing(Row):
        id: PrimaryKey[AutoInc[u64]] = 0

    module = Module("arena")
    module.count_rows(Thing, "id")
    with pytest.raises(SchemaError, match="not a table"):
        module.resolve()
    module.table(Thing)
    module.resolve()
    module.count_rows(Thing, "colour")
    with pytest.raises(SchemaError, match="no column 'colour'; it has id"):
        module.resolve()
