"""`Database.serve`: a game that serves its own database from its own loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from gamedb import Database, SchemaError, StorageError
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.limits import Limits
from gamedb.server.serve import Serving, bind
from gamedb.server.server import Server
from gamedb.wire import messages
from tests.gamedb.server.arena import Player, Visit, arena
from tests.gamedb.server.with_sockets import Connection


async def play(db: Database, token: str = "") -> tuple[str, tuple[int, str]]:
    """Serve, let somebody connect and call, stop by cancelling; their token, and how they were closed."""
    ready: asyncio.Future[Serving] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(db.serve("127.0.0.1:0", ready=ready.set_result))
    url = (await ready).url
    client = await asyncio.to_thread(Connection, url, query=f"?token={token}")
    outcome = await asyncio.to_thread(client.call, "spawn", db.read(Player).count(), 1)
    assert isinstance(outcome, messages.ReducerOk)
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    closed = await asyncio.to_thread(client.closed)
    await asyncio.to_thread(client.close)
    return client.greeting.token, closed


def test_a_game_serves_its_own_database_until_cancelled(tmp_path: Path) -> None:
    module, _ = arena()
    with Database(module, tmp_path / "arena.db", quiet=True) as db:
        token, closed = asyncio.run(play(db))
        assert closed == (1001, "the server is shutting down")
        assert [(visit.came, visit.went) for visit in db.read(Visit)] == [(1, 1)]
        assert db.read(Player).count() == 1
    again, _ = arena()
    with Database(again, tmp_path / "arena.db", quiet=True) as db:  # its keys lie beside it
        assert asyncio.run(play(db, token))[0] == token
        assert [(visit.came, visit.went) for visit in db.read(Visit)] == [(2, 2)]


def test_a_database_can_be_served_again() -> None:
    module, _ = arena()
    with Database(module) as db:
        asyncio.run(play(db))
        asyncio.run(play(db))
        assert db.read(Player).count() == 2


@pytest.mark.parametrize("stored", ["public/arena.db", "sqlite:///public/arena.db"])
def test_keys_and_data_among_the_static_files_are_refused(
    stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("public", "pages"):
        Path(name).mkdir()
    module, _ = arena()
    with Database(module, stored, quiet=True) as db:
        for static in ("public", "."):
            with pytest.raises(StorageError, match="lie in each other"):
                asyncio.run(db.serve("127.0.0.1:0", static=static))
        with pytest.raises(StorageError, match="lie in each other"):
            asyncio.run(db.serve("127.0.0.1:0", static="pages", keys="pages/keys"))
        token, _ = asyncio.run(play(db))
        assert asyncio.run(play(db, token))[0] == token  # the keys lie beside the file, however that is named
    assert Path("public/arena.db.keys/0001.pem").exists()


def test_the_files_that_a_module_declares_are_served_when_they_are_there(tmp_path: Path) -> None:
    async def page(db: Database) -> str:
        ready: asyncio.Future[Serving] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(db.serve("127.0.0.1:0", ready=ready.set_result))
        url = (await ready).url
        answer = await asyncio.to_thread(httpx.get, url)
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        return answer.text

    module, _ = arena()
    module.static(tmp_path / "dist")
    with Database(module) as db:
        assert "It serves no page of a game" in asyncio.run(page(db))
        (tmp_path / "dist").mkdir()
        (tmp_path / "dist/index.html").write_text("the page")
        assert asyncio.run(page(db)) == "the page"


@pytest.mark.parametrize("listen", ["", "here", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:²"])
def test_an_address_that_is_none_is_refused_with_an_example(listen: str) -> None:
    with pytest.raises(SchemaError, match="HOST:PORT"):
        bind(listen)


def test_a_port_that_is_taken_is_an_error_that_says_so() -> None:
    with bind("127.0.0.1:0") as bound, pytest.raises(StorageError, match="another address or port"):
        bind(f"127.0.0.1:{bound.getsockname()[1]}")


def test_an_ipv6_address_can_be_listened_at() -> None:
    try:
        bound = bind("[::1]:0")
    except StorageError:
        pytest.skip("this machine has no IPv6")
    bound.close()


def test_schedules_that_stop_by_themselves_say_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """L53."""
    module, _ = arena()
    with Database(module) as db:

        async def fail() -> None:
            raise RuntimeError("the heap is broken")

        monkeypatch.setattr(db, "run_async", fail)
        asyncio.run(play(db))
    assert "schedules stopped" in caplog.text


def test_a_database_without_limits_of_its_own_has_those_of_its_server() -> None:
    module, _ = arena()
    with Database(module) as db:
        ours, own = Limits(procedures_max=1), Limits(procedures_max=2)
        hosted = [Hosted(db), Hosted(db, name="other", limits=own)]
        server = Server(hosted, Authenticator(Keys(None)), limits=ours)
        assert [one.limits for one in server.hosted.values()] == [ours, own]
        for one in hosted:
            one.logs.close()


def test_two_databases_of_one_name_are_refused() -> None:
    module, _ = arena()
    with Database(module) as db:
        hosted = [Hosted(db), Hosted(db)]
        with pytest.raises(SchemaError, match="another name"):
            Server(hosted, Authenticator(Keys(None)))
        for one in hosted:
            one.logs.close()
