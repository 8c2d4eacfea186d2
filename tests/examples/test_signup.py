"""Signing up: who confirms when, and what letters they get."""

from __future__ import annotations

import pytest

from examples.post import post
from examples.signup import Account, SignupResult, confirm, module, sign_up
from examples.stage import Stage
from gamedb import ReducerError

ANN = "ann@example.org"
WELCOME, REMINDER = f"{ANN}: Welcome! Please confirm.", f"{ANN}: You have not confirmed yet."


@pytest.fixture
def stage() -> Stage:
    return Stage(module)


def letters() -> list[str]:
    return list(post.letters.values())


def test_confirmed_before_the_reminder(stage: Stage) -> None:
    run = stage.db.call(sign_up, ANN)
    stage.wait(days=1)
    assert letters() == [WELCOME]
    stage.db.call(confirm, ANN)
    stage.db.call(confirm, ANN)
    assert stage.flows.get(run).result is None, "it sleeps, and the confirmation waits"
    stage.wait(days=2)
    assert stage.flows.result(run) == SignupResult(confirmed=True)
    assert letters() == [WELCOME]


def test_confirmed_after_the_reminder(stage: Stage) -> None:
    run = stage.db.call(sign_up, ANN)
    stage.wait(days=9, hours=23)
    assert letters() == [WELCOME, REMINDER]
    stage.db.call(confirm, ANN)
    assert stage.flows.result(run) == SignupResult(confirmed=True)
    assert [account.confirmed for account in stage.db.read(Account)] == [True]


def test_never_confirmed(stage: Stage) -> None:
    run = stage.db.call(sign_up, ANN)
    stage.wait(days=10)
    assert stage.flows.result(run) == SignupResult(confirmed=False)
    assert not list(stage.db.read(Account))
    with pytest.raises(ReducerError, match="expired"):
        stage.db.call(confirm, ANN)
    again = stage.db.call(sign_up, ANN)
    assert again != run
    stage.wait(seconds=1)
    assert letters() == [WELCOME, REMINDER, WELCOME], "another run has other keys"


def test_a_button_clicked_twice_is_one_run(stage: Stage) -> None:
    run = stage.db.call(sign_up, ANN)
    assert stage.db.call(sign_up, ANN) == run
    stage.wait(days=1)
    assert letters() == [WELCOME]


def test_a_letter_is_tried_again(stage: Stage) -> None:
    post.closed_for = 4
    stage.db.call(sign_up, ANN)
    stage.wait(hours=1)
    assert letters() == [WELCOME]
    assert len(post.requests) == 5
