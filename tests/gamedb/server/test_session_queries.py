"""Subscriptions over a session: what is applied, what follows, and how query sets stand beside each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gamedb import Database, ManualClock, ViewContext
from gamedb.server import snapshot
from gamedb.server.limits import Limits
from gamedb.system import ClientConnection
from gamedb.wire import messages
from tests.gamedb.server.arena import Hit, Level, Mark, Player, Visit, arena
from tests.gamedb.server.without_sockets import Client, World


@pytest.fixture
def world(clock: ManualClock) -> Iterator[World]:
    module, _ = arena()
    with Database(module, clock=clock) as db:
        world = World(db)
        yield world
        world.hub.close()


def error_of(client: Client, *sent: messages.ClientMessage) -> messages.SubscriptionError:
    client.send(*sent)
    [error] = client.read()
    assert isinstance(error, messages.SubscriptionError)
    return error


def test_a_set_of_queries_is_applied_with_the_rows_of_all(world: World) -> None:
    world.db.call("spawn", 1, 7)
    world.db.call("mark", 7, "x")
    ann = world.client()
    applied = ann.subscribe(3, "SELECT * FROM player", "SELECT * FROM mark WHERE zone = 7")
    assert (applied.request_id, applied.query_set_id) == (1, 3)
    assert sorted(table.table for table in applied.tables) == ["mark", "player"]
    assert ann.rows("player") == [Player(id=1, zone=7)]
    assert ann.rows("mark") == [Mark(zone=7, text="x")]


def test_everything_that_may_be_read_can_be_asked_for_at_once(world: World) -> None:
    world.db.call("spawn", 1, 7)
    ann = world.client()
    applied = ann.subscribe(0, "SELECT * FROM *")
    assert {table.table for table in applied.tables} == {"player", "level", "mark"}


def test_equal_queries_of_a_set_count_once_and_those_of_two_sets_twice(world: World) -> None:
    """L13: each set alone is a bag of rows."""
    world.db.call("spawn", 1, 7)
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM player", " SELECT * FROM player ", "select * from player")
    assert ann.cache.count("player") == 1
    ann.subscribe(2, "SELECT * FROM player")
    assert ann.cache.count("player") == 2
    world.db.call("spawn", 2, 7)
    world.turn()
    ann.read()
    assert ann.cache.count("player") == 4
    ann.unsubscribe(1)
    assert ann.cache.count("player") == 2
    assert ann.rows("player") == [Player(id=1, zone=7), Player(id=2, zone=7)]
    ann.unsubscribe(2)
    assert ann.rows("player") == []
    assert ann.cache.problems == []


def test_a_row_that_moves_between_overlapping_sets_stays_right(world: World) -> None:
    """L11, L13: one commit, a delete in the set it leaves, an insert in the one it enters, both in that it stays in."""
    ann = world.client()
    world.db.call("spawn", 1, 7)
    ann.subscribe(1, "SELECT * FROM player WHERE zone = 7")
    ann.subscribe(2, "SELECT * FROM player WHERE zone = 8")
    ann.subscribe(3, "SELECT * FROM player")
    world.db.call("move", 1, 8)
    world.turn()
    [update] = ann.read()
    assert isinstance(update, messages.TransactionUpdate)
    assert [query_set.query_set_id for query_set in update.query_sets] == [1, 2, 3]
    assert ann.rows("player") == [Player(id=1, zone=8)]
    assert ann.cache.count("player") == 2
    world.db.call("move", 1, 9)
    world.turn()
    ann.read()
    assert ann.cache.count("player") == 1
    assert ann.cache.problems == []


def test_one_bad_query_fails_its_whole_set_and_leaves_the_others(world: World) -> None:
    """L18."""
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM player")
    error = error_of(ann, ann.subscribing(2, "SELECT * FROM mark", "SELECT * FROM nowhere"))
    assert (error.request_id, error.query_set_id) == (2, 2)
    assert "no such table: `nowhere`" in error.error
    assert error.error.endswith("executing: `SELECT * FROM nowhere`")
    world.db.call("spawn", 1, 7)
    world.db.call("mark", 1, "x")
    world.turn()
    assert ann.rows("player") == [Player(id=1, zone=7)]
    assert ann.rows("mark") == []
    assert world.hub.live_queries == 1
    ann.subscribe(2, "SELECT * FROM mark")


def test_private_tables_are_like_unknown_ones(world: World) -> None:
    """L28."""
    ann = world.client()
    texts = []
    for table in ("secret", "gamedb_client", "nowhere_"):
        error = error_of(ann, ann.subscribing(1, f"SELECT * FROM {table}"))
        texts.append(error.error.replace(table, "T"))
        ann.send(messages.OneOffQuery(request_id=9, query=f"SELECT * FROM {table}"))
        [result] = ann.read()
        assert isinstance(result, messages.OneOffQueryResult)
        assert isinstance(result.result, messages.QueryFailed)
    assert len(set(texts)) == 1


def test_a_live_query_set_id_used_again_closes_the_connection(world: World) -> None:
    ann, bob = world.client(), world.client()
    ann.subscribe(1, "SELECT * FROM player")
    ann.send(ann.subscribing(1, "SELECT * FROM mark"))
    assert ann.channel.closed is not None
    assert ann.channel.closed[0] == 1011
    assert "query set 1" in ann.channel.closed[1]
    assert bob.channel.closed is None


def test_unsubscribing_gives_the_rows_that_are_dropped_or_none(world: World) -> None:
    world.db.call("spawn", 1, 7)
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM player")
    ann.subscribe(2, "SELECT * FROM player")
    assert ann.unsubscribe(1, drop=False).dropped is None
    dropped = ann.unsubscribe(2).dropped
    assert dropped is not None
    assert [table.table for table in dropped.tables] == ["player"]
    world.db.call("spawn", 2, 7)
    world.turn()
    assert ann.read() == []


def test_unsubscribing_in_the_message_of_the_subscription_works(world: World) -> None:
    world.db.call("spawn", 1, 7)
    ann = world.client()
    ann.send(ann.subscribing(1, "SELECT * FROM player"), ann.unsubscribing(1))
    applied, ended = ann.read()
    assert isinstance(applied, messages.SubscribeApplied)
    assert isinstance(ended, messages.UnsubscribeApplied)
    assert ann.rows("player") == []


def test_unsubscribing_what_is_not_live_or_has_failed_is_answered_with_an_error(world: World) -> None:
    ann = world.client()
    error = error_of(ann, ann.unsubscribing(9))
    assert (error.request_id, error.query_set_id) == (1, 9)
    ann.send(ann.subscribing(2, "SELECT * FROM nowhere"), ann.unsubscribing(2))
    failed, again = ann.read()
    assert isinstance(failed, messages.SubscriptionError)
    assert isinstance(again, messages.SubscriptionError)
    assert again.request_id == 3
    assert ann.channel.closed is None


def test_who_subscribes_disturbs_nobody_and_gets_a_snapshot_of_their_own(world: World) -> None:
    """L20."""
    ann, bob = world.client(), world.client()
    ann.subscribe(1, "SELECT * FROM player")
    world.db.call("spawn", 1, 7)
    world.turn()
    ann.read()
    bob.subscribe(1, "SELECT * FROM player")
    assert ann.read() == []
    assert bob.rows("player") == [Player(id=1, zone=7)]


def test_a_reducer_that_fails_announces_nothing_and_a_commit_is_one_message(world: World) -> None:
    """L15."""
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM player")
    ann.subscribe(2, "SELECT * FROM mark")
    with world.db.transaction() as tx:
        tx.db[Player].insert(Player(id=1))
        tx.db[Player].insert(Player(id=2))
        tx.db[Mark].insert(Mark(zone=1, text="x"))
    with pytest.raises(RuntimeError):
        world.db.call("crash")
    world.turn()
    [update] = ann.read()
    assert isinstance(update, messages.TransactionUpdate)
    assert [query_set.query_set_id for query_set in update.query_sets] == [1, 2]


def test_what_changes_nothing_is_not_told(world: World) -> None:
    """L19: equal values, or a row that came and went within the transaction."""
    world.db.call("spawn", 1, 7)
    world.db.call("mark", 7, "x")
    ann = world.client()
    ann.subscribe(1, "SELECT * FROM player", "SELECT * FROM mark")
    world.db.call("move", 1, 7)
    with world.db.transaction() as tx:
        tx.db[Player].insert(Player(id=2))
        tx.db[Player].delete(2)
        tx.db[Mark].delete(Mark(zone=7, text="x"))
        tx.db[Mark].insert(Mark(zone=7, text="x"))
    world.turn()
    assert ann.read() == []
    with world.db.transaction() as tx:
        tx.db[Player].delete(1)
        tx.db[Player].insert(Player(id=1, zone=9))
    world.turn()
    [update] = ann.read()
    assert isinstance(update, messages.TransactionUpdate)
    [rows] = update.query_sets[0].tables[0].rows
    assert isinstance(rows, messages.PersistentRows)
    assert len(ann.cache.decode("player", rows.inserts)) == len(ann.cache.decode("player", rows.deletes)) == 1


def test_events_are_told_to_each_set_and_never_applied(world: World) -> None:
    ann = world.client()
    applied = ann.subscribe(1, "SELECT * FROM hit")
    assert ann.cache.decode("hit", applied.tables[0].rows) == []
    ann.subscribe(2, "SELECT * FROM hit WHERE amount > 5")
    ann.call("hit", 1, 3)
    ann.call("hit", 1, 9)
    assert ann.cache.events == [Hit(player_id=1, amount=3), Hit(player_id=1, amount=9), Hit(player_id=1, amount=9)]
    assert ann.rows("hit") == []
    ended = ann.unsubscribe(1)
    assert ended.dropped is not None
    assert ann.cache.problems == []


def test_a_semijoin_follows_both_of_its_tables(world: World) -> None:
    """L11."""
    world.db.call("spawn", 1, 7)
    world.db.call("spawn", 2, 7)
    ann = world.client()
    ann.subscribe(1, 'SELECT "player".* FROM "level" JOIN "player" ON "level"."player_id" = "player"."id"')
    assert ann.rows("player") == []
    with world.db.transaction() as tx:
        tx.db[Level].insert(Level(player_id=2, level=1))
    world.turn()
    assert ann.rows("player") == [Player(id=2, zone=7)]
    with world.db.transaction() as tx:
        tx.db[Level].delete(2)
    world.turn()
    assert ann.rows("player") == []
    assert ann.cache.problems == []


def test_a_view_is_followed_and_one_that_fails_ends_its_set_alone(world: World) -> None:
    """L5, L18: the commit stands, the rows are taken back, other sets go on."""
    ann, bob = world.client(), world.client()
    world.db.call("spawn", 1, 7)
    ann.subscribe(1, "SELECT * FROM strong", "SELECT * FROM mark")
    ann.subscribe(2, "SELECT * FROM player")
    assert ann.rows("strong") == [Player(id=1, zone=7)]
    outcome = bob.call("note", 1, "break the view")
    assert isinstance(outcome, messages.ReducerOk)
    world.turn()
    found = ann.read()
    [error] = [message for message in found if isinstance(message, messages.SubscriptionError)]
    assert error.query_set_id == 1
    assert error.request_id == 1
    assert "hunter2" not in error.error
    assert ann.rows("strong") == []
    assert ann.rows("player") == [Player(id=1, zone=7, note="break the view")]
    assert ann.cache.problems == []
    world.db.call("mark", 1, "x")
    world.db.call("note", 1, "mended")
    world.turn()
    assert ann.rows("mark") == []
    assert ann.rows("player") == [Player(id=1, zone=7, note="mended")]
    ann.subscribe(1, "SELECT * FROM strong")
    assert ann.rows("strong") == [Player(id=1, zone=7, note="mended")]


def test_two_views_of_a_set_that_fail_at_once_end_that_set_alone(clock: ManualClock) -> None:
    """L18."""
    module, _ = arena()

    @module.view(public=True)
    def strongest(ctx: ViewContext) -> list[Player]:
        if any(player.note == "break the view" for player in ctx.db[Player]):
            raise SystemExit(3)
        return list(ctx.db[Player])

    with Database(module, clock=clock) as db:
        world = World(db)
        ann, bob = world.client(), world.client()
        db.call("spawn", 1, 7)
        ann.subscribe(1, "SELECT * FROM strong", "SELECT * FROM strongest")
        ann.subscribe(2, "SELECT * FROM player")
        bob.subscribe(1, "SELECT * FROM player")
        assert isinstance(bob.call("note", 1, "break the view"), messages.ReducerOk)
        world.turn()
        errors = [message for message in ann.read() if isinstance(message, messages.SubscriptionError)]
        assert [error.query_set_id for error in errors] == [1]
        assert (ann.rows("strong"), ann.rows("strongest")) == ([], [])
        assert ann.rows("player") == bob.rows("player") == [Player(id=1, zone=7, note="break the view")]
        assert ann.channel.closed is bob.channel.closed is None
        world.hub.close()


def test_a_one_off_query_is_answered_once(world: World) -> None:
    world.db.call("spawn", 1, 7)
    ann = world.client()
    ann.send(messages.OneOffQuery(request_id=4, query="SELECT * FROM player WHERE zone = 7"))
    [result] = ann.read()
    assert isinstance(result, messages.OneOffQueryResult)
    assert isinstance(result.result, messages.QueryRows)
    [table] = result.result.tables
    assert [row for row, _ in ann.cache.decode("player", table.rows)] == [Player(id=1, zone=7)]
    ann.send(messages.OneOffQuery(request_id=5, query="SELECT"))
    [result] = ann.read()
    assert isinstance(result, messages.OneOffQueryResult)
    assert isinstance(result.result, messages.QueryFailed)
    assert world.hub.live_queries == 0


# --- large answers


def many_players(world: World, count: int) -> None:
    with world.db.transaction() as tx:
        for number in range(count):
            tx.db[Player].insert(Player(id=number))


def test_rows_and_registration_belong_to_the_same_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """L14: what commits while a large answer is being made follows it, and is not in it."""
    monkeypatch.setattr(snapshot, "SHARE_ROWS", 10)
    world.one_share_a_pass()
    many_players(world, 95)
    ann, bob = world.client(), world.client()
    message = ann.subscribing(1, "SELECT * FROM player")
    ann.session.receive(messages.encode_client(message))
    world.queue.popleft()()
    assert ann.channel.frames == []
    world.db.call("spawn", 1000, 1)
    world.db.call("kill", 5)
    bob.subscribe(1, "SELECT * FROM player")
    world.db.call("spawn", 1001, 1)
    world.turn()
    applied, *updates = ann.read()
    assert isinstance(applied, messages.SubscribeApplied)
    assert len(ann.cache.decode("player", applied.tables[0].rows)) == 95
    assert len(updates) == 3
    bob.read()
    expected = sorted(world.db.read(Player), key=lambda player: str(player.id))
    assert ann.rows("player") == bob.rows("player") == expected
    assert ann.cache.problems == bob.cache.problems == []


def test_a_large_answer_is_made_in_small_shares(world: World) -> None:
    """L59: between two of them, whatever else is due has its turn."""
    many_players(world, 10_000)
    ann, bob = world.client(), world.client()
    ann.session.receive(messages.encode_client(ann.subscribing(1, "SELECT * FROM player")))
    shares = 0
    encoded: list[int] = []
    done = 0
    world.one_share_a_pass()
    while not ann.channel.frames:
        world.queue.popleft()()
        snapshots = list(world.hub._snapshots._current.values())
        if snapshots:
            encoded.append(snapshots[0]._done - done)
            done = snapshots[0]._done
        shares += 1
        if shares == 3:
            bob.session.receive(messages.encode_client(bob.calling("spawn", 10_000, 1)))
    assert shares >= 10
    assert max(encoded) <= snapshot.SHARE_ROWS
    assert bob.read() != []
    world.turn()
    ann.read()
    assert ann.cache.count("player") == 10_001


def test_the_bytes_of_a_large_answer_are_made_once_for_all_who_ask(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SHARE_ROWS", 200)
    many_players(world, 1_000)
    clients = [world.client() for _ in range(5)]
    for client in clients:
        client.session.receive(messages.encode_client(client.subscribing(1, "SELECT * FROM player")))
    world.turn()
    row_lists = set()
    for client in clients:
        [applied] = client.read()
        assert isinstance(applied, messages.SubscribeApplied)
        row_lists.add(applied.tables[0].rows.data)
    assert len(row_lists) == 1
    assert len(world.hub._snapshots) == 1
    world.db.call("kill", 1)
    assert len(world.hub._snapshots) == 0


def test_a_client_that_goes_while_its_answer_is_made_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SHARE_ROWS", 10)
    world.one_share_a_pass()
    many_players(world, 200)
    ann = world.client()
    ann.session.receive(messages.encode_client(ann.subscribing(1, "SELECT * FROM player")))
    world.queue.popleft()()
    ann.session.lost()
    world.turn()
    assert ann.channel.frames == []
    assert world.hub.live_queries == 0
    assert len(world.turns) == 0


# --- limits and memory


def test_more_query_sets_or_queries_than_allowed_fail_by_themselves(world: World) -> None:
    ann = world.client(limits=Limits(query_sets_max=2, queries_max=3))
    ann.subscribe(1, "SELECT * FROM player", "SELECT * FROM mark")
    error = error_of(ann, ann.subscribing(2, "SELECT * FROM level", "SELECT * FROM hit"))
    assert "more than 3 queries" in error.error
    ann.subscribe(3, "SELECT * FROM level")
    error = error_of(ann, ann.subscribing(4, "SELECT * FROM player"))
    assert "2 query sets" in error.error
    ann.unsubscribe(1)
    ann.subscribe(4, "SELECT * FROM player")


def test_a_query_with_more_rows_than_allowed_fails_and_one_that_grows_goes_on(world: World) -> None:
    many_players(world, 10)
    ann = world.client(limits=Limits(rows_max=10))
    ann.subscribe(1, "SELECT * FROM player")
    world.db.call("spawn", 100, 1)
    world.turn()
    assert len(ann.rows("player")) == 11
    error = error_of(ann, ann.subscribing(2, "SELECT * FROM player"))
    assert "more than 10 rows" in error.error
    ann.send(messages.OneOffQuery(request_id=5, query="SELECT * FROM player"))
    [result] = ann.read()
    assert isinstance(result, messages.OneOffQueryResult)
    assert isinstance(result.result, messages.QueryFailed)
    ann.unsubscribe(1)
    assert ann.rows("player") == []
    assert world.hub.live_queries == 0


def test_a_query_set_that_takes_too_long_fails_as_all_else_waits_for_it(world: World) -> None:
    world.one_share_a_pass()  # the clock is a quarter of a second later whenever it is looked at
    ann = world.client(limits=Limits(query_set_seconds_max=0.5))
    queries = [f"SELECT * FROM player WHERE zone = {number}" for number in range(5)]
    error = error_of(ann, ann.subscribing(1, *queries))
    assert "more than 0.5 s" in error.error
    assert world.hub.live_queries == 0
    error_of(ann, ann.subscribing(1, *queries[:2]))  # working out what is asked takes its time, too
    ann.subscribe(1, *queries[:1])


def test_one_query_may_take_no_longer_than_its_whole_set(world: World) -> None:
    text = "SELECT * FROM player WHERE hp > 1"
    world.db.call("spawn", 1, 7)
    ann = world.client(limits=Limits(query_set_seconds_max=1e-12))
    assert "the query takes more than 1e-12 s" in error_of(ann, ann.subscribing(1, text)).error
    ann.send(messages.OneOffQuery(request_id=9, query=text))
    [answer] = ann.read()
    assert isinstance(answer, messages.OneOffQueryResult)
    assert "the query takes more than 1e-12 s" in str(answer.result)
    assert world.hub.live_queries == 0
    world.client().subscribe(1, text)


def test_subscriptions_that_come_and_go_leave_nothing_behind(world: World) -> None:
    """L58."""
    world.db.call("spawn", 1, 7)
    ann = world.client()
    for number in range(500):
        ann.subscribe(number, f"SELECT * FROM player WHERE zone = {number % 50}", "SELECT * FROM mark")
        ann.unsubscribe(number)
    assert len(ann.session.query_sets) == 0
    assert world.hub.live_queries == 0
    assert len(world.hub.matcher) == 0
    assert len(world.hub._snapshots) == 0
    assert world.hub.backlog.pending == {}


def test_clients_that_come_and_go_leave_nothing_behind(world: World) -> None:
    """L58."""
    for _ in range(200):
        clients = [world.client() for _ in range(10)]
        for client in clients:
            client.subscribe(1, "SELECT * FROM player")
        world.db.call("spawn", 1, 7)
        world.db.call("kill", 1)
        for client in clients:
            client.session.lost()
        world.turn()
    assert world.hub.sessions == {}
    assert world.hub.live_queries == 0
    assert len(world.hub.matcher) == 0
    assert world.hub.backlog.pending == {}
    assert world.hub._waiting == {}
    assert len(world.hub._marked) == 0
    assert [len(table) for row, table in world.db._committed_system.items() if row is ClientConnection] == [0]


def test_many_followers_are_told_by_one_note_in_the_order_of_all_else(world: World) -> None:
    clients = [world.client() for _ in range(30)]
    for client in clients:
        client.subscribe(1, "SELECT * FROM player")
    first, second = clients[:2]
    second.subscribe(2, "SELECT * FROM mark")
    for number in range(10):
        first.session.receive(messages.encode_client(first.calling("spawn", number, number)))
        world.db.call("mark", number, "x")
        world.db.call("spawn", 100 + number, 1)
        with world.db.transaction() as tx:
            tx.db[Player].delete(100 + number)
            tx.db[Mark].insert(Mark(zone=number, text="y"))
        if number == 5:
            clients[7].session.receive(messages.encode_client(clients[7].unsubscribing(1)))
            clients[8].session.lost()
    late = world.client()
    late.subscribe(1, "SELECT * FROM player")
    world.turn()
    for client in [*clients[:7], *clients[9:], late]:
        assert client.rows("player") == sorted(world.db.read(Player), key=lambda player: str(player.id))
        assert client.cache.problems == []
    clients[7].read()
    assert clients[7].rows("player") == []
    assert second.cache.count("mark") == 20


def test_those_who_follow_two_crowded_queries_are_told_in_the_order_of_commits(world: World) -> None:
    clients = [world.client() for _ in range(10)]
    for client in clients:
        client.subscribe(1, "SELECT * FROM player")
        client.subscribe(2, "SELECT * FROM mark")
    for number in range(3):
        world.db.call("mark", number, "x")
        world.db.call("spawn", number, 1)
    clients[0].session.receive(messages.encode_client(clients[0].calling("nothing")))
    clients[0].session._work()
    world.turn()
    for client in clients:
        sets = [
            message.query_sets[0].query_set_id
            for message in client.read()
            if isinstance(message, messages.TransactionUpdate)
        ]
        assert sets == [2, 1] * 3


def test_a_client_is_told_apart_from_its_other_connections(world: World) -> None:
    ann = world.client()
    again = world.client(identity=ann.session.identity)
    again.subscribe(1, "SELECT * FROM player")
    ann.call("spawn", 1, 7)
    assert again.rows("player") == [Player(id=1, zone=7)]
    assert world.db.read(Visit).get(ann.session.identity) == Visit(identity=ann.session.identity, came=2)
