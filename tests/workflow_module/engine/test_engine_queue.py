"""Deliveries within one transaction: a queue and no recursion, up to a limit, without losing or doubling anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_support import Bid, Faults, Game, Go, Number, Stop, Struct, fragile, mark, seconds

from gamedb import Row
from gamedb.store import ReadTable
from workflow_module import (
    PendingProcedure,
    Workflow,
    WorkflowContext,
    WorkflowSignal,
    WorkflowSubscription,
    WorkflowTimer,
    gather,
    select,
    signal,
    sleep,
    spawn,
    subscribe,
    workflow,
)
from workflow_module.tables import WorkflowWake


class Link(Struct):
    next_id: int | None


@workflow
async def link(ctx: WorkflowContext, init: Link) -> int:
    bid = await signal(Bid)
    if init.next_id is not None:
        ctx.signal(init.next_id, Bid(amount=bid.amount + 1))
    return bid.amount


def chain(game: Game, length: int) -> tuple[int, int]:
    """Workflows that each signal the next: the ids of the first and the last."""
    last = flow = game.flows.start(link, Link(next_id=None))
    for _ in range(length - 1):
        flow = game.flows.start(link, Link(next_id=flow))
    return flow, last


def test_a_chain_of_5000_workflows_is_one_transaction_and_no_recursion() -> None:
    game = Game([link], journal=False)
    first, last = chain(game, 5_000)
    before = game.db.last_tx_id
    game.flows.signal(first, Bid(amount=1))
    assert game.flows.result(last) == 5_000
    assert game.db.last_tx_id == before + 1


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_chain_longer_than_the_limit_goes_on_in_next_transactions(limit: int, tmp_path: Path) -> None:
    game = Game([link], tmp_path / "game.db", resumptions_max=limit)
    first, last = chain(game, 50)
    game.due()
    game.flows.signal(first, Bid(amount=1))
    assert game.status(last) == "Suspended"
    game.crash()
    while game.db.read(WorkflowWake).count():
        game.db.run_due(limit=10_000)
    assert game.flows.result(last) == 50
    assert game.db.read(WorkflowWake).count() == 0


def test_nothing_that_happens_to_a_workflow_scans_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers, signals and broadcasts cost what an index costs."""
    game = Game([link, listener, hub, echo, nursery, eager])
    flows = [game.flows.start(listener, Number(n=n)) for n in range(3)]

    def no_scan(table: ReadTable[Row]) -> list[Row]:
        raise AssertionError(f"a scan of {table!r}")

    monkeypatch.setattr(ReadTable, "_all", no_scan)
    first, last = chain(game, 5)
    game.flows.signal(first, Bid(amount=1))
    game.flows.broadcast(Bid(amount=1), "all")
    game.flows.start(hub, Number(n=2), entity_id=1, correlation_id="hub")
    game.flows.signal_entity(1, Bid(amount=1))
    game.flows.signal(flows[0], Stop())
    game.flows.start(nursery, None)
    game.advance(100)
    game.flows.cancel(flows[1])
    game.flows.delete(flows[2])
    game.flows.result(last)
    for row in (Workflow, WorkflowTimer, WorkflowSignal, WorkflowSubscription, PendingProcedure, WorkflowWake):
        table = game.db.tables[row]
        known = [set(index) for index in table.data.indexes] + [{table._pk}]
        for columns in table._finders:
            assert any(index <= set(columns) for index in known), f"{row.__name__} is scanned by {columns}"


class Ping(Struct):
    rounds: int


@workflow
async def ping(ctx: WorkflowContext, init: Ping) -> int:
    other = (await signal(Bid)).amount
    count = 0
    ctx.signal(other, Go())
    while count < init.rounds:
        await signal(Go)
        count += 1
        if count < init.rounds:
            ctx.signal(other, Go())
    return count


@workflow
async def pong(ctx: WorkflowContext, init: Ping) -> int:
    other = (await signal(Bid)).amount
    count = 0
    while count < init.rounds:
        await signal(Go)
        count += 1
        ctx.signal(other, Go())
    return count


@pytest.mark.parametrize("limit", [1, 2, 5, 10_000])
def test_ping_pong_of_two(limit: int) -> None:
    game = Game([ping, pong], resumptions_max=limit, journal=False)
    a = game.flows.start(ping, Ping(rounds=1000))
    b = game.flows.start(pong, Ping(rounds=1000))
    game.due()
    game.flows.signal(b, Bid(amount=a))
    game.flows.signal(a, Bid(amount=b))
    game.due()
    assert game.flows.result(a) == game.flows.result(b) == 1000


@workflow
async def eager(ctx: WorkflowContext) -> int:
    count = 0
    while count < 100:
        await sleep(seconds(0))
        count += 1
        mark(ctx, count)
    return count


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_workflow_that_is_always_ready_does_each_step_once(limit: int) -> None:
    game = Game([eager], resumptions_max=limit)
    flow = game.flows.start(eager, None)
    game.due()
    assert game.flows.result(flow) == 100
    assert game.marks() == [str(n) for n in range(1, 101)]


@workflow
async def hub(ctx: WorkflowContext, init: Number) -> int:
    for n in range(init.n):
        ctx.broadcast(Bid(amount=n), "all")
    return sum(await gather(*[spawn(echo, Number(n=n)) for n in range(init.n)]))


@workflow
async def echo(ctx: WorkflowContext, init: Number) -> int:
    mark(ctx, f"echo {init.n}")
    return init.n


@workflow
async def listener(ctx: WorkflowContext, init: Number) -> int:
    subscribe(Bid, "all")
    while True:
        match await select(Bid, Stop):
            case Bid(amount):
                mark(ctx, f"{init.n} heard {amount}")
            case Stop():
                return 0


@pytest.mark.parametrize("limit", [1, 2, 5, 10_000])
def test_broadcasts_and_children_come_in_a_fixed_order_whatever_the_limit(limit: int) -> None:
    game = Game([hub, echo, listener], resumptions_max=limit)
    for n in range(3):
        game.flows.start(listener, Number(n=n))
    game.due()
    flow = game.flows.start(hub, Number(n=4))
    game.due()
    assert game.flows.result(flow) == 6
    heard = [text for text in game.marks() if "heard" in text]
    for n in range(3):
        assert [text for text in heard if text.startswith(f"{n} ")] == [f"{n} heard {m}" for m in range(4)]
    assert sorted(text for text in game.marks() if "echo" in text) == [f"echo {n}" for n in range(4)]
    if limit == 10_000:
        assert heard == [f"{n} heard {m}" for m in range(4) for n in range(3)]
        assert game.marks()[-4:] == [f"echo {n}" for n in range(4)]


@workflow
async def nursery(ctx: WorkflowContext) -> int:
    return sum(await gather(*[spawn(eager, None) for _ in range(3)]))


@pytest.mark.parametrize("limit", [1, 4])
def test_a_cancel_at_the_limit_reaches_everybody(limit: int) -> None:
    game = Game([nursery, eager], resumptions_max=limit)
    flow = game.flows.start(nursery, None)
    game.flows.cancel(flow)
    game.due()
    assert game.status(flow) == "Cancelled"
    assert {row.status.value for row in game.children(flow)} <= {"Cancelled"}
    assert game.db.read(WorkflowWake).count() == 0


@pytest.mark.parametrize("limit", [1, 2, 10_000])
def test_a_terminate_at_the_limit_leaves_nothing(limit: int) -> None:
    game = Game([nursery, eager], resumptions_max=limit)
    flow = game.flows.start(nursery, None)
    if game.status(flow) == "Suspended":
        game.flows.terminate(flow)
    game.due()
    for row in [game.row(flow), *game.children(flow)]:
        assert row.status.value in ("Cancelled", "Completed")
        assert game.rows_of(row.id).keys() <= {"WorkflowEvent", "WorkflowExpiry"}


@workflow
async def fragile_eager(ctx: WorkflowContext) -> int:
    await sleep(seconds(0))
    mark(ctx, "one")
    await signal(Go)
    fragile()
    mark(ctx, "two")
    return 1


@pytest.mark.parametrize("limit", [1, 2])
def test_a_failure_at_the_limit_is_parked_once(limit: int) -> None:
    game = Game([fragile_eager], resumptions_max=limit)
    game.quiet()
    Faults.on = True
    flow = game.flows.start(fragile_eager, None, signals=[Go()])
    game.due()
    assert game.status(flow) == "Failed"
    assert game.inbox(flow) == ["Go"]
    Faults.on = False
    game.flows.resume(flow)
    game.due()
    assert game.marks() == ["one", "two"]


def test_signals_to_a_workflow_that_ends_before_its_turn_are_counted_at_the_limit() -> None:
    game = Game([link], resumptions_max=1)
    flow = game.flows.start(link, Link(next_id=None))
    with game.db.transaction() as ctx:
        run = game.engine.run(ctx)
        for amount in (1, 2, 3):
            run.signal(flow, "Bid", f'{{"amount": {amount}}}')
        run.drain()
    game.due()
    assert game.flows.result(flow) == 1
    assert game.row(flow).unread_signals == 2
    assert game.inbox(flow) == []
