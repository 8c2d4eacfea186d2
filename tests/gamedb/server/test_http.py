"""The HTTP API: what each route answers, and what it says when it refuses."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from blake3 import blake3

from gamedb import Database, Identity, ManualClock, Module
from gamedb.columns import from_micros
from gamedb.identity import identity_of_database
from gamedb.server.health import (
    DELIVERY_LAG_SECONDS_MAX,
    OVERDUE_SECONDS_MAX,
    WRITE_LAG_SECONDS_MAX,
    health_of,
)
from gamedb.server.hosted import Hosted
from gamedb.server.server import Server
from gamedb.wire.sats_json import from_sats
from tests.gamedb.server.http_game import Big, Mood, Player, Point, Secret, Served, Tick, Visitor, game


@pytest.mark.parametrize("built", [True, False])
def test_a_server_without_a_page_says_what_there_is(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    monkeypatch.setattr("gamedb.server.http.console.CONSOLE", tmp_path)
    if built:
        (tmp_path / "index.html").write_text("<title>Console</title>")
    answer = served.client.get("/")
    assert answer.status_code == 200
    assert "--static DIR" in answer.text
    assert "/v1/health" in answer.text
    assert ("/console/" in answer.text) == built


class TestIdentity:
    def test_a_new_one_each_time(self, served: Served) -> None:
        first = served.client.post("/v1/identity").json()
        assert first.keys() == {"identity", "token"}
        assert served.auth.verify_own(first["token"]).identity.hex() == first["identity"]
        assert served.client.post("/v1/identity").json()["identity"] != first["identity"]

    def test_a_websocket_token_needs_a_token(self, served: Served) -> None:
        answer = served.client.post("/v1/identity/websocket-token", headers=served.stranger)
        assert served.auth.verify_own(answer.json()["token"]).identity == served.somebody.identity
        assert served.client.post("/v1/identity/websocket-token").status_code == 401

    def test_a_damaged_token_is_an_error_of_its_own(self, served: Served) -> None:
        broken = {"authorization": f"Bearer {served.token[:-9]}"}
        for answer in (
            served.client.post("/v1/identity/websocket-token", headers=broken),
            served.call("join", ["ann"], broken),
            served.client.get("/v1/database/arena", headers=broken),
        ):
            assert answer.status_code == 401
            assert "sign in again" in answer.text
            assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
            assert "spacetime-identity" not in answer.headers
        assert len(served.db.read(Player)) == 0

    def test_another_scheme_is_refused(self, served: Served) -> None:
        answer = served.client.get("/v1/database/arena", headers={"authorization": "Basic YTpi"})
        assert (answer.status_code, "Bearer TOKEN" in answer.text) == (400, True)

    def test_the_public_key(self, served: Served) -> None:
        answer = served.client.get("/v1/identity/public-key")
        assert answer.headers["content-type"] == "application/pem-certificate-chain"
        assert answer.text.startswith("-----BEGIN PUBLIC KEY-----\n")

    def test_verify(self, served: Served) -> None:
        me, other = served.somebody.identity.hex(), Identity(bytes(32)).hex()
        assert served.client.get(f"/v1/identity/{me}/verify", headers=served.stranger).status_code == 204
        assert served.client.get(f"/v1/identity/{other}/verify", headers=served.stranger).status_code == 400
        assert served.client.get(f"/v1/identity/{me}/verify").status_code == 401
        assert served.client.get("/v1/identity/xyz/verify", headers=served.stranger).status_code == 400

    def test_databases_of_an_owner(self, served: Served) -> None:
        owner, somebody = served.hosted.owner, served.somebody.identity
        assert owner is not None
        found = served.client.get(f"/v1/identity/{owner.hex()}/databases").json()
        assert found == {"identities": [identity_of_database("arena").hex()]}
        assert served.client.get(f"/v1/identity/{somebody.hex()}/databases").json() == {"identities": []}


class TestDatabase:
    def test_by_name_and_by_identity(self, served: Served) -> None:
        identity = identity_of_database("arena").hex()
        assert served.client.get("/v1/database/arena/identity").text == identity
        assert served.client.get(f"/v1/database/{identity}/names").json() == {"names": ["arena"]}

    def test_about(self, served: Served) -> None:
        found = served.client.get("/v1/database/arena").json()
        assert served.hosted.owner is not None
        assert found["database_identity"] == identity_of_database("arena").hex()
        assert found["owner_identity"] == served.hosted.owner.hex()
        assert len(bytes.fromhex(found["initial_program"])) == blake3(b"").digest_size

    @pytest.mark.parametrize(
        ("name", "status", "text"),
        [
            ("market", 404, "`market` not found"),
            ("ab" * 32, 404, "No such database."),
            ("Ärena", 400, "lower-case"),
            ("a" * 300, 400, "lower-case"),
        ],
    )
    def test_unknown_ones(self, served: Served, name: str, status: int, text: str) -> None:
        answer = served.client.get(f"/v1/database/{name}/names", headers=served.stranger)
        assert answer.status_code == status
        assert text in answer.text
        assert answer.headers["spacetime-identity"] == served.somebody.identity.hex()

    def test_every_answer_says_who_the_caller_is(self, served: Served) -> None:
        answer = served.client.get("/v1/database/arena/names", headers=served.stranger)
        assert answer.headers["spacetime-identity"] == served.somebody.identity.hex()
        assert answer.headers["spacetime-identity-token"] == served.token
        anonymous = served.call("no_such", [])
        claims = served.auth.verify_own(anonymous.headers["spacetime-identity-token"])
        assert anonymous.headers["spacetime-identity"] == claims.identity.hex()
        assert claims.expires_at is None

    def test_subscribe_without_a_websocket(self, served: Served) -> None:
        assert served.client.get("/v1/database/arena/subscribe").status_code == 426

    def test_several_in_one_server(self, clock: ManualClock, served: Served) -> None:
        module = game("market")
        with Database(module, clock=clock) as one, Database(module, clock=clock) as two:
            hosted = [Hosted(one), Hosted(two, name="market2")]
            server = Server([*hosted, served.hosted], served.auth)
            assert len({h.identity for h in hosted}) == 2
            assert server.find("market2") is hosted[1]
            assert server.find(hosted[0].identity.hex()) is hosted[0]
            for each in hosted:
                each.logs.close()


class TestCall:
    def test_a_reducer(self, served: Served) -> None:
        answer = served.call("join", ["ann", 50, {"ANGRY": []}, {"some": {"x": 1.5, "y": 2}}], served.stranger)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["spacetime-energy-used"] == "0"
        assert int(answer.headers["spacetime-execution-duration-micros"]) >= 0
        [player] = served.db.read(Player)
        assert player == Player(id=1, name="ann", hp=50, mood=Mood.ANGRY, at=Point(x=1.5, y=2.0))

    def test_arguments_by_name_and_defaults(self, served: Served) -> None:
        assert served.call("join", {"name": "ann", "hp": 7}).status_code == 200
        assert served.call("join", ["ben"]).status_code == 200
        assert [(p.name, p.hp) for p in served.db.read(Player)] == [("ann", 7), ("ben", 100)]

    def test_a_refusal_is_told_in_its_own_words(self, served: Served) -> None:
        answer = served.call("hurt", [7, 1])
        assert (answer.status_code, answer.text) == (530, "no player 7")

    def test_a_bug_is_told_to_operators_alone(self, served: Served) -> None:
        answer = served.call("bug", [])
        assert answer.status_code == 530
        assert "bug" in answer.text
        assert "42" not in answer.text
        assert "the secret is 42" in served.call("bug", [], served.owner).text
        assert len(served.db.read(Secret)) == 0

    @pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/plain", "", "APPLICATION/JSON"])
    def test_another_content_type(self, served: Served, kind: str) -> None:
        answer = served.client.post("/v1/database/arena/call/join", content="[]", headers={"content-type": kind})
        assert answer.status_code == 415
        assert "Content-Type: application/json" in answer.text

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ("", "no JSON"),
            ("{", "no JSON"),
            ("5", "got 5"),
            ("[1]", "expected str"),
            ('["a", 1, {"CALM": []}, null, 5]', "4 arguments"),
            ("[]", "needs 'name'"),
            ('["ann", -1]', "out of range"),
            ('["ann", 4294967296]', "out of range"),
            ('{"name": "ann", "colour": 1}', "colour"),
            ('{"name": "ann", "name": "ben"}', "twice"),
            ('["ann", 1, {"SAD": []}]', "SAD"),
            ('["' + "\\ud800" + '"]', "surrogate"),
            ("[" * 100_000, "no JSON"),
            ('["ann", NaN]', "JSON"),
        ],
    )
    def test_bad_arguments(self, served: Served, body: str, text: str) -> None:
        answer = served.client.post(
            "/v1/database/arena/call/join", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert answer.text.startswith("invalid arguments for reducer join: ")
        assert text in answer.text
        assert len(served.db.read(Visitor)) == 0

    def test_a_body_that_is_too_long(self, served: Served) -> None:
        limit = served.server.limits.message_bytes_max
        answer = served.call("join", ["x" * limit])
        assert answer.status_code == 413

    def test_what_is_not_there(self, served: Served) -> None:
        for name in ("no_such", "angry", "reset", "tick", "x" * 1000):
            answer = served.call(name, [], served.stranger)
            assert answer.status_code == 404
            assert "reset" not in answer.text.replace("`reset`", "")
            assert "join" in answer.text

    def test_lifecycle_reducers_are_called_by_nobody(self, served: Served) -> None:
        for who in (served.stranger, served.owner):
            answer = served.call("joined", [], who)
            assert answer.status_code == 400
            assert "can't directly call special client connected lifecycle reducer" in answer.text

    def test_an_operator_calls_what_is_private(self, served: Served) -> None:
        served.call("join", ["ann"])
        assert served.call("reset", [], served.owner).status_code == 200
        assert len(served.db.read(Player)) == 0

    def test_procedures_answer_in_the_positional_form(self, served: Served) -> None:
        served.call("join", ["ann", 5])
        assert served.call("price", ["sword"]).json() == 5
        assert served.call("wounded", [10]).json() == ["ann"]
        assert served.call("nowhere", []).json() == []
        failed = served.call("failing", [])
        assert (failed.status_code, failed.text) == (530, "out of stock")

    def test_the_lifecycle_reducers_run_around_it(self, served: Served) -> None:
        served.call("join", ["ann"], served.stranger)
        served.call("hurt", [9, 9], served.stranger)
        assert list(served.db.read(Visitor)) == [Visitor(identity=served.somebody.identity, calls=2, here=False)]

    @pytest.mark.parametrize("function", ["leave", "leaving"])
    def test_an_exit_in_the_game_is_a_failure_like_others(self, served: Served, function: str) -> None:
        failed = served.call(function, [], served.owner)
        assert (failed.status_code, "SystemExit(3)" in failed.text) == (530, True)
        assert served.call("price", ["sword"]).status_code == 200
        assert any(b"SystemExit" in line for line in served.hosted.logs.last())

    def test_a_refused_connection_calls_nothing(self, served: Served) -> None:
        served.call("join", ["the end"], served.owner)
        answer = served.call("join", ["ann"], served.stranger)
        assert (answer.status_code, answer.text) == (403, "the arena is closed")
        assert served.db.read(Player).find(name="ann") is None
        assert served.db.read(Visitor).get(served.somebody.identity) is None

    def test_a_call_that_is_cut_off_leaves_no_connection_behind(self, served: Served) -> None:
        """L27: at the end of a server, say."""

        async def cut_off() -> None:
            transport = httpx.ASGITransport(app=served.client.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
                url = "/v1/database/arena/call/hang"
                task = asyncio.create_task(client.post(url, json=[], headers=served.stranger))
                while not served.db.read(Player).count():
                    await asyncio.sleep(0)
                [visitor] = served.db.read(Visitor)
                assert visitor.here
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(cut_off())
        [visitor] = served.db.read(Visitor)
        assert not visitor.here
        assert len(served.db.store.tables["gamedb_client"].rows) == 0

    @pytest.mark.parametrize(
        "text", ["", "\x00", "a\x00b", "😀", "\u202e", "'; DROP TABLE player; --", "é" * 10_000, "\x1a"]
    )
    def test_every_text_is_kept_as_it_is(self, stored: Served, text: str) -> None:
        """L52: in, on disk, and out again both ways."""
        assert stored.call("join", [text]).status_code == 200
        assert rows(stored.sql("SELECT * FROM player"))[1][0][1] == text
        assert rows(stored.sql("SELECT name FROM player LIMIT 1"))[1] == [[text]]

    def test_an_answer_means_that_it_is_on_disk(self, stored: Served) -> None:
        stored.call("join", ["ann"])
        assert stored.db.durable_tx_id == stored.db.last_tx_id > 0

    def test_a_closed_database(self, stored: Served) -> None:
        stored.db.close()
        answer = stored.call("join", ["ann"])
        assert answer.status_code == 503
        assert "closed" in answer.text

    def test_arguments_keep_large_numbers(self, served: Served) -> None:
        function = served.db.module.functions["hurt"]
        assert function.arguments_decoded([2**64 - 1, 1], from_sats) == (2**64 - 1, 1)


class TestStatus:
    def test_ping(self, served: Served) -> None:
        answer = served.client.get("/v1/ping")
        assert (answer.status_code, answer.content) == (200, b"")

    def test_health(self, served: Served) -> None:
        answer = served.client.get("/v1/health")
        body = answer.json()
        assert answer.status_code == 200
        assert body.keys() >= {"package_name", "version", "nodes", "schedulable"}
        assert body["databases"]["arena"]["problems"] == []

    def test_schedules_that_stand_still_are_unhealthy(self, served: Served, clock: ManualClock) -> None:
        with served.db.transaction() as ctx:
            ctx.db[Tick].insert(Tick(scheduled_at=from_micros(clock.micros() + 1_000_000)))
        clock.advance(1 + OVERDUE_SECONDS_MAX)
        assert served.client.get("/v1/health").status_code == 200
        clock.advance(1)
        answer = served.client.get("/v1/health")
        assert answer.status_code == 503
        assert answer.json()["databases"]["arena"]["overdue_seconds"] == OVERDUE_SECONDS_MAX + 1
        assert "schedules have stopped" in answer.text
        served.db.run_due()
        assert served.client.get("/v1/health").status_code == 200

    @pytest.mark.parametrize(
        ("what", "limit", "text"),
        [
            ("write_lag_seconds", WRITE_LAG_SECONDS_MAX, "waiting for the disk"),
            ("delivery_lag_seconds", DELIVERY_LAG_SECONDS_MAX, "waiting for its client"),
        ],
    )
    def test_lags_of_the_disk_and_of_delivery_are_unhealthy_past_their_limit(
        self, served: Served, monkeypatch: pytest.MonkeyPatch, what: str, limit: float, text: str
    ) -> None:
        """L53."""
        lag = limit
        monkeypatch.setattr(type(served.hosted), "delivery_lag_seconds", lambda _: lag)
        monkeypatch.setattr(type(served.db), "write_lag", property(lambda _: timedelta(seconds=lag)))
        assert health_of(served.hosted).problems == ()
        lag = limit + 1
        health = health_of(served.hosted)
        assert getattr(health, what) == lag
        assert any(text in problem for problem in health.problems)

    def test_a_database_that_takes_nothing_any_more_is_unhealthy(self, stored: Served) -> None:
        stored.db.close()
        answer = stored.client.get("/v1/health")
        assert answer.status_code == 503
        assert "closed" in answer.text

    @pytest.mark.parametrize(
        ("method", "path"), [("POST", "/v1/nothing"), ("DELETE", "/v1/ping"), ("GET", "/v1/database/arena/call/join")]
    )
    def test_what_cannot_be_asked_in_this_way(self, served: Served, method: str, path: str) -> None:
        answer = served.client.request(method, path)
        assert (answer.status_code, f"there is no {method} {path} here" in answer.text) == (404, True)

    def test_what_is_no_route(self, served: Served) -> None:
        for path in ("/v1/nothing", "/v1/database/arena/nothing", "/v1/"):
            assert served.client.get(path).status_code == 404


class TestCors:
    def test_a_preflight_from_any_origin(self, served: Served) -> None:
        answer = served.client.options(
            "/v1/identity/websocket-token",
            headers={
                "origin": "https://play.example.com",
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type",
            },
        )
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "authorization" in answer.headers["access-control-allow-headers"]

    @pytest.mark.parametrize("path", ["/v1/ping", "/v1/nothing", "/v1/database/none/names"])
    def test_answers_and_refusals_can_be_read_by_pages(self, served: Served, path: str) -> None:
        answer = served.client.get(path, headers={"origin": "https://play.example.com"})
        assert answer.headers["access-control-allow-origin"] == "*"


def rows(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    [body] = json.loads(answer.content)
    return [e["name"]["some"] for e in body["schema"]["elements"]], body["rows"]


class TestSql:
    def test_an_answer(self, stored: Served) -> None:
        stored.call("join", ["ann", 50, {"ANGRY": []}, {"some": [1.5, 2.0]}])
        [body] = json.loads(stored.sql("SELECT * FROM player").content)
        assert body["schema"]["elements"][0] == {"name": {"some": "id"}, "algebraic_type": {"U64": []}}
        assert body["rows"] == [[1, "ann", 50, [1, []], [0, [1.5, 2.0]]]]
        assert body["stats"] == {"rows_inserted": 0, "rows_deleted": 0, "rows_updated": 0}
        assert body["total_duration_micros"] >= 0

    def test_what_the_engine_can_do_more(self, stored: Served) -> None:
        for name in ("ann", "ben", "eve"):
            stored.call("join", [name])
        assert rows(stored.sql("SELECT count(*) AS n FROM player")) == (["n"], [[3]])
        assert rows(stored.sql("SELECT name FROM player ORDER BY name DESC LIMIT 2"))[1] == [["eve"], ["ben"]]

    def test_changes_are_refused(self, stored: Served) -> None:
        answer = stored.sql("DELETE FROM player")
        assert answer.status_code == 400
        assert "call a reducer" in answer.text

    def test_errors_are_told(self, stored: Served) -> None:
        assert "no such table: playr" in stored.sql("SELECT * FROM playr").text
        assert stored.sql("").status_code == 400
        assert stored.sql("\udcff".encode(errors="surrogateescape").decode("latin-1")).status_code == 400


class TestSqlOfClients:
    """Who is no operator asks in the language of subscriptions, and sees what a subscription would show."""

    def test_the_rows_of_a_public_table(self, served: Served) -> None:
        served.call("join", ["ann"])
        served.call("join", ["ben", 5])
        query = "SELECT * FROM player WHERE hp < 50"
        assert rows(served.sql(query, served.stranger))[1] == [[2, "ben", 5, [0, []], [1, []]]]
        assert rows(served.sql(query, {}))[1] == [[2, "ben", 5, [0, []], [1, []]]]

    def test_a_view(self, served: Served) -> None:
        served.call("join", ["ann", 1, {"ANGRY": []}])
        assert len(rows(served.sql("SELECT * FROM angry", served.stranger))[1]) == 1

    def test_private_tables_are_unknown(self, served: Served) -> None:
        served.call("hide", [1, "treasure"])
        unknown = served.sql("SELECT * FROM nothing", served.stranger)
        private = served.sql("SELECT * FROM secret", served.stranger)
        assert private.status_code == unknown.status_code == 400
        assert private.text == unknown.text.replace("nothing", "secret")
        assert rows(served.sql("SELECT * FROM secret"))[1] == [[1, "treasure"]]

    def test_other_sql_is_not_theirs(self, served: Served) -> None:
        for query in ("SELECT count(*) FROM player", "DELETE FROM player", "SELECT * FROM gamedb_client", "PRAGMA x"):
            assert served.sql(query, served.stranger).status_code == 400

    def test_a_large_number_keeps_its_digits(self, served: Served) -> None:
        with served.db.transaction() as ctx:
            ctx.db[Big].insert(Big(id=2**64 - 1, huge=2**256 - 1, data=b"\x00\xff"))
        wanted = [[2**64 - 1, hex(2**256 - 1), "00ff"]]
        assert rows(served.sql("SELECT * FROM big", served.stranger))[1] == wanted
        assert rows(served.sql("SELECT id, huge, data FROM big LIMIT 1"))[1] == wanted


class TestSchema:
    def test_both_versions(self, served: Served) -> None:
        for version in (9, 10):
            answer = served.client.get(f"/v1/database/arena/schema?version={version}")
            assert answer.status_code == 200
            assert "player" in answer.text

    def test_the_version_must_be_named(self, served: Served) -> None:
        for query in ("", "?version=8", "?version=x"):
            answer = served.client.get(f"/v1/database/arena/schema{query}")
            assert (answer.status_code, "version=10" in answer.text) == (400, True)

    @pytest.mark.parametrize("version", [9, 10])
    def test_what_is_private_is_for_operators(self, served: Served, version: int) -> None:
        path = f"/v1/database/arena/schema?version={version}"
        for private in ("secret", "reset", "tick", "joined"):
            assert private not in served.client.get(path, headers=served.stranger).text
            assert private in served.client.get(path, headers=served.owner).text


class TestFiles:
    def test_a_page_is_served(self, clock: ManualClock, tmp_path: Path) -> None:
        (tmp_path / "page").mkdir()
        (tmp_path / "page" / "index.html").write_text("<h1>Arena")
        served = Served(Database(Module("arena"), clock=clock), clock, static=tmp_path / "page")
        assert served.client.get("/").text == "<h1>Arena"
        assert served.client.get("/v1/ping").status_code == 200
        served.close()
