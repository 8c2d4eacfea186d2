"""`Matcher`: running queries, what commits do to them, what is shared, and what costs nothing."""

from __future__ import annotations

import pytest

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
