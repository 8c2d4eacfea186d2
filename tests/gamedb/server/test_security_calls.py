"""What a stranger cannot call, over HTTP and over a websocket, and what of a call others never see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gamedb.server.site import OWNER_TOKEN
from gamedb.wire import messages
from tests.gamedb.server.fortress import TREASURE, Fortress, Town, Vault, serving
from tests.gamedb.server.with_sockets import Connection

FORBIDDEN = [
    ("open_vault", "reducer"),
    ("explode", "reducer"),
    ("back_up", "procedure"),
    ("workflow_start", "reducer"),
    ("workflow_signal", "reducer"),
    ("workflow_cancel", "reducer"),
    ("workflow_terminate", "reducer"),
    ("workflow_delete", "reducer"),
    ("workflow_timer_fire", "reducer"),
    ("workflow_procedure_complete", "reducer"),
    ("debug_fire_timer", "reducer"),
    ("workflow_start_test", "reducer"),
    ("came", "reducer"),
    ("init", "reducer"),
]


@pytest.fixture(scope="module")
def fortress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortress]:
    with serving(tmp_path_factory.mktemp("fortress")) as fortress:
        yield fortress


def connect(fortress: Fortress, token: str = "") -> Connection:
    query = f"?token={token}" if token else ""
    return Connection(fortress.url, database="fortress", query=query)


@pytest.mark.parametrize(("name", "kind"), FORBIDDEN)
@pytest.mark.parametrize("who", ["nobody", "a player"])
def test_over_http(fortress: Fortress, name: str, kind: str, who: str) -> None:
    token = None if who == "nobody" else fortress.stranger()[1]
    for arguments in ([], [[1, {"Time": [0]}]], [{}], ["x", "y", "z", "{}"]):
        answer = fortress.call(name, *arguments, token=token)
        assert answer.status in (404, 400)
        assert answer.status == 404 or "lifecycle" in answer.text
        assert TREASURE not in answer.text
    assert fortress.db.read(Town).get(9) is None


@pytest.mark.parametrize(("name", "kind"), FORBIDDEN)
def test_over_a_websocket(fortress: Fortress, name: str, kind: str) -> None:
    """A private function is refused exactly as one that does not exist."""

    def answers(called: str) -> list[str]:
        found = []
        for arguments in (b"", bytes(64)):
            reducer = messages.CallReducer(request_id=1, reducer=called, arguments=arguments)
            procedure = messages.CallProcedure(request_id=2, procedure=called, arguments=arguments)
            with connect(fortress) as stranger:
                stranger.send(reducer, procedure)
                result, returned = stranger.next(), stranger.next()
                assert isinstance(result, messages.ReducerResult)
                assert isinstance(returned, messages.ProcedureResult)
                assert isinstance(result.outcome, messages.InternalError | messages.ReducerFailed)
                assert isinstance(returned.status, messages.InternalError)
                found += [str(result.outcome.error), returned.status.error]
        return found

    assert TREASURE not in str(answers(name))
    assert fortress.db.read(Town).get(9) is None
    if name not in ("came", "init"):  # that these exist is no secret
        unknown = [text.replace("no_such", name) for text in answers("no_such")]
        assert answers(name) == unknown


def test_the_owner_may(fortress: Fortress) -> None:
    token = fortress.site.owner_token
    assert fortress.call("back_up", token=token).text == json.dumps(TREASURE)
    assert fortress.call("open_vault", token=token).status == 200
    with fortress.db.transaction() as ctx:
        ctx.db[Town].delete(9)


def test_arguments_are_seen_by_nobody_else(fortress: Fortress) -> None:
    """L28."""
    with connect(fortress) as caller, connect(fortress) as watching:
        watching.subscribe("SELECT * FROM town")
        data = (4).to_bytes(4, "little") + b"hunt"
        caller.send(messages.CallReducer(request_id=1, reducer="set_password", arguments=data))
        outcome = caller.next()
        assert isinstance(outcome, messages.ReducerResult)
        assert isinstance(outcome.outcome, messages.ReducerOk | messages.ReducerOkEmpty)
        seen = watching.next()
        assert isinstance(seen, messages.TransactionUpdate)
        assert b"touched" in str(seen).encode()
        assert "hunt" not in str(seen)
    assert fortress.db.read(Vault).get(2) == Vault(id=2, text="hunt")


def test_secrets_are_readable_by_their_owner_alone(fortress: Fortress) -> None:
    data: Path = fortress.directory / "data"
    assert (data / OWNER_TOKEN).stat().st_mode & 0o777 == 0o600
    for key in (data / "keys").iterdir():
        assert key.stat().st_mode & 0o777 == 0o600
