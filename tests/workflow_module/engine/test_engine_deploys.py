"""Other code over the same file: what goes on, what is migrated, what is parked, and what `gamedb check` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_support import Bid, Game, Go, Mark, Stop, define

from gamedb import Module
from gamedb.checking import check
from workflow_module import WorkflowFailed, WorkflowSignal, install

OLD = """
@workflow
async def quest(ctx: WorkflowContext) -> str:
    kills = 0
    while kills < 3:
        match await select(Bid, Stop):
            case Bid(amount):
                kills += amount
            case Stop():
                return "stopped"
    await sleep(SECOND)
    return f"{kills} kills"

@workflow
async def other(ctx: WorkflowContext) -> str:
    await signal(Stop)
    return "other"
"""


def deployed(path: Path) -> tuple[Game, int, int]:
    names = define(OLD)
    game = Game([names["quest"], names["other"]], path / "game.db")
    flow = game.flows.start(names["quest"], None, signals=[Bid(amount=1)])
    return game, flow, game.flows.start(names["other"], None)


def redeploy(game: Game, source: str) -> Any:
    names = define(source)
    game.reopen([names["quest"], names["other"]])
    game.quiet()
    return names["quest"]


COMPATIBLE = {
    "other code between waits": OLD.replace("kills += amount", "kills += amount * 2"),
    "another wait before": OLD.replace("    kills = 0\n", "    await signal(Go)\n    kills = 0\n"),
    "another wait after": OLD.replace("    return f", "    await sleep(SECOND)\n    return f"),
    "another branch": OLD.replace("select(Bid, Stop)", 'select(Bid, Stop, name="select(Bid, Stop)")'),
    "another variable with a default": OLD.replace(
        "    kills = 0\n", '    kills = 0\n    zone: str = "town"\n'
    ).replace('{kills} kills"', '{kills} kills in {zone}"'),
    "lines moved": "\n\n\nx = 1\n" + OLD,
}


@pytest.mark.parametrize("change", COMPATIBLE)
def test_a_workflow_whose_label_and_variables_fit_goes_on_in_the_new_code(change: str, tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    redeploy(game, COMPATIBLE[change])
    assert game.status(flow) == "Suspended", game.row(flow).error
    game.flows.signal(flow, Bid(amount=2))
    game.advance(10)
    assert game.flows.result(flow).startswith({"other code between waits": "5 kills"}.get(change, "3 kills"))


def test_a_state_in_the_middle_of_another_variable_gets_its_default(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    redeploy(game, COMPATIBLE["another variable with a default"])
    game.flows.signal(flow, Bid(amount=2))
    game.advance(10)
    assert game.flows.result(flow) == "3 kills in town"


INCOMPATIBLE = {
    "label gone": OLD.replace("select(Bid, Stop)", "select(Bid, Stop, Go)"),
    "variable retyped": OLD.replace("kills = 0", 'kills: str = ""')
    .replace("while kills < 3", "while len(kills) < 3")
    .replace("kills += amount", "kills += str(amount)"),
    "variable without a value": OLD.replace("kills = 0", "kills = 0\n    start = int(ctx.workflow_id)").replace(
        "{kills} kills", "{kills} {start} kills"
    ),
}


@pytest.mark.parametrize("change", INCOMPATIBLE)
def test_one_that_does_not_fit_is_parked_visibly_at_open_and_all_else_goes_on(change: str, tmp_path: Path) -> None:
    game, flow, other = deployed(tmp_path)
    state = game.row(flow).state_data
    redeploy(game, INCOMPATIBLE[change])
    row = game.row(flow)
    assert row.status.value == "Failed"
    assert "StateMismatch" in (row.error or "")
    assert "select(Bid, Stop)" in (row.error or "")
    assert row.state_data == state
    game.flows.signal(other, Stop())
    assert game.flows.result(other) == "other"
    game.flows.signal(flow, Bid(amount=2))
    steps = game.row(flow).steps
    game.advance(1000)
    assert game.row(flow).steps == steps
    redeploy(game, OLD)
    game.flows.resume(flow)
    game.advance(1)
    assert game.flows.result(flow) == "3 kills"


def test_migrate_maps_the_old_state(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    source = (
        INCOMPATIBLE["label gone"]
        + """
@quest.migrate
def to_go(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "$at": "select(Bid, Stop, Go)", "kills": state["kills"] + 100}
"""
    )
    redeploy(game, source)
    assert game.status(flow) == "Suspended"
    game.flows.signal(flow, Bid(amount=2))
    game.advance(1)
    assert game.flows.result(flow) == "103 kills"


def test_a_migration_that_raises_parks_its_workflow_alone(tmp_path: Path) -> None:
    game, flow, other = deployed(tmp_path)
    source = (
        INCOMPATIBLE["label gone"]
        + """
@quest.migrate
def broken(state: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("zone")
"""
    )
    redeploy(game, source)
    assert game.status(flow) == "Failed"
    assert "KeyError" in (game.row(flow).error or "")
    game.flows.signal(other, Stop())
    assert game.flows.result(other) == "other"


def test_a_parked_workflow_can_be_cancelled_though_its_code_cannot_go_on(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    redeploy(game, INCOMPATIBLE["label gone"])
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert "StateMismatch" in (game.row(flow).error or "")


def test_a_workflow_that_is_resumed_in_code_that_does_not_fit_says_so(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    redeploy(game, INCOMPATIBLE["label gone"])
    game.flows.signal(flow, Bid(amount=1))
    game.flows.resume(flow)
    assert game.status(flow) == "Failed"
    with pytest.raises(WorkflowFailed, match="does not have any more"):
        game.flows.result(flow)


def test_a_resume_in_code_that_does_not_fit_parks_it_again_though_nothing_has_come(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    redeploy(game, INCOMPATIBLE["label gone"])
    game.flows.resume(flow)
    assert game.status(flow) == "Failed"
    assert "does not have any more" in (game.row(flow).error or "")
    redeploy(game, OLD)
    game.flows.resume(flow)
    assert game.status(flow) == "Suspended"


def test_a_signal_class_that_is_gone_parks_with_what_changed(tmp_path: Path) -> None:
    names = define(
        """
        @workflow
        async def quest(ctx: WorkflowContext) -> str:
            await sleep(SECOND)
            match await select(Bid, Stop, name="choice"):
                case Bid(amount):
                    return f"bid {amount}"
            return "stop"
        """
    )
    game = Game([names["quest"]], tmp_path / "game.db")
    flow = game.flows.start(names["quest"], None, signals=[Bid(amount=1)])
    newer = define(
        """
        @workflow
        async def quest(ctx: WorkflowContext) -> str:
            await sleep(SECOND)
            await select(Go, Stop, name="choice")
            return "stop"
        """
    )
    game.reopen([newer["quest"]])
    game.quiet()
    game.advance(1)
    assert game.status(flow) == "Suspended"  # nobody waits for the old signal any more
    game.flows.signal(flow, Go())
    assert game.flows.result(flow) == "stop"
    assert game.row(flow).unread_signals == 1


def test_a_wait_for_a_signal_that_is_gone_parks_and_names_it(tmp_path: Path) -> None:
    old, new = (
        define(
            f"""
            @workflow
            async def quest(ctx: WorkflowContext) -> str:
                await select({which}, Stop, name="choice")
                return "stop"
            """
        )["quest"]
        for which in ("Bid", "Go")
    )
    game = Game([old], tmp_path / "game.db")
    flow = game.flows.start(old, None)
    with game.db.transaction() as ctx:
        ctx.db[WorkflowSignal].insert(
            WorkflowSignal(workflow_id=flow, signal="Bid", payload='{"amount":1}', arrived_at=ctx.now)
        )
    game.reopen([new])
    game.quiet()
    game.due()
    assert game.status(flow) == "Failed"
    assert "'Bid'" in (game.row(flow).error or "")


# --- gamedb check


def notes(game: Game, source: str, keep: tuple[str, ...] = ("quest", "other")) -> list[str]:

    names = define(source)
    module = Module("game")
    module.table(Mark)
    install(module, [names[name] for name in keep])
    assert game.path is not None
    game.db.flush()
    result = check(module, game.path)
    assert result.opens, result.refusals
    return result.notes


def test_check_says_what_would_happen_to_running_workflows_and_changes_nothing(tmp_path: Path) -> None:
    game, flow, _ = deployed(tmp_path)
    row = game.row(flow)
    fine, label = COMPATIBLE["another wait before"], INCOMPATIBLE["label gone"]
    assert notes(game, fine) == [
        "1 running workflow of type 'other' would go on",
        "1 running workflow of type 'quest' would go on",
    ]
    (parked,) = (note for note in notes(game, label) if "quest" in note)
    assert parked.startswith(
        "1 running workflow of type 'quest' would be parked as failed (workflow 1: quest stopped at"
    )
    migrated = (
        label + '\n@quest.migrate\ndef m(state: Any) -> Any:\n    return {**state, "$at": "select(Bid, Stop, Go)"}\n'
    )
    assert "1 running workflow of type 'quest' would go on with @migrate" in notes(game, migrated)
    (left,) = (note for note in notes(game, OLD, ("other",)) if "quest" in note)
    assert left.startswith("1 running workflow of type 'quest' would stay as they are, without code (workflow 1: ")
    assert game.row(flow) == row


def test_check_counts_only_what_has_not_ended(tmp_path: Path) -> None:
    game, flow, other = deployed(tmp_path)
    game.flows.signal(flow, Stop())
    game.flows.signal(other, Stop())
    assert notes(game, OLD) == []


# --- steps of a program whose state is small however long it runs


def test_the_state_and_a_resume_do_not_grow_with_the_number_of_steps(tmp_path: Path) -> None:
    names = define(
        """
        @workflow
        async def ticker(ctx: WorkflowContext) -> int:
            n = 0
            while n < 3000:
                await sleep(timedelta(seconds=1))
                n += 1
            return n
        """
    )
    game = Game([names["ticker"]], tmp_path / "game.db", journal=False)
    flow = game.flows.start(names["ticker"], None)
    size = len(game.row(flow).state_data) + len(game.row(flow).wait_data)
    game.advance(2999)
    game.crash()
    assert len(game.row(flow).state_data) + len(game.row(flow).wait_data) <= size + 4
    game.advance(1)
    assert game.flows.result(flow) == 3000
