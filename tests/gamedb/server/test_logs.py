"""The log of a database: entries, limits, files, followers."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamedb import Database, ManualClock, StorageError
from gamedb.server import logs as limits
from gamedb.server.logs import Follower, Logs, TooManyFollowers
from tests.gamedb.server.http_game import Served, game


def entries(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


@pytest.fixture
def db(clock: ManualClock) -> Iterator[Database]:
    with Database(game(), clock=clock) as db:
        yield db


@pytest.fixture
def logs(db: Database) -> Iterator[Logs]:
    logs = Logs()
    logs.attach(db, "arena")
    yield logs
    logs.close()


def test_a_log_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    with pytest.raises(StorageError, match=r"logs/arena.log cannot be written"):
        Logs(tmp_path / "logs" / "arena.log")


class TestEntries:
    def test_what_a_reducer_logs(self, db: Database, logs: Logs) -> None:
        db.call("join", "ann")
        [entry] = entries(logs.last())
        assert entry["message"] == "ann joined"
        assert (entry["level"], entry["function"], entry["filename"]) == ("Info", "join", "http_game.py")
        assert isinstance(entry["ts"], int)
        assert isinstance(entry["line_number"], int)

    def test_a_bug_is_a_panic_with_its_trace(self, db: Database, logs: Logs) -> None:
        with pytest.raises(ZeroDivisionError) as raised:
            db.call("bug")
        db.report_failure("bug", raised.value)
        [entry] = entries(logs.last())
        assert entry["level"] == "Panic"
        assert "the secret is 42" in entry["message"]
        assert entry["trace"][-1]["func_name"] == "bug"
        assert entry["trace"][-1]["module_name"].startswith("http_game.py:")

    def test_levels(self, db: Database, logs: Logs) -> None:
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
            db.log.log(level, "x")
        assert [e["level"] for e in entries(logs.last())] == ["Info", "Warn", "Error", "Error"]

    def test_odd_messages_are_kept(self, db: Database, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(db.log, "propagate", False)
        for message in ("", "\x00", "😀\n{}", "\udcff", "%s %s"):
            db.log.info(message)
        db.log.info("%d and %d", "x")
        found = [e["message"] for e in entries(logs.last())]
        assert found[:5] == ["", "\x00", "😀\n{}", "?", "%s %s"]
        assert "do not fit" in found[5]

    def test_a_long_message_is_cut(self, db: Database, logs: Logs) -> None:
        db.log.info("x" * 100_000)
        assert len(logs.last()[0]) < limits.MESSAGE_CHARACTERS_MAX + 1000

    def test_two_databases_of_one_module_have_logs_of_their_own(self, db: Database, logs: Logs) -> None:
        with Database(game()) as other:
            more = Logs()
            more.attach(other, "arena2")
            other.call("join", "ben")
            db.call("join", "ann")
            assert [e["message"] for e in entries(logs.last())] == ["ann joined"]
            assert [e["message"] for e in entries(more.last())] == ["ben joined"]
            more.close()


class TestLimits:
    def test_entries_in_memory(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MEMORY_BYTES_MAX", 1000)
        for number in range(100):
            logs.add({"message": str(number)})
        assert sum(map(len, logs.last())) <= 1000
        assert entries(logs.last())[-1] == {"message": "99"}

    def test_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "FILE_BYTES_MAX", 1000)
        logs = Logs(tmp_path / "logs" / "arena.log")
        for number in range(1000):
            logs.add({"message": f"{number:04}"})
        logs.close()
        files = sorted((tmp_path / "logs").iterdir())
        assert [f.name for f in files] == ["arena.log", "arena.log.1", "arena.log.2", "arena.log.3"]
        assert all(f.stat().st_size <= 1000 for f in files)

    def test_the_last_entries_are_there_after_a_restart(self, tmp_path: Path) -> None:
        logs = Logs(tmp_path / "arena.log")
        logs.add({"message": "before"})
        logs.close()
        with (tmp_path / "arena.log").open("ab") as file:
            file.write(b'{"cut off')
        logs = Logs(tmp_path / "arena.log")
        assert entries(logs.last()) == [{"message": "before"}]
        logs.add({"message": "after"})
        logs.close()
        again = Logs(tmp_path / "arena.log")
        assert entries(again.last()) == [{"message": "before"}, {"message": "after"}]
        again.close()

    def test_a_log_that_cannot_be_written_fails_nobody(self, db: Database, tmp_path: Path) -> None:
        logs = Logs(tmp_path / "arena.log")
        logs.attach(db, "arena")
        assert logs._file is not None
        logs._file.close()
        db.call("join", "ann")
        assert entries(logs.last())[-1]["message"] == "ann joined"
        logs.close()


class TestFollowers:
    def test_what_comes_from_any_thread(self, logs: Logs) -> None:
        async def follow() -> bytes:
            with logs.follow() as follower:
                batches = follower.batches(60)
                thread = threading.Thread(target=logs.add, args=({"message": "hi"},))
                thread.start()
                first = await anext(batches)
                thread.join()
                return first

        assert json.loads(asyncio.run(follow())) == {"message": "hi"}

    @pytest.mark.parametrize("turns", range(8))
    def test_one_that_is_cancelled_just_as_something_comes_ends(self, logs: Logs, turns: int) -> None:
        async def read(follower: Follower) -> None:
            async for _ in follower.batches(60):
                pass

        async def follow() -> bool:
            with logs.follow() as follower:
                reader = asyncio.create_task(read(follower))
                await asyncio.sleep(0)
                await asyncio.sleep(0)  # it waits
                logs.add({"message": "hi"})
                for _ in range(turns):
                    await asyncio.sleep(0)
                reader.cancel()
                await asyncio.wait({reader}, timeout=1)
                return reader.cancelled()

        assert asyncio.run(follow())

    def test_a_slow_one_is_told_what_it_missed(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "FOLLOWED_MAX", 10)

        async def follow() -> list[dict[str, Any]]:
            with logs.follow() as follower:
                for number in range(25):
                    logs.add({"message": str(number)})
                return entries((await anext(follower.batches(60))).splitlines())

        found = asyncio.run(follow())
        assert [e["message"] for e in found[:10]] == [str(n) for n in range(10)]
        assert found[10]["message"].startswith("15 entries were left out")

    def test_a_file_that_cannot_be_written_keeps_nothing_from_them(
        self, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk is when somebody reads along; once there is room again, the file goes on."""
        logs = Logs(tmp_path / "arena.log")
        logs.attach(db, "arena")

        def fail(*_paths: object) -> None:
            raise OSError(28, "No space left on device")

        async def follow() -> list[dict[str, Any]]:
            with logs.follow() as follower, monkeypatch.context() as full:
                full.setattr(limits, "FILE_BYTES_MAX", 1)
                full.setattr("gamedb.server.logs.os.replace", fail)
                db.log.info("one")
                db.log.info("two")
                return entries((await anext(follower.batches(60))).splitlines())

        assert [entry["message"] for entry in asyncio.run(follow())] == ["one", "two"]
        db.log.info("three")
        logs.close()
        assert [e["message"] for e in entries((tmp_path / "arena.log").read_bytes().splitlines())] == ["one", "three"]

    def test_there_are_not_too_many(self, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "FOLLOWERS_MAX", 1)

        async def follow() -> None:
            with logs.follow(), pytest.raises(TooManyFollowers), logs.follow():
                pass
            with logs.follow():
                pass

        asyncio.run(follow())

    def test_the_end_of_the_log_ends_them(self, logs: Logs) -> None:
        async def follow() -> list[bytes]:
            with logs.follow() as follower:
                logs.close()
                return [batch async for batch in follower.batches(60)]

        assert asyncio.run(follow()) == []


class TestRoute:
    def test_only_the_owner_reads_it(self, served: Served) -> None:
        served.call("join", ["ann"])
        for who in ({}, served.stranger):
            answer = served.client.get("/v1/database/arena/logs", headers=who)
            assert answer.status_code == 403
            assert "ann" not in answer.text
        answer = served.client.get("/v1/database/arena/logs", headers=served.owner)
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.headers["cache-control"] == "no-cache"
        assert "ann joined" in answer.text

    def test_the_last_lines(self, served: Served) -> None:
        for name in ("ann", "ben", "eve"):
            served.call("join", [name])

        def messages(query: str) -> list[str]:
            answer = served.client.get(f"/v1/database/arena/logs?{query}", headers=served.owner)
            return [e["message"] for e in entries(answer.content.splitlines())]

        assert messages("num_lines=2") == ["ben joined", "eve joined"]
        assert messages("num_lines=0") == []
        assert len(messages("")) == 3
        for wrong in ("-1", "x", "1.5"):
            answer = served.client.get(f"/v1/database/arena/logs?num_lines={wrong}", headers=served.owner)
            assert answer.status_code == 400

    def test_following_ends_when_the_client_goes(self, served: Served) -> None:
        """Without a client library, as they wait for the end of the answer."""
        served.db.call("join", "ann")
        got: list[bytes] = []
        second = asyncio.Event()
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == 200
            elif message.get("body"):
                got.append(message["body"])
                if len(got) == 1:
                    served.db.call("join", "ben")
                else:
                    second.set()

        async def follow() -> None:
            scope = {
                "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "GET", "scheme": "http",
                "path": "/v1/database/arena/logs", "raw_path": b"", "query_string": b"follow=true&num_lines=1",
                "headers": [(b"authorization", served.owner["authorization"].encode())], "root_path": "",
                "server": ("testserver", 80), "client": ("x", 1), "http_version": "1.1",
            }  # fmt: skip
            running = asyncio.create_task(served.client.app(scope, receive, send))
            await asyncio.wait_for(second.wait(), 30)
            assert len(served.hosted.logs._followers) == 1
            gone.set()
            await asyncio.wait_for(running, 30)

        asyncio.run(follow())
        assert [e["message"] for batch in got for e in entries(batch.splitlines())] == ["ann joined", "ben joined"]
        assert served.hosted.logs._followers == []


@pytest.mark.parametrize(
    ("level", "shown"), [("error", ["bad"]), ("warning", ["slow", "bad"]), ("debug", ["small", "slow", "bad"])]
)
def test_the_terminal_shows_what_it_was_asked_for_and_the_log_keeps_the_rest(level: str, shown: list[str]) -> None:
    code = """
import sys
from gamedb import Database, Module
from gamedb.cli.start import log
from gamedb.server.hosted import Hosted

log(sys.argv[1])
with Database(Module("arena")) as db:
    hosted = Hosted(db)
    db.log.debug("small")
    db.log.warning("slow")
    db.log.error("bad")
    print(*(b"slow" in line for line in hosted.logs.last()))
    hosted.logs.close()
"""
    ran = subprocess.run([sys.executable, "-c", code, level], capture_output=True, text=True, check=True)
    assert [line.rpartition(": ")[2] for line in ran.stderr.splitlines()] == shown
    assert ran.stdout.split() == ["True", "False"]
