"""Calls over a session: what a caller is told, what others are told, and in which order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from gamedb import Database, ManualClock
from gamedb.server.limits import Limits
from gamedb.wire import messages
from tests.gamedb.server.arena import Gates, Mark, Player, Reminder, Secret, arena
from tests.gamedb.server.without_sockets import World


@pytest.fixture
def world(clock: ManualClock) -> Iterator[World]:
    module, gates = arena()
    with Database(module, clock=clock) as db:
        world = World(db)
        world.gates = gates  # type: ignore[attr-defined]
        yield world
        world.hub.close()


def test_a_commit_is_answered_with_the_callers_own_rows_and_told_to_others_once(world: World) -> None:
    ann, bob, eve = world.client(), world.client(), world.client()
    ann.subscribe(1, "SELECT * FROM player")
    bob.subscribe(5, "SELECT * FROM player")
    eve.subscribe(1, "SELECT * FROM level")

    outcome = ann.call("spawn", 1, 7)

    assert isinstance(outcome, messages.ReducerOk)
    assert [update.query_set_id for update in outcome.query_sets] == [1]
    [update] = bob.read()
    assert isinstance(update, messages.TransactionUpdate)
    assert [query_set.query_set_id for query_set in update.query_sets] == [5]
    assert ann.rows("player") == bob.rows("player") == [Player(id=1, zone=7)]
    assert eve.read() == []


def test_the_time_of_a_result_is_that_of_the_transaction(world: World, clock: ManualClock) -> None:
    ann = world.client()
    ann.send(ann.calling("spawn", 1, 7))
    [result] = ann.read()
    assert isinstance(result, messages.ReducerResult)
    assert result.timestamp_micros == clock.micros()


def test_a_call_without_changes_is_answered(world: World) -> None:
    ann, bob = world.client(), world.client()
    bob.subscribe(1, "SELECT * FROM player")
    assert ann.call("nothing") == messages.ReducerOk(b"", [])
    assert bob.read() == []


def test_a_refusal_reaches_the_caller_as_bsatn_text_and_nobody_else(world: World) -> None:
    ann, bob = world.client(), world.client()
    bob.subscribe(1, "SELECT * FROM player")
    assert ann.call("refuse", "no röom") == messages.ReducerFailed(b"\x08\x00\x00\x00no r\xc3\xb6om")
    assert bob.read() == []
    assert world.db.read(Player).count() == 0


@pytest.mark.parametrize("reducer", ["crash", "leave"])
def test_a_bug_is_logged_and_the_caller_is_told_nothing_of_it(
    world: World, reducer: str, caplog: pytest.LogCaptureFixture
) -> None:
    ann = world.client()
    outcome = ann.call(reducer)
    assert isinstance(outcome, messages.InternalError)
    assert "hunter2" not in outcome.error
    assert "log" in outcome.error
    [record] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    assert isinstance(ann.call("nothing"), messages.ReducerOk)


def test_an_unknown_reducer_is_an_internal_error(world: World) -> None:
    ann = world.client()
    ann.send(messages.CallReducer(request_id=5, reducer="fly", arguments=b""))
    [result] = ann.read()
    assert isinstance(result, messages.ReducerResult)
    assert result.request_id == 5
    assert result.outcome == messages.InternalError("no such reducer: `fly`")


def test_arguments_that_do_not_fit_are_an_internal_error(world: World) -> None:
    ann = world.client()
    ann.send(messages.CallReducer(request_id=5, reducer="spawn", arguments=b"\x01"))
    [result] = ann.read()
    assert isinstance(result, messages.ReducerResult)
    assert isinstance(result.outcome, messages.InternalError)
    assert result.outcome.error.startswith("invalid arguments for reducer spawn: ")


def test_surplus_bytes_after_the_arguments_are_ignored(world: World) -> None:
    ann = world.client()
    ann.send(messages.CallReducer(request_id=5, reducer="spawn", arguments=bytes([1, 0, 0, 0, 2, 0, 0, 0, 9])))
    assert world.db.read(Player).get(1) == Player(id=1, zone=2)


def test_private_and_scheduled_reducers_look_like_unknown_ones_to_clients(world: World) -> None:
    """L28."""
    ann = world.client()
    for name in ("secret", "remind"):
        ann.send(messages.CallReducer(request_id=5, reducer=name, arguments=b""))
        [result] = ann.read()
        assert isinstance(result, messages.ReducerResult)
        assert result.outcome == messages.InternalError(f"no such reducer: `{name}`")
    for name in ("came", "went"):
        ann.send(messages.CallReducer(request_id=5, reducer=name, arguments=b""))
        [result] = ann.read()
        assert isinstance(result, messages.ReducerResult)
        assert isinstance(result.outcome, messages.InternalError)
        assert "lifecycle" in result.outcome.error
    assert world.db.read(Secret).count() == 0
    assert world.db.read(Reminder).count() == 0


def test_an_operator_may_call_what_is_private(world: World) -> None:
    ann = world.client()
    world.db.operators.add(ann.session.identity)
    assert isinstance(ann.call("secret"), messages.ReducerOk)


def test_arguments_go_to_nobody_but_the_reducer(world: World) -> None:
    """L28."""
    ann, bob = world.client(), world.client()
    bob.subscribe(1, "SELECT * FROM player")
    world.db.call("spawn", 1, 7)
    bob.read()
    ann.send(ann.calling("refuse", "password=hunter2"), ann.calling("move", 1, 8))
    assert b"hunter2" not in b"".join(bob.channel.frames)


def test_results_come_in_the_order_of_the_calls_and_of_the_commits(world: World) -> None:
    ann, bob = world.client(), world.client()
    ann.subscribe(1, "SELECT * FROM player")
    bob.subscribe(1, "SELECT * FROM player")
    ann.send(
        ann.calling("spawn", 1, 1),
        ann.calling("refuse", "no"),
        ann.calling("move", 1, 2),
        ann.calling("kill", 1),
        ann.calling("spawn", 1, 3),
    )
    results = ann.read()
    assert [r.request_id for r in results if isinstance(r, messages.ReducerResult)] == [2, 3, 4, 5, 6]
    assert ann.cache.problems == []
    assert len(bob.read()) == 4
    assert bob.rows("player") == ann.rows("player") == [Player(id=1, zone=3)]


def test_all_that_one_websocket_message_asked_for_is_answered_in_one(world: World) -> None:
    ann = world.client()
    ann.send(*(ann.calling("spawn", number, 0) for number in range(40)))
    ann.read()
    assert [len(frame) for frame in ann.frames] == [40]


def test_protocol_v2_has_one_message_in_a_frame(world: World) -> None:
    ann, bob = world.client(several=False), world.client(several=False)
    bob.subscribe(1, "SELECT * FROM player")
    others = [world.client() for _ in range(20)]
    for other in others:
        other.subscribe(1, "SELECT * FROM player")
    for number in range(3):
        ann.send(ann.calling("spawn", number, 0))
    bob.read()
    assert [len(frame) for frame in bob.frames] == [1, 1, 1]
    others[0].read()
    assert [len(frame) for frame in others[0].frames] == [1, 1, 1]


def test_under_load_a_frame_holds_many_messages_up_to_its_limit(world: World) -> None:
    ann = world.client(limits=Limits(frame_bytes_max=4_000))
    ann.subscribe(1, "SELECT * FROM mark")
    for number in range(100):
        world.db.call("mark", 1, f"{number:0100}")
    world.turn()
    sizes = list(map(len, ann.channel.frames))
    assert len(ann.read()) == 100
    assert 2 <= len(sizes) <= 10
    assert max(sizes) <= 4_001


def test_a_commit_of_another_thread_or_of_the_game_itself_reaches_clients(world: World) -> None:
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM mark")
    asyncio.run(asyncio.to_thread(world.db.call, "mark", 1, "from a thread"))
    world.turn()
    assert ann.rows("mark") == [Mark(zone=1, text="from a thread")]


def test_a_callback_of_the_game_that_commits_is_not_taken_for_the_callers_commit(world: World) -> None:
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM mark")
    world.db.subscribe(Player, lambda _: world.db.call("mark", 1, "seen"))
    ann.send(ann.calling("spawn", 1, 1))
    result, update = ann.read()
    assert isinstance(result, messages.ReducerResult)
    assert result.outcome == messages.ReducerOk(b"", [])
    assert isinstance(update, messages.TransactionUpdate)
    assert ann.rows("mark") == [Mark(zone=1, text="seen")]


def test_a_commit_of_another_thread_is_not_taken_for_the_callers_commit(world: World) -> None:
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM mark")
    world.hub.calling = (ann.session, 9, -1)
    world.db.call("mark", 1, "by another")
    assert world.hub.calling is not None
    world.hub.calling = None
    world.turn()
    [update] = ann.read()
    assert isinstance(update, messages.TransactionUpdate)


# --- procedures


def run_procedures(world: World) -> None:
    """Run the coroutines of all procedures to their end."""
    tasks, world.tasks = world.tasks, []

    async def run() -> None:
        await asyncio.gather(*(task.work for task in tasks))

    asyncio.run(run())
    for task in tasks:
        for callback in task.callbacks:
            callback(task)
    world.turn()


def test_the_result_of_a_procedure_comes_after_the_updates_of_its_transactions(world: World) -> None:
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM mark")
    ann.send(ann.calling_procedure("add", 2, 3))
    run_procedures(world)
    update, result = ann.read()
    assert isinstance(update, messages.TransactionUpdate)
    assert isinstance(result, messages.ProcedureResult)
    assert result.status == messages.ProcedureReturned((5).to_bytes(8, "little"))
    assert result.request_id == 2
    assert ann.rows("mark") == [Mark(zone=0, text="2+3")]


def test_a_procedure_that_is_running_holds_up_nobody(world: World) -> None:
    ann = world.client()
    ann.send(ann.calling_procedure("wait"), ann.calling("spawn", 1, 1))
    [result] = ann.read()
    assert isinstance(result, messages.ReducerResult)
    ann.session.lost()


@pytest.mark.parametrize(
    ("procedure", "text"),
    [("decline", "not today"), ("break_down", "break_down failed; the log of the server says why")],
)
def test_a_procedure_that_fails_is_answered_with_text(world: World, procedure: str, text: str) -> None:
    ann = world.client()
    ann.send(ann.calling_procedure(procedure))
    run_procedures(world)
    [result] = ann.read()
    assert isinstance(result, messages.ProcedureResult)
    assert result.status == messages.InternalError(text)


def test_an_unknown_procedure_and_bad_arguments_are_answered(world: World) -> None:
    ann = world.client()
    ann.send(
        messages.CallProcedure(request_id=1, procedure="fly", arguments=b""),
        messages.CallProcedure(request_id=2, procedure="add", arguments=b"\x01"),
    )
    unknown, unfit = ann.read()
    assert isinstance(unknown, messages.ProcedureResult)
    assert unknown.status == messages.InternalError("no such procedure: `fly`")
    assert isinstance(unfit, messages.ProcedureResult)
    assert isinstance(unfit.status, messages.InternalError)
    assert unfit.status.error.startswith("invalid arguments for procedure add: ")


def test_more_procedures_than_the_limit_are_refused_one_by_one(world: World) -> None:
    ann = world.client(limits=Limits(procedures_max=2))
    ann.send(*(ann.calling_procedure("wait") for _ in range(3)))
    [result] = ann.read()
    assert isinstance(result, messages.ProcedureResult)
    assert isinstance(result.status, messages.InternalError)
    assert "2 procedures" in result.status.error
    assert len(ann.session.calls) == 2
    ann.session.lost()


def test_the_procedures_of_a_client_that_has_gone_are_cancelled(world: World) -> None:
    ann = world.client()
    ann.send(ann.calling_procedure("wait"))
    ann.session.lost()
    assert [task.cancelled for task in world.tasks] == [True]


def gates_of(world: World) -> Gates:
    gates: Gates = world.gates  # type: ignore[attr-defined]
    return gates
