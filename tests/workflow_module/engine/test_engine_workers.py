"""Workers away from the database: what they take, keep, lose and give back. Without a network; see test_worker_live."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_support import Game, GameError, Number, Stop, define, seconds
from worker_support import OPERATOR, WorkerAtHand, until

from gamedb import (
    Database,
    Identity,
    ManualClock,
    Module,
    NotAllowed,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    SchemaError,
    TransactionError,
)
from gamedb.server.health import health_of
from gamedb.server.hosted import Hosted
from workflow_module import (
    Backoff,
    PendingProcedure,
    ProcedureFailed,
    StepContext,
    UnknownProcedure,
    WorkflowContext,
    Workflows,
    call,
    gather,
    install,
    select,
    workflow,
)
from workflow_module import worker as worker_module
from workflow_module.refusals import BadLease
from workflow_module.tables import WorkflowQueue


class Outside:
    """The world that procedures act on."""

    attempts: list[tuple[str, str, int]] = []
    seen: list[str] = []
    gates: dict[int, asyncio.Event] = {}
    sync_gate = threading.Event()
    running = 0
    running_max = 0
    contexts: list[StepContext] = []


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    Outside.attempts, Outside.seen, Outside.gates, Outside.contexts = [], [], {}, []
    Outside.running = Outside.running_max = 0
    Outside.sync_gate.clear()
    yield
    Outside.sync_gate.set()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))  # type: ignore[arg-type]


async def think(ctx: StepContext, n: int) -> str:
    """Runs until its gate opens."""
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    Outside.contexts.append(ctx)
    Outside.running += 1
    Outside.running_max = max(Outside.running, Outside.running_max)
    try:
        await Outside.gates.setdefault(n, asyncio.Event()).wait()
    except asyncio.CancelledError:
        Outside.seen.append(f"{n} cancelled {ctx.cancelled}")
        raise
    finally:
        Outside.running -= 1
    return f"thought {n}"


def think_sync(ctx: StepContext, n: int) -> str:
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    Outside.sync_gate.wait(60)
    return f"thought {n}"


@workflow
async def thinker(ctx: WorkflowContext, init: Number) -> str:
    got = await select(call(think, init.n, queue="mail", attempts=3, backoff=seconds(10)), Stop)
    return str(got)


@workflow
async def thinker_sync(ctx: WorkflowContext, init: Number) -> str:
    return await call(think_sync, init.n, queue="mail")


def game_with(path: Path | None = None) -> Game:
    game = Game([thinker, thinker_sync], path)
    game.quiet()
    return game


def open_gate(n: int) -> None:
    Outside.gates.setdefault(n, asyncio.Event()).set()


def attempts(count: int) -> Callable[[], bool]:
    return lambda: len(Outside.attempts) == count


def took(game: Game, worker: str, lease_seconds: float = 30, limit: int = 10) -> list[PendingProcedure]:
    return list(game.db.call("workflow_procedure_take", "mail", worker, lease_seconds, limit))


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


# --- a worker


def test_a_worker_runs_what_is_there_and_what_comes_and_stops() -> None:
    async def scenario() -> None:
        game = game_with()
        one = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        two = game.flows.start(thinker, Number(n=2))
        await until(attempts(2))
        for n in (1, 2):
            open_gate(n)
        await until(lambda: not game.calls())
        assert [game.flows.result(flow) for flow in (one, two)] == ["thought 1", "thought 2"]
        await worker.stop()

    run(scenario)


def test_a_worker_has_no_more_than_it_can_do_at_once() -> None:
    async def scenario() -> None:
        game = game_with()
        for n in range(7):
            game.flows.start(thinker, Number(n=n))
        first = WorkerAtHand(game, "w1", concurrency=2)
        second = WorkerAtHand(game, "w2", concurrency=3)
        await until(attempts(5))
        assert sorted(row.worker or "" for row in game.calls()) == ["", "", "w1", "w1", "w2", "w2", "w2"]
        for n in range(7):
            open_gate(n)
        await until(lambda: not game.calls())
        assert Outside.running_max == 5
        assert len(Outside.attempts) == 7
        await first.stop()
        await second.stop()

    run(scenario)


def test_queues_of_a_worker_go_in_their_order() -> None:
    @workflow
    async def two_queues(ctx: WorkflowContext) -> str:
        await gather(call(think, 1, queue="slow"), call(think, 2, queue="urgent"))
        return "done"

    async def scenario() -> None:
        game = Game([two_queues])
        flow = game.flows.start(two_queues, None)
        worker = WorkerAtHand(game, concurrency=1, queues=["urgent", "slow"])
        for n in (2, 1):
            await until(lambda n=n: n in Outside.gates)
            assert list(Outside.gates) == [2, 1][: 1 if n == 2 else 2]
            open_gate(n)
        await until(lambda: game.status(flow) == "Completed")
        await worker.stop()

    run(scenario)


def test_another_worker_takes_over_from_one_that_died() -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=1))
        first, second = WorkerAtHand(game, "w1"), WorkerAtHand(game, "w2", concurrency=1)
        await until(attempts(1))
        (row,) = game.calls()
        dying, other = (first, second) if row.worker == "w1" else (second, first)
        await dying.kill()
        game.advance(29)
        assert attempts(1)()
        game.advance(1)
        assert game.calls()[0].last_error == f"LeaseExpired: worker {row.worker!r} did not answer in time"
        game.advance(10)
        await until(attempts(2))
        open_gate(1)
        await until(lambda: not game.calls())
        assert game.flows.result(flow) == "thought 1"
        (step_key, first_key, one), (same_key, second_key, two) = Outside.attempts
        assert (step_key, one, two) == (same_key, 1, 2)
        assert first_key != second_key
        await other.stop()

    run(scenario)


def test_a_worker_that_speaks_keeps_its_leases() -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        for _ in range(4):
            game.advance(25)
            before = game.calls()[0].scheduled_at
            worker.beat()
            await until(lambda before=before: game.calls()[0].scheduled_at != before)
        open_gate(1)
        await until(lambda: not game.calls())
        assert game.flows.result(flow) == "thought 1"
        assert attempts(1)()
        await worker.stop()

    run(scenario)


def test_an_attempt_that_nobody_waits_for_is_cancelled() -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        game.flows.signal(flow, Stop())
        await until(lambda: Outside.seen)
        assert Outside.seen == ["1 cancelled True"]
        assert game.flows.result(flow) == "Stop()"
        await worker.stop()

    run(scenario)


def test_a_result_that_no_longer_counts_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        worker.client.lose()
        game.advance(30)  # the lease ends, and the worker does not know
        open_gate(1)
        await until(lambda: Outside.running == 0)
        worker.client.find()
        await until(lambda: "does not count" in caplog.text)
        assert "attempt 1 of pending procedure 1 is over" in caplog.text
        assert game.status(flow) == "Suspended"
        game.advance(10)
        await until(lambda: not game.calls())
        assert [attempt for _, _, attempt in Outside.attempts] == [1, 2]
        await worker.stop()

    run(scenario)


def test_a_worker_goes_on_over_a_lost_connection_and_says_at_once_that_it_lives() -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        worker.client.lose()
        game.advance(29)
        worker.client.find()
        await until(lambda: any(call[0] == "workflow_procedure_heartbeat" for call in worker.client.calls))
        game.advance(29)
        open_gate(1)
        await until(lambda: not game.calls())
        assert game.flows.result(flow) == "thought 1"
        assert attempts(1)()
        await worker.stop()

    run(scenario)


def test_a_worker_that_will_never_be_connected_again_says_why_and_ends() -> None:
    async def scenario() -> None:
        worker = WorkerAtHand(game_with())
        await until(lambda: worker.client.calls)  # it has asked for work, and there is none
        worker.client.end(SchemaError("the server changed its tables"))
        async with asyncio.timeout(20):
            with pytest.raises(SchemaError, match="the server changed its tables"):
                await worker.task
        worker.client.close()

    run(scenario)


def test_answers_that_get_lost_are_asked_for_again_and_nothing_runs_twice() -> None:
    async def scenario() -> None:
        game = game_with()
        worker = WorkerAtHand(game)
        await until(lambda: worker.client.calls)
        worker.client.lose_answers = 1  # of the taking
        flow = game.flows.start(thinker, Number(n=1))
        await until(attempts(1))
        worker.client.lose_answers = 1  # of the result
        open_gate(1)
        await until(lambda: not game.calls())
        assert game.flows.result(flow) == "thought 1"
        await worker.stop()
        assert attempts(1)()

    run(scenario)


def test_a_worker_finishes_what_runs_when_it_stops_and_takes_no_more() -> None:
    async def scenario() -> None:
        game = game_with()
        one = game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        await until(attempts(1))
        worker.job.stopping.set()
        two = game.flows.start(thinker, Number(n=2))
        await asyncio.sleep(0.01)
        open_gate(1)
        await worker.stop()
        assert game.flows.result(one) == "thought 1"
        assert [(row.workflow_id, row.worker) for row in game.calls()] == [(two, None)]
        assert attempts(1)()

    run(scenario)


@pytest.mark.parametrize("how", ["the time is over", "a second signal"])
@pytest.mark.parametrize("thinking", [thinker, thinker_sync], ids=["async", "sync"])
def test_what_a_worker_cannot_finish_it_gives_back_at_once(how: str, thinking: Any) -> None:
    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinking, Number(n=1))
        worker = WorkerAtHand(game, drain_seconds=0 if how == "the time is over" else 3600)
        await until(attempts(1))
        worker.job.stopping.set()
        worker.job.hurry.set()
        await worker.stop()
        (row,) = game.calls()
        assert (row.worker, row.attempt, row.offered, row.last_error) == (None, 1, "mail", None)
        other = WorkerAtHand(game, "w2")
        await until(attempts(2))
        open_gate(1)
        Outside.sync_gate.set()
        await until(lambda: not game.calls())
        assert game.flows.result(flow) == "thought 1"
        assert len(set(Outside.attempts)) == 1  # the very same keys
        await other.stop()

    run(scenario)


def test_a_result_that_is_too_large_ends_the_call_and_not_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "RESULT_BYTES_MAX", 10)

    async def scenario() -> None:
        game = game_with()
        flow = game.flows.start(thinker, Number(n=12345))
        worker = WorkerAtHand(game)
        open_gate(12345)
        await until(lambda: game.status(flow) == "Failed")
        assert "1 attempts: ResultTooLarge" in (game.row(flow).error or "")
        await worker.stop()

    run(scenario)


def test_a_worker_must_be_an_operators() -> None:
    async def scenario() -> None:
        game = game_with()
        game.flows.start(thinker, Number(n=1))
        worker = WorkerAtHand(game)
        game.db.operators.clear()
        with pytest.raises(NotAllowed, match="token of an operator"):
            await worker.task
        worker.client.close()
        assert Outside.attempts == []

    run(scenario)


# --- what a procedure finds there


async def looks_around(ctx: StepContext, text: str) -> str:
    with pytest.raises(TransactionError, match=r"await ctx\.call"):
        ctx.transaction()
    await ctx.durable()
    ctx.log.info("from %s", ctx.name)
    ctx.heartbeat()
    await ctx.call(note, text)
    await ctx.call("note", text=text * 2)
    with pytest.raises(ReducerError, match="too long"):
        await ctx.call(note, "x" * 20)
    return f"{ctx.name} {ctx.attempt} {ctx.workflow_id}"


async def calls_here(ctx: StepContext, text: str) -> str:
    await ctx.call(note, text)
    return "noted"


@workflow
async def looker(ctx: WorkflowContext) -> str:
    return await call(looks_around, "ab", queue="mail", attempts=1) + " " + await call(calls_here, "cd")


NOTES: list[str] = []


def note(ctx: ReducerContext, text: str) -> None:
    if len(text) > 10:
        raise ReducerError("too long")
    NOTES.append(f"{text} {ctx.sender.hex()[:2]}")


def test_a_procedure_writes_by_calling_reducers() -> None:
    async def scenario() -> None:
        NOTES.clear()
        game = Game([looker])
        game.db.close()
        game.module.reducer(note)
        game.db = Database(game.module, clock=game.clock)
        game.flows = Workflows(game.db)
        flow = game.flows.start(looker, None)
        worker = WorkerAtHand(game)
        await until(lambda: game.calls()[0].procedure == "calls_here")
        await worker.stop()
        game.due()
        assert game.flows.result(flow) == f"looks_around 1 {flow} noted"
        assert ["ab ee", "abab ee", f"cd {game.db.identity.hex()[:2]}"] == NOTES

    run(scenario)


# --- many of them, and none can be relied on


async def unsure(ctx: StepContext, n: int) -> int:
    Outside.attempts.append((ctx.step_key, ctx.attempt_key, ctx.attempt))
    chance = Outside.chance
    for _ in range(chance.randrange(4)):
        await asyncio.sleep(0)
    if chance.random() < 0.2:
        raise GameError("not today")
    return n


SECOND = Backoff(seconds(1), 1.0)


@workflow
async def relies(ctx: WorkflowContext, init: Number) -> int:
    try:
        return sum(
            await gather(*[call(unsure, init.n + n, queue="mail", attempts=200, backoff=SECOND) for n in range(3)])
        )
    except ProcedureFailed as error:
        return -error.attempts


@pytest.mark.parametrize("seed", range(3))
def test_stateful_workers_that_die_stop_and_lose_their_connections(seed: int) -> None:
    """Whatever happens to the workers, each call ends once, and all its attempts have one step key."""
    chance = Outside.chance = random.Random(seed)  # type: ignore[attr-defined]

    async def scenario() -> None:
        game = Game([relies])
        game.quiet()
        logging.getLogger("gamedb.worker").setLevel(logging.CRITICAL)
        flows: list[int] = []
        workers: list[WorkerAtHand] = []
        for number in range(120):
            match chance.randrange(8):
                case 0 if len(flows) < 20:
                    flows.append(game.flows.start(relies, Number(n=len(flows))))
                case 1 if len(workers) < 4:
                    workers.append(WorkerAtHand(game, f"w{number}", concurrency=chance.randrange(1, 5)))
                case 2 if workers:
                    await workers.pop(chance.randrange(len(workers))).kill()
                case 3 if workers:
                    worker = workers.pop(chance.randrange(len(workers)))
                    worker.job.drain_seconds = 0
                    await worker.stop()
                case 4 if workers:
                    chance.choice(workers).client.lose()
                case 5 if workers:
                    chance.choice(workers).client.find()
                case 6 if workers:
                    chance.choice(workers).client.lose_answers += 1
                case _:
                    game.advance(chance.choice([0.5, 5, 40]))
                    chance.choice(workers).beat() if workers else None
            for _ in range(chance.randrange(8)):
                await asyncio.sleep(0)
            leased = [(row.id, row.worker) for row in game.calls() if row.status.value == "Running"]
            assert all(worker is not None for _, worker in leased)
            assert all((row.offered is not None) <= (row.worker is None) for row in game.calls())
        for worker in workers:
            worker.client.lose_answers = 0
            worker.client.find()
        workers.append(WorkerAtHand(game, "last"))
        async with asyncio.timeout(30):
            while game.calls():
                game.advance(2)
                for worker in workers:
                    worker.beat()
                await asyncio.sleep(0.002)
        for number, flow in enumerate(flows):
            assert game.flows.result(flow) == 3 * number + 3
        for worker in workers:
            await worker.stop()
        by_step: dict[str, list[int]] = {}
        for step_key, _, attempt in Outside.attempts:
            by_step.setdefault(step_key, []).append(attempt)
        assert len(by_step) == 3 * len(flows)
        assert all(numbers == sorted(numbers) for numbers in by_step.values())

    run(scenario)
    logging.getLogger("gamedb.worker").setLevel(logging.NOTSET)
