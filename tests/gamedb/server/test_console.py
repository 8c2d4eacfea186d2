"""What the console is served from: its page, what operators are told, and what strangers are not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.applications import Starlette

from gamedb import Database, HealthReport, ManualClock, Module, Row, SchemaError
from gamedb.server.http import console
from tests.gamedb.server.http_game import Client, Mood, Player, Served, game


def described() -> Module:
    module = game()
    module.on_describe(lambda: {"colours": ["red", "green"]})
    module.count_rows(Player, "mood")

    @module.on_health
    def angry(report: HealthReport) -> None:
        count = report.count(Player, mood=Mood.ANGRY)
        report.add("angry", count, limit=1, problem=f"{count} players are angry; give them something to do")

    return module


@pytest.fixture
def told() -> Served:
    clock = ManualClock()
    return Served(Database(described(), clock=clock), clock)


class TestOperatorsAreTold:
    def test_the_databases_that_they_operate(self, told: Served) -> None:
        body = told.client.get("/v1/databases", headers=told.owner).json()
        assert body["databases"] == [{"name": "arena", "identity": told.hosted.identity.hex()}]

    def test_what_libraries_know_of_a_module(self, told: Served) -> None:
        body = told.client.get("/v1/database/arena/describe", headers=told.owner).json()
        assert body == {"module": "arena", "colours": ["red", "green"]}

    @pytest.mark.parametrize("path", ["/v1/databases", "/v1/database/arena/describe"])
    def test_strangers_are_not(self, told: Served, path: str) -> None:
        assert told.client.get(path, headers=told.stranger).status_code == 403
        nobody = told.client.get(path)
        assert nobody.status_code in (401, 403)
        assert "colours" not in nobody.text
        assert told.hosted.identity.hex() not in nobody.text


class TestHealthOfLibraries:
    def test_a_number_is_told_and_its_limit_makes_unhealthy(self, told: Served) -> None:
        async def run() -> None:
            told.server.begin(asyncio.get_running_loop())
            try:
                for angry, status in ((1, 200), (2, 503)):
                    told.db.call("join", f"a{angry}", 5, Mood.ANGRY)
                    transport = Client(told.client.app)
                    answer = await asyncio.to_thread(transport.get, "/v1/health", headers=told.owner)
                    own = answer.json()["databases"]["arena"]
                    assert (answer.status_code, own["numbers"]) == (status, {"angry": angry})
                    assert any("are angry" in problem for problem in own["problems"]) == (angry > 1)
            finally:
                told.server.end()

        asyncio.run(run())

    def test_counting_what_nobody_counts_says_so(self, told: Served) -> None:
        class Other(Row): ...

        def count(row: type[Row], values: dict[str, object]) -> int:
            raise SchemaError(f"nobody counts {row.__name__}")

        with pytest.raises(SchemaError, match="nobody counts Other"):
            HealthReport(count, read=told.hosted.db.read, seconds_since=lambda _: 0.0).count(Other)


class TestThePage:
    def test_without_a_build_it_says_how_to_make_one(self, tmp_path: Path) -> None:
        client = Client(Starlette(routes=console.routes(tmp_path)))
        answer = client.get("/console/")
        assert (answer.status_code, 'run "make console" in the clone' in answer.text) == (404, True)
        assert answer.text.endswith("\n")
        assert client.get("/console").headers["location"] == "/console/"

    def test_a_built_one_is_served_with_a_policy_that_lets_no_foreign_script_in(self, tmp_path: Path) -> None:
        (tmp_path / "index.html").write_text("<title>Console</title>")
        (tmp_path / ".secret").write_text("no")
        client = Client(Starlette(routes=console.routes(tmp_path)))
        answer = client.get("/console/")
        assert (answer.status_code, "Console" in answer.text) == (200, True)
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert client.get("/console/.secret").status_code == 404
