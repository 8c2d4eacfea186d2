"""Calls: attempts, backoff, timeouts, keys, late results, queues with leases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from engine_support import Game, GameError, Number, Stop, define, mark, seconds
from worker_support import RemoteGame

from workflow_module import (
    Backoff,
    BadPayload,
    PendingProcedure,
    ProcedureFailed,
    UnknownProcedure,
    WorkflowContext,
    call,
    gather,
    select,
    workflow,
)


class Outside:
    """The world that procedures act on; it survives crashes."""

    attempts: list[tuple[str, str, int]] = []
    fail_until = 0
    errors: list[BaseException] = []
    games: list[Game] = []
    running = threading.Event()
    gate = threading.Event()
    stopped: list[str] = []


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    Outside.attempts = []
    Outside.fail_until = 0
    Outside.errors = []
    Outside.stopped = []
    Outside.running.clear()
    Outside.gate.clear()
    yield
    Outside.gate.set()


def attempted(ctx: Any) -> None:
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    if len(Outside.attempts) <= Outside.fail_until:
        raise Outside.errors[0] if Outside.errors else GameError(f"attempt {ctx.attempt}")


HERE_AND_AWAY = pytest.mark.parametrize("kind", [Game, RemoteGame], ids=["here", "in a worker"])
"""For what is the same wherever the attempts run."""


async def charge(ctx: Any, amount: int, *, note: str = "") -> str:
    attempted(ctx)
    return f"charged {amount}{note}"


def charge_sync(ctx: Any, amount: int) -> str:
    attempted(ctx)
    assert threading.current_thread() is not threading.main_thread()
    return f"charged {amount}"


@workflow
async def buy(ctx: WorkflowContext, init: Number) -> str:
    try:
        return await call(charge, init.n, attempts=4, backoff=Backoff(seconds(2), 3.0, seconds(10)))
    except ProcedureFailed as error:
        return f"{error.procedure} {error.attempts} {error.error_type} {error.error}"


@workflow
async def buy_sync(ctx: WorkflowContext, init: Number) -> str:
    return await call(charge_sync, init.n)


@workflow
async def buy_by_name(ctx: WorkflowContext) -> str:
    return await call(charge, 3, note="!")


@HERE_AND_AWAY
def test_a_call_runs_outside_of_transactions_and_gives_its_result(kind: type[Game]) -> None:
    game = kind([buy, buy_sync, buy_by_name])
    one, two = game.flows.start(buy, Number(n=1)), game.flows.start(buy_sync, Number(n=2))
    three = game.flows.start(buy_by_name, None)
    assert Outside.attempts == []
    (pending,) = game.calls(one)
    assert (pending.procedure, pending.attempt, pending.attempts_max) == ("charge", 1, 4)
    game.due()
    assert game.flows.result(one) == "charged 1"
    assert game.flows.result(two) == "charged 2"
    assert game.flows.result(three) == "charged 3!"
    assert game.calls() == []


@HERE_AND_AWAY
def test_exactly_as_many_attempts_as_asked_with_backoff_and_its_cap(kind: type[Game]) -> None:
    game = kind([buy])
    game.quiet()
    Outside.fail_until = 99
    flow = game.flows.start(buy, Number(n=1))
    seen = []
    for _ in range(40):
        game.due()
        if len(seen) < len(Outside.attempts):
            seen.append((game.clock.now.second, len(Outside.attempts)))
        game.jump(1)
    assert seen == [(0, 1), (2, 2), (8, 3), (18, 4)]
    assert game.flows.result(flow) == "charge 4 GameError attempt 4"


@HERE_AND_AWAY
def test_the_step_key_is_the_same_for_all_attempts_and_the_attempt_key_is_not(kind: type[Game]) -> None:
    game = kind([buy])
    game.quiet()
    Outside.fail_until = 2
    flow = game.flows.start(buy, Number(n=1))
    other = game.flows.start(buy, Number(n=1))
    game.advance(100)
    assert game.flows.result(flow) == game.flows.result(other) == "charged 1"
    by_step: dict[str, list[int]] = {}
    for step_key, _, attempt in Outside.attempts:
        by_step.setdefault(step_key, []).append(attempt)
    assert len(by_step) == 2
    assert all(attempts == list(range(1, len(attempts) + 1)) for attempts in by_step.values())
    assert len({attempt_key for _, attempt_key, _ in Outside.attempts}) == len(Outside.attempts)


@HERE_AND_AWAY
def test_a_failed_attempt_is_seen_in_the_row_and_in_the_timeline(kind: type[Game]) -> None:
    game = kind([buy])
    game.quiet()
    Outside.fail_until = 1
    flow = game.flows.start(buy, Number(n=1))
    game.due()
    (pending,) = game.calls(flow)
    assert (pending.attempt, pending.last_error) == (2, "GameError: attempt 1")
    assert game.events(flow) == ["started", "attempt_failed"]


@workflow
async def impatient(ctx: WorkflowContext) -> str:
    return await call(charge, 1, attempts=5, backoff=timedelta(0))


@HERE_AND_AWAY
def test_a_backoff_of_zero_tries_again_at_once(kind: type[Game]) -> None:
    game = kind([impatient])
    game.quiet()
    Outside.fail_until = 4
    flow = game.flows.start(impatient, None)
    game.due()
    assert game.flows.result(flow) == "charged 1"
    assert len(Outside.attempts) == 5


# --- what is not retried


class HardError(GameError):
    pass


class HarderError(HardError):
    pass


@workflow
async def picky(ctx: WorkflowContext) -> str:
    try:
        return await call(charge, 1, attempts=3, backoff=timedelta(0), non_retryable=(HardError,))
    except ProcedureFailed as error:
        return f"{error.attempts} {error.error_type}"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (HardError("x"), "1 HardError"),
        (HarderError("x"), "1 HarderError"),
        (GameError("x"), "3 GameError"),
        (ValueError("x"), "3 ValueError"),
    ],
)
@HERE_AND_AWAY
def test_errors_that_are_not_retried_are_matched_by_class_with_subclasses(
    error: Exception, expected: str, kind: type[Game]
) -> None:
    game = kind([picky])
    game.quiet()
    Outside.fail_until = 99
    Outside.errors = [error]
    flow = game.flows.start(picky, None)
    game.due()
    assert game.flows.result(flow) == expected


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("says nothing")


@pytest.mark.parametrize(
    "error",
    [GameError("\ud800 \0"), Mute(), asyncio.CancelledError(), SystemExit(3), GeneratorExit(), BaseException("x")],
    ids=repr,
)
@HERE_AND_AWAY
def test_whatever_a_procedure_raises_is_a_failed_attempt(
    error: BaseException, tmp_path: Path, kind: type[Game]
) -> None:
    game = kind([picky], tmp_path / "game.db")
    game.quiet()
    Outside.fail_until = 99
    Outside.errors = [error]
    flow = game.flows.start(picky, None)
    game.due()
    assert len(Outside.attempts) == 3
    assert game.flows.result(flow).startswith("3 ")
    game.crash()


@pytest.mark.parametrize("error", [SystemExit(3), BaseException("x")], ids=repr)
@HERE_AND_AWAY
def test_whatever_a_sync_procedure_raises_is_a_failed_attempt(error: BaseException, kind: type[Game]) -> None:
    game = kind([buy_sync])
    game.quiet()
    Outside.fail_until = 1
    Outside.errors = [error]
    flow = game.flows.start(buy_sync, Number(n=1))
    game.advance(10)
    assert game.flows.result(flow) == "charged 1"


async def wrong_type(ctx: Any) -> int:
    attempted(ctx)
    return "text"  # type: ignore[return-value]


@workflow
async def wants_int(ctx: WorkflowContext) -> str:
    try:
        return str(await call(wrong_type, attempts=5, backoff=timedelta(0)))
    except ProcedureFailed as error:
        return f"{error.attempts} {error.error_type} {error.error}"


@HERE_AND_AWAY
def test_a_result_that_does_not_fit_its_type_is_not_tried_again(kind: type[Game]) -> None:
    game = kind([wants_int])
    game.quiet()
    flow = game.flows.start(wants_int, None)
    game.due()
    assert game.flows.result(flow).startswith("1 ")
    assert "the result of wrong_type" in game.flows.result(flow)
    assert len(Outside.attempts) == 1


# --- limits of an attempt


async def hangs(ctx: Any) -> str:
    attempted(ctx)
    try:
        await asyncio.sleep(3600)
    finally:
        Outside.stopped.append("hangs")
    return "late"


async def hangs_on(ctx: Any) -> str:
    attempted(ctx)
    while not Outside.gate.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            Outside.gate.set()
            Outside.stopped.append("swallowed")
    return "late"


def hangs_sync(ctx: Any) -> str:
    attempted(ctx)
    Outside.gate.wait(60)
    return "late"


@workflow
async def limited(ctx: WorkflowContext, init: Number) -> str:
    try:
        if init.n == 0:
            return await call(hangs, attempts=2, backoff=timedelta(0), timeout=seconds(0.02))
        if init.n == 1:
            return await call(hangs_sync, attempts=2, backoff=timedelta(0), timeout=seconds(0.02))
        if init.n == 2:
            return await call(hangs, attempts=2, backoff=timedelta(0), heartbeat=seconds(0.02))
        return await call(hangs_on, attempts=1, timeout=seconds(0.02))
    except ProcedureFailed as error:
        return f"{error.attempts} {error.error_type} {error.error}"


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (0, "2 AttemptTimeout the attempt took longer than 0.02 s"),
        (1, "2 AttemptTimeout the attempt took longer than 0.02 s"),
        (2, "2 AttemptTimeout the attempt was silent for 0.02 s"),
        (3, "1 AttemptTimeout the attempt took longer than 0.02 s"),
    ],
)
@HERE_AND_AWAY
def test_each_attempt_has_a_limit_of_its_own(n: int, expected: str, kind: type[Game]) -> None:
    game = kind([limited])
    game.quiet()
    flow = game.flows.start(limited, Number(n=n))
    game.due()
    assert game.flows.result(flow) == expected
    assert len(Outside.attempts) == int(expected[0])


async def beats(ctx: Any) -> str:
    for _ in range(30):  # longer than the time that may pass without a heartbeat, which leaves room for a busy machine
        await asyncio.sleep(0.05)
        ctx.heartbeat()
    return "alive"


@workflow
async def beating(ctx: WorkflowContext) -> str:
    return await call(beats, heartbeat=seconds(1), attempts=1)


@HERE_AND_AWAY
def test_heartbeats_keep_a_long_attempt_alive(kind: type[Game]) -> None:
    game = kind([beating])
    flow = game.flows.start(beating, None)
    game.due()
    assert game.flows.result(flow) == "alive"


# --- late and unwanted


async def meddled(ctx: Any) -> str:
    """Something happens to the workflow while the attempt runs."""
    attempted(ctx)
    game = Outside.games[-1]
    if len(Outside.attempts) == 1:
        MEDDLE["with"](game, ctx)
        await asyncio.sleep(0)
    return f"attempt {ctx.attempt}"


MEDDLE: dict[str, Any] = {}


@workflow
async def meddler(ctx: WorkflowContext) -> str:
    try:
        return str(await select(call(meddled, backoff=timedelta(0)), Stop))
    finally:
        mark(ctx, "ends")


def test_the_late_result_of_an_old_attempt_is_ignored() -> None:
    def fail_it(game: Game, ctx: Any) -> None:
        with game.db.transaction() as tx:
            (pending,) = tx.db[PendingProcedure]
            tx.db[PendingProcedure].update(pending.replace(attempt=2))

    game = Game([meddler])
    game.quiet()
    Outside.games.append(game)
    MEDDLE["with"] = fail_it
    flow = game.flows.start(meddler, None)
    game.due()
    assert game.status(flow) == "Suspended"
    assert [attempt for _, _, attempt in Outside.attempts] == [1]


@HERE_AND_AWAY
def test_the_result_of_a_call_that_lost_its_select_is_ignored(kind: type[Game]) -> None:
    game = kind([meddler])
    Outside.games.append(game)
    flow = game.flows.start(meddler, None)
    MEDDLE["with"] = lambda game, ctx: game.flows.signal(flow, Stop())
    game.due()
    assert game.flows.result(flow) == "Stop()"
    assert game.calls() == []


@HERE_AND_AWAY
def test_a_call_is_gone_when_its_workflow_is_cancelled_terminated_or_deleted(kind: type[Game]) -> None:
    for how in ("cancel", "terminate", "delete"):
        Outside.attempts = []
        game = kind([meddler])
        Outside.games.append(game)
        flow = game.flows.start(meddler, None)
        MEDDLE["with"] = lambda game, ctx, how=how, flow=flow: getattr(game.flows, how)(flow)
        game.due()
        assert game.calls() == []
        found = game.flows.find(flow)
        assert found is None if how == "delete" else found is not None and found.status.value == "Cancelled"


async def waits_for_cancel(ctx: Any) -> str:
    Outside.running.set()
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        Outside.stopped.append(f"cancelled {ctx.cancelled}")
        raise
    return "?"


def waits_for_cancel_sync(ctx: Any) -> str:
    Outside.running.set()
    while not ctx.cancelled and not Outside.gate.wait(0.005):
        pass
    Outside.stopped.append(f"saw {ctx.cancelled}")
    Outside.gate.set()
    return "?"


@workflow
async def droppable(ctx: WorkflowContext, init: Number) -> str:
    if init.n == 0:
        got = await select(call(waits_for_cancel), Stop)
    else:
        got = await select(call(waits_for_cancel_sync), Stop)
    return str(got)


@pytest.mark.parametrize(("n", "seen"), [(0, "cancelled True"), (1, "saw True")])
def test_an_attempt_is_cancelled_when_its_workflow_no_longer_waits(n: int, seen: str) -> None:
    game = Game([droppable])
    game.quiet()
    flow = game.flows.start(droppable, Number(n=n))
    game.db.run()
    assert Outside.running.wait(20)
    game.flows.signal(flow, Stop())
    assert game.flows.result(flow) == "Stop()"
    if n:
        assert Outside.gate.wait(20)
    game.db.close()
    assert Outside.stopped == [seen]


# --- crashes


async def copied(ctx: Any) -> str:
    """The process dies while the attempt runs: the file is what it is now."""
    attempted(ctx)
    game = Outside.games[-1]
    if len(Outside.attempts) in (1, 3):
        game.db.flush()
        snapshot(game)
    if len(Outside.attempts) < 3:
        raise GameError("not yet")
    return "copied"


def snapshot(game: Game) -> None:
    assert game.path is not None
    target = game.path.with_name(f"snapshot{len(Outside.attempts)}.db")
    for suffix in ("", "-wal"):
        source = Path(f"{game.path}{suffix}")
        if source.exists():
            Path(f"{target}{suffix}").write_bytes(source.read_bytes())


@workflow
async def careful(ctx: WorkflowContext) -> str:
    return await call(copied, backoff=timedelta(0))


def test_after_a_crash_the_attempt_runs_again_with_the_same_keys(tmp_path: Path) -> None:
    game = Game([careful], tmp_path / "game.db")
    game.quiet()
    Outside.games.append(game)
    flow = game.flows.start(careful, None)
    game.due()
    assert game.flows.result(flow) == "copied"
    first, second, third = Outside.attempts
    assert first[0] == second[0] == third[0]
    for number, attempt in ((1, first), (3, third)):
        Outside.attempts = [("", "", 0)] * 3
        later = Game([careful], tmp_path / f"snapshot{number}.db")
        later.quiet()
        Outside.games.append(later)
        later.due()
        assert Outside.attempts[3] == attempt
        assert later.flows.result(flow) == "copied"
        later.db.close()
    game.db.close()


def test_a_call_waits_for_its_next_attempt_over_a_restart(tmp_path: Path) -> None:
    game = Game([buy], tmp_path / "game.db")
    game.quiet()
    Outside.fail_until = 1
    flow = game.flows.start(buy, Number(n=1))
    game.due()
    game.crash()
    game.advance(1)
    assert len(Outside.attempts) == 1
    game.advance(1)
    assert game.flows.result(flow) == "charged 1"


# --- changed code


OLD = """
async def pay(ctx: Any, amount: int, currency: str) -> str:
    return f"{amount} {currency}"

@workflow
async def shopper(ctx: WorkflowContext) -> str:
    try:
        return await call(pay, 3, "gold", attempts=2, backoff=timedelta(0))
    except ProcedureFailed as error:
        return f"{error.error_type}: {error.error}"
"""


@pytest.mark.parametrize(
    ("signature", "arguments", "expected"),
    [
        ("ctx: Any, amount: int, currency: str", '3, "gold"', "3 gold"),
        ("ctx: Any, amount: int, currency: str, tip: int = 0", '3, "gold"', "3 gold"),
        ("ctx: Any, amount: str, currency: str", '"3", "gold"', "BadPayload: "),
        ("ctx: Any, currency: str", '"gold"', "BadPayload: "),
        ("ctx: Any, amount: int, currency: str, tip: int", '3, "gold", 1', "TypeError: "),
    ],
)
@HERE_AND_AWAY
def test_arguments_that_no_longer_fit_are_failed_attempts(
    signature: str, arguments: str, expected: str, tmp_path: Path, kind: type[Game]
) -> None:
    game = kind([define(OLD)["shopper"]], tmp_path / "game.db")
    flow = game.flows.start(game.definitions[0], None)
    changed = OLD.replace("ctx: Any, amount: int, currency: str", signature).replace('3, "gold"', arguments)
    if "amount" not in signature:
        changed = changed.replace("{amount}", "")
    game.reopen([define(changed)["shopper"]])
    game.quiet()
    game.due()
    assert game.flows.result(flow).startswith(expected)


def test_a_procedure_that_is_gone_is_a_failed_call(tmp_path: Path) -> None:
    game = Game([define(OLD)["shopper"]], tmp_path / "game.db")
    flow = game.flows.start(game.definitions[0], None)
    changed = OLD.replace("call(pay, 3", "call(pay_anew, 3").replace("def pay(", "def pay_anew(")
    changed = changed.replace("backoff=timedelta(0))", 'backoff=timedelta(0), name="call(pay)")')
    game.reopen([define(changed)["shopper"]])
    game.quiet()
    game.due()
    assert game.flows.result(flow).startswith("UnknownProcedure: ")


# --- from outside


@workflow
async def queued(ctx: WorkflowContext, init: Number) -> str:
    try:
        return await call(
            charge, init.n, queue="mail", attempts=3, backoff=seconds(10), non_retryable=(HardError, KeyError)
        )
    except ProcedureFailed as error:
        return f"{error.attempts} {error.error_type}: {error.error}"


def take(game: Game, worker: str = "w1", seconds_: float = 30, limit: int = 10) -> list[PendingProcedure]:
    return list(game.db.call("workflow_procedure_take", "mail", worker, seconds_, limit))


def test_a_worker_takes_calls_of_its_queue_oldest_first_each_once() -> None:
    game = Game([queued, buy])
    flows = [game.flows.start(queued, Number(n=n)) for n in range(3)]
    game.due()
    assert Outside.attempts == []
    (first,) = take(game, limit=1)
    second, third = take(game)
    assert [p.workflow_id for p in (first, second, third)] == flows
    assert [p.arguments for p in (first, second)] == ["[[0],{}]", "[[1],{}]"]
    assert take(game) == []
    game.db.call("workflow_procedure_complete", first.id, 1, '"done"')
    assert game.flows.result(flows[0]) == "done"


def test_a_lease_that_expires_is_a_failed_attempt_and_its_late_result_is_refused() -> None:
    game = Game([queued])
    game.quiet()
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    game.advance(30)
    (row,) = game.calls(flow)
    assert (row.attempt, row.worker, row.last_error) == (2, None, "LeaseExpired: worker 'w1' did not answer in time")
    for name, arguments in (("complete", ['"late"']), ("heartbeat", [30.0]), ("fail", ["E", "late"])):
        with pytest.raises(UnknownProcedure, match="attempt 1"):
            game.db.call(f"workflow_procedure_{name}", pending.id, 1, *arguments)
    assert game.status(flow) == "Suspended"


def test_the_pause_between_attempts_holds_for_queues_too() -> None:
    game = Game([queued])
    game.quiet()
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    game.db.call("workflow_procedure_fail", pending.id, 1, "Oops", "broke")
    assert take(game) == []
    game.advance(9)
    assert take(game) == []
    game.advance(1)
    (again,) = take(game, "w2")
    assert (again.attempt, again.step_key, again.worker) == (2, pending.step_key, "w2")
    game.db.call("workflow_procedure_fail", pending.id, 2, "Oops", "broke")
    game.advance(20)
    (again,) = take(game)
    game.db.call("workflow_procedure_fail", pending.id, 3, "Oops", "broke")
    assert game.flows.result(flow) == "3 Oops: broke"


@pytest.mark.parametrize("name", ["HardError", "test_engine_procedures:HardError", "KeyError", "builtins:KeyError"])
def test_a_worker_can_say_that_an_error_is_not_to_be_tried_again(name: str) -> None:
    game = Game([queued])
    game.quiet()
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    game.db.call("workflow_procedure_fail", pending.id, 1, name, "x")
    assert game.flows.result(flow) == f"1 {name}: x"


def test_a_heartbeat_begins_the_lease_anew() -> None:
    game = Game([queued])
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    for _ in range(3):
        game.advance(29)
        game.db.call("workflow_procedure_heartbeat", pending.id, 1, 30.0)
    game.advance(29)
    game.db.call("workflow_procedure_complete", pending.id, 1, '"ok"')
    assert game.flows.result(flow) == "ok"


def test_a_lease_lives_over_a_crash(tmp_path: Path) -> None:
    game = Game([queued], tmp_path / "game.db")
    game.quiet()
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    game.crash()
    game.advance(29)
    game.db.call("workflow_procedure_complete", pending.id, 1, '"ok"')
    assert game.flows.result(flow) == "ok"


def test_a_worker_whose_result_does_not_fit_is_told_and_keeps_its_lease() -> None:
    game = Game([queued])
    flow = game.flows.start(queued, Number(n=1))
    (pending,) = take(game)
    with pytest.raises(BadPayload, match="charge"):
        game.db.call("workflow_procedure_complete", pending.id, 1, "5")
    assert game.calls(flow) == [pending]


def test_a_call_can_be_completed_once_by_hand() -> None:
    game = Game([buy], testing=True)
    flow = game.flows.start(buy, Number(n=1))
    (pending,) = game.calls(flow)
    with pytest.raises(BadPayload, match="charge"):
        game.db.call("debug_complete_procedure", pending.id, "[1]")
    game.db.call("debug_complete_procedure", pending.id, '"by hand"')
    assert game.flows.result(flow) == "by hand"
    with pytest.raises(UnknownProcedure, match="ended"):
        game.db.call("debug_complete_procedure", pending.id, '"twice"')
    game.due()
    assert Outside.attempts == []


# --- several


@workflow
async def many(ctx: WorkflowContext) -> str:
    got = await gather(*[call(charge, n) for n in range(20)])
    return ",".join(got)


@HERE_AND_AWAY
def test_many_calls_at_once(tmp_path: Path, kind: type[Game]) -> None:
    game = kind([many], tmp_path / "game.db")
    flow = game.flows.start(many, None)
    game.crash()
    game.due()
    assert game.flows.result(flow) == ",".join(f"charged {n}" for n in range(20))
    assert len({step_key for step_key, _, _ in Outside.attempts}) == 20


async def writes(ctx: Any, text: str) -> int:
    with ctx.transaction() as tx:
        mark(tx, text)
    return 1


@workflow
async def writer(ctx: WorkflowContext) -> int:
    return await call(writes, "from a procedure")


def test_a_procedure_opens_transactions_of_its_own() -> None:
    game = Game([writer])
    flow = game.flows.start(writer, None)
    game.due()
    assert game.flows.result(flow) == 1
    assert game.marks() == ["from a procedure"]
