"""`Matcher`: running queries, what commits do to them, what is shared, and what costs nothing."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import pytest

from gamedb import Commit, Identity, Index, PrimaryKey, QueryError, Row, u32
from tests.gamedb.query.game import ANN, BOB, Asked, Hit, Item, Mark, Player, a_module


@pytest.fixture
def asked() -> Asked:
    return Asked(a_module())


def test_a_row_that_comes_changes_and_goes_is_told_each_time(asked: Asked) -> None:
    live = asked.open("SELECT * FROM player WHERE hp > 50")
    [ann] = asked.add(Player(name="ann"))
    assert asked.of(live) == ([], [ann])
    with asked.write() as ctx:
        hurt = ctx.db[Player].update(ann.replace(hp=60))
    assert asked.of(live) == ([ann], [hurt])
    with asked.write() as ctx:
        ctx.db[Player].update(hurt.replace(hp=10))
    assert asked.of(live) == ([hurt], [])


def test_an_event_is_an_insert_and_never_among_the_first_rows(asked: Asked) -> None:
    live = asked.open("SELECT * FROM hit WHERE player_id = 1")
    assert live.query.is_event
    [hit, _] = asked.add(Hit(player_id=1, amount=5), Hit(player_id=2, amount=5))
    assert asked.of(live) == ([], [hit])
    assert live.rows() == []
    asked.add(Mark(zone=1))
    assert asked.deltas == []


def test_equal_queries_are_one_until_the_last_is_closed(asked: Asked) -> None:
    one = asked.open('SELECT * FROM "player" WHERE ("player"."zone" = 1) AND ("player"."hp" < 5)', ANN)
    two = asked.open("select p.* from player as p where 5 > p.hp and p.zone = 1;", BOB)
    assert one is two
    assert len(asked.matcher) == 1
    asked.matcher.close(one)
    [row] = asked.add(Player(name="x", zone=1, hp=1))
    assert asked.of(two) == ([], [row])
    asked.matcher.close(two)
    assert len(asked.matcher) == 0
    asked.add(Player(name="y", zone=1, hp=1))
    assert asked.deltas == []
    with pytest.raises(ValueError, match="closed already"):
        asked.matcher.close(two)


def test_a_query_with_sender_is_one_for_each_sender(asked: Asked) -> None:
    text = "SELECT * FROM player WHERE owner = :sender"
    ann, bob = asked.open(text, ANN), asked.open(text, BOB)
    assert ann is not bob
    [row] = asked.add(Player(name="a", owner=ANN))
    assert asked.of(ann) == ([], [row])
    assert asked.of(bob) == ([], [])


def test_a_join_counts_the_rows_that_are_joined(asked: Asked) -> None:
    live = asked.open("SELECT p.* FROM item i JOIN player p ON i.player_id = p.id WHERE i.kind = 'gem'")
    [p] = asked.add(Player(name="a"))
    assert asked.of(live) == ([], [])
    [_, gem] = asked.add(Item(player_id=1, kind="gem"), Item(player_id=1, kind="gem"))
    assert asked.of(live) == ([], [p, p])
    assert live.rows() == [p, p]
    with asked.write() as ctx:
        ctx.db[Item].delete(gem)
        changed = ctx.db[Player].update(p.replace(hp=1))
    assert asked.of(live) == ([p, p], [changed])


# --- what comes and goes


def test_a_row_that_leaves_by_either_table_is_deleted_once_and_inserted_once_when_it_is_back(asked: Asked) -> None:
    """L11: one delete when a change to any table of the query takes a row out, one insert when it comes back."""
    live = asked.open(
        "SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.online = TRUE AND i.count > 0"
    )
    player, item = asked.add(Player(name="a"), Item(player_id=1))
    assert asked.of(live) == ([], [item])
    with asked.write() as ctx:
        ctx.db[Player].update(player.replace(online=False))
    assert asked.of(live) == ([item], [])
    with asked.write() as ctx:
        ctx.db[Item].update(item.replace(kind="gem"))
    assert asked.of(live) == ([], [])
    with asked.write() as ctx:
        ctx.db[Player].update(player)
    [back] = asked.of(live)[1]
    assert asked.of(live) == ([], [item.replace(kind="gem")])
    with asked.write() as ctx:
        ctx.db[Item].update(back.replace(player_id=99))
    assert asked.of(live) == ([back], [])
    with asked.write() as ctx:
        moved = ctx.db[Item].update(back.replace(player_id=1, kind="x"))
    assert asked.of(live) == ([], [moved])
    with asked.write() as ctx:
        ctx.db[Player].delete(1)
    assert asked.of(live) == ([moved], [])


def test_both_sides_of_a_join_change_in_one_transaction(asked: Asked) -> None:
    """L12: multiplicities stay exact when one transaction adds and takes away on both sides."""
    live = asked.open("SELECT p.* FROM player p JOIN mark m ON p.zone = m.zone")
    one, two, _, _ = asked.add(
        Player(name="a", zone=1), Player(name="b", zone=2), Mark(zone=1, text="x"), Mark(zone=1, text="y")
    )
    assert live.rows() == [one, one]
    with asked.write() as ctx:
        marks = ctx.db[Mark]
        for mark in list(marks):
            marks.delete(mark)
        for text in "123":
            marks.insert(Mark(zone=2, text=text))
        swapped = ctx.db[Player].update(one.replace(zone=2)), ctx.db[Player].update(two.replace(zone=1))
    deleted, inserted = asked.of(live)
    assert deleted == [one, one]
    assert inserted == [swapped[0]] * 3
    assert live.rows() == inserted


def test_absent_keys_join_nothing(asked: Asked) -> None:
    module = a_module()

    class Guild(Row):
        id: PrimaryKey[u32]
        parent: Index[u32 | None] = None

    module.table(public=True)(Guild)
    asked = Asked(module)
    live = asked.open("SELECT p.* FROM player p JOIN guild g ON p.guild = g.parent")
    asked.add(Player(name="a"), Guild(id=1))
    assert asked.deltas == []
    with asked.write() as ctx:
        ctx.db[Player].delete(1)
        ctx.db[Guild].delete(1)
    assert asked.deltas == []
    assert live.rows() == []


def test_net_changes_alone_are_told(asked: Asked) -> None:
    """L19: equal row, nothing; other values, one update; without a key, one delete and one insert."""
    players, marks = asked.open("SELECT * FROM player"), asked.open("SELECT * FROM mark WHERE zone = 1")
    player, mark = asked.add(Player(name="a"), Mark(zone=1))
    with asked.write() as ctx:
        ctx.db[Player].update(player.replace(hp=1))
        ctx.db[Player].update(player.replace(hp=100))
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(Mark(zone=1))
        ctx.db[Player].insert(Player(name="gone"))
        ctx.db[Player].delete(2)
        ctx.db[Item].insert(Item(player_id=1))
    assert asked.deltas == []
    with asked.write() as ctx:
        ctx.db[Player].update(player.replace(hp=1))
        ctx.db[Player].update(player.replace(hp=2))
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(mark.replace(text="x"))
    assert asked.of(players) == ([player], [player.replace(hp=2)])
    assert asked.of(marks) == ([mark], [mark.replace(text="x")])


def test_floats_that_are_equal_and_differ_are_a_change(asked: Asked) -> None:
    live = asked.open("SELECT * FROM mark WHERE weight = 0")
    [mark] = asked.add(Mark(zone=1, weight=0.0))
    with asked.write() as ctx:
        ctx.db[Mark].delete(mark)
        ctx.db[Mark].insert(Mark(zone=1, weight=-0.0))
    deleted, inserted = asked.of(live)
    assert [repr(r.weight) for r in (*deleted, *inserted)] == ["0.0", "-0.0"]  # type: ignore[attr-defined]


def test_first_rows_and_changes_join_without_gap_or_repeat(asked: Asked) -> None:
    """L14: whenever a query is opened while others write, each row is in the first rows or in a later change."""
    got: list[list[int]] = []
    running = threading.Event()

    def write() -> None:
        for number in range(300):
            with asked.db.transaction() as ctx:
                ctx.db[Player].insert(Player(name=f"n{number}"))
            running.set()

    writer = threading.Thread(target=write)
    writer.start()
    running.wait(10)
    opened = []
    for number in range(40):
        with asked.db.lock:
            live = asked.open(f"SELECT * FROM player WHERE hp > {number}")
            opened.append((live, [row.id for row in live.rows()], len(asked.deltas)))  # type: ignore[attr-defined]
    writer.join(30)
    for live, first, since in opened:
        later = [row.id for d in asked.deltas[since:] if d.live is live for row in d.inserted]  # type: ignore[attr-defined]
        assert not any(d.live is live for d in asked.deltas[:since])
        got.append([*first, *later])
    assert all(ids == list(range(1, 301)) for ids in got)


def test_who_comes_second_gets_all_rows_and_nobody_else_anything(asked: Asked) -> None:
    """L20: first rows depend on the tables alone, and opening tells nobody anything."""
    first = asked.open("SELECT * FROM player")
    rows = asked.add(Player(name="a"), Player(name="b"))
    asked.deltas.clear()
    second = asked.open("SELECT * FROM player", BOB)
    assert second.rows() == first.rows() == rows
    third = asked.open("SELECT * FROM player WHERE hp = 100", BOB)
    assert third.rows() == rows
    assert asked.deltas == []
    assert asked.matcher.commit(Commit(99, 0, ANN, "", [])) == []


# --- what costs nothing


def test_queries_whose_tables_or_keys_were_not_touched_are_not_looked_at(asked: Asked) -> None:
    """L57: shown by the counters."""
    for number in range(100):
        asked.open(f"SELECT * FROM player WHERE zone = {number}")
        asked.open(f"SELECT * FROM player WHERE owner = :sender AND hp > {number}", Identity.from_int(number))
        asked.open(f"SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.zone = {number}")
        asked.open(f"SELECT * FROM player WHERE id = {number} OR name = 'n{number}'")
    counters = asked.matcher.counters
    asked.add(Mark(zone=1))
    assert (counters.queries_evaluated, counters.queries_skipped, counters.tests) == (0, 400, 0)
    asked.add(Player(name="n7", zone=5, owner=Identity.from_int(9)))
    assert counters.queries_evaluated == 4  # zone 5, owner 9, id 1, name n7; the join finds no item
    assert counters.queries_skipped == 400 + 396
    assert counters.tests == 4
    asked.add(Item(player_id=1))
    assert counters.queries_evaluated == 5
    assert counters.tests == 5


def test_a_query_is_looked_at_once_however_many_follow_it(asked: Asked) -> None:
    for number in range(200):
        asked.open("SELECT * FROM player WHERE hp > 5", Identity.from_int(number))
    asked.add(Player(name="a"))
    assert asked.matcher.counters.tests == 1
    assert len(asked.deltas) == 1


@pytest.mark.parametrize("count", [10, 1_000])
def test_a_commit_does_the_same_work_for_many_equality_queries_as_for_few(asked: Asked, count: int) -> None:
    for number in range(count):
        asked.open(f"SELECT * FROM item WHERE player_id = {number}")
    asked.add(Item(player_id=3))
    assert asked.matcher.counters.tests == 1
    assert asked.matcher.counters.queries_skipped == count - 1


def test_a_change_of_columns_that_no_join_looks_at_is_passed_over(asked: Asked) -> None:
    asked.open("SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.zone = 1")
    [player, *_] = asked.add(Player(name="a", zone=1), *(Item(player_id=1) for _ in range(50)))
    tests = asked.matcher.counters.tests
    with asked.write() as ctx:
        player = ctx.db[Player].update(player.replace(hp=1))  # type: ignore[type-var]
    assert asked.matcher.counters.tests == tests
    with asked.write() as ctx:
        ctx.db[Player].update(player.replace(zone=2))
    assert asked.matcher.counters.tests == tests + 50
    assert len(asked.deltas[0].deleted) == 50


def test_a_condition_that_nothing_can_fulfil_costs_nothing(asked: Asked) -> None:
    lives = [
        asked.open("SELECT * FROM player WHERE FALSE = TRUE"),
        asked.open("SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.id = 1 AND 1 = 2"),
    ]
    asked.add(Player(name="a"), Item(player_id=1))
    assert asked.matcher.counters.tests == 0
    assert [live.rows() for live in lives] == [[], []]
    for live in lives:
        asked.matcher.close(live)
    assert len(asked.matcher) == 0


def test_opening_and_closing_leaves_nothing(asked: Asked) -> None:
    """L58: thousands of rounds, and nothing is left of them but the shapes of their texts."""
    asked.add(Player(name="a", owner=ANN), Item(player_id=1))
    texts = [
        "SELECT * FROM player WHERE id = {n}",
        "SELECT * FROM player WHERE hp > {n}",
        "SELECT * FROM player WHERE owner = :sender OR zone = {n}",
        "SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.owner = :sender AND i.count = {n}",
        "SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE i.count = {n}",
        "SELECT * FROM mine WHERE hp = {n}",
        "SELECT * FROM hit WHERE amount = {n}",
    ]

    def go_round(number: int) -> None:
        lives = [asked.open(text.format(n=number), Identity.from_int(number)) for text in texts]
        with asked.write() as ctx:
            ctx.db[Player].update(ctx.db[Player].where(name="a")[0].replace(hp=number))
        for live in lives:
            asked.matcher.close(live)

    for number in range(50):
        go_round(number)
    tracemalloc.start()
    try:
        go_round(50)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(51, 200):
            go_round(number)
        asked.deltas.clear()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < before + 50_000
    finally:
        tracemalloc.stop()
    assert len(asked.matcher) == 0


# --- limits and indexes


def test_an_answer_has_a_limit(asked: Asked) -> None:
    asked.add(*(Player(name=f"n{n}") for n in range(5)))
    query = asked.catalog.parse("SELECT * FROM player")
    assert len(asked.matcher.answer(query, ANN, rows_max=5)) == 5
    for text in ("SELECT * FROM player", "SELECT * FROM ranks"):
        query = asked.catalog.parse(text)
        with pytest.raises(QueryError, match="gives more than 4 rows; narrow it with WHERE"):
            asked.matcher.answer(query, ANN, rows_max=4)
        with pytest.raises(QueryError, match="more than 4"):
            asked.matcher.open(query, ANN).rows(4)


@pytest.mark.parametrize(
    ("where", "looked_at"),
    [
        ("id = 7", 1),
        ("name = 'n7'", 1),
        ("zone = 3", 10),
        ("id = 7 OR id = 8 OR name = 'n9'", 3),
        ("zone = 3 AND hp > 0 AND id = 4", 1),
        ("id > 90", 10),
        ("90 < id AND id <= 95", 6),
        ("zone >= 8 AND zone < 9", 20),
        ("hp = 100", 100),
        ("id = 7 OR hp = 3", 100),
    ],
)
def test_first_rows_come_through_an_index(asked: Asked, where: str, looked_at: int) -> None:
    asked.add(*(Player(name=f"n{n}", zone=n % 10) for n in range(1, 101)))
    query = asked.catalog.parse(f"SELECT * FROM player WHERE {where}")
    rows = list(asked.matcher._reader.candidates("player", query.condition, 0))
    assert len(rows) == looked_at or (">" in where and len(rows) <= looked_at + 1)
    every = asked.matcher.answer(asked.catalog.parse("SELECT * FROM player"), ANN)
    test = asked.matcher._reader.predicate(query.condition)
    assert test is not None
    assert asked.ask(f"SELECT * FROM player WHERE {where}") == [row for row in every if test(row)]


@pytest.mark.parametrize(
    "text", ["SELECT * FROM player WHERE hp > 7", "SELECT p.* FROM player p JOIN item i ON p.id = i.player_id"]
)
def test_an_answer_that_takes_too_long_is_given_up(text: str) -> None:
    """All else waits for it, and many conditions on many rows take their time."""
    asked = Asked(a_module())
    asked.add(Player(name="a"), Item(player_id=1))
    assert len(asked.ask(text)) == 1
    live = asked.open(text)
    with asked.matcher.within(-1.0):
        with pytest.raises(QueryError, match="takes more than"):
            asked.ask(text)
        with pytest.raises(QueryError, match="takes more than"):
            live.rows(10)
    assert len(live.rows(10)) == 1
    [player] = asked.db.read(Player)
    with asked.write() as ctx:
        ctx.db[Player].delete(player)
    assert asked.of(live) == ([player], [])  # what is followed goes on
