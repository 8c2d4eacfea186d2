"""What is ready wins by when it became ready, however late the workflow gets to look."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from engine_support import START, Bid, Clock, Deadline, Faults, Game, Go, Stop, define, fragile, mark, seconds

from workflow_module import (
    UnknownTimer,
    WorkflowContext,
    call,
    select,
    signal,
    sleep,
    spawn,
    timer,
    wait_all,
    workflow,
)


@workflow
async def auction(ctx: WorkflowContext, init: Deadline) -> list[int]:
    bids: list[int] = []
    while True:
        match await select(timer(Clock.END, at=init.at), Bid):
            case Clock.END:
                return bids
            case Bid(amount):
                fragile()
                bids.append(amount)


@workflow
async def busy_auction(ctx: WorkflowContext, init: Deadline) -> list[int]:
    bids: list[int] = []
    await sleep(seconds(100))
    while True:
        match await select(Bid, timer(Clock.END, at=init.at)):
            case Clock.END:
                return bids
            case Bid(amount):
                bids.append(amount)


def auction_game(path: Path | None = None) -> tuple[Game, int]:
    game = Game([auction, busy_auction], path)
    game.quiet()
    return game, game.flows.start(auction, Deadline(at=START + seconds(10)))


def test_a_bid_before_the_end_counts_and_one_after_it_is_refused() -> None:
    game, flow = auction_game()
    game.advance(9.999999)
    game.flows.signal(flow, Bid(amount=1))
    game.advance(0.000001)
    assert game.flows.result(flow) == [1]


def test_a_bid_after_the_end_does_not_count_though_the_timer_has_not_fired_yet() -> None:
    game, flow = auction_game()
    game.jump(5)
    game.flows.signal(flow, Bid(amount=1))
    game.jump(5.5)
    game.flows.signal(flow, Bid(amount=2))
    assert game.flows.result(flow) == [1]


def test_a_late_bid_is_counted_as_unread() -> None:
    game, flow = auction_game()
    game.jump(11)
    game.flows.signal(flow, Bid(amount=2))
    assert game.row(flow).unread_signals == 1


def test_late_looks_when_the_workflow_was_busy_in_another_wait() -> None:
    game = Game([busy_auction])
    flow = game.flows.start(busy_auction, Deadline(at=START + seconds(10)))
    for at, amount in ((5, 1), (10, 2), (11, 3)):
        game.clock.set(START + seconds(at))
        game.flows.signal(flow, Bid(amount=amount))
    game.advance(100)
    assert game.flows.result(flow) == [1, 2]
    assert game.row(flow).unread_signals == 1


def test_late_looks_when_the_workflow_was_parked() -> None:
    game, flow = auction_game()
    Faults.on = True
    game.jump(1)
    game.flows.signal(flow, Bid(amount=1))
    assert game.status(flow) == "Failed"
    game.jump(4)
    game.flows.signal(flow, Bid(amount=2))
    game.jump(10)
    game.due()
    game.flows.signal(flow, Bid(amount=3))
    assert game.status(flow) == "Failed"
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == [1, 2]


def test_late_looks_when_the_server_was_down(tmp_path: Path) -> None:
    game, flow = auction_game(tmp_path / "game.db")
    game.jump(3)
    game.flows.signal(flow, Bid(amount=1))
    game.crash()
    game.jump(100)
    game.quiet()
    game.flows.signal(flow, Bid(amount=2))
    assert game.flows.result(flow) == [1]


@workflow
async def timer_first(ctx: WorkflowContext, init: Deadline) -> str:
    await sleep(seconds(20))
    match await select(timer(Clock.END, at=init.at), Bid):
        case Clock.END:
            return "timer"
        case _:
            return "bid"


@workflow
async def bid_first(ctx: WorkflowContext, init: Deadline) -> str:
    await sleep(seconds(20))
    match await select(Bid, timer(Clock.END, at=init.at)):
        case Clock.END:
            return "timer"
        case _:
            return "bid"


def test_a_tie_goes_to_the_earlier_argument() -> None:
    game = Game([timer_first, bid_first])
    one = game.flows.start(timer_first, Deadline(at=START + seconds(10)))
    two = game.flows.start(bid_first, Deadline(at=START + seconds(10)))
    game.jump(10)
    game.flows.signal(one, Bid(amount=1))
    game.flows.signal(two, Bid(amount=1))
    game.advance(10)
    assert game.flows.result(one) == "timer"
    assert game.flows.result(two) == "bid"


@workflow
async def two_timers(ctx: WorkflowContext) -> list[str]:
    order: list[str] = []
    await sleep(seconds(10))
    first = await select(timer(Clock.END, at=START + seconds(5)), timer(Clock.OTHER, at=START + seconds(3)))
    order.append(first.value)
    second = await select(timer(Clock.OTHER, at=START + seconds(4)), timer(Clock.END, at=START + seconds(4)))
    order.append(second.value)
    return order


def test_of_two_deadlines_the_earlier_wins_and_of_equal_ones_the_earlier_argument() -> None:
    game = Game([two_timers])
    flow = game.flows.start(two_timers, None)
    game.jump(10)
    game.due()
    assert game.flows.result(flow) == ["other", "other"]


@workflow
async def two_signals(ctx: WorkflowContext) -> list[str]:
    order: list[str] = []
    await sleep(seconds(1))
    for _ in range(3):
        match await select(Stop, Bid):
            case Stop():
                order.append("stop")
            case Bid(amount):
                order.append(f"bid {amount}")
    return order


def test_signals_win_by_arrival_even_within_a_microsecond() -> None:
    game = Game([two_signals])
    flow = game.flows.start(two_signals, None, signals=[Bid(amount=1), Stop(), Bid(amount=2)])
    game.advance(1)
    assert game.flows.result(flow) == ["bid 1", "stop", "bid 2"]


async def quick(ctx: Any) -> str:
    return "quick"


@workflow
async def result_or_bid(ctx: WorkflowContext) -> str:
    got = await select(call(quick), Bid)
    return got if isinstance(got, str) else "bid"


def test_results_win_by_completion() -> None:
    game = Game([result_or_bid])
    one = game.flows.start(result_or_bid, None)
    game.due()
    assert game.flows.result(one) == "quick"
    two = game.flows.start(result_or_bid, None)
    game.flows.signal(two, Bid(amount=1))
    assert game.flows.result(two) == "bid"
    assert game.calls() == []


@workflow
async def child_after(ctx: WorkflowContext) -> str:
    await sleep(seconds(5))
    return "child"


@workflow
async def result_while_parked(ctx: WorkflowContext) -> str:
    got = await select(spawn(child_after, None), timer(Clock.END, after=seconds(6)), Bid)
    if isinstance(got, Bid):
        fragile()
        return "bid"
    return str(got)


def test_a_parked_step_gets_the_event_that_it_had_though_others_became_ready() -> None:
    game = Game([child_after, result_while_parked])
    game.quiet()
    Faults.on = True
    flow = game.flows.start(result_while_parked, None)
    game.flows.signal(flow, Bid(amount=1))
    game.advance(100)
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == "bid"


# --- zero and past deadlines


@workflow
async def zero(ctx: WorkflowContext) -> str:
    await sleep(timedelta(0))
    await sleep(timedelta(seconds=-5))
    await sleep(timedelta.min)
    await timer(Clock.END, after=timedelta(0))
    await timer(Clock.END, at=ctx.now - seconds(5))
    await timer(Clock.END, at=datetime.min.replace(tzinfo=START.tzinfo))
    got = await signal(Bid, timeout=timedelta(0))
    both = await wait_all(Bid, Stop, timeout=timedelta(0))
    return f"{got} {both}"


def test_zero_negative_and_past_deadlines_are_ready_at_once() -> None:
    game = Game([zero])
    flow = game.flows.start(zero, None)
    assert game.flows.result(flow) == "None (None, None)"


@workflow
async def zero_or_bid(ctx: WorkflowContext) -> list[str]:
    order: list[str] = []
    await sleep(seconds(10))
    for duration in (seconds(0), seconds(-60)):
        match await select(sleep(duration), Bid):
            case Bid(amount):
                order.append(f"bid {amount}")
            case _:
                order.append("slept")
    return order


def test_a_negative_duration_is_due_now_and_not_before_what_had_come() -> None:
    game = Game([zero_or_bid])
    flow = game.flows.start(zero_or_bid, None, signals=[Bid(amount=1), Bid(amount=2)])
    game.advance(10)
    assert game.flows.result(flow) == ["bid 1", "bid 2"]


@workflow
async def polled(ctx: WorkflowContext) -> list[str]:
    got: list[str] = []
    while len(got) < 3:
        bid = await signal(Bid, timeout=timedelta(0))
        got.append("none" if bid is None else f"bid {bid.amount}")
    return got


def test_a_signal_with_a_zero_timeout_polls_the_inbox() -> None:
    game = Game([polled])
    flow = game.flows.start(polled, None, signals=[Bid(amount=1), Bid(amount=2)])
    assert game.flows.result(flow) == ["bid 1", "bid 2", "none"]


@workflow
async def long_sleeps(ctx: WorkflowContext) -> int:
    await sleep(timedelta(days=30))
    mark(ctx, "30 days")
    await sleep(timedelta(days=400))
    mark(ctx, "430 days")
    await sleep(timedelta.max)
    return 1


def test_sleeps_of_30_and_400_days_fire_at_their_time_and_not_before() -> None:
    game = Game([long_sleeps])
    game.flows.start(long_sleeps, None)
    game.advance(30 * 86_400 - 1)
    assert game.marks() == []
    game.advance(1)
    assert game.marks() == ["30 days"]
    game.advance(400 * 86_400 - 1)
    assert game.marks() == ["30 days"]
    game.advance(1)
    assert game.marks() == ["30 days", "430 days"]


@workflow
async def lapse(ctx: WorkflowContext) -> datetime:
    await sleep(seconds(10))
    return ctx.now


def test_a_timer_does_not_fire_before_its_time_when_the_clock_is_set_back() -> None:
    game = Game([lapse])
    flow = game.flows.start(lapse, None)
    game.clock.set(START - seconds(100))
    game.due()
    assert game.status(flow) == "Suspended"
    game.clock.set(START + seconds(10))
    game.due()
    assert game.flows.result(flow) == START + seconds(10)


def test_a_timer_that_was_fired_by_a_clock_that_ran_ahead_is_not_lost() -> None:
    game = Game([lapse])
    flow = game.flows.start(lapse, None)
    game.clock.set(START + seconds(10))
    clock = game.clock

    def set_back(*_arguments: object) -> int:
        type(clock).set(clock, START + seconds(9))
        clock.micros = original  # type: ignore[method-assign]
        return seen

    original, seen = clock.micros, clock.micros()
    clock.micros = set_back  # type: ignore[method-assign]
    game.due()
    assert game.status(flow) == "Suspended"
    game.clock.set(START + seconds(10))
    game.due()
    assert game.flows.result(flow) == START + seconds(10)


# --- manual mode


def test_in_manual_mode_no_timer_is_ready_until_it_is_fired_by_hand() -> None:
    game = Game([auction])
    flow = game.flows.start_test(auction, Deadline(at=START + seconds(10)))
    game.advance(1000)
    game.flows.signal(flow, Bid(amount=1))
    assert game.status(flow) == "Suspended"
    game.flows.fire_timer(flow, "end")
    assert game.flows.result(flow) == [1]


@workflow
async def manual_zero(ctx: WorkflowContext) -> str:
    await sleep(timedelta(0))
    got = await signal(Bid, timeout=timedelta(0))
    both = await wait_all(Bid, Stop, timeout=seconds(1))
    return f"{got} {both}"


def test_in_manual_mode_a_zero_deadline_is_not_ready_either() -> None:
    game = Game([manual_zero])
    flow = game.flows.start_test(manual_zero, None)
    game.advance(10)
    game.flows.fire_timer(flow, "sleep")
    game.advance(10)
    game.flows.fire_timer(flow, "timeout(Bid)")
    game.advance(10)
    game.flows.signal(flow, Bid(amount=1))
    game.flows.fire_timer(flow, "timeout")
    assert game.flows.result(flow) == "None (Bid(amount=1), None)"


def test_firing_a_timer_that_is_not_waited_for_is_refused_and_says_which_are() -> None:
    game = Game([auction])
    flow = game.flows.start_test(auction, Deadline(at=START + seconds(10)))
    with pytest.raises(UnknownTimer, match="it waits for: end"):
        game.flows.fire_timer(flow, "other")


def test_children_of_a_manual_workflow_are_manual() -> None:
    game = Game([child_after, result_while_parked])
    flow = game.flows.start_test(result_while_parked, None)
    game.advance(100)
    (child,) = game.children(flow)
    game.flows.fire_timer(child.id, "sleep")
    assert game.flows.result(flow) == "child"


def test_a_timer_can_be_fired_by_hand_before_its_time_without_manual_mode() -> None:
    game, flow = auction_game()
    game.flows.fire_timer(flow, "end")
    assert game.flows.result(flow) == []
    assert game.timers(flow) == []


# --- deadlines in a loop, timer rows


def test_a_deadline_stays_the_same_row_while_signals_arrive() -> None:
    game, flow = auction_game()
    (before,) = game.flows.timers(flow)
    game.jump(1)
    game.flows.signal(flow, Bid(amount=1))
    assert game.flows.timers(flow) == [before]


@workflow
async def postponed(ctx: WorkflowContext) -> datetime:
    ends = ctx.now + seconds(10)
    while True:
        match await select(timer(Clock.END, at=ends), Bid):
            case Bid(amount):
                ends = ends + seconds(amount)
            case _:
                return ctx.now


def test_a_changed_deadline_replaces_its_row() -> None:
    game = Game([postponed])
    flow = game.flows.start(postponed, None)
    game.advance(9)
    game.flows.signal(flow, Bid(amount=5))
    assert [t.due_at for t in game.flows.timers(flow)] == [START + seconds(15)]
    game.advance(100)
    assert game.flows.result(flow) == START + seconds(15)


@workflow
async def resettable(ctx: WorkflowContext) -> datetime:
    while True:
        match await select(timer(Clock.END, after=seconds(10)), Go):
            case Go():
                pass
            case _:
                return ctx.now


def test_after_counts_from_when_the_wait_starts() -> None:
    game = Game([resettable])
    flow = game.flows.start(resettable, None)
    game.advance(9)
    game.flows.signal(flow, Go())
    game.advance(100)
    assert game.flows.result(flow) == START + seconds(19)


def test_a_timeout_keeps_its_deadline_over_a_crash_and_is_told_from_a_payload(tmp_path: Path) -> None:
    names = define(
        """
        @workflow
        async def patient(ctx: WorkflowContext) -> list[bool]:
            got: list[bool] = []
            for _ in range(3):
                got.append(await signal(Stop, timeout=seconds(10)) is None)
            return got
        """
    )
    game = Game([names["patient"]], tmp_path / "game.db")
    flow = game.flows.start(names["patient"], None)
    game.advance(6)
    game.crash()
    game.advance(4)
    game.flows.signal(flow, Stop())
    game.advance(9)
    game.crash()
    game.advance(1)
    assert game.flows.result(flow) == [True, False, True]
