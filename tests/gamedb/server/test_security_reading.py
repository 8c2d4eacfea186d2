"""What a stranger cannot read: private tables and views, and other people's rows, in every way there is to ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gamedb import Identity
from gamedb.wire import messages
from tests.gamedb.server.fortress import TREASURE, Fortress, Letter, serving
from tests.gamedb.server.with_sockets import Connection

PRIVATE = ["vault", "inside", "bomb", "workflow", "workflow_timer", "gamedb_client", "gamedb_setting",
           "gamedb_schedule", "sqlite_master", "sqlite_schema", "st_table"]  # fmt: skip
WAYS = [
    "SELECT * FROM {}",
    'SELECT * FROM "{}"',
    "SELECT {}.* FROM {}",
    "SELECT town.* FROM {} JOIN town ON {}.town = town.id",
    "SELECT town.* FROM town JOIN {} ON town.id = {}.town WHERE {}.text = 'x'",
    "SELECT {}.* FROM town JOIN {} ON town.id = {}.town",
    "SELECT * FROM town WHERE id IN (SELECT id FROM {})",
    "SELECT * FROM town; SELECT * FROM {}",
    "SELECT * FROM town UNION SELECT * FROM {}",
    "SELECT * FROM town, {}",
    "SELECT * FROM (SELECT * FROM {})",
    "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
    "SELECT * FROM main.{}",
    "SELECT (SELECT text FROM {}) FROM town",
    "SELECT * FROM town WHERE EXISTS (SELECT 1 FROM {})",
    "SELECT * FROM town /* */ JOIN {} ON town.id = {}.town",
    "SELECT count(*) FROM {}",
]


@pytest.fixture(scope="module")
def fortress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortress]:
    with serving(tmp_path_factory.mktemp("fortress")) as fortress:
        yield fortress


@pytest.fixture
def stranger(fortress: Fortress) -> Iterator[Connection]:
    with Connection(fortress.url, database="fortress") as connection:
        yield connection


def asked(template: str, table: str) -> str:
    return template.replace("{}", table)


@pytest.mark.parametrize("template", WAYS)
def test_private_tables_over_http(fortress: Fortress, template: str) -> None:
    for table in PRIVATE:
        answer = fortress.sql(asked(template, table))
        assert answer.status == 400, (table, answer.text)
        assert TREASURE not in answer.text


@pytest.mark.parametrize("template", WAYS)
def test_private_tables_by_subscription_and_one_off_query(stranger: Connection, template: str) -> None:
    for number, table in enumerate(PRIVATE):
        query = asked(template, table)
        stranger.send(messages.Subscribe(request_id=number, query_set_id=number, queries=[query]))
        assert isinstance(stranger.next(), messages.SubscriptionError), query
        stranger.send(messages.Subscribe(request_id=number, query_set_id=number, queries=["SELECT * FROM town", query]))
        assert isinstance(stranger.next(), messages.SubscriptionError), query
        stranger.send(messages.OneOffQuery(request_id=number, query=query))
        result = stranger.next()
        assert isinstance(result, messages.OneOffQueryResult)
        assert isinstance(result.result, messages.QueryFailed)
        assert TREASURE not in result.result.error


def test_a_private_table_is_answered_as_an_unknown_one(fortress: Fortress, stranger: Connection) -> None:
    """L28: not even that it exists can be seen."""

    def errors(table: str) -> list[str]:
        query = f"SELECT * FROM {table}"
        stranger.send(messages.Subscribe(request_id=1, query_set_id=1, queries=[query]))
        failed = stranger.next()
        assert isinstance(failed, messages.SubscriptionError)
        return [text.replace(table, "TABLE") for text in (failed.error, fortress.sql(query).text)]

    for table in ("vault", "inside", "workflow"):
        assert errors(table) == errors("nowhere")


def test_everything_does_not_mean_private_tables(stranger: Connection) -> None:
    applied = stranger.subscribe("SELECT * FROM *")
    assert {table.table for table in applied.tables} <= {"town", "letter"}


def test_the_schema_names_no_private_thing(fortress: Fortress) -> None:
    for version in (9, 10):
        text = fortress.request("GET", f"/v1/database/fortress/schema?version={version}").text
        for name in ("vault", "Vault", "inside", "open_vault", "back_up", "workflow", "explode", "Bomb", "bomb"):
            assert name not in text
        assert "town" in text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/database/fortress/logs",
        "/v1/database/fortress/logs?follow=true",
        "/metrics",
        "/v1/databases",
        "/v1/database/fortress/describe",
    ],
)
def test_what_only_operators_are_told(fortress: Fortress, path: str) -> None:
    assert fortress.request("GET", path).status in (401, 403)
    assert fortress.request("GET", path, token=fortress.stranger()[1]).status == 403


def test_the_health_page_tells_no_more_than_health(fortress: Fortress) -> None:
    body = json.loads(fortress.request("GET", "/v1/health").text)
    health = body["databases"]["fortress"]
    assert set(health) == {"overdue_seconds", "write_lag_seconds", "delivery_lag_seconds", "problems"}


def letters_of(answer: Any) -> list[str]:
    return [row[3] for row in json.loads(answer.text)[0]["rows"]]


def test_a_visibility_filter_holds_in_every_way(fortress: Fortress) -> None:
    """L17: what the owner asked with the same words changes nothing for others."""
    ann, ann_token = fortress.stranger()
    ben, ben_token = fortress.stranger()
    for to, text in ((ann, "for ann"), (ben, "for ben")):
        assert fortress.call("write", {"__identity__": f"0x{to}"}, text).status == 200
    ways = [
        "SELECT * FROM letter",
        f"SELECT * FROM letter WHERE to = 0x{ben}",
        "SELECT * FROM letter WHERE to = :sender OR id > 0",
        "SELECT letter.* FROM letter JOIN town ON letter.town = town.id",
        "SELECT letter.* FROM town JOIN letter ON town.id = letter.town WHERE town.id = 1",
    ]
    assert {"for ann", "for ben"} <= set(letters_of(fortress.sql(ways[0], fortress.site.owner_token)))
    for way in ways:
        assert set(letters_of(fortress.sql(way, ben_token))) == {"for ben"}
        assert set(letters_of(fortress.sql(way, ann_token))) <= {"for ann"}
        assert letters_of(fortress.sql(way)) == []
    owner = Connection(fortress.url, database="fortress", query=f"?token={fortress.site.owner_token}")
    with owner, Connection(fortress.url, database="fortress", query=f"?token={ann_token}") as reader:
        for number, way in enumerate(ways):
            owner.subscribe(way, query_set_id=number)
            rows = reader.subscribe(way, query_set_id=number).tables[0].rows.data
            assert b"for ben" not in rows
        fortress.db.call("write", Identity.from_hex(ben), "for ben again")
        fortress.db.call("write", Identity.from_hex(ann), "for ann again")
        assert "for ben again" in str(owner.next())
        seen = str(reader.next())
        assert "for ann again" in seen
        assert "for ben again" not in seen


def test_a_join_tells_nothing_of_rows_that_one_may_not_see(fortress: Fortress, stranger: Connection) -> None:
    """The town is there only when a letter that one may see leads to it."""
    with fortress.db.transaction() as ctx:
        ctx.db[Letter].insert(Letter(to=Identity(b"x" * 32), text="hidden"))
    query = "SELECT town.* FROM town JOIN letter ON town.id = letter.town"
    assert json.loads(fortress.sql(query).text)[0]["rows"] == []
    assert stranger.subscribe(query).tables[0].rows.data == b""


def test_the_owner_reads_everything_and_changes_nothing(fortress: Fortress) -> None:
    token = fortress.site.owner_token
    assert TREASURE in fortress.sql("SELECT * FROM vault", token).text
    assert TREASURE in fortress.sql("SELECT text FROM vault LIMIT 1", token).text
    for change in ("DELETE FROM vault", "UPDATE vault SET text = ''", "DROP TABLE vault", "ATTACH 'x' AS y"):
        assert fortress.sql(change, token).status == 400
    assert TREASURE in fortress.sql("SELECT * FROM vault", token).text
