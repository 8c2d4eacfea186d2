"""A disk that cannot be written: nothing is accepted any more, nothing confirmed is lost, and a new start goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from simulated_arena import Bell, Player, Tick, hit, join, module

from gamedb import AutoInc, ConnectionLost, Module, PrimaryKey, ReducerContext, Row, Unique, WriteFailed, u64
from gamedb.errors import CallFailed
from gamedb.server.limits import Limits
from gamedb.testing import ExplorationFailed, Run, Simulation, identity
from gamedb.testing.database import SimulatedDatabase
from gamedb.testing.decisions import Fail
from gamedb.testing.pytest_plugin import MakesSimulations


@pytest.fixture
def sim(gamedb_sim: MakesSimulations) -> Simulation:
    sim = gamedb_sim(module)
    sim.insert(Player(identity=identity("ann"), name="ann"))
    sim.flush()
    return sim


def hp(sim: Simulation) -> int:
    player = sim.read(Player).get(1)
    assert player is not None
    return player.hp


def test_after_a_failed_write_nothing_is_accepted_and_a_new_start_has_what_was_written(sim: Simulation) -> None:
    sim.fail_disk("Input/output error")
    sim.call(hit, 1, 10)  # committed, as the game does not wait for the disk
    for _ in range(2):
        with pytest.raises(WriteFailed, match="Input/output error"):
            sim.call(hit, 1, 10)
    with pytest.raises(WriteFailed):
        sim.flush()
    assert hp(sim) == 90, "reading goes on"
    sim.crash()
    assert hp(sim) == 100
    sim.call(hit, 1, 1)
    sim.crash()
    assert hp(sim) == 99


def test_what_failed_to_be_written_may_be_there_all_the_same(sim: Simulation) -> None:
    sim.hold_disk()
    sim.call(hit, 1, 10)
    sim.fail_disk()
    with pytest.raises(WriteFailed):
        sim.flush()
    [_, attempted] = sim.boundaries
    sim.crash(at=attempted)
    assert hp(sim) == 90


def test_what_was_never_tried_to_be_written_is_not_there(sim: Simulation) -> None:
    sim.disk.delay_seconds = 1.0
    sim.call(hit, 1, 10)
    sim.call(hit, 1, 10)
    sim.fail_disk()
    sim.advance(1)  # the first of the two fails, and the second is left alone
    assert len(sim.boundaries) == 2


def test_schedules_stop_and_go_on_with_the_next_start(sim: Simulation) -> None:
    sim.call(hit, 1, 10)
    sim.fail_disk()
    sim.advance(10)
    assert hp(sim) == 91, "in memory it has regenerated"
    sim.advance(3600)
    assert hp(sim) == 91
    assert sim.next_due is None
    sim.crash()
    assert hp(sim) == 91, "the missed ones are one late call"
    sim.advance(10)
    assert hp(sim) == 92


def test_a_procedure_that_ends_meanwhile_runs_again(sim: Simulation) -> None:
    sim.insert(Bell(scheduled_at=sim.now, seconds=60))
    sim.fail_disk()
    sim.call(hit, 1, 10)
    sim.advance(60)
    assert sim.read(Tick).count() == 0
    sim.crash()
    sim.advance(60)
    assert sim.read(Tick).count() == 1


def test_a_client_of_confirmed_rows_is_cut_off_and_comes_back(sim: Simulation) -> None:
    sure, eager = sim.client("sure"), sim.client("eager", confirmed=False)
    for client in (sure, eager):
        client.subscribe(Player)
    sim.fail_disk()
    sim.call(hit, 1, 10)
    assert [row.hp for row in eager.rows(Player)] == [90]
    assert [row.hp for row in sure.rows(Player)] == [100]
    assert not sure.connected
    assert "cannot write to its disk" in str(sure.error)
    with pytest.raises(CallFailed, match="takes no calls"):
        eager.call(hit, 1, 10)
    sim.advance(10)
    assert not sure.connected, "it tries again and again, and is not let in"
    sim.crash()
    assert sure.connected
    assert [row.hp for row in eager.rows(Player)] == [100], "it has been told what it has"
    assert [change.kind for change in sure.changes] == ["insert"]


def test_a_client_comes_back_when_the_process_does(sim: Simulation) -> None:
    client = sim.client("ann")
    client.subscribe(Player)
    sim.fail_disk(restart_after=5)
    with pytest.raises(ConnectionLost):
        client.call(hit, 1, 10)
    sim.run_until(lambda: client.up_to_date)
    assert sim.lives == 2
    client.call(hit, 1, 3)
    assert [row.hp for row in client.rows(Player)] == [97]


def test_whoever_calls_before_the_process_is_started_again_knows_nothing(sim: Simulation) -> None:
    sim.fail_disk(restart_after=5)
    sim.call(hit, 1, 10)
    with pytest.raises(ConnectionLost, match="may or may not have happened"):
        sim.call(hit, 1, 10)
    assert sim.lives == 1
    sim.advance(5)
    assert sim.lives == 2
    assert hp(sim) == 100


def test_numbers_that_cannot_be_reserved_are_not_handed_out(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamedb.durability.RESERVED_NUMBERS", 2)
    sim.crash()
    sim.fail_disk()
    sim.hold_disk()
    with pytest.raises(WriteFailed):
        for name in ("bob", "cyd", "dan", "eve"):
            sim.call(join, name, sender=name)
    seen = {player.id for player in sim.read(Player)}
    sim.crash()
    sim.hold_disk(False)
    sim.call(join, "fay", sender="fay")
    assert [player.id for player in sim.read(Player) if player.id in seen] == [1]


def test_a_restart_in_good_order_cannot_write_either(sim: Simulation) -> None:
    sim.hold_disk()
    sim.call(hit, 1, 10)
    sim.fail_disk()
    sim.restart()
    assert hp(sim) == 100


# --- clients that do not read


def test_a_client_that_does_not_read_is_let_go_of_and_comes_back(gamedb_sim: MakesSimulations) -> None:
    sim = gamedb_sim(module, limits=Limits(queued_bytes_max=1000))
    slow, other = sim.client("slow"), sim.client("other")
    for client in (slow, other):
        client.subscribe(Player)
    slow.stop_reading()
    for number in range(400):
        sim.call(join, "x" * 100, sender=f"player {number}")
    assert "too slow" in str(slow.error)
    assert slow.rows(Player) == []
    assert len(other.rows(Player)) == 400
    slow.read_on()
    sim.run_until(lambda: slow.up_to_date)
    assert slow.rows(Player) == other.rows(Player)


def test_a_client_that_reads_on_in_time_has_missed_nothing(sim: Simulation) -> None:
    client = sim.client("ann")
    client.subscribe(Player)
    client.stop_reading()
    for _ in range(3):
        sim.call(hit, 1, 1)
    assert [row.hp for row in client.rows(Player)] == [100]
    assert not client.up_to_date
    client.read_on()
    assert [row.hp for row in client.rows(Player)] == [97]
    assert client.up_to_date


def test_a_client_that_has_hung_up_does_not_come_back_by_itself(sim: Simulation) -> None:
    client = sim.client("ann")
    client.disconnect()
    sim.crash()
    sim.advance(60)
    assert not client.connected
    client.connect()
    sim.settle()
    assert client.connected


# --- explore


class Entry(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    text: Unique[str]


class Total(Row):
    id: PrimaryKey[u64]
    entries: u64


ledger = Module("ledger")
ledger.table(public=True)(Entry)
ledger.table(public=True)(Total)


@ledger.reducer
def write(ctx: ReducerContext, text: str) -> None:
    ctx.db[Entry].insert(Entry(text=text))
    total = ctx.db[Total].get(1)
    ctx.db[Total].upsert(Total(id=1, entries=1 if total is None else total.entries + 1))


def nothing_confirmed_is_lost(run: Run[Simulation]) -> None:
    sim = run.sim
    confirmed: set[str] = set()
    watcher = sim.client("watcher")
    watcher.subscribe(Entry)

    def scribe(name: str, call: Callable[..., object]) -> Callable[[], Iterator[None]]:
        def writes() -> Iterator[None]:
            for number in range(6):
                text = f"{name} {number}"
                try:
                    call(write, text)
                    confirmed.add(text)
                except ConnectionLost:
                    pass
                yield

        return writes

    run.actor(scribe("in process", sim.call))
    run.actor(scribe("over the wire", sim.client("scribe").call))

    @run.always
    def whole(sim: Simulation) -> None:
        total = sim.read(Total).get(1)
        assert sim.read(Entry).count() == (0 if total is None else total.entries), "half of a transaction"

    @run.at_end
    def all_there(sim: Simulation) -> None:
        written = {entry.text for entry in sim.read(Entry)}
        assert confirmed <= written, f"{confirmed - written} was confirmed, and is lost"
        told = {change.new.text for change in watcher.changes if change.new is not None}
        assert told <= written, f"the watcher was told of {told - written}, which is lost"
        assert {entry.text for entry in watcher.rows(Entry)} == written


def test_whatever_the_disk_does_nothing_confirmed_is_lost(gamedb_sim: MakesSimulations) -> None:
    explored = gamedb_sim(ledger).explore(nothing_confirmed_is_lost, seeds=100, disk_errors=2)
    assert explored.disk_errors > 50
    assert explored.crashes > explored.disk_errors


def test_a_server_that_tells_before_it_is_written_is_found_out(
    gamedb_sim: MakesSimulations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedDatabase, "durable_tx_id", property(lambda self: self.last_tx_id))
    with pytest.raises(ExplorationFailed, match="which is lost"):
        gamedb_sim(ledger).explore(nothing_confirmed_is_lost, seeds=100, crashes=0, disk_errors=1)


def test_a_run_that_fails_by_the_disk_says_so(gamedb_sim: MakesSimulations) -> None:
    def careless(run: Run[Simulation]) -> None:
        written: list[str] = []

        @run.actor
        def scribe() -> Iterator[None]:
            for number in range(10):
                written.append(str(number))  # before it is
                with contextlib.suppress(ConnectionLost):
                    run.sim.call(write, str(number))
                yield

        run.at_end(lambda sim: sim.read(Entry).count() == len(written))

    with pytest.raises(ExplorationFailed, match="the next write to disk fails") as found:
        gamedb_sim(ledger).explore(careless, seeds=200, crashes=0)
    assert [type(decision) for decision in found.value.decisions].count(Fail) == 1


def test_explore_does_without_failing_disks(gamedb_sim: MakesSimulations) -> None:
    explored = gamedb_sim(ledger).explore(
        nothing_confirmed_is_lost, seeds=30, crashes=0, disk_errors=0, linger=timedelta(seconds=5)
    )
    assert (explored.crashes, explored.disk_errors) == (0, 0)
