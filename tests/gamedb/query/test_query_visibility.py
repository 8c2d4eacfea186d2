"""Client visibility filters: what a client sees of a table is what its filters select, in every query and delta."""

from __future__ import annotations

import pytest

from gamedb import Database, Module, QueryError, SchemaError
from gamedb.query import Catalog, access, reevaluated
from tests.gamedb.query.game import ANN, BOB, Asked, Hit, Item, Mark, Player, Secret, a_module

OWN = "SELECT * FROM player WHERE owner = :sender"
OWN_ITEMS = "SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.owner = :sender"


def test_an_operator_who_asks_the_same_changes_nothing_for_others() -> None:
    """L17: whether filters apply is a part of what is asked."""
    asked = Asked(a_module(OWN))
    text = "SELECT * FROM player"
    theirs, ours = asked.open(text, ANN, operator=True), asked.open(text, ANN)
    assert theirs is not ours
    a, b = asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    assert asked.of(theirs) == ([], [a, b])
    assert asked.of(ours) == ([], [a])
    assert asked.ask(text, BOB) == [b]
    assert asked.ask(text, BOB, operator=True) == [a, b]


def test_each_viewer_gets_deltas_judged_on_the_row_before() -> None:
    """L16: a row that passes to another owner leaves the one and comes to the other."""
    asked = Asked(a_module(OWN))
    ann, bob = asked.open("SELECT * FROM player", ANN), asked.open("SELECT * FROM player", BOB)
    [row] = asked.add(Player(name="a", owner=ANN))
    with asked.write() as ctx:
        sold = ctx.db[Player].update(row.replace(owner=BOB))
    assert asked.of(ann) == ([row], [])
    assert asked.of(bob) == ([], [sold])
    with asked.write() as ctx:
        ctx.db[Player].delete(sold)
    assert asked.of(ann) == ([], [])
    assert asked.of(bob) == ([sold], [])


def test_two_filters_show_a_row_once() -> None:
    asked = Asked(a_module(OWN, "SELECT * FROM player WHERE zone = 1"))
    live = asked.open("SELECT * FROM player WHERE hp > 0", ANN)
    rows = asked.add(
        Player(name="a", owner=ANN, zone=1), Player(name="b", owner=BOB, zone=1), Player(name="c", owner=BOB)
    )
    assert asked.of(live) == ([], rows[:2])


def test_a_filter_with_a_join_follows_both_tables() -> None:
    """L16: rules that join go on after the first rows, and show a row once however many partners it has."""
    asked = Asked(a_module(OWN_ITEMS))
    live = asked.open("SELECT * FROM item WHERE kind = 'gem'", ANN)
    gem, _ = asked.add(Item(player_id=1, kind="gem"), Item(player_id=1, kind="gold"))
    assert asked.of(live) == ([], [])
    [ann] = asked.add(Player(name="a", owner=ANN))
    assert asked.of(live) == ([], [gem])
    assert live.rows() == [gem]
    with asked.write() as ctx:
        ctx.db[Player].update(ann.replace(owner=BOB))
    assert asked.of(live) == ([gem], [])
    assert asked.ask("SELECT * FROM item", BOB) == list(asked.db.read(Item))
    assert asked.ask("SELECT * FROM item", ANN) == []


def test_a_filter_with_a_join_and_one_without_show_the_union() -> None:
    asked = Asked(a_module(OWN_ITEMS, "SELECT * FROM item WHERE kind = 'gem'"))
    asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    rows = asked.add(
        Item(player_id=1, kind="gem"),
        Item(player_id=1, kind="gold"),
        Item(player_id=2, kind="gem"),
        Item(player_id=2, kind="gold"),
    )
    assert asked.ask("SELECT * FROM item", ANN) == rows[:3]
    assert asked.ask("SELECT * FROM item", BOB) == [rows[0], *rows[2:]]


def test_a_join_sees_only_what_may_be_seen_of_either_table() -> None:
    asked = Asked(a_module(OWN))
    asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    rows = asked.add(Item(player_id=1), Item(player_id=2))
    text = "SELECT item.* FROM player JOIN item ON player.id = item.player_id"
    live = asked.open(text, ANN)
    assert live.rows() == rows[:1]
    [more] = asked.add(Item(player_id=1))
    assert asked.of(live) == ([], [more])
    asked.add(Item(player_id=2))
    assert asked.of(live) == ([], [])
    assert len(asked.ask(text, ANN, operator=True)) == 4


def test_events_are_filtered_with_and_without_a_join() -> None:
    joined = "SELECT h.* FROM hit h JOIN player p ON h.player_id = p.id WHERE p.owner = :sender"
    asked = Asked(a_module(joined, "SELECT * FROM hit WHERE amount > 50"))
    asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    ann, bob = asked.open("SELECT * FROM hit", ANN), asked.open("SELECT * FROM hit", BOB)
    small, big = asked.add(Hit(player_id=1, amount=1), Hit(player_id=1, amount=99))
    assert asked.of(ann) == ([], [small, big])
    assert asked.of(bob) == ([], [big])


def test_a_filter_may_read_a_private_table() -> None:
    asked = Asked(a_module("SELECT p.* FROM player p JOIN secret s ON p.id = s.id"))
    [row] = asked.add(Player(name="a"))
    assert asked.ask("SELECT * FROM player") == []
    asked.add(Secret(id=1))
    assert asked.ask("SELECT * FROM player") == [row]


def test_a_simple_filter_costs_a_commit_only_its_own_viewers() -> None:
    asked = Asked(a_module(OWN))
    for sender in (ANN, BOB):
        asked.open("SELECT * FROM player", sender)
    before = asked.matcher.counters.queries_evaluated
    asked.add(Player(name="a", owner=ANN))
    assert asked.matcher.counters.queries_evaluated == before + 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT * FROM nowhere", "no such table: `nowhere`"),
        ("SELECT * FROM player WHERE mana = 1", "no such column: `mana`"),
        ("SELECT * FROM mine", "is a view; filter its rows in its code"),
        ("SELECT * FROM *", "many tables"),
        ("SELECT p.* FROM player p JOIN item i ON p.id = i.count", "differ in type"),
        ("SELECT p.* FROM player p JOIN hit h ON p.id = h.player_id", "is an event table"),
        ("SELECT p.* FROM player p JOIN mine m ON p.id = m.id", "views cannot be joined"),
        ("SELECT * FROM player ORDER BY id", "ORDER is not supported"),
    ],
)
def test_a_filter_that_cannot_work_is_refused_with_its_text(text: str, why: str) -> None:
    """L16: at load, not when the first client comes."""
    with Database(a_module(text)) as db, pytest.raises(SchemaError) as caught:
        Catalog(db.module)
    assert repr(text) in str(caught.value)
    assert why in str(caught.value)


def test_filters_of_included_modules_count() -> None:
    outer = Module("outer")
    outer.include(a_module(OWN))
    asked = Asked(outer)
    asked.add(Player(name="a", owner=ANN))
    assert asked.ask("SELECT * FROM player", BOB) == []


def test_a_filter_with_a_join_tests_only_the_rows_that_a_commit_can_show_or_hide() -> None:
    asked = Asked(a_module(OWN_ITEMS))
    ann, bob = asked.add(Player(name="a", owner=ANN), Player(name="b", owner=BOB))
    asked.add(*(Item(player_id=1 + n % 2) for n in range(100)))
    lives = [asked.open("SELECT * FROM item", who) for who in (ANN, BOB)]
    counters = asked.matcher.counters
    asked.add(Item(player_id=1))
    assert counters.tests == 2  # one row, by each of the two
    with asked.write() as ctx:
        ctx.db[Player].update(ann.replace(hp=1))  # type: ignore[attr-defined]  # no filter looks at it
    assert counters.tests == 2
    assert asked.deltas == []
    with asked.write() as ctx:
        ctx.db[Player].update(bob.replace(owner=ANN))  # type: ignore[attr-defined]
    assert counters.tests == 2 + 2 * 50
    assert [len(live.rows()) for live in lives] == [101, 0]
    assert (len(asked.of(lives[0])[1]), len(asked.of(lives[1])[0])) == (50, 50)
    assert counters.queries_reevaluated == 0


def test_a_row_that_is_replaced_by_its_equal_under_a_filter_with_a_join_is_no_change() -> None:
    asked = Asked(a_module("SELECT m.* FROM mark m JOIN player p ON m.zone = p.zone WHERE p.owner = :sender"))
    live = asked.open("SELECT * FROM mark")
    _, mark = asked.add(Player(name="a", owner=ANN, zone=1), Mark(zone=1))
    with asked.write() as ctx:
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(Mark(zone=1))
        ctx.db[Player].insert(Player(name="b", owner=ANN, zone=1))
    assert asked.deltas == []
    assert live.rows() == [mark]


def test_a_join_under_a_filter_with_a_join_is_answered_again() -> None:
    asked = Asked(a_module(OWN_ITEMS))
    live = asked.open("SELECT p.* FROM player p JOIN item i ON p.id = i.player_id")
    player, *_ = asked.add(Player(name="a", owner=ANN), Item(player_id=1), Item(player_id=1))
    assert asked.of(live) == ([], [player, player])
    assert asked.matcher.counters.queries_reevaluated == 1
    asked.add(Hit(player_id=1, amount=1))
    assert asked.matcher.counters.queries_reevaluated == 1


def test_a_join_under_a_filter_with_a_join_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows, and of the pairs that are looked at, when it begins and later."""
    monkeypatch.setattr(access, "ROWS_MAX", 3)
    monkeypatch.setattr(access, "PAIRS_MAX", 8)
    asked = Asked(a_module(OWN_ITEMS))
    text = "SELECT p.* FROM player p JOIN item i ON p.id = i.player_id"
    live = asked.open(text)
    asked.add(Player(name="a", owner=ANN), *[Item(player_id=1) for _ in range(3)])
    assert len(live.rows()) == 3
    asked.add(Item(player_id=1))
    [delta] = asked.deltas
    assert "more than 3 rows" in (delta.error or "")
    asked.matcher.close(live)
    with pytest.raises(QueryError, match="more than 3 rows"):
        asked.open(text)
    asked.add(*[Item(player_id=1) for _ in range(5)])
    with pytest.raises(QueryError, match="more than 8 pairs"):
        asked.open(f"{text} WHERE p.hp <> 100")


def test_a_join_under_a_filter_with_a_join_ends_when_commits_would_wait_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All commits wait for it, as nothing else does for queries; what it costs is known when it begins, too."""
    asked = Asked(a_module(OWN_ITEMS))
    text = "SELECT p.* FROM player p JOIN item i ON p.id = i.player_id"
    first, second = asked.open(text), asked.open(f"{text} WHERE p.hp <> 1")
    player, _ = asked.add(Player(name="a", owner=ANN), Item(player_id=1))
    assert asked.of(first) == asked.of(second) == ([], [player])

    monkeypatch.setattr(access, "COMMIT_SECONDS_MAX", -1.0)
    monkeypatch.setattr(reevaluated, "LEAST_SECONDS", -1.0)
    asked.add(Item(player_id=1))
    assert ["takes more than" in (delta.error or "") for delta in asked.deltas] == [True, True]
    with pytest.raises(QueryError, match="takes more than"):
        asked.open(f"{text} WHERE p.hp <> 2")
    assert asked.ask(text) == [player, player]  # one that is answered once has the time of those

    monkeypatch.setattr(reevaluated, "LEAST_SECONDS", 10.0)
    asked.add(Item(player_id=1))  # however long the others took, each has a little time
    assert asked.of(first) == ([], [player, player])


def test_floats_that_are_equal_and_differ_are_a_change_of_a_join_under_a_filter() -> None:
    asked = Asked(a_module("SELECT m.* FROM mark m JOIN player p ON m.zone = p.zone WHERE p.owner = :sender"))
    live = asked.open("SELECT m.* FROM mark m JOIN player p ON m.zone = p.zone")
    _, mark = asked.add(Player(name="a", owner=ANN, zone=1), Mark(zone=1, weight=0.0))
    with asked.write() as ctx:
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(Mark(zone=1, weight=-0.0))
    deleted, inserted = asked.of(live)
    assert [repr(row.weight) for row in (*deleted, *inserted)] == ["0.0", "-0.0"]  # type: ignore[attr-defined]
