"""Workers away from the database: what they run, keep, lose and give back. Without a network; see test_worker_live."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest
from engine_support import Game, GameError, Number, Stop, seconds
from worker_games import (
    Outside,
    at_work,
    attempts,
    game_with,
    in_loop,
    open_gate,
    think,
    think_to_the_end,
    thinker,
    thinker_sync,
)
from worker_support import WorkerAtHand, until

from gamedb import (
    Database,
    NotAllowed,
    ReducerContext,
    ReducerError,
    SchemaError,
    TransactionError,
)
from workflow_module import (
    Backoff,
    ProcedureFailed,
    StepContext,
    WorkflowContext,
    Workflows,
    call,
    gather,
    workflow,
)
from workflow_module import worker as worker_module


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    Outside.attempts, Outside.seen, Outside.gates, Outside.contexts = [], [], {}, []
    Outside.running = Outside.running_max = 0
    Outside.sync_gate.clear()
    yield
    Outside.sync_gate.set()


@in_loop
async def test_a_worker_runs_what_is_there_and_what_comes_and_stops() -> None:
    game, one, worker = await at_work()
    two = game.flows.start(thinker, Number(n=2))
    await until(attempts(2))
    for n in (1, 2):
        open_gate(n)
    await until(lambda: not game.calls())
    assert [game.flows.result(flow) for flow in (one, two)] == ["thought 1", "thought 2"]
    await worker.stop()


@in_loop
async def test_a_worker_has_no_more_than_it_can_do_at_once() -> None:
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


@in_loop
async def test_queues_of_a_worker_go_in_their_order() -> None:
    @workflow
    async def two_queues(ctx: WorkflowContext) -> str:
        await gather(call(think, 1, queue="slow"), call(think, 2, queue="urgent"))
        return "done"

    game = Game([two_queues])
    flow = game.flows.start(two_queues, None)
    worker = WorkerAtHand(game, concurrency=1, queues=["urgent", "slow"])
    for n in (2, 1):
        await until(lambda n=n: n in Outside.gates)
        assert list(Outside.gates) == [2, 1][: 1 if n == 2 else 2]
        open_gate(n)
    await until(lambda: game.status(flow) == "Completed")
    await worker.stop()


@in_loop
async def test_another_worker_takes_over_from_one_that_died() -> None:
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
    await think_to_the_end(game, flow)
    (step_key, first_key, one), (same_key, second_key, two) = Outside.attempts
    assert (step_key, one, two) == (same_key, 1, 2)
    assert first_key != second_key
    await other.stop()


@in_loop
async def test_a_worker_that_speaks_keeps_its_leases() -> None:
    game, flow, worker = await at_work()
    for _ in range(4):
        game.advance(25)
        before = game.calls()[0].scheduled_at
        worker.beat()
        await until(lambda before=before: game.calls()[0].scheduled_at != before)
    await think_to_the_end(game, flow)
    assert attempts(1)()
    await worker.stop()


@in_loop
async def test_an_attempt_that_nobody_waits_for_is_cancelled() -> None:
    game, flow, worker = await at_work()
    game.flows.signal(flow, Stop())
    await until(lambda: Outside.seen)
    assert Outside.seen == ["1 cancelled True"]
    assert game.flows.result(flow) == "Stop()"
    await worker.stop()


@in_loop
async def test_a_result_that_no_longer_counts_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    game, flow, worker = await at_work()
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


@in_loop
async def test_a_worker_goes_on_over_a_lost_connection_and_says_at_once_that_it_lives() -> None:
    game, flow, worker = await at_work()
    worker.client.lose()
    game.advance(29)
    worker.client.find()
    await until(lambda: any(call[0] == "workflow_procedure_heartbeat" for call in worker.client.calls))
    game.advance(29)
    await think_to_the_end(game, flow)
    assert attempts(1)()
    await worker.stop()


@in_loop
async def test_a_worker_that_will_never_be_connected_again_says_why_and_ends() -> None:
    worker = WorkerAtHand(game_with())
    await until(lambda: worker.client.calls)  # it has asked for work, and there is none
    worker.client.end(SchemaError("the server changed its tables"))
    async with asyncio.timeout(20):
        with pytest.raises(SchemaError, match="the server changed its tables"):
            await worker.task
    worker.client.close()


@in_loop
async def test_answers_that_get_lost_are_asked_for_again_and_nothing_runs_twice() -> None:
    game = game_with()
    worker = WorkerAtHand(game)
    await until(lambda: worker.client.calls)
    worker.client.lose_answers = 1  # of the taking
    flow = game.flows.start(thinker, Number(n=1))
    await until(attempts(1))
    worker.client.lose_answers = 1  # of the result
    await think_to_the_end(game, flow)
    await worker.stop()
    assert attempts(1)()


@in_loop
async def test_a_worker_finishes_what_runs_when_it_stops_and_takes_no_more() -> None:
    game, one, worker = await at_work()
    worker.job.stopping.set()
    two = game.flows.start(thinker, Number(n=2))
    await asyncio.sleep(0.01)
    open_gate(1)
    await worker.stop()
    assert game.flows.result(one) == "thought 1"
    assert [(row.workflow_id, row.worker) for row in game.calls()] == [(two, None)]
    assert attempts(1)()


@pytest.mark.parametrize("how", ["the time is over", "a second signal"])
@pytest.mark.parametrize("thinking", [thinker, thinker_sync], ids=["async", "sync"])
@in_loop
async def test_what_a_worker_cannot_finish_it_gives_back_at_once(how: str, thinking: Any) -> None:
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


@in_loop
async def test_a_result_that_is_too_large_ends_the_call_and_not_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "RESULT_BYTES_MAX", 10)
    game = game_with()
    flow = game.flows.start(thinker, Number(n=12345))
    worker = WorkerAtHand(game)
    open_gate(12345)
    await until(lambda: game.status(flow) == "Failed")
    assert "1 attempts: ResultTooLarge" in (game.row(flow).error or "")
    await worker.stop()


@in_loop
async def test_a_worker_must_be_an_operators() -> None:
    game = game_with()
    game.flows.start(thinker, Number(n=1))
    worker = WorkerAtHand(game)
    game.db.operators.clear()
    with pytest.raises(NotAllowed, match="token of an operator"):
        await worker.task
    worker.client.close()
    assert Outside.attempts == []


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


@in_loop
async def test_a_procedure_writes_by_calling_reducers() -> None:
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
@in_loop
async def test_stateful_workers_that_die_stop_and_lose_their_connections(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever happens to the workers, each call ends once, and all its attempts have one step key."""
    chance = Outside.chance = random.Random(seed)  # type: ignore[attr-defined]
    game = Game([relies])
    game.quiet()
    caplog.set_level(logging.CRITICAL, "gamedb.worker")
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
