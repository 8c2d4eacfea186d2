"""Limits of rates, with a clock that is set by hand: by address, and by connection."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from gamedb import Database, Identity, SchemaError
from gamedb.server.addresses import Proxies, counted_as
from gamedb.server.admission import Admission, TooMany
from gamedb.server.auth import Authenticator
from gamedb.server.hosted import Hosted
from gamedb.server.keys import Keys
from gamedb.server.limits import Limits, limits_from
from gamedb.server.rates import Budget, Budgets
from gamedb.server.server import Server
from gamedb.server.websocket import WebSocket
from gamedb.wire import messages
from tests.gamedb.server.arena import arena
from tests.gamedb.server.with_sockets import UPGRADE, Connection, served, until
from tests.gamedb.server.without_sockets import World

ANN, BOB = "203.0.113.7", "203.0.113.8"


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- budgets


def test_a_budget_gives_what_is_there_at_once_and_then_its_rate() -> None:
    budget = Budget(2.0, now=0.0)
    given = 0
    while not budget.wait(0.0):
        budget.use()
        given += 1
    assert given == 20  # ten seconds' worth
    assert budget.wait(0.0) == pytest.approx(0.5)
    assert budget.wait(0.5) == 0.0
    budget.use()
    assert budget.wait(0.5) > 0.0
    assert budget.wait(1e6, 20.0) == 0.0
    assert budget.wait(1e6, 20.5) > 0.0  # never more than its burst


def test_a_slow_rate_gives_at_least_one() -> None:
    budget = Budget(0.01, now=0.0)
    assert budget.wait(0.0) == 0.0
    budget.use()
    assert budget.wait(0.0) == pytest.approx(100.0)


def test_an_endless_rate_never_ends() -> None:
    budgets = Budgets(math.inf)
    for _ in range(100):
        budget = budgets.of("ann", 0.0)
        assert budget.wait(0.0) == 0.0
        budget.use()


def test_what_is_owed_has_to_come_back_first() -> None:
    budget = Budget(0.25, now=0.0, burst=5.0)
    budget.use(6.0)
    assert budget.wait(0.0, 0.0) == pytest.approx(4.0)
    assert budget.wait(4.0, 0.0) == 0.0


def test_budgets_that_are_full_again_are_forgotten() -> None:
    budgets = Budgets(1.0)
    for number in range(1000):
        budgets.of(str(number), 0.0).use()
    assert len(budgets) == 1000
    for number in range(1000):
        budgets.of(f"later {number}", 60.0).use()
    assert len(budgets) == 1000
    assert budgets.of("later 7", 60.0).wait(60.0, 10.0) > 0.0


# --- addresses


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (ANN, [], ANN),
        (ANN, [BOB], ANN),  # who is no proxy of ours says what it likes
        ("10.0.0.1", [BOB], BOB),
        ("10.0.0.1", [f"{ANN}, {BOB}"], BOB),  # what a client sends itself stands first
        ("10.0.0.1", [ANN, BOB], BOB),
        ("10.0.0.1", [f"{ANN}, 10.2.3.4"], ANN),  # through two of ours
        ("10.0.0.1", [f"{BOB}, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("::ffff:10.0.0.1", [BOB], BOB),
        ("fd00::1", [BOB], BOB),
        ("", [BOB], ""),
    ],
)
def test_only_our_proxies_say_where_clients_are(peer: str, forwarded: list[str], client: str) -> None:
    assert Proxies(["10.0.0.0/8", "fd00::1"]).client(peer, forwarded) == client


def test_a_proxy_is_an_address_or_a_network() -> None:
    with pytest.raises(SchemaError, match=r"proxy 'front\.local': use an address or a network"):
        Proxies(["front.local"])


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (ANN, ANN),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", ANN),
        ("127.0.0.1", None),
        ("::1", None),
        ("", None),
    ],
)
def test_addresses_count_as_one_customer_and_this_machine_as_nobody(address: str, name: str | None) -> None:
    assert counted_as(address) == name


# --- admission


def test_connections_of_an_address_are_counted_until_they_end(clock: Clock) -> None:
    admission = Admission(Limits(connections_per_address_max=2), seconds=clock)
    leave = admission.enter(ANN)
    admission.enter(ANN)
    with pytest.raises(
        TooMany, match=r"there are 2 connections from 203\.0\.113\.7 already.*connections_per_address_max"
    ):
        admission.enter(ANN)
    admission.enter(BOB)
    leave()
    admission.enter(ANN)
    assert admission.refused == {"connections_per_address_max": 1}


def test_new_connections_of_an_address_have_a_rate(clock: Clock) -> None:
    admission = Admission(Limits(connects_per_second_max=1), seconds=clock)
    for _ in range(10):
        admission.enter(ANN)()
    with pytest.raises(TooMany, match=r"more than 1 a second of new connections \(connects_per_second_max\)") as caught:
        admission.enter(ANN)
    assert caught.value.retry_seconds == 1
    admission.enter(BOB)
    clock.now += 1
    admission.enter(ANN)
    assert admission.refused == {"connects_per_second_max": 1}


def test_new_identities_of_an_address_have_a_rate(clock: Clock) -> None:
    admission = Admission(Limits(identities_per_second_max=0.1), seconds=clock)
    admission.new_identity(ANN)
    with pytest.raises(TooMany, match="new identities; send a token") as caught:
        admission.new_identity(ANN)
    assert caught.value.retry_seconds == 10
    admission.new_identity(BOB)
    clock.now += 10
    admission.new_identity(ANN)


def test_queries_of_an_address_have_a_share_of_the_time(clock: Clock) -> None:
    admission = Admission(Limits(query_share_max=0.5, query_seconds_burst=2.0), seconds=clock)
    admission.query(ANN)(3.0)
    with pytest.raises(TooMany, match=r"ask again in 2\.0 s \(query_share_max\)"):
        admission.query(ANN)
    admission.query(BOB)
    clock.now += 2
    admission.query(ANN)


def test_this_machine_is_not_limited_by_address(clock: Clock) -> None:
    strict = Limits(connections_per_address_max=1, connects_per_second_max=0.01, identities_per_second_max=0.01)
    admission = Admission(strict, seconds=clock)
    for _ in range(100):
        admission.enter("127.0.0.1")
        admission.new_identity("::1")
        admission.query("127.0.0.1")(100.0)
    assert not admission.refused


# --- sessions


@pytest.fixture
def world() -> Iterator[World]:
    module, _ = arena()
    with Database(module) as db:
        yield World(db)


def test_a_connection_that_calls_too_often_has_to_wait(world: World, clock: Clock) -> None:
    world.turns.seconds = clock
    ann = world.client(limits=Limits(calls_per_second_max=0.2))
    assert isinstance(ann.call("nothing"), messages.ReducerOk | messages.ReducerOkEmpty)
    assert isinstance(ann.call("nothing"), messages.ReducerOk | messages.ReducerOkEmpty)
    refused = ann.call("nothing")
    assert isinstance(refused, messages.InternalError)
    assert "calls_per_second_max" in refused.error
    assert "call again in 5.0 s" in refused.error
    assert world.hub.counters.refused == {"calls_per_second_max": 1}
    clock.now += 5
    assert isinstance(ann.call("nothing"), messages.ReducerOk | messages.ReducerOkEmpty)
    assert isinstance(world.client().call("nothing"), messages.ReducerOk | messages.ReducerOkEmpty)


def test_queries_of_a_connection_have_a_share_of_the_time(world: World) -> None:
    ticks = itertools.count(step=0.25)
    world.turns.seconds = ticks.__next__
    ann = world.client(limits=Limits(query_share_max=0.001, query_seconds_burst=0.1, query_set_seconds_max=math.inf))
    ann.subscribe(1, "SELECT * FROM player")
    for sent in (
        ann.subscribing(2, "SELECT * FROM player"),
        messages.OneOffQuery(request_id=9, query="SELECT * FROM player"),
    ):
        ann.send(sent)
        [answer] = ann.read()
        error: Any = getattr(answer, "error", None) or getattr(answer, "result", None)
        assert "the queries of this connection take more than 0% of the server's time" in str(error)
    assert world.hub.counters.refused == {"query_share_max": 2}


def test_more_connections_of_an_address_are_no_way_round_the_limit_of_queries(world: World, clock: Clock) -> None:
    ticks = itertools.count(step=0.25)
    world.turns.seconds = ticks.__next__
    limits = Limits(query_seconds_burst=1.0, query_set_seconds_max=math.inf)
    admission = Admission(limits, seconds=clock)

    def comes_and_asks(address: str) -> Any:
        client = world.client(limits=limits, follow=partial(admission.follow, address))
        client.send(client.subscribing(1, "SELECT * FROM player"))
        [answer] = client.read()
        return getattr(answer, "error", None)

    answers = [comes_and_asks(ANN) for _ in range(20)]
    assert answers[0] is None
    refused = [answer for answer in answers if answer is not None]
    assert "queries from 203.0.113.7 have taken too much time" in refused[0]
    assert "query_share_per_address_max" in refused[0]
    assert admission.refused == {"query_share_per_address_max": len(refused)}
    assert comes_and_asks(BOB) is None
    clock.now += 20
    assert comes_and_asks(ANN) is None


def test_rows_at_the_end_of_a_query_set_are_paid_for(world: World) -> None:
    ann = world.client(limits=Limits(query_seconds_burst=0.1, query_share_max=0.001, query_set_seconds_max=math.inf))
    ann.subscribe(1, "SELECT * FROM player")
    world.turns.seconds = itertools.count(step=0.25).__next__
    ann.unsubscribe(1)
    ann.send(ann.subscribing(1, "SELECT * FROM player"))
    [answer] = ann.read()
    assert isinstance(answer, messages.SubscriptionError)
    assert "ask again in" in answer.error


def test_a_query_of_many_conditions_is_refused_before_it_costs_much(world: World) -> None:
    ann = world.client(limits=Limits(query_conditions_max=10))
    ann.subscribe(1, "SELECT * FROM player WHERE " + " OR ".join(["id = 1"] * 10))
    ann.send(ann.subscribing(2, "SELECT * FROM player WHERE " + " OR ".join(["id = 1"] * 11)))
    [answer] = ann.read()
    assert isinstance(answer, messages.SubscriptionError)
    assert "more than 10 comparisons" in answer.error


# --- over sockets


LOCAL_PROXY = ("127.0.0.0/8",)


def via(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


def test_websockets_of_one_address_are_limited_behind_a_proxy_that_we_were_told_of() -> None:
    module, _ = arena()
    limits = Limits(connections_per_address_max=2)
    with Database(module) as db, served(db, limits=limits, proxies=LOCAL_PROXY) as serving:
        with (
            Connection(serving, additional_headers=via(ANN)) as first,
            Connection(serving, additional_headers=via(f"{BOB}, {ANN}")),
            Connection(serving, additional_headers=via(BOB)),
        ):
            with pytest.raises(InvalidStatus) as refused:
                Connection(serving, additional_headers=via(ANN))
            assert refused.value.response.status_code == 429
            assert b"connections_per_address_max" in refused.value.response.body
            first.close()
            until(lambda: len(serving.server.websockets) == 2, "one is gone")
            with Connection(serving, additional_headers=via(ANN)) as again:
                assert isinstance(again.call("nothing"), messages.ReducerOk)
            addresses = {session.address for session in serving.server.sessions()}
            assert {ANN, BOB} <= addresses
        until(lambda: len(serving.server.websockets) == 0, "all are gone")
        assert not serving.server.admission._open


def test_a_websocket_that_is_gone_before_it_is_looked_at_is_not_counted() -> None:
    module, _ = arena()
    with Database(module) as db:
        hosted = Hosted(db)
        server = Server([hosted], Authenticator(Keys(None)))

        async def come_and_go() -> None:
            state = SimpleNamespace(connections=set(), tasks=set())
            websocket = WebSocket(server, config=None, server_state=state, app_state=None)
            transport = Mock(spec=asyncio.Transport)
            transport.get_extra_info.side_effect = lambda name: (ANN, 1234) if name == "peername" else None
            websocket.connection_made(transport)
            websocket.data_received(UPGRADE.format(name="arena", query="", headers="").encode())
            websocket.connection_lost(None)
            await asyncio.gather(*state.tasks)

        asyncio.run(come_and_go())
        assert not server.admission._open
        assert not server.websockets
        hosted.logs.close()


def test_a_proxy_that_we_were_not_told_of_cannot_say_where_clients_are() -> None:
    module, _ = arena()
    with (
        Database(module) as db,
        served(db, limits=Limits(connections_per_address_max=1)) as serving,
        Connection(serving, additional_headers=via(ANN)) as first,
        Connection(serving, additional_headers=via(ANN)) as second,
    ):
        assert isinstance(first.call("nothing"), messages.ReducerOk)
        assert isinstance(second.call("nothing"), messages.ReducerOk)
        assert all(session.address.startswith("127.0.0.1:") for session in serving.server.sessions())


def test_who_is_somebody_new_each_time_is_told_to_show_a_token() -> None:
    module, _ = arena()
    limits = Limits(identities_per_second_max=0.0001)
    with Database(module) as db, served(db, limits=limits, proxies=LOCAL_PROXY) as serving:
        with httpx.Client(base_url=serving.url) as http:

            def call(**headers: str) -> httpx.Response:
                return http.post("/v1/database/arena/call/nothing", json=[], headers=headers)

            token = http.post("/v1/identity", headers=via(ANN)).json()["token"]
            about = http.get("/v1/database/arena", headers=via(ANN))
            for again in (http.post("/v1/identity", headers=via(ANN)), call(**via(ANN)), about):
                assert again.status_code == 429
                assert "identities_per_second_max" in again.text
                assert int(again.headers["retry-after"]) > 0
            assert call(**via(ANN), Authorization=f"Bearer {token}").status_code == 200
            assert http.post("/v1/identity", headers=via(BOB)).status_code == 200
        assert serving.server.admission.refused == {"identities_per_second_max": 3}


def test_queries_by_http_have_the_share_of_their_address_but_for_operators() -> None:
    module, _ = arena()
    limits = Limits(query_share_max=1e-9, query_seconds_burst=1e-9)
    with (
        Database(module) as db,
        served(db, limits=limits, proxies=LOCAL_PROXY) as serving,
        httpx.Client(base_url=serving.url) as http,
    ):

        def ask(**headers: str) -> httpx.Response:
            return http.post("/v1/database/arena/sql", content="SELECT * FROM player", headers=headers)

        assert ask(**via(ANN)).status_code == 200
        refused = ask(**via(ANN))
        assert (refused.status_code, "query_share_max" in refused.text) == (429, True)
        assert ask(**via(BOB)).status_code == 200
        operator = http.post("/v1/identity", headers=via(ANN)).json()
        db.operators.add(Identity.from_hex(operator["identity"]))
        known = {**via(ANN), "Authorization": f"Bearer {operator['token']}"}
        assert ask(**known).status_code == 200
        metrics = http.get("/metrics", headers=known).text
    assert 'gamedb_refused_total{limit="query_share_max"} 1.0' in metrics
    assert 'gamedb_refused_total{limit="connects_per_second_max"} 0.0' in metrics


def test_queries_by_http_that_come_at_once_are_looked_at_one_by_one() -> None:
    module, _ = arena()
    limits = Limits(query_share_max=1e-9, query_seconds_burst=1e-9)
    with Database(module) as db, served(db, limits=limits, proxies=LOCAL_PROXY) as serving:

        async def ask(http: httpx.AsyncClient) -> int:
            answer = await http.post("/v1/database/arena/sql", content="SELECT * FROM player", headers=via(ANN))
            return answer.status_code

        async def ask_at_once() -> list[int]:
            async with httpx.AsyncClient(base_url=serving.url) as http:
                with db.lock:  # so that the first waits until all are here
                    asking = [asyncio.create_task(ask(http)) for _ in range(8)]
                    await asyncio.sleep(0.2)
                return sorted(await asyncio.gather(*asking))

        assert asyncio.run(ask_at_once()) == [200, *[429] * 7]


# --- settings


def test_limits_are_set_by_name() -> None:
    limits = limits_from(["connections_max=5", "calls_per_second_max = 2.5"])
    assert limits == Limits(connections_max=5, calls_per_second_max=2.5)
    assert limits_from(["calls_per_second_max=inf"]) == Limits()


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("conections_max=5", "no limit is called 'conections_max'; did you mean connections_max?"),
        ("zzz=5", "no limit is called 'zzz'; there are: connections_max, "),
        ("connections_max=many", "limit connections_max=many: write a whole number above 0, such as 20000"),
        ("connections_max", "limit connections_max=: write a whole number"),
        ("connections_max=-1", "limit connections_max=-1: write a whole number above 0"),
        ("connections_max=2.5", "write a whole number"),
        ("query_share_max=nan", "write a number above 0, such as 0.25"),
    ],
)
def test_a_wrong_setting_says_what_is_right(setting: str, text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        limits_from([setting])
    assert text in str(caught.value)
