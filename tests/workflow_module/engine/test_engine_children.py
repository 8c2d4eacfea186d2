"""Children, gather and select: who is told, who is cancelled, who goes on."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from engine_support import START, Bid, Clock, Deadline, Faults, Game, GameError, Go, Number, Stop, mark, seconds

from workflow_module import (
    ChildCancelled,
    ChildError,
    ChildFailed,
    ProcedureFailed,
    WorkflowContext,
    call,
    gather,
    select,
    signal,
    sleep,
    spawn,
    start,
    timer,
    workflow,
)


@workflow
async def kid(ctx: WorkflowContext, init: Number) -> int:
    try:
        match await select(Go, Stop, Bid):
            case Go(n):
                return init.n * 100 + n
            case Bid():
                raise GameError(f"kid {init.n}")
            case _:
                return -1
    finally:
        mark(ctx, f"kid {init.n} ends")


@workflow
async def two_kids(ctx: WorkflowContext) -> int:
    start(kid, Number(n=1))
    start(kid, Number(n=2), on_parent_end="abandon")
    match await select(Go, Stop, Bid):
        case Bid():
            raise GameError("parent")
        case Stop():
            return 1
        case _:
            return 0


def kids_of(game: Game, flow: int) -> list[str]:
    return [row.status.value for row in game.children(flow)]


def test_children_end_with_their_parent_unless_they_were_abandoned() -> None:
    for ending in ("signal", "cancel", "terminate"):
        game = Game([kid, two_kids])
        flow = game.flows.start(two_kids, None)
        if ending == "signal":
            game.flows.signal(flow, Stop())
        else:
            getattr(game.flows, ending)(flow)
        assert kids_of(game, flow) == ["Cancelled", "Suspended"], ending
        assert game.marks() == ["kid 1 ends"]


def test_children_of_a_parent_that_failed_go_on_until_it_is_cancelled() -> None:
    game = Game([kid, two_kids])
    game.quiet()
    flow = game.flows.start(two_kids, None)
    game.flows.signal(flow, Bid(amount=1))
    assert kids_of(game, flow) == ["Suspended", "Suspended"]
    game.flows.cancel(flow)
    assert kids_of(game, flow) == ["Cancelled", "Suspended"]


def test_children_of_a_deleted_parent_end_too() -> None:
    game = Game([kid, two_kids])
    flow = game.flows.start(two_kids, None)
    game.flows.delete(flow)
    assert kids_of(game, flow) == ["Cancelled", "Suspended"]
    (abandoned,) = (row for row in game.children(flow) if row.status.value == "Suspended")
    game.flows.signal(abandoned.id, Go(n=5))
    assert game.flows.result(abandoned.id) == 205


@workflow
async def leaves_at_once(ctx: WorkflowContext) -> int:
    start(kid, Number(n=1), on_parent_end="abandon")
    return 1


def test_an_abandoned_child_starts_though_its_parent_ends_in_the_same_step() -> None:
    game = Game([kid, leaves_at_once])
    flow = game.flows.start(leaves_at_once, None)
    assert kids_of(game, flow) == ["Suspended"]


@workflow
async def grandparent(ctx: WorkflowContext) -> int:
    return await spawn(two_kids, None)


def test_cancel_goes_down_all_generations() -> None:
    game = Game([kid, two_kids, grandparent])
    flow = game.flows.start(grandparent, None)
    (middle,) = game.children(flow)
    game.flows.cancel(flow)
    assert game.status(flow) == "Cancelled"
    assert game.status(middle.id) == "Cancelled"
    assert kids_of(game, middle.id) == ["Cancelled", "Suspended"]


# --- handles


@workflow
async def twice(ctx: WorkflowContext) -> str:
    handle = start(kid, Number(n=1))
    first = await handle
    second = await handle
    third = await select(handle, timer(Clock.END, after=seconds(10)))
    (fourth,) = await gather(handle)
    return f"{first} {second} {third} {fourth}"


def test_a_handle_can_be_awaited_twice_and_be_an_arm() -> None:
    game = Game([kid, twice])
    flow = game.flows.start(twice, None)
    game.flows.signal(game.children(flow)[0].id, Go(n=7))
    assert game.flows.result(flow) == "107 107 107 107"


@workflow
async def late_look(ctx: WorkflowContext) -> str:
    handle = start(kid, Number(n=1))
    await sleep(seconds(10))
    got = await select(timer(Clock.END, at=START + seconds(5)), handle)
    try:
        return f"{got} {await handle}"
    except ChildError as error:
        return f"{got} {type(error).__name__}"


def test_a_handle_awaited_after_the_child_ended_counts_from_when_it_ended() -> None:
    for at, winner in ((4, "104 104"), (6, "Clock.END 106")):
        game = Game([kid, late_look])
        flow = game.flows.start(late_look, None)
        game.advance(at)
        game.flows.signal(game.children(flow)[0].id, Go(n=at))
        game.advance(10)
        assert game.flows.result(flow) == winner


def test_a_handle_of_a_child_that_was_cancelled_failed_or_deleted() -> None:
    for how, name in (("cancel", "ChildCancelled"), ("fail", "ChildFailed"), ("delete", "ChildFailed")):
        game = Game([kid, late_look])
        game.quiet()
        flow = game.flows.start(late_look, None)
        child = game.children(flow)[0].id
        game.jump(6)
        if how == "fail":
            game.flows.signal(child, Bid(amount=1))
        elif how == "cancel":
            game.flows.cancel(child)
        else:
            game.flows.delete(child)
        game.advance(10)
        assert game.flows.result(flow) == f"Clock.END {name}"


@workflow
async def patient(ctx: WorkflowContext) -> str:
    try:
        return f"got {await spawn(kid, Number(n=3))}"
    except ChildCancelled as error:
        return f"cancelled {error.workflow_type} {error.workflow_id}: {error.error}"
    except ChildFailed as error:
        return f"failed {error.workflow_type} {error.workflow_id}: {error.error}"


def test_a_parent_gets_child_failed_and_child_cancelled_with_what_happened() -> None:
    game = Game([kid, patient])
    game.quiet()
    one, two, three = (game.flows.start(patient, None) for _ in range(3))
    kids = [game.children(flow)[0].id for flow in (one, two, three)]
    game.flows.signal(kids[0], Bid(amount=1))
    game.flows.cancel(kids[1])
    game.flows.terminate(kids[2])
    assert game.flows.result(one) == f"failed kid {kids[0]}: engine_support.GameError: kid 3"
    assert game.flows.result(two) == f"cancelled kid {kids[1]}: cancelled"
    assert game.flows.result(three) == f"cancelled kid {kids[2]}: terminated by an operator"


def test_child_failed_and_child_cancelled_are_siblings() -> None:
    assert ChildFailed.__bases__ == ChildCancelled.__bases__ == (ChildError,)


def test_a_deleted_child_tells_its_parent() -> None:
    game = Game([kid, patient])
    flow = game.flows.start(patient, None)
    game.flows.delete(game.children(flow)[0].id)
    assert game.flows.result(flow).startswith("cancelled kid")


# --- losers


async def answer(ctx: Any) -> int:
    return 42


@workflow
async def racing(ctx: WorkflowContext) -> str:
    got = await select(spawn(kid, Number(n=1)), spawn(kid, Number(n=2)), call(answer), Stop, sleep(seconds(5)))
    return str(got)


def test_children_and_calls_of_the_losers_are_cancelled() -> None:
    game = Game([kid, racing])
    flow = game.flows.start(racing, None)
    assert len(game.calls()) == 1
    game.flows.signal(game.children(flow)[1].id, Go(n=3))
    assert game.flows.result(flow) == "203"
    assert kids_of(game, flow) == ["Cancelled", "Completed"]
    assert game.calls() == []
    assert game.marks() == ["kid 2 ends", "kid 1 ends"]


@workflow
async def keeps_its_handle(ctx: WorkflowContext) -> str:
    handle = start(kid, Number(n=1))
    await select(handle, Stop)
    return f"got {await handle}"


def test_a_handle_that_lost_is_not_cancelled() -> None:
    game = Game([kid, keeps_its_handle])
    flow = game.flows.start(keeps_its_handle, None)
    game.flows.signal(flow, Stop())
    assert kids_of(game, flow) == ["Suspended"]
    game.flows.signal(game.children(flow)[0].id, Go(n=1))
    assert game.flows.result(flow) == "got 101"


@workflow
async def fragile_race(ctx: WorkflowContext) -> str:
    await select(spawn(kid, Number(n=1)), call(answer), Stop)
    if Faults.on:
        raise GameError("after the race")
    return "over"


def test_losers_live_on_while_the_step_that_decided_is_parked() -> None:
    game = Game([kid, fragile_race])
    game.quiet()
    flow = game.flows.start(fragile_race, None)
    Faults.on = True
    game.flows.signal(flow, Stop())
    assert kids_of(game, flow) == ["Suspended"]
    assert len(game.calls()) == 1
    game.flows.signal(game.children(flow)[0].id, Go(n=1))
    game.due()
    Faults.on = False
    game.flows.resume(flow)
    assert game.flows.result(flow) == "over"
    assert game.calls() == []


# --- gather


@workflow
async def family(ctx: WorkflowContext, init: Number) -> list[int]:
    return list(await gather(*[spawn(kid, Number(n=i)) for i in range(init.n)]))


def test_gather_gives_results_in_the_order_of_the_arguments() -> None:
    game = Game([kid, family])
    flow = game.flows.start(family, Number(n=3))
    for child in reversed(game.children(flow)):
        game.flows.signal(child.id, Go(n=child.id))
    assert game.flows.result(flow) == [i * 100 + child.id for i, child in enumerate(game.children(flow))]


def test_gather_of_nothing_is_ready_at_once() -> None:
    game = Game([kid, family])
    assert game.flows.result(game.flows.start(family, Number(n=0))) == []


@workflow
async def sprout(ctx: WorkflowContext, init: Number) -> int:
    await sleep(seconds(init.n))
    return init.n


@workflow
async def thousand(ctx: WorkflowContext) -> int:
    return sum(await gather(*[spawn(sprout, Number(n=i)) for i in range(1000)]))


def test_gather_of_a_thousand_children(tmp_path: Path) -> None:
    game = Game([sprout, thousand], tmp_path / "game.db", journal=False)
    flow = game.flows.start(thousand, None)
    assert len(game.children(flow)) == 1000
    game.jump(500)
    game.due()
    game.crash()
    game.jump(500)
    game.due()
    assert game.flows.result(flow) == sum(range(1000))


@workflow
async def careful_family(ctx: WorkflowContext) -> str:
    try:
        await gather(*[spawn(kid, Number(n=i)) for i in range(3)])
    except ChildFailed as error:
        return error.error
    return "fine"


def test_the_first_failure_of_a_gather_is_raised_and_cancels_the_rest() -> None:
    game = Game([kid, careful_family])
    game.quiet()
    flow = game.flows.start(careful_family, None)
    one, _, three = game.children(flow)
    game.flows.signal(one.id, Go(n=1))
    game.flows.signal(three.id, Bid(amount=1))
    assert game.flows.result(flow) == "engine_support.GameError: kid 2"
    assert kids_of(game, flow) == ["Completed", "Cancelled", "Cancelled"]  # the parked one, as its parent ended


def test_when_nobody_catches_the_failure_of_a_gather_its_other_arms_go_on_for_a_resume() -> None:
    game = Game([kid, family])
    game.quiet()
    flow = game.flows.start(family, Number(n=2))
    one, two = game.children(flow)
    game.flows.signal(one.id, Bid(amount=1))
    assert game.status(flow) == "Failed"
    assert kids_of(game, flow) == ["Failed", "Suspended"]
    game.flows.signal(two.id, Go(n=1))
    game.flows.resume(flow)
    assert game.status(flow) == "Failed"
    assert "kid 0" in (game.row(flow).error or "")


async def breaks(ctx: Any) -> int:
    raise GameError("call broke")


@workflow
async def all_outcomes(ctx: WorkflowContext) -> list[str]:
    got = await gather(
        spawn(kid, Number(n=1)),
        spawn(kid, Number(n=2)),
        call(breaks, attempts=1),
        sleep(seconds(5)),
        timer(Clock.OTHER, after=seconds(6)),
        signal(Stop),
        gather(spawn(kid, Number(n=3))),
        return_exceptions=True,
    )
    return [str(each) for each in got]


def test_return_exceptions_waits_for_all() -> None:
    game = Game([kid, all_outcomes])
    game.quiet()
    flow = game.flows.start(all_outcomes, None)
    one, two, three = game.children(flow)
    game.flows.signal(one.id, Bid(amount=1))
    game.flows.cancel(two.id)
    game.flows.signal(three.id, Go(n=1))
    game.advance(10)
    assert game.status(flow) == "Suspended"
    game.flows.signal(flow, Stop())
    assert game.flows.result(flow) == [
        f"workflow {one.id} (kid): engine_support.GameError: kid 1",
        f"workflow {two.id} (kid): cancelled",
        "breaks failed after 1 attempts: GameError: call broke",
        "None",
        "Clock.OTHER",
        "Stop()",
        "(301,)",
    ]


@workflow
async def nested(ctx: WorkflowContext, init: Deadline) -> str:
    got = await select(
        gather(signal(Bid), signal(Go)),
        gather(sleep(seconds(3)), timer(Clock.END, at=init.at)),
        spawn(kid, Number(n=1)),
    )
    return str(got)


def test_a_gather_in_a_select_is_ready_when_its_last_part_is() -> None:
    for bid_at, go_at, expected in (
        (1, 4, "(Bid(amount=1), Go(n=0))"),
        (1, 6, "(None, <Clock.END: 'end'>)"),
        (5, 2, "(Bid(amount=1), Go(n=0))"),
    ):
        game = Game([kid, nested])
        flow = game.flows.start(nested, Deadline(at=START + seconds(5)))
        for at, message in sorted([(bid_at, Bid(amount=1)), (go_at, Go())], key=lambda pair: pair[0]):
            game.clock.set(START + seconds(at))
            game.flows.signal(flow, message)
        assert game.flows.result(flow) == expected
        assert kids_of(game, flow) == ["Cancelled"]


@workflow
async def hasty(ctx: WorkflowContext) -> str:
    try:
        await gather(gather(sleep(seconds(100)), spawn(kid, Number(n=1))), call(breaks, attempts=1))
    except ProcedureFailed as error:
        return error.error_type
    return "?"


def test_a_failure_cancels_nested_parts() -> None:
    game = Game([kid, hasty])
    game.quiet()
    flow = game.flows.start(hasty, None)
    game.due()
    assert game.flows.result(flow) == "GameError"
    assert kids_of(game, flow) == ["Cancelled"]
    assert game.timers(flow) == []


@workflow
async def same_id(ctx: WorkflowContext) -> str:
    one = start(kid, Number(n=1), correlation_id="kid")
    two = start(kid, Number(n=2), correlation_id="kid")
    return f"{one.workflow_id == two.workflow_id}"


def test_a_parent_joins_its_own_child_by_correlation_id() -> None:
    game = Game([kid, same_id])
    flow = game.flows.start(same_id, None)
    assert game.flows.result(flow) == "True"
    assert len(game.children(flow)) == 1


def test_a_child_does_not_take_over_a_run_of_somebody_else() -> None:
    game = Game([kid, same_id])
    game.quiet()
    game.flows.start(kid, Number(n=9), correlation_id="kid")
    flow = game.flows.start(same_id, None)
    assert game.status(flow) == "Failed"
    assert "correlation_id" in (game.row(flow).error or "")


@workflow
async def knows_itself(ctx: WorkflowContext) -> str:
    return f"{ctx.parent_id} {ctx.entity_id} {ctx.correlation_id}"


@workflow
async def tells_of_kid(ctx: WorkflowContext) -> str:
    got = await spawn(knows_itself, None, entity_id=7, correlation_id="c")
    return f"{ctx.parent_id} {got}"


def test_a_child_knows_its_parent_entity_and_correlation_id() -> None:
    game = Game([knows_itself, tells_of_kid])
    flow = game.flows.start(tells_of_kid, None)
    assert game.flows.result(flow) == f"None {flow} 7 c"


@workflow
async def naps(ctx: WorkflowContext) -> datetime:
    await sleep(seconds(10))
    return ctx.now


@workflow
async def month(ctx: WorkflowContext) -> datetime:
    for _ in range(1000):
        await spawn(naps, None)
    return ctx.now


def test_children_and_timers_advance_on_one_clock() -> None:
    game = Game([naps, month], journal=False)
    flow = game.flows.start(month, None)
    game.advance(10_000)
    assert game.flows.result(flow) == START + seconds(10_000)
    game.advance(30 * 86_400)
    assert game.flows.find(flow) is None
