"""A simulated game: calls as anybody, prepared rows, simulated time, crashes at any boundary, real clients."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from simulated_arena import Bell, LaterPlayer, Player, Secret, Tick, double, hit, join, later, module, roll, wait

from gamedb import ConnectionLost, DatabaseClosed, NotAllowed, ReducerError
from gamedb.testing import Simulation, SimulationStuck, identity
from gamedb.testing.pytest_plugin import MakesSimulations


@pytest.fixture
def sim(gamedb_sim: MakesSimulations) -> Simulation:
    return gamedb_sim(module)


def hp(sim: Simulation, player_id: int = 1) -> int:
    player = sim.read(Player).get(player_id)
    assert player is not None
    return player.hp


def put(sim: Simulation, name: str, hp: int = 100) -> Player:
    [player] = sim.insert(Player(identity=identity(name), name=name, hp=hp))
    assert isinstance(player, Player)
    return player


# --- calling and reading


def test_calls_are_made_as_any_identity(sim: Simulation) -> None:
    sim.caller("ann").call(join, "ann")
    sim.call(join, "bob", sender="bob")
    assert {(p.name, p.identity) for p in sim.read(Player)} == {("ann", identity("ann")), ("bob", identity("bob"))}


def test_a_refusal_reaches_the_caller_and_nothing_changes(sim: Simulation) -> None:
    with pytest.raises(ReducerError, match="no player 7"):
        sim.call(hit, 7, 1)
    with pytest.raises(NotAllowed):
        sim.caller("ann").call("regenerate", None)
    assert list(sim.read(Player)) == []


def test_rows_are_prepared_in_one_line(sim: Simulation) -> None:
    ann = put(sim, "ann", hp=10)
    sim.call(hit, ann.id, 3)
    assert hp(sim, ann.id) == 7


def test_the_same_seed_is_the_same_chance(gamedb_sim: MakesSimulations) -> None:
    rolls = [gamedb_sim(module, seed=seed).call(roll) for seed in (1, 1, 2)]
    assert rolls[0] == rolls[1] != rolls[2]


def test_many_simulations_share_a_module(gamedb_sim: MakesSimulations) -> None:
    one, other = gamedb_sim(module), gamedb_sim(module)
    put(one, "ann")
    assert list(other.read(Player)) == []


def test_the_ad_hoc_sql_of_operators_works(sim: Simulation) -> None:
    put(sim, "ann")
    assert sim.db.sql("SELECT name FROM player").rows == [("ann",)]


def test_what_is_over_says_so(sim: Simulation) -> None:
    sim.close()
    with pytest.raises(DatabaseClosed, match="is over"):
        sim.call(roll)


# --- time


def test_time_goes_through_every_due_time_in_order(sim: Simulation) -> None:
    put(sim, "ann", hp=0)
    seen: list[tuple[datetime, int]] = []
    start = sim.now
    sim.db.subscribe(Player, lambda commit: seen.append((commit.timestamp, hp(sim))))
    sim.advance(30)
    assert seen == [(start + timedelta(seconds=10 * n), n) for n in (1, 2, 3)]
    assert sim.now == start + timedelta(seconds=30)


def test_it_runs_until_something_is_true(sim: Simulation) -> None:
    put(sim, "ann", hp=95)
    start = sim.now
    sim.run_until(lambda: hp(sim) == 100)
    assert sim.now == start + timedelta(seconds=50)


def test_what_never_comes_true_is_an_error_and_not_a_hanging_test(sim: Simulation) -> None:
    with pytest.raises(SimulationStuck, match="have passed"):
        sim.run_until(lambda: False, within=timedelta(hours=1))


def test_time_does_not_go_backwards(sim: Simulation) -> None:
    with pytest.raises(ValueError, match="backwards"):
        sim.advance(-1)


def test_procedures_take_simulated_time(sim: Simulation) -> None:
    start = sim.now
    assert sim.call_procedure(wait, 3600) == 3600
    assert sim.now == start + timedelta(hours=1)
    assert sim.caller("ann").call_procedure(double, 4) == 8


def test_scheduled_procedures_overlap_in_simulated_time(sim: Simulation) -> None:
    start = sim.now
    sim.insert(Bell(scheduled_at=start, seconds=5), Bell(scheduled_at=start, seconds=2))
    sim.advance(10)
    assert [(tick.at - start).total_seconds() for tick in sim.read(Tick)] == [2, 5]


async def _in_a_loop() -> int:
    with Simulation(module) as sim:
        return int(sim.call_procedure(wait, 2))


def test_it_works_inside_of_a_running_asyncio_loop() -> None:
    assert asyncio.run(_in_a_loop()) == 2


# --- crashes


def test_a_crash_keeps_what_was_written(sim: Simulation) -> None:
    put(sim, "ann")
    sim.crash()
    assert hp(sim) == 100
    assert sim.lives == 2


def test_a_crash_loses_what_was_not_flushed(sim: Simulation) -> None:
    put(sim, "ann")
    sim.hold_disk()
    sim.call(hit, 1, 30)
    sim.crash()
    assert hp(sim) == 100
    sim.call(hit, 1, 10)
    sim.flush()
    sim.crash()
    assert hp(sim) == 90


def test_a_crash_cuts_at_any_boundary(sim: Simulation) -> None:
    put(sim, "ann")
    sim.flush()
    for survives in range(4):
        sim.hold_disk()
        for _ in range(3):
            sim.call(hit, 1, 1)
        before = hp(sim) + 3
        boundaries = sim.boundaries
        assert len(boundaries) == 4
        sim.crash(at=boundaries[survives])
        assert hp(sim) == before - survives
        sim.flush()


def test_what_somebody_relies_on_cannot_be_lost(sim: Simulation) -> None:
    put(sim, "ann")
    sim.flush()
    with pytest.raises(ValueError, match="a crash can cut after one of"):
        sim.crash(at=1)


def test_numbers_are_not_given_again_after_a_crash(sim: Simulation) -> None:
    sim.flush()
    sim.hold_disk()
    lost = put(sim, "ann")
    sim.crash()
    assert put(sim, "bob").id > lost.id


def test_whoever_calls_while_the_process_dies_knows_nothing(sim: Simulation) -> None:
    put(sim, "ann")
    sim.crash_after(commits=0)
    with pytest.raises(ConnectionLost, match="may or may not have happened"):
        sim.call(hit, 1, 40)
    assert hp(sim) == 60  # it was on disk, though nobody was told
    assert sim.lives == 2


def test_a_scheduled_procedure_runs_again_after_a_crash(sim: Simulation) -> None:
    sim.insert(Bell(scheduled_at=sim.now, seconds=60))
    sim.advance(30)
    sim.crash()
    sim.advance(59)
    assert list(sim.read(Tick)) == []
    sim.advance(1)
    assert sim.read(Tick).count() == 1


def test_an_interval_keeps_its_phase_over_a_crash(sim: Simulation) -> None:
    put(sim, "ann", hp=50)
    sim.advance(9)
    sim.crash()
    sim.advance(1)
    assert hp(sim) == 51


def test_an_invariant_is_looked_at_after_every_commit(sim: Simulation) -> None:
    put(sim, "ann", hp=10)

    @sim.always
    def alive(sim: Simulation) -> None:
        assert hp(sim) > 0, "ann is dead"

    sim.call(hit, 1, 9)
    with pytest.raises(AssertionError, match="ann is dead"):
        sim.call(hit, 1, 1)


# --- deploys


def test_another_version_of_the_game_takes_over_the_rows(sim: Simulation) -> None:
    put(sim, "ann", hp=40)
    sim.insert(Secret(id=1, text="hidden"), Tick(at=sim.now))
    sim.deploy(later)
    assert [(row.name, row.hp, row.level) for row in sim.read(LaterPlayer)] == [("ann", 40, 1)]
    assert sim.read(Tick).count() == 1
    sim.advance(10)
    assert [row.hp for row in sim.read(LaterPlayer)] == [50]


# --- clients


def test_a_client_sees_what_it_subscribes_to(sim: Simulation) -> None:
    ann, bob = sim.client("ann"), sim.client("bob")
    ann.subscribe(Player)
    bob.call(join, "bob")
    ann.call(join, "ann")
    assert [row.name for row in ann.rows(Player)] == ["bob", "ann"]
    assert [row.identity for row in ann.rows(Player)] == [bob.identity, ann.identity]
    assert list(bob.table(Player)) == []
    sim.call(hit, 1, 5)
    assert [(change.kind, change.new.hp) for change in ann.changes] == [("insert", 100)] * 2 + [("update", 95)]
    bob_row = ann.table(Player).get(1)
    assert bob_row is not None
    assert bob_row.hp == 95


def test_a_client_is_refused_as_on_the_network(sim: Simulation) -> None:
    client = sim.client("ann")
    with pytest.raises(ReducerError, match="no player 7"):
        client.call(hit, 7, 1)
    with pytest.raises(Exception, match="secret"):
        client.subscribe("SELECT * FROM secret")
    assert client.query("SELECT * FROM player") == []
    assert client.procedure(wait, 5) == 5


def test_a_client_ends_a_subscription(sim: Simulation) -> None:
    client = sim.client("ann")
    query_set = client.subscribe(Player)
    client.call(join, "ann")
    client.unsubscribe(query_set)
    assert client.rows(Player) == []


def test_a_client_is_told_of_what_is_on_disk(sim: Simulation) -> None:
    eager, sure = sim.client("eager", confirmed=False), sim.client("sure")
    for client in (eager, sure):
        client.subscribe(Player)
    sim.hold_disk()
    put(sim, "ann")
    assert len(eager.rows(Player)) == 1
    assert len(sure.rows(Player)) == 0
    with pytest.raises(SimulationStuck, match="the disk is held"):
        sure.call(hit, 1, 1)
    sim.flush()
    assert len(sure.rows(Player)) == 1


def test_a_client_comes_back_after_a_crash_and_has_what_survived(sim: Simulation) -> None:
    eager = sim.client("eager", confirmed=False)
    eager.subscribe(Player)
    sim.hold_disk()
    put(sim, "ann")
    assert len(eager.rows(Player)) == 1
    first = eager.connection_id
    sim.crash()
    assert eager.connected
    assert eager.connection_id != first
    assert eager.rows(Player) == []


def test_a_call_of_a_client_that_meets_a_crash_has_no_answer(sim: Simulation) -> None:
    client = sim.client("ann")
    client.subscribe(Player)
    sim.crash_after(commits=0)
    with pytest.raises(ConnectionLost):
        client.call(join, "ann")
    assert client.connected
    assert [row.name for row in client.rows(Player)] == ["ann"]


def test_messages_stay_in_order_whatever_the_latencies_are(sim: Simulation) -> None:
    client = sim.client("ann")
    client.subscribe(Player)
    client.call(join, "ann")
    latencies = iter([3.0, 0.0, 1.0, 0.5, 0.2])
    sim.latency = lambda: next(latencies, 0.0)
    answers = [client.begin(hit, 1, 1) for _ in range(3)]
    sim.advance(60)
    assert [answer.result() for answer in answers] == [None] * 3
    assert [change.new.hp for change in client.changes][1:4] == [99, 98, 97]


def test_a_client_hangs_up(sim: Simulation) -> None:
    client = sim.client("ann")
    client.disconnect()
    assert not client.connected
    with pytest.raises(ConnectionLost):
        client.call(join, "ann")
    client.connect()
    sim.settle()
    client.call(join, "ann")
    assert sim.read(Player).count() == 1
