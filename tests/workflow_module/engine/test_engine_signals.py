"""The inbox: order, losers, duplicates, carrying over, refusals at the sender, broadcasts and subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from engine_support import START, Bid, Clock, Faults, Game, Go, Number, Stop, Target, Text, fragile, mark, seconds

from gamedb import ReducerError
from workflow_module import (
    BadPayload,
    Signal,
    UnknownSignal,
    UnknownWorkflow,
    WorkflowContext,
    WorkflowFinished,
    WorkflowSubscription,
    call,
    continue_as_new,
    gather,
    select,
    signal,
    sleep,
    subscribe,
    timer,
    unsubscribe,
    wait_all,
    workflow,
)


@workflow
async def stages(ctx: WorkflowContext) -> list[str]:
    got: list[str] = []
    await signal(Go)
    match await select(Stop, Bid):
        case Stop():
            got.append("stop")
        case Bid(amount):
            got.append(f"bid {amount}")
    got.append(f"bid {(await signal(Bid)).amount}")
    return got


def test_signals_queue_until_they_are_awaited_in_order_of_arrival() -> None:
    game = Game([stages])
    flow = game.flows.start(stages, None)
    for message in (Bid(amount=1), Bid(amount=2), Stop()):
        game.flows.signal(flow, message)
    assert game.inbox(flow) == ["Bid", "Bid", "Stop"]
    game.flows.signal(flow, Go())
    assert game.flows.result(flow) == ["bid 1", "bid 2"]
    assert game.row(flow).unread_signals == 1
    assert game.inbox(flow) == []


@workflow
async def race_then_bid(ctx: WorkflowContext) -> list[str]:
    got: list[str] = []
    match await select(timer(Clock.END, after=seconds(5)), Bid):
        case Bid(amount):
            got.append(f"early {amount}")
        case _:
            got.append("timer")
    got.append(f"late {(await signal(Bid)).amount}")
    return got


def test_the_loser_of_a_select_is_dropped_and_the_next_signal_goes_to_the_next_wait() -> None:
    game = Game([race_then_bid])
    flow = game.flows.start(race_then_bid, None)
    game.advance(5)
    game.flows.signal(flow, Bid(amount=3))
    assert game.flows.result(flow) == ["timer", "late 3"]


def test_the_signal_that_lost_stays_queued() -> None:
    game = Game([race_then_bid])
    flow = game.flows.start(race_then_bid, None)
    game.jump(6)
    game.flows.signal(flow, Bid(amount=3))
    assert game.flows.result(flow) == ["timer", "late 3"]


@workflow
async def one_stop(ctx: WorkflowContext) -> int:
    await signal(Stop)
    await sleep(seconds(10))
    return 1


def test_duplicates_are_harmless_and_counted_as_unread() -> None:
    game = Game([one_stop])
    flow = game.flows.start(one_stop, None)
    for _ in range(3):
        game.flows.signal(flow, Stop())
    game.advance(10)
    assert game.flows.result(flow) == 1
    assert game.row(flow).unread_signals == 2


@workflow
async def rounds(ctx: WorkflowContext, init: Number) -> list[int]:
    if init.n == 0:
        subscribe(Text, "news")
    bid = await signal(Bid)
    mark(ctx, f"round {init.n}: {bid.amount}")
    if init.n == 2:
        return [bid.amount]
    await continue_as_new(Number(n=init.n + 1))


def test_continue_as_new_keeps_the_id_and_the_unread_signals_in_order() -> None:
    game = Game([rounds])
    flow = game.flows.start(rounds, Number(n=0), signals=[Bid(amount=1), Bid(amount=2), Bid(amount=3)])
    assert game.marks() == ["round 0: 1", "round 1: 2", "round 2: 3"]
    assert game.flows.result(flow) == [3]
    assert game.events(flow) == ["started", "continued", "started", "continued", "started", "completed"]


def test_continue_as_new_drops_timers_and_subscriptions() -> None:
    game = Game([rounds])
    flow = game.flows.start(rounds, Number(n=0))
    assert len(game.db.read(WorkflowSubscription)) == 1
    game.flows.signal(flow, Bid(amount=1))
    assert len(game.db.read(WorkflowSubscription)) == 0
    assert game.flows.view(flow).init == Number(n=1)


@workflow
async def restart_loop(ctx: WorkflowContext, init: Number) -> int:
    subscribe(Text, "news")
    mark(ctx, init.n)
    await sleep(seconds(0))
    if init.n == 20:
        return init.n
    await continue_as_new(Number(n=init.n + 1))


def test_continue_as_new_at_the_limit_of_a_transaction_misses_no_broadcast() -> None:
    for limit in range(1, 6):
        game = Game([restart_loop], resumptions_max=limit)
        flow = game.flows.start(restart_loop, Number(n=0))
        assert game.flows.broadcast(Text(text="x"), "news") == 1
        game.due()
        assert game.flows.result(flow) == 20
        assert game.marks() == [str(n) for n in range(21)]
        assert game.row(flow).unread_signals == 1


@workflow
async def cleanup_restart(ctx: WorkflowContext, init: Number) -> int:
    if init.n == 1:
        return 1
    try:
        await continue_as_new(Number(n=1))
    finally:
        await sleep(seconds(1))
        mark(ctx, "cleaned up")


def test_continue_as_new_runs_finally_blocks_that_may_wait() -> None:
    game = Game([cleanup_restart])
    flow = game.flows.start(cleanup_restart, Number(n=0))
    game.advance(1)
    assert game.flows.result(flow) == 1
    assert game.marks() == ["cleaned up"]


# --- refusals


def test_a_signal_to_an_unknown_or_finished_workflow_is_an_error_at_the_sender() -> None:
    game = Game([one_stop, stages])
    with pytest.raises(UnknownWorkflow, match="99"):
        game.flows.signal(99, Stop())
    flow = game.flows.start(one_stop, None)
    game.flows.terminate(flow)
    with pytest.raises(WorkflowFinished, match="Cancelled"):
        game.flows.signal(flow, Stop())
    assert issubclass(WorkflowFinished, ReducerError)


def test_an_unknown_signal_and_a_payload_that_does_not_fit_leave_the_workflow_untouched() -> None:
    game = Game([stages])
    flow = game.flows.start(stages, None)
    before = game.row(flow)
    last = game.db.last_tx_id
    with pytest.raises(UnknownSignal, match="Text"):
        game.flows.signal(flow, Text(text="x"))
    for payload in ('{"amount": "1"}', "{}", "[]", "{", "null", '{"amount": 1e99}'):
        with pytest.raises(BadPayload, match="Bid"):
            game.db.call("workflow_signal", flow, "Bid", payload)
    with pytest.raises(BadPayload, match=r"\$\.amount"):
        game.db.call("workflow_signal", flow, "Bid", '{"amount": "1"}')
    assert game.row(flow) == before
    assert game.inbox(flow) == []
    assert game.db.last_tx_id == last


def test_a_class_of_the_same_name_from_elsewhere_is_refused() -> None:
    class Stop(Signal):
        pass

    game = Game([one_stop])
    flow = game.flows.start(one_stop, None)
    with pytest.raises(UnknownSignal, match="test_engine_signals"):
        game.flows.signal(flow, Stop())


def test_a_payload_that_lies_about_its_types_is_refused() -> None:
    game = Game([stages])
    flow = game.flows.start(stages, None)
    with pytest.raises(BadPayload):
        game.flows.signal(flow, Bid(amount="many"))  # type: ignore[arg-type]
    assert game.inbox(flow) == []


@workflow
async def parrot(ctx: WorkflowContext) -> str:
    return (await signal(Text)).text


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "🎲", "\n\"'\\", "\u2028", "x" * 100_000])
def test_every_text_comes_back(text: str, tmp_path: Path) -> None:
    game = Game([parrot], tmp_path / "game.db")
    flow = game.flows.start(parrot, None, correlation_id=text)
    game.flows.signal(flow, Text(text=text))
    game.crash()
    assert game.flows.result(flow) == text
    assert game.row(flow).correlation_id == text
    game.flows.delete(flow)


def test_text_that_is_not_unicode_is_refused_at_the_sender() -> None:
    game = Game([parrot])
    flow = game.flows.start(parrot, None)
    with pytest.raises(BadPayload):
        game.flows.signal(flow, Text(text="\ud800"))
    assert game.inbox(flow) == []


# --- signals between workflows


@workflow
async def to_itself(ctx: WorkflowContext) -> list[str]:
    got: list[str] = []
    ctx.signal(ctx.workflow_id, Bid(amount=1))
    ctx.signal(ctx.workflow_id, Bid(amount=2))
    for _ in range(3):
        match await select(Bid, sleep(seconds(0))):
            case Bid(amount):
                got.append(f"bid {amount}")
            case _:
                got.append("slept")
    return got


def test_a_signal_to_itself_is_in_the_inbox_when_the_next_wait_begins() -> None:
    game = Game([to_itself])
    assert game.flows.result(game.flows.start(to_itself, None)) == ["bid 1", "bid 2", "slept"]


@workflow
async def tells(ctx: WorkflowContext, init: Target) -> int:
    ctx.signal(init.id, Bid(amount=1))
    fragile()
    ctx.signal(init.id, Bid(amount=2))
    return 0


@workflow
async def listens(ctx: WorkflowContext) -> list[int]:
    got: list[int] = []
    while len(got) < 2:
        got.append((await signal(Bid)).amount)
        mark(ctx, got[-1])
    return got


def test_what_a_failed_step_sent_was_never_sent() -> None:
    game = Game([tells, listens])
    game.quiet()
    ear = game.flows.start(listens, None)
    Faults.on = True
    mouth = game.flows.start(tells, Target(id=ear))
    assert game.status(mouth) == "Failed"
    assert game.marks() == []
    Faults.on = False
    game.flows.resume(mouth)
    assert game.flows.result(ear) == [1, 2]


@workflow
async def tries(ctx: WorkflowContext, init: Target) -> int:
    try:
        with ctx.savepoint():
            ctx.signal(init.id, Bid(amount=13))
            ctx.signal(ctx.workflow_id, Bid(amount=13))
            mark(ctx, "undone")
            raise ReducerError("no")
    except ReducerError:
        ctx.signal(init.id, Bid(amount=1))
    got = await signal(Bid, timeout=seconds(0))
    assert got is None
    ctx.signal(init.id, Bid(amount=2))
    return 0


def test_a_savepoint_takes_back_signals_that_were_sent_in_it() -> None:
    game = Game([tries, listens])
    ear = game.flows.start(listens, None)
    game.flows.start(tries, Target(id=ear))
    assert game.flows.result(ear) == [1, 2]


@workflow
async def tells_the_dead(ctx: WorkflowContext, init: Target) -> str:
    try:
        ctx.signal(init.id, Bid(amount=1))
    except WorkflowFinished:
        return "finished"
    except UnknownWorkflow:
        return "unknown"
    return "sent"


def test_a_workflow_can_catch_what_is_wrong_with_its_signal() -> None:
    game = Game([tells_the_dead, listens])
    ear = game.flows.start(listens, None)
    game.flows.terminate(ear)
    assert game.flows.result(game.flows.start(tells_the_dead, Target(id=ear))) == "finished"
    assert game.flows.result(game.flows.start(tells_the_dead, Target(id=9))) == "unknown"


@workflow
async def entity_bid(ctx: WorkflowContext) -> int:
    bid = await signal(Bid)
    mark(ctx, f"{ctx.workflow_id} got {bid.amount}")
    return ctx.entity_id or 0


def test_a_signal_to_an_entity_reaches_its_live_workflows_that_know_it() -> None:
    game = Game([entity_bid, one_stop])
    one, two = (game.flows.start(entity_bid, None, entity_id=7) for _ in range(2))
    gone = game.flows.start(entity_bid, None, entity_id=7)
    game.flows.terminate(gone)
    game.flows.start(one_stop, None, entity_id=7)
    game.flows.start(entity_bid, None, entity_id=8)
    assert game.flows.signal_entity(7, Bid(amount=3)) == 2
    assert game.marks() == [f"{one} got 3", f"{two} got 3"]
    assert game.flows.result(one) == 7
    assert game.flows.signal_entity(99, Bid(amount=3)) == 0


# --- broadcasts


@workflow
async def reader(ctx: WorkflowContext, init: Number) -> int:
    subscribe(Text, "news")
    subscribe(Text, "news")
    subscribe(Bid, 7)
    while True:
        match await select(Text, Bid, Stop, Go):
            case Text(text):
                fragile_if_poison(text, init.n)
                mark(ctx, f"{init.n}: {text}")
            case Bid(amount):
                mark(ctx, f"{init.n}: bid {amount}")
            case Stop():
                unsubscribe(Text, "news")
                unsubscribe(Text, "never subscribed")
            case Go():
                return 0


def fragile_if_poison(text: str, number: int) -> None:
    if text == "poison" and number == 2:
        raise ValueError("poisoned")


def test_a_broadcast_reaches_subscribers_once_each_in_the_order_of_subscribing() -> None:
    game = Game([reader])
    for n in (1, 2, 3):
        game.flows.start(reader, Number(n=n))
    assert game.flows.broadcast(Text(text="a"), "news") == 3
    assert game.flows.broadcast(Text(text="b"), "other") == 0
    assert game.flows.broadcast(Bid(amount=5), 7) == 3
    assert game.marks() == ["1: a", "2: a", "3: a", "1: bid 5", "2: bid 5", "3: bid 5"]


def test_one_failing_subscriber_does_not_undo_the_others() -> None:
    game = Game([reader])
    game.quiet()
    flows = [game.flows.start(reader, Number(n=n)) for n in (1, 2, 3)]
    game.flows.broadcast(Text(text="poison"), "news")
    assert game.marks() == ["1: poison", "3: poison"]
    assert [game.status(flow) for flow in flows] == ["Suspended", "Failed", "Suspended"]
    assert game.inbox(flows[1]) == ["Text"]
    game.flows.broadcast(Text(text="more"), "news")
    assert game.inbox(flows[1]) == ["Text", "Text"]


def test_unsubscribing_and_ending_stop_broadcasts() -> None:
    game = Game([reader])
    one, two = game.flows.start(reader, Number(n=1)), game.flows.start(reader, Number(n=2))
    game.flows.signal(one, Stop())
    game.flows.signal(two, Go())
    assert game.flows.broadcast(Text(text="a"), "news") == 0
    assert game.flows.broadcast(Bid(amount=1), "7") == 1


def test_a_broadcast_by_name_is_checked_before_anybody_gets_it() -> None:
    game = Game([reader])
    game.flows.start(reader, Number(n=1))
    with pytest.raises(BadPayload, match=r"\$\.amount"):
        game.db.call("workflow_broadcast_signal", "Bid", "7", '{"amount": true}')
    with pytest.raises(UnknownWorkflow, match="Nothing"):
        game.db.call("workflow_broadcast_signal", "Nothing", "7", "{}")
    game.db.call("workflow_broadcast_signal", "Bid", "7", '{"amount": 2}')
    assert game.marks() == ["1: bid 2"]


def test_a_broadcast_passes_over_subscribers_whose_code_is_gone(tmp_path: Path) -> None:
    game = Game([reader, one_stop], tmp_path / "game.db")
    flow = game.flows.start(reader, Number(n=1), entity_id=1)
    game.reopen([one_stop])
    game.quiet()
    assert game.flows.broadcast(Text(text="a"), "news") == 0
    assert game.flows.signal_entity(1, Text(text="a")) == 0
    with pytest.raises(UnknownWorkflow, match="reader"):
        game.flows.signal(flow, Text(text="a"))
    game.reopen([reader, one_stop])
    game.flows.broadcast(Text(text="b"), "news")
    assert game.marks() == ["1: b"]


# --- wait_all and gather of signals


@workflow
async def trade(ctx: WorkflowContext) -> str:
    bid, stop = await wait_all(Bid, Stop, timeout=seconds(10))
    return f"{bid} {stop}"


def test_wait_all_takes_what_has_come_by_its_one_deadline() -> None:
    game = Game([trade])
    flow = game.flows.start(trade, None)
    assert game.timers(flow) == ["timeout"]
    game.advance(5)
    game.flows.signal(flow, Stop())
    game.advance(5)
    assert game.flows.result(flow) == "None Stop()"


def test_wait_all_is_over_when_all_have_come() -> None:
    game = Game([trade])
    flow = game.flows.start(trade, None)
    game.advance(10 - 0.000001)
    game.flows.signal(flow, Stop())
    game.flows.signal(flow, Bid(amount=1))
    assert game.flows.result(flow) == "Bid(amount=1) Stop()"
    assert game.timers(flow) == []


def test_what_came_after_the_deadline_of_wait_all_stays_unread() -> None:
    game = Game([trade])
    flow = game.flows.start(trade, None)
    game.jump(11)
    game.flows.signal(flow, Stop())
    assert game.flows.result(flow) == "None None"
    assert game.row(flow).unread_signals == 1


@workflow
async def two_bids(ctx: WorkflowContext) -> str:
    one, two, late = await gather(signal(Bid), signal(Bid), signal(Bid, timeout=seconds(5)))
    return f"{one.amount} {two.amount} {late}"


def test_each_arm_of_a_gather_takes_a_signal_of_its_own() -> None:
    game = Game([two_bids])
    flow = game.flows.start(two_bids, None, signals=[Bid(amount=1)])
    game.advance(5)
    assert game.status(flow) == "Suspended"
    game.flows.signal(flow, Bid(amount=2))
    assert game.flows.result(flow) == "1 2 None"


@workflow
async def same_twice(ctx: WorkflowContext) -> str:
    a, b = await wait_all(Bid, Bid)
    return f"{a.amount} {b.amount}"


def test_wait_all_of_one_class_twice_waits_for_two() -> None:
    game = Game([same_twice])
    flow = game.flows.start(same_twice, None, signals=[Bid(amount=1)])
    assert game.status(flow) == "Suspended"
    game.flows.signal(flow, Bid(amount=2))
    assert game.flows.result(flow) == "1 2"


@workflow
async def timed(ctx: WorkflowContext) -> datetime:
    bid = await signal(Bid, timeout=seconds(10))
    fragile()
    if bid is not None:
        mark(ctx, "bid")
    return ctx.now


def test_a_timeout_whose_step_failed_is_a_timeout_again_though_the_signal_came_in_the_same_moment() -> None:
    game = Game([timed])
    game.quiet()
    flow = game.flows.start(timed, None)
    Faults.on = True
    game.advance(10)
    assert game.status(flow) == "Failed"
    game.flows.signal(flow, Bid(amount=1))
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == START + seconds(10)
    assert game.marks() == []
    assert game.row(flow).unread_signals == 1


def test_a_timeout_whose_step_failed_stays_one_though_it_is_fired_by_hand_later() -> None:
    game = Game([timed])
    game.quiet()
    flow = game.flows.start(timed, None)
    Faults.on = True
    game.jump(11)
    game.flows.signal(flow, Bid(amount=1))
    game.jump(1)
    game.flows.fire_timer(flow, "timeout(Bid)")
    Faults.on = False
    game.flows.resume(flow)
    assert game.marks() == []
    assert game.row(flow).unread_signals == 1


def test_many_signals_in_one_transaction_that_outlive_their_workflow_are_counted() -> None:
    game = Game([entity_bid])
    flow = game.flows.start(entity_bid, None)
    with game.db.transaction() as ctx:
        run = game.engine.run(ctx)
        for amount in (1, 2, 3):
            run.signal(flow, "Bid", f'{{"amount": {amount}}}')
        run.drain()
    assert game.row(flow).unread_signals == 2
    assert game.inbox(flow) == []


def anything(value: object) -> Any:
    """A value whose type neither the compiler nor a type checker knows."""
    return value


@workflow
async def sleeps_a_number(ctx: WorkflowContext) -> None:
    await sleep(anything(5))


@workflow
async def times_a_number(ctx: WorkflowContext) -> None:
    await timer(Clock.END, after=anything(5))


@workflow
async def names_a_timer(ctx: WorkflowContext) -> None:
    await timer(anything("end"), after=seconds(5))


@workflow
async def has_no_datetime(ctx: WorkflowContext) -> None:
    await timer(Clock.END, at=anything(5))


@workflow
async def waits_a_number(ctx: WorkflowContext) -> None:
    await signal(Bid, timeout=anything(5))


@workflow
async def waits_a_number_for_all(ctx: WorkflowContext) -> None:
    await wait_all(Bid, Stop, timeout=anything(5))


@workflow
async def limits_a_call_with_a_number(ctx: WorkflowContext) -> None:
    await call(fragile, timeout=anything(5))


@workflow
async def pauses_a_number(ctx: WorkflowContext) -> None:
    await call(fragile, backoff=anything(5))


@workflow
async def sends_a_class(ctx: WorkflowContext) -> None:
    ctx.signal(ctx.workflow_id, anything(Go))


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (sleeps_a_number, "sleep needs a timedelta, such as timedelta(seconds=5), not 5"),
        (times_a_number, "timer(after=...) needs a timedelta"),
        (names_a_timer, "timer needs a member of a Timer class, not 'end'"),
        (has_no_datetime, "timer(at=...) needs a datetime, such as ctx.now + ..., not 5"),
        (waits_a_number, "signal(timeout=...) needs a timedelta"),
        (waits_a_number_for_all, "wait_all(timeout=...) needs a timedelta"),
        (limits_a_call_with_a_number, "call(timeout=...) needs a timedelta"),
        (pauses_a_number, "call(backoff=...) needs a timedelta"),
        (sends_a_class, "what is sent is a Signal, not the class Go: write Go(...)"),
    ],
)
def test_a_slip_that_the_compiler_cannot_see_is_named_at_the_authors_line(definition: Any, text: str) -> None:
    game = Game([definition])
    error = game.row(game.flows.start(definition, None)).error or ""
    assert f"TypeError: {text}" in error
    assert f'test_engine_signals.py", line {definition.function.__code__.co_firstlineno + 2}' in error


@pytest.mark.parametrize(
    ("slip", "error", "text"),
    [
        (lambda flows: flows.signal(1, Go), BadPayload, "what is sent is a Signal, not the class Go: write Go(...)"),
        (lambda flows: flows.signal(1, "Go"), BadPayload, "what is sent is a Signal, not 'Go'"),
        (
            lambda flows: flows.start("stages", None),
            TypeError,
            "start takes a function that is decorated with @workflow",
        ),
        (lambda flows: stages(None), TypeError, "stages is a workflow, and is not called"),  # type: ignore[operator]
    ],
)
def test_a_slip_outside_says_what_to_write(slip: Callable[[Any], None], error: type[Exception], text: str) -> None:
    game = Game([stages])
    game.flows.start(stages, None)
    with pytest.raises(error) as caught:
        slip(game.flows)
    assert text in str(caught.value)
    assert game.inbox(1) == []
