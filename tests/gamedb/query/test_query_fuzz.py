"""Hostile texts: whatever a client sends, it gets a query or a `QueryError`. GAMEDB_FUZZ_STEPS makes it long."""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gamedb import QueryError
from gamedb.query import TEXT_MAX, Catalog, Query
from tests.gamedb.query.game import ANN, Asked, Item, Player, a_module

EXAMPLES: Final = int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000")) // 4

_asked = Asked(a_module("SELECT * FROM player WHERE owner = :sender"))
_asked.add(Player(name="ann", owner=ANN), Item(player_id=1))

_WRITTEN: Final = r"""
SELECT * FROM WHERE JOIN INNER ON AS AND OR NOT TRUE FALSE select where and not
player item mark hit secret mine everything p i id player_id zone hp name owner online guild
"player" "item" "id" "a""b" "" player.* player.id item.player_id p.id
1 -1 1.5 1e21 1e-7 0xff x'00' 'ann' '' '''' :sender :x = <> != < <= > >= ( ) . , * ; - + 0x x
ORDER BY LIMIT 5 GROUP IN IS NULL LIKE BETWEEN CASE WHEN COUNT(*) UNION DISTINCT NaN Infinity
{ } [ ] ? @ $ $$ # % ^ & | ~ ` \ / -- /* */ é 字 ' "
"""
WORDS: Final = [*_WRITTEN.split(), "\0", "\ud800", "\u2028"]

texts = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=15).map(lambda w: "SELECT * FROM player WHERE " + " ".join(w)),
    st.lists(st.sampled_from(WORDS), max_size=15).map(
        lambda w: "SELECT p.* FROM player p JOIN item i ON p.id = i.player_id AND " + " ".join(w)
    ),
)


def _parse(text: str, operator: bool) -> Query | None:
    try:
        return _asked.catalog.parse(text, operator=operator)
    except QueryError as caught:
        error = caught
    assert str(error)
    assert error.position is None or 0 <= error.position <= len(text)
    return None


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(texts, st.booleans())
@example("SELECT * FROM player WHERE id = 1e99999999999999999999", False)
@example("SELECT * FROM player WHERE ()", False)
@example("SELECT * FROM player WHERE (id = 1) (id = 2)", False)
@example("SELECT * FROM player WHERE NOT", False)
@example('SELECT * FROM ""', False)
def test_any_text_is_a_query_or_a_query_error(text: str, operator: bool) -> None:
    query = _parse(text, operator)
    if query is not None:
        assert query == _parse(text, operator)
        assert len(_asked.matcher) == 0
        live = _asked.matcher.open(query, ANN)
        try:
            if not query.is_event:
                assert len(live.rows()) == len(_asked.matcher.answer(query, ANN))
            _asked.add(Player(name=f"n{_asked.db.last_tx_id}"))
        finally:
            _asked.matcher.close(live)


HEAD = "SELECT * FROM player WHERE "


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "(" * 1_000_000,
        HEAD + "(" * 10_000,
        HEAD + "(" * 8_000 + "id = 1" + ")" * 8_000 + " AND (",
        HEAD + "NOT " * 10_000 + "online",
        HEAD + "NOT (" * 5_000 + "online" + ")" * 5_000,
        HEAD + "- " * 10_000 + "1",
        HEAD + "id = " * 10_000,
        HEAD + "a." * 10_000 + "b = 1",
        "SELECT * FROM " + "a." * 10_000 + "b",
        "SELECT * FROM " + "(SELECT * FROM " * 1_000,
        HEAD + "'" * 60_001,
        HEAD + '"' * 60_001,
        HEAD + "\"'" * 30_001,
        HEAD + "id = 1" + " OR id = 1" * 5_000,
        HEAD + "id = " + "9" * 60_000,
        HEAD + "wide = 0x" + "f" * 60_000,
        HEAD + "speed = 1" + "0" * 60_000,
        HEAD + "speed = 0." + "0" * 60_000 + "1e60000",
        HEAD + "id = 1" + " " * 60_000,
        " " * TEXT_MAX,
        ";" * TEXT_MAX,
        "SELECT " + "*," * 10_000 + "* FROM player",
        "SELECT * FROM player " + "JOIN item ON player.id = item.player_id " * 1_000,
        "SELECT * FROM player " + "p " * 10_000,
        "SELECT * FROM " + "player, " * 10_000 + "item",
        HEAD + "CASE WHEN " * 5_000,
        "SELECT * FROM player" + " UNION SELECT * FROM player" * 1_000,
        HEAD + "id = 1 ;" + " ;" * 1_000,
        HEAD + "(((" + "id = 1 AND (hp = 1 OR (" * 1_000,
    ],
    ids=lambda text: f"{text[:24]}~{len(text)}",
)
def test_giant_texts_end_at_a_limit(text: str) -> None:
    query = _parse(text, False)
    assert query is None or query.name == "player"


def test_what_looks_like_a_number_of_sqlglot_is_a_name() -> None:
    """Names reach the parser as numbers of pieces, so no name can be taken for another."""
    with pytest.raises(QueryError, match="no such table: `3`"):
        Catalog(_asked.db.module).parse('SELECT * FROM "3" WHERE "5" = 1')
