"""The client without a socket: frames of a server in, events and messages out."""

from __future__ import annotations

from typing import Any

import pytest

from gamedb.client.cache import Change
from gamedb.client.core import Core
from gamedb.client.events import Applied, Ended, Opened, Settled, State
from gamedb.client.remote import Remote
from gamedb.errors import CallFailed, ConnectionLost, QueryError, ReducerError, WireError
from gamedb.wire import messages as m
from tests.gamedb.client.client_game import (
    CONNECTION,
    DEFINITION,
    GREETING,
    IDENTITY,
    Hit,
    Player,
    Tile,
    feed,
    module,
    new_core,
    rows_of,
    sent,
    update,
)

ANN = Player(id=1, name="ann")
BOB = Player(id=2, name="bob")
HURT = ANN.replace(hp=50)


def rows(core: Core, table: str = "player") -> list[Any]:
    return [held.row for held in core.tables[table].rows.values()]


def subscribed(core: Core, *have: Any) -> Any:
    """A live query set with these rows."""
    query_set = core.subscribe(["SELECT * FROM player"])
    [message] = sent(core)
    assert isinstance(message, m.Subscribe)
    feed(core, m.subscribe_applied(message.request_id, message.query_set_id, rows_of(*have)))
    return query_set


def test_the_greeting_says_who_the_client_is() -> None:
    core = Core(Remote(DEFINITION, module))
    assert not core.ready
    assert feed(core, GREETING) == [Opened(IDENTITY, CONNECTION, "token-of-7")]
    assert core.ready


@pytest.mark.parametrize("encoded", [m.transaction_update([]), m.reducer_ok(0, 0, b"", [])])
def test_a_server_that_does_not_greet_is_an_error(encoded: bytes) -> None:
    with pytest.raises(WireError, match="not with a greeting"):
        feed(Core(Remote(DEFINITION, module)), encoded)
    with pytest.raises(WireError, match="a second time"):
        feed(new_core(), GREETING)


def test_subscribing_brings_the_rows_and_then_their_changes() -> None:
    core = new_core()
    query_set = core.subscribe(["SELECT * FROM player", "SELECT * FROM tile"])
    assert sent(core) == [
        m.Subscribe(request_id=0, query_set_id=0, queries=["SELECT * FROM player", "SELECT * FROM tile"])
    ]
    assert query_set.state is State.WAITING
    events = feed(core, m.subscribe_applied(0, 0, rows_of(ANN, Tile(x=1))))
    assert events == [Change("player", None, ANN), Change("tile", None, Tile(x=1)), Applied(query_set)]
    assert query_set.state is State.LIVE
    assert feed(core, m.transaction_update([update(0, [HURT], [ANN])])) == [Change("player", ANN, HURT)]
    assert rows(core) == [HURT]


def test_each_message_is_taken_in_as_a_whole_before_the_next() -> None:
    core = new_core()
    subscribed(core, ANN)
    frame = m.frame(
        [
            m.transaction_update([update(0, [HURT], [ANN]), update(0, [Tile(x=1)])]),
            m.transaction_update([update(0, [], [HURT])]),
        ]
    )
    seen = [(len(events), rows(core), rows(core, "tile")) for events in core.receive(frame)]
    assert seen == [(2, [HURT], [Tile(x=1)]), (1, [], [Tile(x=1)])]


def test_a_query_that_is_wrong_ends_its_set_alone() -> None:
    core = new_core()
    live = subscribed(core, ANN)
    wrong = core.subscribe(["SELECT"])
    [event] = feed(core, m.subscription_error(1, 1, "what?"))
    assert isinstance(event, Ended)
    assert event.query_set is wrong
    assert isinstance(event.error, QueryError)
    assert str(event.error) == "what?"
    assert (live.state, wrong.state) == (State.LIVE, State.ENDED)
    assert rows(core) == [ANN]
    assert core.unsubscribe(wrong) == []


def test_unsubscribing_drops_the_rows() -> None:
    core = new_core()
    query_set = subscribed(core, ANN, BOB)
    assert core.unsubscribe(query_set) == []
    assert sent(core) == [m.Unsubscribe(request_id=1, query_set_id=0, flags=m.UnsubscribeFlags.SEND_DROPPED_ROWS)]
    assert core.unsubscribe(query_set) == [], "twice is once"
    assert sent(core) == []
    events = feed(core, m.unsubscribe_applied(1, 0, rows_of(ANN, BOB)))
    assert events == [Change("player", ANN, None), Change("player", BOB, None), Ended(query_set)]
    assert rows(core) == []


def test_unsubscribing_before_the_answer() -> None:
    core = new_core()
    query_set = core.subscribe(["SELECT * FROM player"])
    core.unsubscribe(query_set)
    assert feed(core, m.subscribe_applied(0, 0, rows_of(ANN))) == [Change("player", None, ANN)]
    assert feed(core, m.unsubscribe_applied(1, 0, rows_of(ANN)))[-1] == Ended(query_set)


def test_unsubscribing_a_set_that_turns_out_to_be_wrong() -> None:
    core = new_core()
    query_set = core.subscribe(["SELECT"])
    core.unsubscribe(query_set)
    [ended] = feed(core, m.subscription_error(0, 0, "what?"))
    assert ended.query_set is query_set
    assert feed(core, m.subscription_error(1, 0, "not live")) == []


def test_rows_in_two_sets_are_there_until_both_end() -> None:
    core = new_core()
    first, second = subscribed(core, ANN), core.subscribe(["SELECT * FROM player WHERE hp > 10"])
    assert feed(core, m.subscribe_applied(1, 1, rows_of(ANN))) == [Applied(second)]
    core.unsubscribe(first)
    assert feed(core, m.unsubscribe_applied(2, 0, rows_of(ANN))) == [Ended(first)]
    core.unsubscribe(second)
    assert feed(core, m.unsubscribe_applied(3, 1, rows_of(ANN))) == [Change("player", ANN, None), Ended(second)]


# --- calls


def call(core: Core, name: str = "join", arguments: tuple[Any, ...] = (1, "ann")) -> int:
    function = core.remote.functions[name]
    return core.call(function, function.arguments.encode(arguments))


def test_a_call_is_settled_behind_its_changes() -> None:
    core = new_core()
    subscribed(core)
    request_id = call(core)
    [message] = sent(core)
    assert message == m.CallReducer(
        request_id=request_id, reducer="join", arguments=bytes.fromhex("010000000000000003000000616e6e")
    )
    events = feed(core, m.reducer_ok(request_id, 5, b"", [update(0, [ANN])]))
    assert events == [Change("player", None, ANN), Settled(request_id)]


def test_failed_calls() -> None:
    core = new_core()
    first, second = call(core), call(core)
    [refused] = feed(core, m.reducer_error(first, 5, "a player needs a name"))
    [failed] = feed(core, m.reducer_internal_error(second, 5, "no such reducer"))
    assert isinstance(refused.error, ReducerError)
    assert str(refused.error) == "a player needs a name"
    assert isinstance(failed.error, CallFailed)
    assert str(failed.error) == "no such reducer"
    assert feed(core, m.reducer_error(first, 5, "again")) == [], "it has its answer"


def test_procedures_and_queries() -> None:
    core = new_core()
    number = call(core, "count_letters", ("abc",))
    wrong = call(core, "count_letters", ("abc",))
    rows_wanted, wrong_query = core.query("SELECT * FROM player"), core.query("SELECT")
    assert [type(message).__name__ for message in sent(core)] == ["CallProcedure"] * 2 + ["OneOffQuery"] * 2
    assert feed(core, m.procedure_returned(number, 1, 2, (3).to_bytes(8, "little"))) == [Settled(number, 3)]
    [failed] = feed(core, m.procedure_error(wrong, "no"))
    assert isinstance(failed.error, CallFailed)
    assert feed(core, m.one_off_result(rows_wanted, rows_of(ANN, BOB))) == [Settled(rows_wanted, [ANN, BOB])]
    [failed] = feed(core, m.one_off_error(wrong_query, "what?"))
    assert isinstance(failed.error, QueryError)
    assert rows(core) == []


# --- connections that are lost


def test_a_loss_fails_what_has_no_answer_and_keeps_the_rows() -> None:
    core = new_core()
    subscribed(core, ANN)
    request_id = call(core)
    [settled] = core.lost()
    assert settled.request_id == request_id
    assert isinstance(settled.error, ConnectionLost)
    assert "reducer 'join'" in str(settled.error)
    assert rows(core) == [ANN]
    with pytest.raises(ConnectionLost, match="was not sent"):
        call(core)
    with pytest.raises(ConnectionLost, match="was not sent"):
        core.query("SELECT * FROM player")


def test_a_new_connection_tells_only_the_differences() -> None:
    core = new_core()
    first = subscribed(core, ANN, BOB)
    second = core.subscribe(["SELECT * FROM tile"])
    feed(core, m.subscribe_applied(1, 1, rows_of(Tile(x=1))))
    core.lost()
    sent(core)

    assert feed(core, GREETING) == []
    assert [message.queries for message in sent(core)] == [first.queries, second.queries]
    cid = Player(id=3)
    assert feed(core, m.subscribe_applied(2, 2, rows_of(HURT, cid))) == []
    assert rows(core) == [ANN, BOB], "as before, until all is known"
    assert feed(core, m.transaction_update([update(2, [cid.replace(hp=1)], [cid])])) == []
    events = feed(core, m.subscribe_applied(3, 3, rows_of(Tile(x=1))))
    assert events[0] == Opened(IDENTITY, CONNECTION, "token-of-7")
    assert sorted(events[1:], key=repr) == sorted(
        [Change("player", ANN, HURT), Change("player", BOB, None), Change("player", None, cid.replace(hp=1))], key=repr
    )
    assert rows(core) == [HURT, cid.replace(hp=1)]
    assert feed(core, m.transaction_update([update(2, [ANN], [HURT])])) == [Change("player", HURT, ANN)]


def test_nothing_changed_while_the_connection_was_away() -> None:
    core = new_core()
    subscribed(core, ANN)
    known = rows(core)[0]
    core.lost()
    feed(core, GREETING)
    assert feed(core, m.subscribe_applied(1, 1, rows_of(ANN))) == [Opened(IDENTITY, CONNECTION, "token-of-7")]
    assert rows(core)[0] is known


def test_a_query_that_is_refused_after_a_loss_takes_its_rows_along() -> None:
    core = new_core()
    query_set = subscribed(core, ANN)
    core.lost()
    feed(core, GREETING)
    opened, gone, ended = feed(core, m.subscription_error(1, 1, "private now"))
    assert isinstance(opened, Opened)
    assert gone == Change("player", ANN, None)
    assert ended.query_set is query_set


def test_events_and_answers_wait_until_all_is_known() -> None:
    core = new_core()
    subscribed(core, ANN)
    core.lost()
    feed(core, GREETING)
    request_id = call(core)
    assert feed(core, m.reducer_ok(request_id, 1, b"", [update(1, [Hit(player_id=1)])])) == []
    events = feed(core, m.subscribe_applied(1, 1, rows_of(ANN)))
    assert events[1:] == [Change("hit", None, Hit(player_id=1)), Settled(request_id)]


def test_a_second_loss_before_all_is_known() -> None:
    core = new_core()
    query_set = subscribed(core, ANN)
    core.lost()
    feed(core, GREETING)
    answered, unanswered = call(core), call(core)
    feed(core, m.reducer_ok(answered, 1, b"", []))
    events: list[Any] = core.lost()
    assert [(event.request_id, event.error is None) for event in events] == [(answered, True), (unanswered, False)]
    assert rows(core) == [ANN]
    assert query_set.state is State.LIVE
    feed(core, GREETING)
    [message] = sent(core)
    assert isinstance(message, m.Subscribe)
    assert len(feed(core, m.subscribe_applied(message.request_id, message.query_set_id, rows_of(ANN, BOB)))) == 2


def test_a_set_that_was_answered_before_a_second_loss_waits_on() -> None:
    core = new_core()
    subscribed(core, ANN)
    core.lost()
    feed(core, GREETING)
    query_set = core.subscribe(["SELECT * FROM tile"])
    feed(core, m.subscribe_applied(2, 2, rows_of(Tile(x=1))))
    assert core.lost() == []
    assert (query_set.state, rows(core, "tile")) == (State.WAITING, [])
    sent(core)
    feed(core, GREETING)
    feed(core, m.subscribe_applied(3, 3, rows_of(ANN)))
    assert feed(core, m.subscribe_applied(4, 4, rows_of(Tile(x=1))))[-1] == Applied(query_set)


def test_query_sets_begin_and_end_without_a_connection() -> None:
    core = new_core()
    first = subscribed(core, ANN)
    core.lost()
    second = core.subscribe(["SELECT * FROM tile"])
    assert core.unsubscribe(first) == [Ended(first)]
    assert sent(core) == []
    feed(core, GREETING)
    [message] = sent(core)
    assert isinstance(message, m.Subscribe)
    assert message.queries == ["SELECT * FROM tile"]
    events = feed(core, m.subscribe_applied(message.request_id, message.query_set_id, rows_of(Tile(x=1))))
    assert events[1:] == [Change("player", ANN, None), Change("tile", None, Tile(x=1)), Applied(second)]


def test_a_set_that_was_ending_is_over_with_the_connection() -> None:
    core = new_core()
    query_set = subscribed(core, ANN)
    core.unsubscribe(query_set)
    assert core.lost() == [Ended(query_set)]
    assert feed(core, GREETING) == [Opened(IDENTITY, CONNECTION, "token-of-7"), Change("player", ANN, None)]


def test_without_the_module_rows_are_made_classes() -> None:
    core = new_core(with_module=False)
    core.subscribe(["SELECT * FROM player"])
    feed(core, m.subscribe_applied(0, 0, rows_of(ANN)))
    [row] = rows(core)
    assert repr(row) == "Player(id=1, name='ann', hp=100)"
    assert type(row) is not Player
    assert row.replace(hp=5).hp == 5
