"""What the engine keeps in memory of waits is never believed when the tables say something else."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from engine_support import START, Bid, Clock, Faults, Game, GameError, Go, Number, Stop, Target, fragile, mark, seconds
from hypothesis import example, given
from hypothesis import strategies as st

from gamedb import ProcedureContext, ReducerContext
from workflow_module import (
    ChildFailed,
    Signal,
    WorkflowContext,
    WorkflowTimer,
    armed,
    call,
    gather,
    select,
    signal,
    spawn,
    start,
    subscribe,
    timer,
    waiting,
    workflow,
)
from workflow_module.armed import (
    CallLeaf,
    ChildLeaf,
    Facts,
    GatherNode,
    Node,
    SelectNode,
    SignalLeaf,
    TimerLeaf,
    encode_node,
    evaluate,
)
from workflow_module.engine import engine_of
from workflow_module.inbox import Incoming
from workflow_module.local import LocalState
from workflow_module.outcome import Value
from workflow_module.waiting import LARGE, UNDECIDED, Held, Waiting


@workflow
async def stages(ctx: WorkflowContext) -> int:
    await signal(Go)
    return (await signal(Bid)).amount


def undone(game: Game, body: Any) -> None:
    """Run `body(ctx)` in a transaction that is rolled back."""
    with pytest.raises(GameError), game.db.transaction() as ctx:
        body(ctx)
        raise GameError("undo it")


def test_a_wait_that_was_rolled_back_takes_no_signal() -> None:
    game = Game([stages])
    flow = game.flows.start(stages, None)
    undone(game, lambda ctx: game.engine.signal(ctx, flow, Go()))
    game.flows.signal(flow, Bid(amount=5))
    assert game.inbox(flow) == ["Bid"]
    game.flows.signal(flow, Go())
    assert game.flows.result(flow) == 5


def test_a_wait_that_a_savepoint_undid_takes_no_signal_in_the_same_transaction() -> None:
    game = Game([stages])
    flow = game.flows.start(stages, None)
    with game.db.transaction() as ctx:
        with pytest.raises(GameError), ctx.savepoint():
            game.engine.signal(ctx, flow, Go())
            raise GameError("undo it")
        game.engine.signal(ctx, flow, Bid(amount=5))
    assert game.inbox(flow) == ["Bid"]


@workflow
async def child(ctx: WorkflowContext, init: Number) -> int:
    await signal(Go)
    fragile()
    return init.n


@workflow
async def family(ctx: WorkflowContext, init: Number) -> list[int]:
    handles = [start(child, Number(n)) for n in range(init.n)]
    return list(await gather(*handles))


def family_of(game: Game, count: int) -> tuple[int, list[int]]:
    flow = game.flows.start(family, Number(count))
    return flow, [row.id for row in game.children(flow)]


def test_a_child_whose_end_was_rolled_back_is_still_waited_for() -> None:
    game = Game([family, child])
    flow, children = family_of(game, 3)
    game.flows.signal(children[0], Go())
    undone(game, lambda ctx: game.engine.signal(ctx, children[1], Go()))
    game.flows.signal(children[2], Go())
    assert game.status(flow) == "Suspended"
    game.flows.signal(children[1], Go())
    assert game.flows.result(flow) == [0, 1, 2]


def test_children_that_end_in_one_transaction_are_all_heard_of() -> None:
    game = Game([family, child])
    flow, children = family_of(game, 3)
    with game.db.transaction() as ctx:
        for number in reversed(children):
            game.engine.signal(ctx, number, Go())
    assert game.flows.result(flow) == [0, 1, 2]


def test_a_gather_hears_of_its_children_after_a_restart(tmp_path: Any) -> None:
    game = Game([family, child], tmp_path / "game.db")
    flow, children = family_of(game, 3)
    game.flows.signal(children[1], Go())
    game.reopen()
    game.flows.signal(children[0], Go())
    assert game.status(flow) == "Suspended"
    game.flows.signal(children[2], Go())
    assert game.flows.result(flow) == [0, 1, 2]
    game.db.close()


def test_the_first_child_that_fails_ends_a_gather_however_many_are_missing() -> None:
    @workflow
    async def careful(ctx: WorkflowContext) -> list[str]:
        handles = [start(child, Number(n)) for n in range(3)]
        try:
            await gather(*handles)
        except ChildFailed as error:
            return [str(error.workflow_id - handles[0].workflow_id)]
        return []

    game = Game([careful, child])
    game.quiet()
    flow = game.flows.start(careful, None)
    children = [row.id for row in game.children(flow)]
    game.flows.signal(children[2], Go())
    Faults.on = True
    game.flows.signal(children[1], Go())
    assert game.flows.result(flow) == ["1"]


def test_a_gather_that_returns_exceptions_waits_for_all() -> None:
    @workflow
    async def patient(ctx: WorkflowContext) -> list[str]:
        handles = [start(child, Number(n)) for n in range(3)]
        found = await gather(*handles, return_exceptions=True)
        return [type(each).__name__ for each in found]

    game = Game([patient, child])
    game.quiet()
    flow = game.flows.start(patient, None)
    children = [row.id for row in game.children(flow)]
    Faults.on = True
    game.flows.signal(children[0], Go())
    game.flows.signal(children[2], Go())
    assert game.status(flow) == "Suspended"
    Faults.on = False
    game.flows.signal(children[1], Go())
    assert game.flows.result(flow) == ["ChildFailed", "int", "ChildFailed"]


def test_a_child_that_stands_twice_in_a_gather_counts_for_both() -> None:
    @workflow
    async def twice(ctx: WorkflowContext) -> list[int]:
        handle, other = start(child, Number(1)), start(child, Number(2))
        return list(await gather(handle, other, handle))

    game = Game([twice, child])
    flow = game.flows.start(twice, None)
    first, second = [row.id for row in game.children(flow)]
    game.flows.signal(first, Go())
    assert game.status(flow) == "Suspended"
    game.flows.signal(second, Go())
    assert game.flows.result(flow) == [1, 2, 1]


def test_a_gather_beside_signals_in_its_inbox_waits_for_its_children() -> None:
    @workflow
    async def busy(ctx: WorkflowContext) -> list[int]:
        first, _ = await gather(start(child, Number(1)), start(child, Number(2)))
        return [first, (await signal(Bid)).amount]

    game = Game([busy, child])
    flow = game.flows.start(busy, None)
    first, second = [row.id for row in game.children(flow)]
    game.flows.signal(flow, Bid(amount=7))
    game.flows.signal(first, Go())
    game.flows.signal(flow, Bid(amount=8))
    assert game.inbox(flow) == ["Bid", "Bid"]
    game.flows.signal(second, Go())
    assert game.flows.result(flow) == [1, 7]


@workflow
async def auction(ctx: WorkflowContext) -> int:
    ends, highest = ctx.now + timedelta(seconds=60), 0
    while True:
        match await select(timer(Clock.END, at=ends), Bid, Stop):
            case Clock.END:
                return highest
            case Bid(amount):
                highest = amount
            case Stop():
                ends += timedelta(seconds=60)


def test_waiting_on_for_the_same_keeps_the_timer_and_for_another_time_replaces_it() -> None:
    game = Game([auction])
    flow = game.flows.start(auction, None)
    (before,) = game.flows.timers(flow)
    game.flows.signal(flow, Bid(amount=3))
    assert game.flows.timers(flow) == [before]
    wait_data = game.row(flow).wait_data
    game.flows.signal(flow, Stop())
    (after,) = game.flows.timers(flow)
    assert after.due_at == START + seconds(120)
    assert after.scheduled_id != before.scheduled_id
    assert game.row(flow).wait_data != wait_data
    game.advance(119)
    assert game.status(flow) == "Suspended"
    game.advance(1)
    assert game.flows.result(flow) == 3


def test_a_timer_that_was_fired_by_hand_is_armed_again_where_the_code_waits_for_it_again() -> None:
    @workflow
    async def again(ctx: WorkflowContext) -> int:
        at, fired = ctx.now + timedelta(seconds=60), 0
        while fired < 2:
            await select(timer(Clock.END, at=at), Stop)
            fired += 1
            mark(ctx, fired)
        return fired

    game = Game([again], testing=True)
    flow = game.flows.start_test(again, None)
    game.flows.fire_timer(flow, "end")
    assert game.marks() == ["1"]
    assert game.status(flow) == "Suspended"
    game.flows.fire_timer(flow, "end")
    assert game.flows.result(flow) == 2


def test_a_timer_that_a_workflow_fires_of_itself_is_armed_again_where_it_waits_for_it_again(tmp_path: Any) -> None:
    @workflow
    async def hurried(ctx: WorkflowContext) -> int:
        at, bids = ctx.now + timedelta(seconds=60), 0
        while isinstance(await select(timer(Clock.END, at=at), Bid), Bid):
            engine_of(ctx.functions).fire_timer(ctx, ctx.workflow_id, "end")
            bids += 1
        return bids

    game = Game([hurried], tmp_path / "game.db")
    flow = game.flows.start(hurried, None)
    game.flows.signal(flow, Bid(amount=1))
    game.reopen()
    game.due()
    assert game.status(flow) == "Suspended"
    game.advance(60)
    assert game.flows.result(flow) == 1


def test_a_duration_begins_anew_each_time() -> None:
    @workflow
    async def idle(ctx: WorkflowContext) -> int:
        bids = 0
        while await signal(Bid, timeout=timedelta(seconds=10)) is not None:
            bids += 1
        return bids

    game = Game([idle])
    flow = game.flows.start(idle, None)
    game.advance(9)
    game.flows.signal(flow, Bid(amount=1))
    game.advance(9)
    game.flows.signal(flow, Bid(amount=1))
    assert [t.due_at for t in game.db.read(WorkflowTimer)] == [START + seconds(28)]
    game.advance(10)
    assert game.flows.result(flow) == 2


def double(ctx: ProcedureContext, n: int) -> int:
    return 2 * n


def test_calls_of_a_gather_are_heard_of_one_by_one() -> None:
    @workflow
    async def doubles(ctx: WorkflowContext) -> list[int]:
        first, second = await gather(call(double, 1), call(double, 2))
        return [first, second]

    game = Game([doubles], testing=True)
    flow = game.flows.start(doubles, None)
    first, second = game.calls(flow)
    game.db.call("debug_complete_procedure", second.id, "40")
    assert game.status(flow) == "Suspended"
    game.db.call("debug_complete_procedure", first.id, "20")
    assert game.flows.result(flow) == [20, 40]


def test_a_spawned_child_that_ends_while_its_parent_runs_is_no_news_to_the_next_wait() -> None:
    @workflow
    async def racing(ctx: WorkflowContext) -> str:
        first = await select(spawn(child, Number(1)), Bid)
        second = await select(spawn(child, Number(2)), Bid)
        return f"{first} {second}"

    game = Game([racing, child])
    flow = game.flows.start(racing, None)
    (loser,) = [row.id for row in game.children(flow)]
    with game.db.transaction() as ctx:
        game.engine.signal(ctx, flow, Bid(amount=1))
        assert game.row_in(ctx, loser).status.value == "Cancelled"
    winner = game.children(flow)[-1].id
    game.flows.signal(winner, Go())
    assert game.flows.result(flow) == "Bid(amount=1) 2"


def test_no_more_waits_are_held_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "HELD_MAX", 2)
    game = Game([auction])
    flows = [game.flows.start(auction, None) for _ in range(5)]
    for amount, flow in enumerate(flows * 2):
        game.flows.signal(flow, Bid(amount=amount))
        assert len(game.db.extensions[LocalState].held._entries) <= 2
    game.advance(60)
    assert [game.flows.result(flow) for flow in flows] == [5, 6, 7, 8, 9]


def test_a_wait_is_held_for_one_row_object_alone() -> None:
    game = Game([auction])
    flow = game.flows.start(auction, None)
    row, held, entry = game.row(flow), Held(), Waiting(SignalLeaf("Bid"))
    held.keep(row, entry)
    assert held.take(row.replace()) is None
    held.keep(row, entry)
    assert held.take(row) is entry
    assert held.take(row) is None


class Loot(Signal):
    items: list[str]


@workflow
async def looter(ctx: WorkflowContext) -> list[str]:
    subscribe(Loot, "all")
    loot = await signal(Loot)
    loot.items.append(str(ctx.workflow_id))
    return loot.items


def test_what_a_workflow_does_to_its_signal_nobody_else_sees() -> None:
    game = Game([looter])
    flows = [game.flows.start(looter, None) for _ in range(2)]
    sent = Loot(items=["sword"])
    game.flows.broadcast(sent, "all")
    assert [game.flows.result(flow) for flow in flows] == [["sword", "1"], ["sword", "2"]]
    assert sent == Loot(items=["sword"])


def test_what_a_sender_does_after_sending_is_not_sent() -> None:
    @workflow
    async def sender(ctx: WorkflowContext, init: Target) -> None:
        loot = Loot(items=["sword"])
        ctx.signal(init.id, loot)
        loot.items.append("shield")

    game = Game([looter, sender])
    flow = game.flows.start(looter, None)
    game.flows.start(sender, Target(flow))
    assert game.flows.result(flow) == ["sword", "1"]


# --- what a flat wait decides by itself is what an evaluation would say

moments = st.integers(0, 4)
leaves = st.one_of(
    st.builds(TimerLeaf, st.sampled_from([None, "end", "other"]), moments, st.none() | moments),
    st.builds(SignalLeaf, st.sampled_from(["Bid", "Stop"]), st.none() | moments, st.none(), st.none() | st.just(3)),
)
nodes: st.SearchStrategy[Node] = leaves | st.builds(
    SelectNode, st.lists(leaves, min_size=1, max_size=3), st.none() | st.just(0)
)


class Nothing(Facts):
    """An empty inbox, and the names of timers."""

    def timer_value(self, name: str) -> Any:
        return Timers.timers[name]


class Timers:
    timers: ClassVar = {"end": Clock.END, "other": Clock.OTHER}


@example(SelectNode([TimerLeaf("end", 1), TimerLeaf("other", 1)]), 2, False, None)
@example(SelectNode([SignalLeaf("Bid"), SignalLeaf("Bid")]), 2, False, "Bid")
@given(nodes, moments, st.booleans(), st.none() | st.sampled_from(["Bid", "Stop", "Other"]))
def test_a_wait_that_decides_by_itself_agrees_with_the_evaluation(
    node: Node, now: int, manual: bool, name: str | None
) -> None:
    incoming = None if name is None else Incoming(name, "{}", Value(Go()), now)
    found = Waiting(node).look(now, manual, incoming, Timers())  # type: ignore[arg-type]
    if found is UNDECIDED:
        return
    expected = evaluate(node, Nothing(now, manual, 0, incoming))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert (found.micros, found.taken, found.arm) == (expected.micros, expected.taken, expected.arm)
        assert found.event() == expected.event()


def test_flat_waits_do_decide_what_happens_most() -> None:
    """So that the test above does not pass by never deciding."""
    node = SelectNode([TimerLeaf("end", 3), SignalLeaf("Bid")])
    bid = Incoming("Bid", "{}", Value(Bid(amount=1)), 2)

    def decides(node: Node, now: int, manual: bool, incoming: Incoming | None) -> bool:
        return Waiting(node).look(now, manual, incoming, Timers()) is not UNDECIDED  # type: ignore[arg-type]

    assert decides(node, 2, False, bid)
    assert decides(node, 2, False, None)
    assert decides(node, 3, False, None)
    assert not decides(node, 3, False, bid)
    assert not decides(node, 3, True, None)
    assert not decides(SelectNode([TimerLeaf("end", 3, 1)]), 2, False, None)


@pytest.mark.parametrize("exceptions", [False, True])
@pytest.mark.parametrize("count", [LARGE - 1, LARGE, 3 * LARGE])
def test_the_json_of_a_gather_is_that_of_all_its_arms_whichever_have_ended(count: int, exceptions: bool) -> None:
    arms: list[Node] = [CallLeaf(n, "ask") if n % 3 else ChildLeaf(n, "child", own=True) for n in range(count)]
    arms[5] = SelectNode([ChildLeaf(count, "child", own=False), TimerLeaf(None, 5)])
    arms[7] = ChildLeaf(9, "child", own=False)  # the same as arm 9
    wait = Waiting(GatherNode(arms, exceptions))
    for number in random.Random(count).sample(range(count + 1), count + 1):
        for kind in (CallLeaf, ChildLeaf):
            for leaf in wait.ended(kind, number):
                leaf.ready, leaf.value = number, f'"{number}"'
        assert wait.encode() == encode_node(wait.node)
    assert all(leaf.ready is not None for leaf in armed.leaves(wait.node) if isinstance(leaf, CallLeaf | ChildLeaf))


def test_a_library_and_its_game_each_find_the_engine_of_the_database_that_runs() -> None:
    first, second = Game([auction]), Game([stages])
    flow, other = first.flows.start(auction, None), second.flows.start(stages, None)

    def by_the_other_engine(ctx: ReducerContext) -> None:
        first.engine.signal(ctx, other, Go())

    second.db.execute("signal", by_the_other_engine, ())
    second.flows.signal(other, Bid(amount=2))
    assert second.flows.result(other) == 2
    first.flows.signal(flow, Bid(amount=1))
    assert first.status(flow) == "Suspended"
