"""Queries on views: they run again when what they read has changed, once for all who would get the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from gamedb import Identity, Module, QueryError, ViewContext
from tests.gamedb.query.game import ANN, BOB, Asked, Item, Mark, Player, Rank, a_module


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked(a_module())
    with asked.db:
        yield asked


def test_a_view_is_asked_like_a_table(asked: Asked) -> None:
    live = asked.open("SELECT * FROM ranks WHERE hp > 50 AND name <> 'bob'")
    assert live.query.name == "ranks"
    assert live.query.table.row is Rank
    assert [c.name for c in live.query.table.columns] == ["name", "hp"]
    asked.add(Player(name="ann"), Player(name="bob"), Player(name="cat", hp=1))
    assert asked.of(live) == ([], [Rank(name="ann", hp=100)])
    assert live.rows() == [Rank(name="ann", hp=100)]
    assert asked.ask("SELECT * FROM ranks WHERE hp = 1") == [Rank(name="cat", hp=1)]


def test_a_view_runs_again_only_when_a_table_that_it_read_has_changed(asked: Asked) -> None:
    asked.open("SELECT * FROM ranks")
    runs = asked.matcher.counters.views_run
    asked.add(Item(player_id=1), Mark(zone=1))
    assert asked.matcher.counters.views_run == runs
    asked.add(Player(name="ann"))
    assert asked.matcher.counters.views_run == runs + 1


def test_a_view_that_never_asks_who_looks_is_one_for_all_and_runs_once(asked: Asked) -> None:
    """L57: once a transaction for everybody with equal rights."""
    lives = {asked.open("SELECT * FROM ranks", Identity.from_int(n)) for n in range(50)}
    other = asked.open("SELECT * FROM ranks WHERE hp = 100")
    assert len(lives) == 1
    assert asked.matcher.counters.views_run == 1
    asked.add(Player(name="ann"))
    assert asked.matcher.counters.views_run == 2
    assert {delta.live for delta in asked.deltas} == lives | {other}


def test_a_view_of_the_sender_is_one_for_each(asked: Asked) -> None:
    ann, bob = asked.open("SELECT * FROM mine", ANN), asked.open("SELECT * FROM mine", BOB)
    assert ann is not bob
    [row] = asked.add(Player(name="a", owner=ANN))
    assert asked.of(ann) == ([], [row])
    assert asked.of(bob) == ([], [])
    assert asked.ask("SELECT * FROM mine", BOB) == []
    assert asked.ask("SELECT * FROM mine WHERE hp = 100", ANN) == [row]


def test_sender_in_the_condition_of_a_shared_view(asked: Asked) -> None:
    sql = "SELECT * FROM fragile WHERE owner = :sender"
    ann, bob = asked.open(sql, ANN), asked.open(sql, BOB)
    [row] = asked.add(Player(name="a", owner=ANN))
    assert asked.matcher.counters.views_run == 2  # at the first opening, and for the commit
    assert asked.of(ann) == ([], [row])
    assert asked.of(bob) == ([], [])


def test_a_view_that_fails_costs_nobody_else_anything(asked: Asked, caplog: pytest.LogCaptureFixture) -> None:
    """L5: the commit stands, other queries go on, and the error is logged."""
    fragile, plain = asked.open("SELECT * FROM fragile"), asked.open("SELECT * FROM player")
    with caplog.at_level(logging.ERROR):
        [unlucky] = asked.add(Player(name="a", hp=13))
    assert asked.db.read(Player).get(1) == unlucky
    assert asked.of(plain) == ([], [unlucky])
    [failed] = [delta for delta in asked.deltas if delta.live is fragile]
    assert failed.error == "view `fragile` failed with LookupError; the log of the server says more"
    assert (failed.deleted, failed.inserted) == ([], [])
    assert "view fragile failed: LookupError('thirteen')" in caplog.text
    with asked.write() as ctx:
        mended = ctx.db[Player].update(unlucky.replace(hp=14))
    assert asked.of(fragile) == ([], [mended])  # from what it was before it failed


def test_a_view_that_fails_when_it_is_asked_is_a_query_error(asked: Asked) -> None:
    asked.add(Player(name="a", hp=13))
    for _ in range(2):
        with pytest.raises(QueryError, match="view `fragile` failed with LookupError"):
            asked.open("SELECT * FROM fragile")
        with pytest.raises(QueryError, match="view `fragile` failed"):
            asked.ask("SELECT * FROM fragile")
    assert len(asked.matcher) == 0


def test_a_view_may_give_a_row_many_times() -> None:
    module = a_module()

    @module.view
    def twice(ctx: ViewContext) -> list[Rank]:
        return [Rank(name=p.name, hp=0) for p in ctx.db[Player] for _ in range(p.hp)]

    asked = Asked(module)
    live = asked.open("SELECT * FROM twice")
    [ann] = asked.add(Player(name="ann", hp=3))
    rank = Rank(name="ann", hp=0)
    assert asked.of(live) == ([], [rank] * 3)
    with asked.write() as ctx:
        ctx.db[Player].update(ann.replace(hp=1))
    assert asked.of(live) == ([rank] * 2, [])


def sneaky_module() -> Module:
    """A view that asks who looks where neither its code nor that of its helpers says so."""
    module = a_module()

    @module.view
    def sneaky(ctx: ViewContext) -> list[Player]:
        players = list(ctx.db[Player])
        word = "".join(["sen", "der"])
        return [p for p in players if p.owner == getattr(ctx, word)] if len(players) > 1 else players

    return module


def test_a_view_that_turns_out_to_ask_who_looks_ends_for_those_who_share_it() -> None:
    asked = Asked(sneaky_module())
    shared = asked.open("SELECT * FROM sneaky", ANN)
    assert asked.open("SELECT * FROM sneaky", BOB) is shared
    asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    [delta] = asked.deltas
    assert delta.error == "view `sneaky` now depends on who asks; subscribe to it again"
    for _ in range(2):
        asked.matcher.close(shared)
    ann, bob = asked.open("SELECT * FROM sneaky", ANN), asked.open("SELECT * FROM sneaky", BOB)
    assert [r.name for r in ann.rows()] == ["a"]  # type: ignore[attr-defined]
    assert [r.name for r in bob.rows()] == ["b"]  # type: ignore[attr-defined]
    [row] = asked.add(Player(name="c", owner=BOB))
    assert asked.of(ann) == ([], [])
    assert asked.of(bob) == ([], [row])
    for live in (ann, bob):
        asked.matcher.close(live)
    assert len(asked.matcher) == 0


def helper(ctx: ViewContext) -> Identity:
    return ctx.sender


def test_code_that_a_view_names_is_looked_into() -> None:
    module = a_module()

    @module.view
    def helped(ctx: ViewContext) -> list[Player]:
        players = list(ctx.db[Player])
        return [p for p in players if p.owner == helper(ctx)] if len(players) > 1 else players

    asked = Asked(module)
    assert asked.open("SELECT * FROM helped", ANN) is not asked.open("SELECT * FROM helped", BOB)


def test_a_personal_view_that_did_not_look_this_time_ran_for_all() -> None:
    module = a_module()

    @module.view
    def late(ctx: ViewContext) -> list[Player]:
        players = list(ctx.db[Player])
        return [p for p in players if p.owner == ctx.sender] if len(players) > 1 else players

    asked = Asked(module)
    lives = [asked.open("SELECT * FROM late", Identity.from_int(n)) for n in range(10)]
    runs = asked.matcher.counters.views_run
    [row] = asked.add(Player(name="a", owner=Identity.from_int(3)))
    assert asked.matcher.counters.views_run == runs + 1
    assert all(asked.of(live) == ([], [row]) for live in lives)
    asked.add(Player(name="b", owner=Identity.from_int(4)))
    assert asked.matcher.counters.views_run == runs + 11
    assert [len(live.rows()) for live in lives] == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def test_equal_floats_of_a_view_are_told_apart() -> None:
    module = a_module()

    @module.view
    def marks(ctx: ViewContext) -> list[Mark]:
        return [m.replace(zone=0) for m in ctx.db[Mark]]

    asked = Asked(module)
    live = asked.open("SELECT * FROM marks")
    [mark] = asked.add(Mark(zone=1, weight=0.0))
    with asked.write() as ctx:
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(mark.replace(weight=-0.0))
    deleted, inserted = asked.of(live)
    assert [repr(r) for r in deleted] == [repr(Mark(zone=0, weight=0.0))]
    assert [repr(r) for r in inserted] == [repr(Mark(zone=0, weight=-0.0))]
