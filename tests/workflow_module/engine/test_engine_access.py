"""Who may call what, what exists only in tests, what can be seen, and what `install` refuses."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest
from engine_support import START, Bid, Clock, Deadline, Game, Mark, Number, Stop, mark, seconds

from gamedb import Database, Identity, Module, NotAllowed, ReducerContext, SchemaError, UnknownName
from workflow_module import (
    UnknownWorkflow,
    Workflow,
    WorkflowAttribute,
    WorkflowContext,
    WorkflowError,
    Workflows,
    WorkflowSignal,
    WorkflowTimer,
    install,
    select,
    signal,
    sleep,
    spawn,
    timer,
    workflow,
)

ALICE = Identity.from_hex("a1" * 32) if hasattr(Identity, "from_hex") else Identity(b"\xa1" * 32)


@workflow
async def plain(ctx: WorkflowContext, init: Number) -> int:
    await select(Stop, timer(Clock.END, after=seconds(10)))
    return init.n


@workflow
async def uses_plain(ctx: WorkflowContext) -> int:
    return await spawn(plain, Number(n=1))


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("workflow_start", ("plain", None, None, '{"n": 1}')),
    ("workflow_signal", (1, "Stop", "{}")),
    ("workflow_broadcast_signal", ("Stop", "x", "{}")),
    ("workflow_cancel", (1,)),
    ("workflow_resume", (1,)),
    ("workflow_terminate", (1,)),
    ("workflow_delete", (1,)),
    ("workflow_procedure_take", ("q", "w", 1.0, 1)),
    ("workflow_procedure_heartbeat", (1, 1, 1.0)),
    ("workflow_procedure_complete", (1, 1, "1")),
    ("workflow_procedure_fail", (1, 1, "E", "e")),
    ("workflow_procedure_release", (1, 1)),
    ("workflow_start_test", ("plain", None, None, '{"n": 1}')),
    ("debug_fire_timer", (1, "end")),
    ("debug_send_signal", (1, "Stop", "{}")),
    ("debug_complete_procedure", (1, "1")),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_engine_reducers_are_for_in_process_code_and_operators(name: str, arguments: tuple[Any, ...]) -> None:
    game = Game([plain], testing=True)
    with pytest.raises(NotAllowed):
        game.db.caller(ALICE).call(name, *arguments)
    assert len(game.db.read(Workflow)) == 0
    game.db.operators.add(ALICE)
    with contextlib.suppress(WorkflowError):  # there is no workflow 1
        game.db.caller(ALICE).call(name, *arguments)


def test_access_opens_what_it_names_and_nothing_else() -> None:
    game = Game([plain], access=["workflow_start", "workflow_signal"])
    alice = game.db.caller(ALICE)
    flow = alice.call("workflow_start", "plain", None, None, '{"n": 1}')
    alice.call("workflow_signal", flow, "Stop", "{}")
    assert game.flows.result(flow) == 1
    with pytest.raises(NotAllowed):
        alice.call("workflow_cancel", flow)


def test_access_all_opens_everything_that_can_be_opened_but_no_scheduled_reducer() -> None:
    game = Game([plain], access="all", testing=True)
    alice = game.db.caller(ALICE)
    flow = alice.call("workflow_start_test", "plain", None, None, '{"n": 1}')
    alice.call("debug_fire_timer", flow, "end")
    assert game.flows.result(flow) == 1
    fired = WorkflowTimer(scheduled_at=START, workflow_id=flow, timer_name="end", due_at=START)
    for name in ("workflow_timer_fire", "workflow_wake", "workflow_expire", "workflow_procedure_run"):
        with pytest.raises((NotAllowed, UnknownName)):
            alice.call(name, fired)


def test_who_may_see_deadlines_may_ask_for_the_time() -> None:
    assert Game([plain]).db.caller(ALICE).call_procedure("workflow_now") == START
    with pytest.raises(NotAllowed):
        Game([plain], public=False).db.caller(ALICE).call_procedure("workflow_now")


def test_access_that_names_something_else_is_refused_at_once() -> None:
    for wrong in (["workflow_strat"], ["workflow_timer_fire"], ["debug_fire_timer"]):
        with pytest.raises(SchemaError, match=wrong[0]):
            install(Module("game"), [plain], access=wrong)


def test_what_is_for_tests_exists_only_where_testing_is_on() -> None:
    game = Game([plain])
    for name in ("workflow_start_test", "debug_fire_timer", "debug_send_signal", "debug_complete_procedure"):
        with pytest.raises(UnknownName):
            game.db.call(name)


def test_a_games_own_reducer_opens_what_players_may_do() -> None:
    module = Module("game")
    module.table(Mark)
    engine = install(module, [plain])

    @module.reducer
    def begin(ctx: ReducerContext, n: int) -> int:
        flow = engine.start(ctx, plain, Number(n=n), correlation_id=ctx.sender.hex())
        mark(ctx, f"{flow}")
        if n < 0:
            raise ValueError("negative")
        return flow

    with Database(module) as db:
        flow = db.caller(ALICE).call(begin, n=1)
        assert db.caller(ALICE).call(begin, n=2) == flow
        with pytest.raises(ValueError, match="negative"):
            db.call(begin, n=-1)
        assert len(db.read(Workflow)) == 1


# --- install


def test_install_refuses_two_workflows_of_one_name_and_children_that_are_missing() -> None:
    @workflow(name="plain")
    async def impostor(ctx: WorkflowContext) -> int:
        await signal(Stop)
        return 1

    with pytest.raises(SchemaError, match="plain"):
        install(Module("game"), [plain, impostor])
    with pytest.raises(SchemaError, match="plain"):
        install(Module("game"), [uses_plain])
    with pytest.raises(SchemaError, match="workflow"):
        install(Module("game"), [mark])  # type: ignore[list-item]


def test_workflows_needs_an_installed_module() -> None:
    with Database(Module("game")) as db, pytest.raises(UnknownWorkflow, match="install"):
        Workflows(db)


def test_the_same_workflows_can_run_in_several_databases() -> None:
    one, two = Game([plain]), Game([plain])
    flow = one.flows.start(plain, Number(n=1))
    assert two.flows.find(flow) is None


# --- what can be seen


@workflow
async def shows(ctx: WorkflowContext) -> int:
    ctx.set_attribute("phase", "one")
    ctx.set_attribute("hp", 10)
    ctx.set_attribute("alive", True)
    await signal(Stop)
    ctx.set_attribute("phase", "two")
    ctx.set_attribute("hp", None)
    ctx.set_attribute("never", None)
    await signal(Bid)
    return 1


def attributes(game: Game, flow: int) -> dict[str, Any]:
    return {row.name: json.loads(row.value) for row in game.db.read(WorkflowAttribute).where(workflow_id=flow)}


def test_attributes_are_set_changed_and_removed_and_stay_with_a_finished_workflow() -> None:
    game = Game([shows], retention=timedelta(days=1))
    flow = game.flows.start(shows, None)
    assert attributes(game, flow) == {"phase": "one", "hp": 10, "alive": True}
    game.flows.signal(flow, Stop())
    assert attributes(game, flow) == {"phase": "two", "alive": True}
    game.flows.signal(flow, Bid(amount=1))
    assert attributes(game, flow) == {"phase": "two", "alive": True}
    game.advance(86_400)
    assert game.db.read(WorkflowAttribute).count() == 0


@workflow
async def viewed(ctx: WorkflowContext, init: Deadline) -> int:
    bids: list[int] = []
    best: int = 0
    while True:
        match await select(Bid, timer(Clock.END, at=init.at)):
            case Bid(amount):
                bids.append(amount)
                best = max(best, amount)
            case _:
                return best


def test_the_columns_show_where_a_workflow_is() -> None:
    game = Game([viewed])
    init = Deadline(at=START + seconds(10))
    flow = game.flows.start(viewed, init, entity_id=5, correlation_id="c", signals=[Bid(amount=3)])
    row = game.row(flow)
    assert (row.workflow_type, row.entity_id, row.correlation_id, row.parent_id) == ("viewed", 5, "c", None)
    assert (row.status.value, row.current_step, row.steps) == ("Suspended", "select(Bid, END)", 2)
    assert json.loads(row.state_data)["bids"] == [3]
    view = game.flows.view(flow)
    assert (view.init, view.bids, view.best) == (init, [3], 3)
    assert game.flows.by_correlation(viewed, "c") == row
    assert game.timers(flow) == ["end"]
    game.advance(10)
    row = game.row(flow)
    assert (row.status.value, row.result, row.current_step) == ("Completed", "3", "")
    assert row.updated_at == START + seconds(10)
    assert row.created_at == START


@workflow
async def tick(ctx: WorkflowContext) -> int:
    await sleep(seconds(0.01))
    return 5


def test_wait_sleeps_until_the_end() -> None:
    module = Module("game")
    install(module, [tick, plain])
    with Database(module) as db:
        flows = Workflows(db)
        db.run()
        assert flows.wait(flows.start(tick, None), timedelta(seconds=30)) == 5
        with pytest.raises(TimeoutError):
            flows.wait(flows.start(plain, Number(n=1)), timedelta(milliseconds=5))


def test_a_finished_workflow_leaves_no_waits_behind_and_is_shown_as_finished_at_once() -> None:
    game = Game([viewed])
    flow = game.flows.start(viewed, Deadline(at=START + seconds(10)))
    game.flows.fire_timer(flow, "end")
    assert game.status(flow) == "Completed"
    assert game.db.read(WorkflowTimer).count() == 0
    assert game.db.read(WorkflowSignal).count() == 0


def test_install_takes_a_list_and_is_called_once() -> None:
    module = Module("twice")
    with pytest.raises(SchemaError, match=r"install takes a list of workflows: install\(module, \[plain\]\)"):
        install(module, plain)  # type: ignore[arg-type]
    install(module, [plain])
    with pytest.raises(SchemaError, match="install is called once for each module, with all its workflows"):
        install(module, [plain])


def test_a_module_for_a_database_and_a_number_for_a_timeout_say_what_is_wanted() -> None:
    game = Game([plain])
    with pytest.raises(TypeError, match="Workflows takes an open Database"):
        Workflows(game.db.module)  # type: ignore[arg-type]
    flow = game.flows.start(plain, Number(1))
    with pytest.raises(TypeError, match=r"wait\(timeout=...\) needs a timedelta"):
        game.flows.wait(flow, timeout=5)  # type: ignore[arg-type]
