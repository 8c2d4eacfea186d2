"""The cache of a client against the rules of the protocol, as a model that follows them word by word."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamedb.client.cache import Change, Part, TableCache
from gamedb.client.remote import RemoteTable
from gamedb.errors import WireError
from gamedb.wire.bsatn import row_codec
from tests.gamedb.client.client_game import RESOLVED, Hit, Player, Tile, new_core

logging.getLogger("gamedb.client").setLevel(logging.ERROR)

EXAMPLES = max(20, int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000")) // 5)


def cache_of(name: str) -> TableCache:
    schema = RESOLVED.tables[name]
    return TableCache(RemoteTable(schema, row_codec(schema)))


def encoded(rows: list[Any]) -> bytes:
    return b"".join(
        row_codec(RESOLVED.tables[{Player: "player", Tile: "tile", Hit: "hit"}[type(r)]]).encode(r) for r in rows
    )


def part(inserts: list[Any] = [], deletes: list[Any] = [], events: list[Any] = []) -> Part:  # noqa: B006
    return Part(encoded(inserts), encoded(deletes), encoded(events))


PLAYERS = st.builds(Player, id=st.integers(1, 3), name=st.sampled_from(["a", "b"]))
TILES = st.builds(Tile, x=st.integers(0, 2), height=st.sampled_from([0.0, -0.0, math.nan, 1.0]))


def messages_of(rows: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[tuple[list[Any], list[Any]]]]]:
    """Messages: each has parts of inserts and deletes."""
    some = st.lists(rows, max_size=3)
    return st.lists(st.lists(st.tuples(some, some), max_size=3), max_size=6)


class KeyedModel:
    """Tables with a primary key, by the table of the protocol."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[Player, int]] = {}

    def apply(self, parts: list[tuple[list[Player], list[Player]]]) -> list[tuple[Player | None, Player | None]]:
        inserts = [row for part in parts for row in part[0]]
        deletes = [row for part in parts for row in part[1]]
        told: list[tuple[Player | None, Player | None]] = []
        for key in dict.fromkeys(row.id for row in inserts + deletes):
            i = [row for row in inserts if row.id == key]
            d = [row for row in deletes if row.id == key]
            old, count = self.rows.get(key, (None, 0))
            if i and d and old is None:
                continue  # the key is unknown: the row is dropped
            if not i and old is None:
                continue  # an unknown key is only warned of
            count += len(i) - len(d)
            if count <= 0:
                del self.rows[key]
                told.append((d[-1] if not i else old, None))
                continue
            new = i[-1] if i else old
            assert new is not None
            self.rows[key] = (new, count)
            if old is None:
                told.append((None, new))
            elif i and d and old != new:
                told.append((old, new))
        return told


@settings(max_examples=EXAMPLES)
@given(messages_of(PLAYERS))
@example(
    [[([Player(id=1)], [])], [([Player(id=1)], [])], [([], [Player(id=1)]), ([Player(id=1, hp=1)], [Player(id=1)])]]
)
def test_tables_with_a_key_follow_the_rules(messages: list[list[tuple[list[Player], list[Player]]]]) -> None:
    cache, model = cache_of("player"), KeyedModel()
    for parts in messages:
        told = cache.apply([part(i, d) for i, d in parts])
        assert sorted(map(repr, ((c.old, c.new) for c in told))) == sorted(map(repr, model.apply(parts)))
        assert {k: (held.row, held.count) for k, held in cache.rows.items()} == model.rows


@settings(max_examples=EXAMPLES)
@given(messages_of(TILES))
def test_tables_without_a_key_count_bytes(messages: list[list[tuple[list[Tile], list[Tile]]]]) -> None:
    cache = cache_of("tile")
    model: Counter[bytes] = Counter()
    for parts in messages:
        before = set(model)
        for inserts, deletes in parts:
            for row in inserts:
                model[encoded([row])] += 1
            for row in deletes:
                if model[encoded([row])] > 0:
                    model[encoded([row])] -= 1
        model = +model
        told = cache.apply([part(i, d) for i, d in parts])
        assert {data: held.count for data, held in cache.rows.items()} == model
        assert {encoded([c.new]) for c in told if c.kind == "insert"} == model.keys() - before
        assert {encoded([c.old]) for c in told if c.kind == "delete"} == before - model.keys()
        assert len(told) == len(model.keys() ^ before)


def test_events_are_told_as_often_as_they_come_and_never_kept() -> None:
    cache = cache_of("hit")
    told = cache.apply([part(events=[Hit(player_id=1)]), part(events=[Hit(player_id=1)])])
    assert told == [Change("hit", None, Hit(player_id=1))] * 2
    assert not cache.rows


def test_what_an_event_variant_brings_to_a_stored_table_is_stored() -> None:
    cache = cache_of("player")
    assert cache.apply([part(events=[Player(id=1)])]) == [Change("player", None, Player(id=1))]
    assert len(cache.rows) == 1


def test_a_row_that_leaves_one_query_and_changes_in_another_is_one_update() -> None:
    cache = cache_of("player")
    cache.apply([part([Player(id=1)]), part([Player(id=1)])])
    told = cache.apply([part([], [Player(id=1)]), part([Player(id=1, hp=50)], [Player(id=1)])])
    assert told == [Change("player", Player(id=1), Player(id=1, hp=50))]
    assert cache.rows[1].count == 1


def test_a_row_that_only_moves_between_queries_is_no_change() -> None:
    cache = cache_of("tile")
    cache.apply([part([Tile(x=1)])])
    assert cache.apply([part([], [Tile(x=1)]), part([Tile(x=1)])]) == []
    keyed = cache_of("player")
    keyed.apply([part([Player(id=1)])])
    assert keyed.apply([part([], [Player(id=1)]), part([Player(id=1)])]) == []


def test_the_deleted_row_is_the_one_that_the_server_sent() -> None:
    cache = cache_of("player")
    cache.apply([part([Player(id=1, name="old")])])
    assert cache.apply([part([], [Player(id=1, name="now")])]) == [Change("player", Player(id=1, name="now"), None)]


def test_unknown_deletes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="gamedb.client"):
        assert cache_of("player").apply([part([], [Player(id=7)])]) == []
        assert cache_of("tile").apply([part([], [Tile(x=7)])]) == []
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@settings(max_examples=EXAMPLES)
@given(st.lists(PLAYERS | TILES, max_size=5), st.lists(PLAYERS | TILES, max_size=5))
def test_one_cache_replaces_another_with_only_the_differences(before: list[Any], after: list[Any]) -> None:
    for name, row_type, key in (("player", Player, lambda row: row.id), ("tile", Tile, lambda row: encoded([row]))):
        old, new = cache_of(name), cache_of(name)
        old.apply([part([row for row in before if type(row) is row_type])])
        new.apply([part([row for row in after if type(row) is row_type])])
        had = {key(held.row): held.row for held in old.rows.values()}
        has = {key(held.row): held.row for held in new.rows.values()}
        expected = {
            k: (had.get(k), has.get(k))
            for k in had.keys() | has.keys()
            if k not in had or k not in has or encoded([had[k]]) != encoded([has[k]])
        }
        told = old.replaced_by(new)
        assert {key(c.old or c.new): repr((c.old, c.new)) for c in told} == {k: repr(v) for k, v in expected.items()}
        assert len(told) == len(expected)
        for k, held in new.rows.items():
            if k in old.rows and key(held.row) not in expected:
                assert held.row is old.rows[k].row


def test_cut_rows_are_an_error() -> None:
    with pytest.raises(WireError, match="player"):
        cache_of("player").apply([Part(inserts=encoded([Player(id=1)])[:-1])])
    assert new_core().tables["player"].rows == {}
