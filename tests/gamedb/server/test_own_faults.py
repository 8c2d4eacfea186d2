"""Faults of the server itself: whoever meets one is told so without its text, the log has it, all others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from gamedb import Database, DatabaseClosed, StorageError, TokenError
from gamedb.server import websocket as websocket_module
from gamedb.server.http.answers import refusal
from gamedb.server.serve import Serving
from gamedb.server.session import FAILED, Session
from gamedb.server.websocket import WebSocket
from gamedb.wire import messages
from tests.gamedb.server.arena import Player, arena
from tests.gamedb.server.with_sockets import V3, Connection, served, upgrade_answer

SECRET = "what only the log may say"


def fails(*_arguments: Any, **_options: Any) -> Any:
    raise RuntimeError(SECRET)


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(arena()[0]) as db:
        yield db


@pytest.fixture
def serving(db: Database) -> Iterator[Serving]:
    with served(db) as serving:
        yield serving


def test_a_handshake_that_meets_a_fault_is_refused_and_the_next_is_not(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(websocket_module, "opening", fails)
        answer = upgrade_answer(serving, headers=f"Sec-WebSocket-Protocol: {V3}\r\n")
    assert answer.startswith("HTTP/1.1 500 ")
    assert "the server failed; its log says why" in answer
    assert SECRET not in answer
    assert SECRET in caplog.text
    with Connection(serving) as ann:
        assert isinstance(ann.call("nothing"), messages.ReducerOk)


def test_a_session_that_cannot_be_entered_is_closed(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(WebSocket, "_enter", fails)
    with Connection(serving, greeted=False) as ann:
        assert ann.closed() == (FAILED, "the server failed; its log says why")
    assert SECRET in caplog.text


def test_a_commit_that_cannot_be_told_stands_and_its_listeners_must_connect_again(
    db: Database, serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Connection(serving) as ann:
        ann.subscribe("SELECT * FROM player")
        with monkeypatch.context() as broken:
            broken.setattr(serving.server.hosted["arena"].hub.matcher, "commit", fails)
            db.call("spawn", 1, 7)
        assert ann.closed() == (FAILED, "the server lost track of the subscriptions; connect again")
    assert db.read(Player).get(1) == Player(id=1, zone=7)
    assert SECRET in caplog.text
    with Connection(serving) as ann:
        assert ann.subscribe("SELECT * FROM player").tables[0].rows.data


def test_one_client_that_cannot_be_sent_to_keeps_nothing_from_the_others(
    db: Database, serving: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Connection(serving) as ann, Connection(serving) as bob:
        for client in (ann, bob):
            client.subscribe("SELECT * FROM player")
        flush = Session.flush

        def flush_all_but_ann(session: Session) -> None:
            if session.identity == ann.greeting.identity:
                fails()
            flush(session)

        with monkeypatch.context() as broken:
            broken.setattr(Session, "flush", flush_all_but_ann)
            db.call("spawn", 1, 7)
            assert isinstance(bob.next(), messages.TransactionUpdate)
    assert SECRET in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (TokenError("issuer_unreachable", "no route"), 503, "no route"),
        (TokenError("scheme", "not Bearer"), 400, "not Bearer"),
        (DatabaseClosed("it is closed"), 503, "it is closed"),
        (StorageError("the disk is full"), 503, "the disk is full"),
        (HTTPException(405, "POST alone"), 405, "POST alone"),
        (RuntimeError(SECRET), 500, "internal error; the server's log says more"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_over_http_have_a_status_and_only_unexpected_ones_keep_their_text(
    error: Exception, status: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "gamedb.server"):
        refused = refusal(error)
    assert (refused.status, refused.text) == (status, text)
    assert (SECRET in caplog.text) == (status == 500)


def test_whoever_cannot_be_checked_now_is_told_when_to_come_back() -> None:
    assert refusal(TokenError("issuer_unreachable", "no route")).headers == {"retry-after": "30"}
