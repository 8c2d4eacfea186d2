"""What a test does with a simulation by mistake: an error says what, and nothing hangs or passes unseen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from simulated_arena import Player, hit, join, module

from gamedb import Database, DatabaseClosed, GamedbError, Module, ProcedureContext, ReducerContext, UnknownName
from gamedb.testing import ModuleStateMachine, Simulation, identity
from gamedb.testing.pytest_plugin import MakesSimulations


@pytest.fixture
def sim(gamedb_sim: MakesSimulations) -> Simulation:
    return gamedb_sim(module)


def joins_as_carl(sim: Simulation) -> None:
    sim.caller("carl").call(join, "carl")


def inserts(sim: Simulation) -> None:
    sim.insert(Player(identity=identity("carl"), name="carl"))


def crashes(sim: Simulation) -> None:
    sim.crash()


def advances(sim: Simulation) -> None:
    sim.advance(1)


@pytest.mark.parametrize("wrong", [joins_as_carl, inserts, crashes, advances])
def test_an_invariant_only_looks(sim: Simulation, wrong: Any) -> None:
    with pytest.raises(GamedbError, match="an invariant only looks"):
        sim.always(wrong)


def test_an_invariant_writes_nothing_past_the_simulation_either(sim: Simulation) -> None:
    with pytest.raises(GamedbError, match="an invariant only looks"):
        sim.always(lambda sim: sim.db.call("join", "carl"))
    assert not len(sim.read(Player))


@pytest.mark.parametrize("move", [crashes, advances, Simulation.restart], ids=["crash", "advance", "restart"])
def test_what_runs_in_the_simulation_does_not_move_it(gamedb_sim: MakesSimulations, move: Any) -> None:
    mover = Module("mover")

    @mover.reducer
    def in_a_reducer(ctx: ReducerContext) -> None:
        move(sim)

    @mover.procedure
    async def in_a_procedure(ctx: ProcedureContext) -> None:
        move(sim)

    sim = gamedb_sim(mover)
    for act in (lambda: sim.call(in_a_reducer), lambda: sim.call_procedure(in_a_procedure)):
        with pytest.raises(GamedbError, match="called by what runs in the simulation"):
            act()
    assert sim.lives == 1


def test_a_simulation_that_is_over_stays_so(sim: Simulation) -> None:
    sim.close()
    for move in (sim.crash, sim.restart, lambda: sim.advance(1)):
        with pytest.raises(DatabaseClosed, match="is over"):
            move()
    assert sim.lives == 1


@pytest.mark.parametrize("made", [Simulation, Database])
def test_a_module_is_no_name(made: Any) -> None:
    with pytest.raises(TypeError, match=r"made of a Module.*not of 'arena'"):
        made("arena")


def test_wrong_values_are_named(sim: Simulation) -> None:
    with pytest.raises(TypeError, match="a str or an Identity, not by 5"):
        sim.caller(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a str or an Identity, not by None"):
        sim.client(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="number of seconds, not '30'"):
        sim.advance("30")  # type: ignore[arg-type]
    for no_time in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="is no length of time"):
            sim.advance(no_time)
    with pytest.raises(ValueError, match=r"crash_after\(commits=-1\)"):
        sim.crash_after(-1)
    with pytest.raises(TypeError, match="what is deployed is a Module, not 'arena'"):
        sim.deploy("arena")  # type: ignore[arg-type]
    sim.caller("ann").call(join, "ann")
    assert [player.name for player in sim.read(Player)] == ["ann"]


def test_after_a_refused_version_the_old_one_goes_on(sim: Simulation) -> None:
    sim.caller("ann").call(join, "ann")
    with pytest.raises(GamedbError, match="nothing was changed"):
        sim.deploy(Module("arena"))
    sim.call(hit, 1, 30)
    assert [player.hp for player in sim.read(Player)] == [70]


def test_a_procedure_without_a_fake_is_told_that_there_is_no_network(gamedb_sim: MakesSimulations) -> None:
    shop = Module("shop")

    @shop.procedure
    async def ask(ctx: ProcedureContext) -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(NotImplementedError, match="a simulation has no network"):
        gamedb_sim(shop).call_procedure(ask)


def test_what_does_not_come_true_is_named(sim: Simulation) -> None:
    def somebody_wins() -> bool:
        return False

    with pytest.raises(GamedbError, match=r"somebody_wins \(.*test_misuse.py:\d+\) did not come true"):
        sim.run_until(somebody_wins, within=timedelta(seconds=1))


def test_a_machine_plays_all_that_it_is_told_to() -> None:
    misspelt: list[dict[str, Any]] = [{"reducers": ("hitt",)}, {"arguments": {"damge": None}}]
    for names in misspelt:
        machine = type("Misspelt", (ModuleStateMachine,), {"module": module, **names})
        with pytest.raises(UnknownName, match=r"hitt|damge"):
            machine()
    with pytest.raises(TypeError, match=r"needs a game to play: module = "):
        type("Gameless", (ModuleStateMachine,), {})()
