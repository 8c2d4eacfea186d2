"""In-process subscriptions: to tables and to views."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator

import pytest

from gamedb import (
    AutoInc,
    Commit,
    Database,
    Identity,
    Module,
    NotAllowed,
    PrimaryKey,
    ReducerContext,
    Row,
    Subscription,
    TransactionError,
    UnknownName,
    ViewChange,
    ViewContext,
    u32,
    u64,
)


class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    owner: Identity = Identity.from_int(0)
    score: u32 = 0
    x: float = 0.0


class Item(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    player: u64


class Rank(Row):
    """No table: the rows of a view."""

    score: u32


runs: list[str] = []


def a_module() -> Module:
    module = Module("watched")
    module.table(Player)
    module.table(Item)

    @module.reducer
    def add(ctx: ReducerContext, score: u32 = 0) -> int:
        return ctx.db[Player].insert(Player(score=score)).id

    @module.reducer
    def give(ctx: ReducerContext, player: u64) -> None:
        ctx.db[Item].insert(Item(player=player))

    @module.view
    def best(ctx: ViewContext) -> Player | None:
        runs.append("best")
        return max(ctx.db[Player], key=lambda p: p.score, default=None)

    @module.view
    def at_least(ctx: ViewContext, score: u32) -> list[Player]:
        return [p for p in ctx.db[Player] if p.score >= score]

    @module.view
    def mine(ctx: ViewContext) -> list[Player]:
        return ctx.db[Player].where(owner=ctx.sender)

    @module.view
    def ranks(ctx: ViewContext) -> list[Rank]:
        return [Rank(score=p.score) for p in ctx.db[Player]]

    @module.view
    def broken(ctx: ViewContext) -> list[Player]:
        players = list(ctx.db[Player])
        if any(p.score == 13 for p in players) and not ctx.db[Item].count():
            raise LookupError("thirteen")
        return players

    @module.view
    def wrong(ctx: ViewContext) -> list[Player]:
        return 5  # type: ignore[return-value]

    @module.view
    def wrong_rows(ctx: ViewContext) -> list[Player]:
        return [Player(score=-1)] if ctx.db[Player].count() else [Item(player=1)]  # type: ignore[list-item]

    return module


@pytest.fixture
def db() -> Iterator[Database]:
    runs.clear()
    with Database(a_module()) as db:
        yield db


# --- tables


def test_a_subscriber_gets_the_later_commits_that_touch_its_tables_in_order(db: Database) -> None:
    db.call("add")
    seen: list[Commit] = []
    db.subscribe(Player, seen.append)
    db.call("add")
    db.call("give", 1)
    db.call("add")
    assert [commit.changes["player"].inserted[0].id for commit in seen] == [2, 3]  # type: ignore[attr-defined]
    assert [commit.tx_id for commit in seen] == [db.last_tx_id - 2, db.last_tx_id]


def test_several_tables_are_one_subscription_and_one_call_a_commit(db: Database) -> None:
    seen: list[Commit] = []
    db.subscribe([Player, Item], seen.append)
    with db.transaction() as ctx:
        ctx.db[Player].insert(Player())
        ctx.db[Item].insert(Item(player=1))
    db.call("give", 1)
    assert [set(commit.changes) for commit in seen] == [{"player", "item"}, {"item"}]


def test_a_rolled_back_transaction_is_not_told_of(db: Database) -> None:
    seen: list[Commit] = []
    db.subscribe(Player, seen.append)
    with pytest.raises(ZeroDivisionError), db.transaction() as ctx:
        ctx.db[Player].insert(Player())
        raise ZeroDivisionError
    assert seen == []


def test_a_callback_sees_the_commit_and_may_call_reducers_which_are_told_of_afterwards(db: Database) -> None:
    order: list[tuple[str, int]] = []

    def first(commit: Commit) -> None:
        order.append(("first", commit.tx_id))
        if db.read(Player).count() < 3:
            db.call("add")

    db.subscribe(Player, first)
    db.subscribe(Player, lambda commit: order.append(("second", commit.tx_id)))
    db.call("add")
    last = db.last_tx_id
    assert order == [(who, tx) for tx in (last - 2, last - 1, last) for who in ("first", "second")]


def test_a_raising_callback_harms_neither_the_commit_nor_the_others(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(commit: Commit) -> None:
        raise LookupError("mine")

    seen: list[Commit] = []
    db.subscribe(Player, bad)
    db.subscribe(Player, seen.append)
    assert db.call("add") == 1
    assert len(seen) == 1
    assert "a subscriber of player failed" in caplog.text
    assert "LookupError('mine')" in caplog.text


def test_a_closed_subscription_is_silent_at_once(db: Database) -> None:
    seen: list[str] = []
    subscriptions: list[Subscription] = []

    def close_all(commit: Commit) -> None:
        seen.append("called")
        for subscription in subscriptions:
            subscription.close()
            subscription.close()

    subscriptions += [db.subscribe(Player, close_all), db.subscribe(Player, lambda commit: seen.append("late"))]
    db.call("add")
    db.call("add")
    assert seen == ["called"]
    with db.subscribe(Player, lambda commit: seen.append("with")):
        db.call("add")
    db.call("add")
    assert seen == ["called", "with"]


def test_who_subscribes_in_a_callback_hears_of_later_commits_only(db: Database) -> None:
    seen: list[int] = []
    rows: list[int] = []

    def once(commit: Commit) -> None:
        first.close()
        db.call("add")
        rows.extend(row.id for row in db.read(Player))
        db.subscribe(Player, lambda commit: seen.append(commit.changes["player"].inserted[0].id))  # type: ignore[attr-defined]

    first = db.subscribe(Player, once)
    db.call("add")
    assert (rows, seen) == ([1, 2], [])
    db.call("add")
    assert seen == [3]


def test_a_subscription_to_something_else_is_refused(db: Database) -> None:
    with pytest.raises(UnknownName, match="Rank is not a table of module 'watched'"):
        db.subscribe(Rank, print)
    with pytest.raises(UnknownName, match="no view 'nothing'"):
        db.subscribe("nothing", print)
    with pytest.raises(UnknownName, match="no view 'add'; it is a reducer"):
        db.subscribe("add", print)


# --- views


def test_a_view_gives_a_row_an_optional_row_or_a_list(db: Database) -> None:
    assert db.view("best") is None
    for score in (1, 5, 3):
        db.call("add", score)
    best = db.view("best")
    assert best.score == 5
    assert db.view("at_least", 3) == [best, db.read(Player).get(3)]
    assert db.view("ranks") == [Rank(score=1), Rank(score=5), Rank(score=3)]


def test_a_view_knows_who_looks(db: Database) -> None:
    ann = Identity.from_int(1)
    with db.transaction() as ctx:
        row = ctx.db[Player].insert(Player(owner=ann))
    assert db.caller(ann).view("mine") == db.view("mine", sender=ann) == [row]
    assert db.view("mine") == []


def test_a_view_cannot_write_and_is_not_for_use_inside_transactions(db: Database) -> None:
    module = a_module()

    @module.view
    def writes(ctx: ViewContext) -> list[Player]:
        ctx.db[Player].insert(Player())  # type: ignore[attr-defined]
        return []

    with Database(module) as other, pytest.raises(AttributeError, match="nothing can be written here: insert is"):
        other.view(writes)
    with db.transaction(), pytest.raises(TransactionError, match=r"use ctx.db"):
        db.view("best")


def test_a_wrong_result_is_an_error_naming_the_view(db: Database) -> None:
    with pytest.raises(TypeError, match="view 'wrong' declares a list and returned 5"):
        db.view("wrong")
    with pytest.raises(TypeError, match=r"view 'wrong_rows' returned something else than it declares: .*Item"):
        db.view("wrong_rows")
    db.call("add")
    with pytest.raises(TypeError, match=r"result\.score: -1"):
        db.view("wrong_rows")


def test_a_view_subscriber_gets_what_changed(db: Database) -> None:
    changes: list[ViewChange] = []
    db.call("add", 5)
    db.subscribe("at_least", changes.append, 5)
    db.call("add", 4)
    assert changes == []
    db.call("add", 6)
    row = db.read(Player).get(3)
    with db.transaction(name="fall") as ctx:
        ctx.db[Player].update(Player(id=3, score=1))
    assert [(c.deleted, c.inserted) for c in changes] == [([], [row]), ([row], [])]
    assert changes[-1].commit.reducer == "fall"


def test_a_view_runs_again_only_when_a_table_that_it_read_has_changed(db: Database) -> None:
    db.subscribe("best", lambda change: None)
    assert len(runs) == 1
    db.call("give", 1)
    assert len(runs) == 1
    db.call("add")
    assert len(runs) == 2


def test_equal_rows_of_a_view_are_counted(db: Database) -> None:
    changes: list[ViewChange] = []
    db.subscribe("ranks", changes.append)
    for _ in range(3):
        db.call("add", 7)
    with db.transaction() as ctx:
        ctx.db[Player].delete(1)
        ctx.db[Player].delete(2)
    assert [(len(c.deleted), len(c.inserted)) for c in changes] == [(0, 1), (0, 1), (0, 1), (2, 0)]


@pytest.mark.parametrize(("before", "after", "told"), [(0.0, -0.0, True), (math.nan, math.nan, False)])
def test_floats_of_a_view_are_compared_exactly(db: Database, before: float, after: float, told: bool) -> None:
    changes: list[ViewChange] = []
    with db.transaction() as ctx:
        ctx.db[Player].insert(Player(x=before))
    db.subscribe("at_least", changes.append, 0)
    with db.transaction() as ctx:
        ctx.db[Player].update(Player(id=1, x=after))
        ctx.db[Player].insert(Player())
    [change] = changes
    assert len(change.inserted) == 1 + told


def test_a_change_of_a_view_is_that_of_its_commit_whatever_callbacks_do(db: Database) -> None:
    changes: list[tuple[int, list[int]]] = []
    db.subscribe(Player, lambda commit: db.read(Player).count() < 3 and db.call("add"))
    db.subscribe("at_least", lambda c: changes.append((c.commit.tx_id, [r.id for r in c.inserted])), 0)  # type: ignore[attr-defined]
    db.call("add")
    last = db.last_tx_id
    assert changes == [(last - 2, [1]), (last - 1, [2]), (last, [3])]


def test_a_failing_view_never_harms_the_commit_and_goes_on_when_mended(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[ViewChange] = []
    errors: list[Exception] = []
    tables: list[Commit] = []
    db.subscribe("broken", changes.append, on_error=errors.append)
    db.subscribe("broken", changes.append)
    db.subscribe(Player, tables.append)
    assert db.call("add", 13) == 1
    assert changes == []
    assert [repr(error) for error in errors] == ["LookupError('thirteen')"]
    assert len(tables) == 1
    assert caplog.text.count("view broken failed") == 2
    db.call("give", 1)  # the other table that it read before it failed
    assert [[row.score for row in change.inserted] for change in changes] == [[13], [13]]  # type: ignore[attr-defined]


def test_subscribing_to_a_view_that_fails_now_raises_and_subscribes_nothing(db: Database) -> None:
    db.call("add", 13)
    with pytest.raises(LookupError, match="thirteen"):
        db.subscribe("broken", print)
    assert not db._subscriptions.any


def test_subscribing_and_unsubscribing_leaves_nothing(db: Database) -> None:
    for _ in range(100):
        db.subscribe("best", print).close()
        db.subscribe(Player, print).close()
    assert db._subscriptions._subscriptions == []
    assert not db._subscriptions.any


def test_a_view_that_is_not_public_is_for_operators(db: Database) -> None:
    module = Module("secrets")
    module.table(Player)

    @module.view(public=False)
    def ranking(ctx: ViewContext) -> list[Player]:
        return list(ctx.db[Player])

    stranger, operator = Identity.from_int(7), Identity.from_int(8)
    with Database(module) as db:
        db.operators.add(operator)
        assert db.caller(operator).view(ranking) == db.view(ranking) == []
        with pytest.raises(NotAllowed, match="'ranking' is not public"):
            db.caller(stranger).view("ranking")


def test_who_subscribes_while_others_subscribe_and_close_is_heard(db: Database) -> None:
    kept: list[int] = []

    def come_and_go(number: int) -> None:
        for _ in range(300):
            db.subscribe(Player, lambda _commit: None).close()
            db.subscribe(Item, lambda _commit: None).close()
        db.subscribe(Player, lambda _commit: kept.append(number))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    db.call("add")
    assert sorted(kept) == list(range(8))


def test_an_observer_sees_each_commit_before_any_subscriber_until_it_is_stopped(db: Database) -> None:
    order: list[str] = []
    stop = db.observe(lambda commit: order.append(f"observer {commit.tx_id} {commit.reducer}"))
    db.subscribe(Player, lambda commit: order.append(f"subscriber {commit.tx_id}"))
    with db.transaction(name="first") as ctx:
        ctx.db[Player].insert(Player(score=1))
    first = db.last_tx_id
    stop()
    with db.transaction() as ctx:
        ctx.db[Player].insert(Player(score=2))
    assert order == [f"observer {first} first", f"subscriber {first}", f"subscriber {first + 1}"]


def test_an_observer_that_raises_harms_neither_the_commit_nor_others(db: Database) -> None:
    seen: list[int] = []

    def broken(_commit: object) -> None:
        raise RuntimeError("no")

    db.observe(broken)
    db.observe(lambda commit: seen.append(commit.tx_id))
    with db.transaction() as ctx:
        ctx.db[Player].insert(Player(score=1))
    assert seen == [db.last_tx_id]
    assert db.read(Player).count() == 1
