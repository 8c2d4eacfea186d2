"""Calls for workers: in which queue they wait, who takes them, and whose word on them counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from engine_support import Game, Number, define, seconds
from worker_games import (
    game_with,
    think,
    thinker,
    took,
)
from worker_support import OPERATOR

from gamedb import (
    Database,
    Identity,
    ManualClock,
    Module,
    NotAllowed,
    ProcedureContext,
    SchemaError,
)
from gamedb.server.health import health_of
from gamedb.server.hosted import Hosted
from workflow_module import (
    PendingProcedure,
    UnknownProcedure,
    WorkflowContext,
    Workflows,
    call,
    install,
    workflow,
)
from workflow_module.refusals import BadLease
from workflow_module.tables import WorkflowQueue

# --- the queue


async def ask(ctx: ProcedureContext, text: str) -> str:
    return text.upper()


@workflow
async def asker(ctx: WorkflowContext) -> str:
    return await call(ask, "hello")


@workflow
async def asker_elsewhere(ctx: WorkflowContext) -> str:
    return await call(ask, "hello", queue="other")


def declared() -> Module:
    module = Module("game")
    module.procedure(queue="llm")(ask)
    install(module, [asker, asker_elsewhere])
    return module


def test_a_procedure_names_its_queue_and_a_call_may_name_another() -> None:
    with Database(declared(), clock=ManualClock()) as db:
        flows = Workflows(db)
        for name in ("asker", "asker_elsewhere"):
            db.call("workflow_start", name, None, None, "null")
        assert [row.queue for row in flows.db.read(PendingProcedure)] == ["llm", "other"]
        db.run_due()
        assert [row.attempt for row in flows.db.read(PendingProcedure)] == [1, 1]


def test_a_procedure_with_a_queue_is_not_called_directly_but_by_the_process_itself() -> None:
    with Database(declared(), clock=ManualClock()) as db:
        db.operators.add(OPERATOR)
        for caller in (OPERATOR, Identity(b"\x07" * 32)):
            with pytest.raises(NotAllowed, match="workers of queue 'llm'"):
                db.caller(caller).call_procedure("ask", "x")
        assert db.call_procedure("ask", "x") == "X"  # for tests of the procedure itself


def test_a_queue_has_a_name() -> None:
    with pytest.raises(SchemaError, match="queue='' is no name"):
        Module("game").procedure(queue="")(think)
    with pytest.raises(ValueError, match="queue='' is no name"):
        call(think, 1, queue="")


def test_players_see_neither_the_calls_nor_the_queues() -> None:
    tables = declared().resolve().tables
    assert not tables["pending_procedure"].public
    assert not tables["workflow_queue"].public


def test_taking_costs_the_same_however_long_the_queue_is() -> None:
    costs = []
    for count in (10, 3_000):
        game = game_with()
        with game.db.transaction() as tx:
            for n in range(count):
                game.engine.start(tx, thinker, Number(n=n))
        took(game, "w", limit=1)  # the first one sorts the index
        steps = 0

        def count_step(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal steps
            steps += event in ("call", "c_call")

        sys.setprofile(count_step)
        try:
            took(game, "w", limit=3)
        finally:
            sys.setprofile(None)
        costs.append(steps)
    assert costs[1] < 1.5 * costs[0]


def test_the_bell_of_a_queue_rings_for_each_call_that_can_be_taken() -> None:
    game = game_with()
    game.flows.start(thinker, Number(n=1))
    game.flows.start(thinker, Number(n=2))
    assert game.db.read(WorkflowQueue).get("mail") == WorkflowQueue(name="mail", offers=2)
    one, _ = took(game, "w")
    game.db.call("workflow_procedure_fail", one.id, 1, "Oops", "broke")
    game.advance(9)
    assert game.db.read(WorkflowQueue).get("mail") == WorkflowQueue(name="mail", offers=2)
    game.advance(1)
    assert game.db.read(WorkflowQueue).get("mail") == WorkflowQueue(name="mail", offers=3)


def untaken(hosted: Hosted) -> tuple[float, tuple[str, ...]]:
    health = health_of(hosted)
    return health.numbers["untaken_call_seconds"], health.problems


def test_a_queue_without_workers_makes_the_database_unhealthy() -> None:
    game = game_with()
    hosted = Hosted(game.db)
    assert untaken(hosted) == (0.0, ())
    game.flows.start(thinker, Number(n=1))
    game.jump(200)
    game.flows.start(thinker, Number(n=2))
    game.jump(100)
    assert untaken(hosted) == (300.0, ())
    game.jump(1)
    waited, (problem,) = untaken(hosted)
    assert waited == 301.0
    assert "a call has waited in queue 'mail' for 301 s" in problem
    assert "gamedb worker MODULE:OBJECT --queue mail" in problem
    (first,) = took(game, "w", limit=1, lease_seconds=3600)
    assert untaken(hosted) == (101.0, ())
    game.db.call("workflow_procedure_release", first.id, 1, "w")
    assert untaken(hosted) == (0.0, ())  # the next of the queue has just come back
    took(game, "w", lease_seconds=3600)
    game.jump(1000)
    assert untaken(hosted) == (0.0, ())
    hosted.logs.close()


def test_the_time_in_which_no_worker_could_come_does_not_count() -> None:
    game = game_with()
    game.flows.start(thinker, Number(n=1))
    game.jump(10_000)
    hosted = Hosted(game.db)
    assert untaken(hosted) == (0.0, ())
    game.jump(10)
    assert untaken(hosted)[0] == 10.0
    hosted.logs.close()


def test_how_long_a_call_may_wait_is_the_games_to_say() -> None:
    for limit, problems in ((None, 0), (seconds(5), 1)):
        game = Game([thinker], queue_wait_max=limit)
        hosted = Hosted(game.db)
        game.flows.start(thinker, Number(n=1))
        game.jump(10_000)
        assert len(untaken(hosted)[1]) == problems
        hosted.logs.close()


# --- leases


def test_what_is_given_back_is_the_same_attempt_for_another_worker() -> None:
    game = game_with()
    game.flows.start(thinker, Number(n=1))
    (first,) = took(game, "w1")
    game.db.call("workflow_procedure_release", first.id, 1, "w1")
    (again,) = took(game, "w2")
    assert (again.attempt, again.step_key, again.worker) == (1, first.step_key, "w2")
    assert again.last_error is None


def test_only_the_worker_that_has_the_lease_is_heard() -> None:
    game = game_with()
    flow = game.flows.start(thinker, Number(n=1))
    (first,) = took(game, "w1")
    game.db.call("workflow_procedure_release", first.id, 1, "w1")
    with pytest.raises(UnknownProcedure, match="is over"):  # nobody has it
        game.db.call("workflow_procedure_complete", first.id, 1, '"late"')
    took(game, "w2")
    for name, arguments in (("complete", ['"late"']), ("heartbeat", [30.0]), ("fail", ["E", "late"]), ("release", [])):
        with pytest.raises(UnknownProcedure, match="'w2' has it"):
            game.db.call(f"workflow_procedure_{name}", first.id, 1, *arguments, worker="w1")
    game.db.call("workflow_procedure_complete", first.id, 1, '"in time"', "w2")
    assert game.flows.result(flow) == "in time"


@pytest.mark.parametrize(
    ("worker", "lease"), [("w", 0.0), ("w", -1.0), ("w", 1e9), ("w", float("nan")), ("w", float("inf")), ("", 30.0)]
)
def test_a_lease_has_an_end_and_an_owner(worker: str, lease: float) -> None:
    game = game_with()
    game.flows.start(thinker, Number(n=1))
    with pytest.raises(BadLease):
        took(game, worker, lease)


def test_a_worker_can_say_that_no_attempt_would_do_better() -> None:
    game = game_with()
    flow = game.flows.start(thinker, Number(n=1))
    (first,) = took(game, "w1")
    game.db.call("workflow_procedure_fail", first.id, 1, "Oops", "broke", "w1", True)
    assert game.status(flow) == "Failed"
    game.flows.resume(flow)  # calls again
    (again,) = took(game, "w1")
    assert again.attempt == 2
    with pytest.raises(UnknownProcedure, match="attempt 1 of"):  # what is told again about the attempt before
        game.db.call("workflow_procedure_fail", first.id, 1, "Oops", "broke", "w1", True)
    game.db.call("workflow_procedure_complete", first.id, 2, '"mended"', "w1")
    assert game.flows.result(flow) == "mended"


def test_leases_that_ended_while_the_game_was_down_end_a_minute_after_it_is_up(tmp_path: Path) -> None:
    game = game_with(tmp_path / "game.db")
    flow = game.flows.start(thinker, Number(n=1))
    (first,) = took(game, "w1")
    game.jump(3600)
    game.crash()
    game.quiet()
    game.advance(59)
    game.db.call("workflow_procedure_complete", first.id, 1, '"still here"', "w1")
    assert game.flows.result(flow) == "still here"


OTHER = """
@workflow
async def other(ctx: WorkflowContext) -> int:
    return 1
"""


def test_calls_without_the_code_that_waits_for_them_are_kept_until_it_is_back(tmp_path: Path) -> None:
    game = game_with(tmp_path / "game.db")
    flows = [game.flows.start(thinker, Number(n=n)) for n in range(3)]
    leased, finished = took(game, "w1", limit=2)
    known = game.definitions
    game.reopen([define(OTHER)["other"]])
    game.quiet()
    assert took(game, "w2") == []
    game.db.call("workflow_procedure_complete", finished.id, 1, '"lost"', "w1")
    game.advance(3600)  # the lease of the first ends
    assert took(game, "w2") == []
    game.reopen(known)
    game.quiet()
    again = took(game, "w2")
    assert [(row.workflow_id, row.attempt) for row in again] == [(flow, 1) for flow in flows]
    assert again[0].step_key == leased.step_key
