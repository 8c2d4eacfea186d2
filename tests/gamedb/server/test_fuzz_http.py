"""Whatever is asked over HTTP, the answer is an answer: never an internal error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamedb import Database, ManualClock
from tests.gamedb.server.http_game import Served, game, with_visitors

EXAMPLES = max(60, int(os.environ.get("GAMEDB_FUZZ_STEPS", "0")))

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**300) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["some", "none", "name", "hp", "x", "y", "ANGRY", "0"]) | st.text(max_size=3), inner
        )
    ),
    max_leaves=8,
)
words = st.sampled_from(
    ["SELECT", "*", "FROM", "player", "secret", "WHERE", "id", "=", "1", "(", ")", "'", '"', ",", ".", "JOIN", "ON",
     "big", ":sender", "0x00", "x'00'", "AND", "NOT", "LIMIT", "9" * 50, "--", "/*", ";",
     "NULL", "count(*)", "AS", "UNION", "\x00",
     "😀", "angry", "WITH", "ORDER BY", "1e999", "-", "PRAGMA", "VALUES", "(1)", "?", "$1", "\\"]
)  # fmt: skip
segments = st.sampled_from(
    ["v1", "database", "arena", "identity", "call", "join", "hurt", "sql", "logs", "schema", "names", "subscribe", "..",
     "", "websocket-token", "verify", "c2" * 32, "databases", "metrics", "health", "%00", "é", "a" * 300]
)  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    clock = ManualClock()
    served = Served(Database(with_visitors(game()), clock=clock), clock)
    yield served
    served.close()


def test_the_paths(served: Served) -> None:
    @settings(max_examples=EXAMPLES)
    @given(
        st.sampled_from(["GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE", "TRACE"]),
        st.lists(segments, max_size=6),
        st.text(max_size=20),
        st.sampled_from([None, "owner", "stranger"]),
    )
    def ask(method: str, path: list[str], query: str, who: str | None) -> None:
        if "logs" in path and "follow" in query:
            return
        headers = {} if who is None else getattr(served, who)
        url = f"http://testserver/{'/'.join(map(quote, path))}?{quote(query, safe='=&')}"
        answer = served.client.request(method, url, headers=headers)
        assert answer.status_code < 500, answer.text

    ask()


def test_tokens(served: Served) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.integers(0, 400), st.characters(codec="latin-1") | st.just(""), st.integers(0, 2))
    @example(0, "\x00", 1)
    def ask(at: int, character: str, cut: int) -> None:
        token = served.token
        damaged = token[:at] + character + token[at + cut :]
        if damaged == token:
            return
        headers = [(b"authorization", b"Bearer " + damaged.encode("latin-1", errors="replace"))]
        answer = served.client.request("GET", "/v1/database/arena/names", headers=headers)
        same_text = damaged.strip() == token
        assert answer.status_code == 401 or same_text, (answer.status_code, damaged)

    ask()


def test_arguments(served: Served) -> None:
    functions = ["join", "hurt", "price", "wounded", "hide", "bug"]

    @settings(max_examples=EXAMPLES)
    @given(st.sampled_from(functions), json_values | st.lists(json_values, max_size=5))
    def ask(function: str, arguments: Any) -> None:
        body = json.dumps(arguments).encode()
        headers = {"content-type": "application/json"}
        answer = served.client.post(f"/v1/database/arena/call/{function}", content=body, headers=headers)
        assert answer.status_code in (200, 400, 530), answer.text

    ask()


def test_bodies_of_bytes(served: Served) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.sampled_from(["call/join", "sql"]), st.binary(max_size=40))
    def ask(path: str, body: bytes) -> None:
        headers = {"content-type": "application/json"}
        answer = served.client.post(f"/v1/database/arena/{path}", content=body, headers=headers)
        assert answer.status_code in (200, 400, 530), answer.text

    ask()


@pytest.mark.parametrize("who", ["stranger", "owner"])
def test_queries(served: Served, who: str) -> None:
    before = served.db.last_tx_id

    @settings(max_examples=2 * EXAMPLES)
    @given(st.lists(words, max_size=12), st.sampled_from(["", " "]))
    def ask(parts: list[str], between: str) -> None:
        query = "SELECT * FROM player " + between.join(parts) if len(parts) % 2 else between.join(parts)
        answer = served.client.post("/v1/database/arena/sql", content=query.encode(), headers=getattr(served, who))
        assert answer.status_code in (200, 400), (query, answer.text)

    ask()
    assert served.db.last_tx_id == before
