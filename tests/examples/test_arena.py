"""The arena: bots play for hours, players are refused what they may not do, and nothing is lost or grows."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from examples.arena import lair, upkeep
from examples.arena.deeds import abandon_quest, accept_quest, attack, defend, dispel, drink, flee, pick_up
from examples.arena.heroes import enter, move, rename, say
from examples.arena.market import buy_out, place_bid, sell, withdraw
from examples.arena.module import module
from examples.arena.realm import (
    Bank,
    ChatLine,
    Figure,
    Lair,
    Role,
    the_place,
)
from examples.auction import Lot
from examples.boss_fight import Encounter, RaidMember
from examples.stage import Player, Stage
from examples.world import Character, Chat, Effect, HeldGold, Item, Notice, Point, Walk, item_counts, tell, total_gold
from gamedb import ConnectionId, Identity, NotAllowed, ReducerError, Row
from tests.examples.crashes import CrashStage
from tests.gamedb.server.without_sockets import World
from workflow_module import Workflow, WorkflowEvent, WorkflowStatus


class Arena:
    """An arena with a player in it, who has an item and a hundred gold."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.stage = stage or Stage(module)
        self.hero = self.enter(1001)

    def enter(self, number: int) -> Player:
        """Somebody comes with a connection, and plays."""
        identity = Identity.from_int(number)
        self.connect(identity, number)
        row = self.stage.db.read(Character).find(identity=identity)
        assert row is not None
        return Player(self.stage, row.id, identity)

    def connect(self, identity: Identity, number: int) -> None:
        """A connection in which somebody plays."""
        self.stage.db.connect(identity, ConnectionId.from_int(number))
        self.stage.db.caller(identity, ConnectionId.from_int(number)).call(enter)

    def disconnect(self, number: int) -> None:
        self.stage.db.disconnect(ConnectionId.from_int(number))

    def put(self, who: int, at: Point) -> None:
        """Set somebody somewhere, whatever the distance."""
        with self.stage.db.transaction() as ctx:
            ctx.db[Walk].delete(who)
            row = ctx.db[Character].get(who)
            assert row is not None
            ctx.db[Character].update(row.replace(at=at))

    def change(self, who: int, **columns: object) -> None:
        with self.stage.db.transaction() as ctx:
            row = ctx.db[Character].get(who)
            assert row is not None
            ctx.db[Character].update(row.replace(**columns))

    def named(self, name: str) -> Character:
        return min(self.stage.db.read(Character).where(name=name), key=lambda row: row.id)

    def foe(self) -> Character:
        """A foe that nobody fights, with the hero beside it."""
        (row, *_) = sorted(
            (r for r in self.stage.db.read(Figure) if r.role is Role.Foe and r.opponent is None),
            key=lambda r: r.character_id,
        )
        foe = self.stage.character(row.character_id)
        self.put(foe.id, foe.at)
        self.put(self.hero.id, foe.at)
        return foe

    def until(self, what: str, *, seconds: int = 900) -> None:
        """Let the arena play until an expression over its state holds."""
        for _ in range(seconds):
            if self.is_so(what):
                return
            self.stage.wait(seconds=1)
        raise AssertionError(f"{what} did not come to pass")

    def is_so(self, what: str) -> bool:
        match what:
            case "the dragon is awake":
                return len(self.stage.db.read(Encounter)) == 1
            case "the minions are there":
                return any(row.name.endswith(" minion") for row in self.stage.db.read(Character))
            case "there is a lot":
                return len(self.stage.db.read(Lot)) > 0
        raise ValueError(what)

    def failed(self) -> list[str | None]:
        return [row.error for row in self.stage.db.read(Workflow) if row.status is WorkflowStatus.Failed]


@pytest.fixture
def arena() -> Arena:
    return Arena()


def refused(arena: Arena, text: str) -> AbstractContextManager[object]:
    return pytest.raises(ReducerError, match=text)


# --- it plays by itself


def test_an_hour_of_play_keeps_all_gold_and_things_and_every_table_small(caplog: pytest.LogCaptureFixture) -> None:
    arena = Arena()
    db = arena.stage.db
    gold, things = total_gold(db), item_counts(db)
    sizes: dict[str, list[int]] = {name: [] for name in db.module.tables}
    with caplog.at_level(logging.WARNING):
        for minute in range(60):
            arena.stage.wait(minutes=1)
            for name, schema in db.module.tables.items():
                row: type[Row] = schema.row
                sizes[name].append(len(db.read(row)))
            if minute % 10 == 0:
                assert (total_gold(db), item_counts(db)) == (gold, things)
    assert (total_gold(db), item_counts(db)) == (gold, things)
    assert not arena.failed()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    for name, counts in sizes.items():
        early, late = max(counts[:20]), max(counts[20:])
        assert late <= early * 1.5 + 12, f"{name} grows: {counts}"
    (state,) = db.read(Lair)
    assert state.fights >= 12
    assert state.won > 0
    assert len(db.read(Chat)) <= upkeep.CHAT_MAX + 60
    assert len(db.read(Notice)) <= upkeep.CHAT_MAX + 60


def test_something_happens_everywhere_within_half_a_minute() -> None:
    arena = Arena()
    arena.stage.wait(minutes=2)
    for _ in range(6):
        seen: set[str] = set()
        watched: list[type[Row]] = [Walk, Effect, Lot, ChatLine, Chat, Notice, WorkflowEvent]

        def look(name: str, seen: set[str] = seen) -> None:
            seen.add(name)

        subscriptions = [arena.stage.db.subscribe(row, lambda commit, name=row.__name__: look(name)) for row in watched]
        arena.stage.wait(seconds=30)
        for subscription in subscriptions:
            subscription.close()
        assert seen >= {row.__name__ for row in watched} - {"ChatLine"}


def test_a_boss_fight_goes_through_four_phases_and_takes_two_to_four_minutes(arena: Arena) -> None:
    arena.until("the dragon is awake")
    began, phases = arena.stage.clock.now, set()
    while fights := list(arena.stage.db.read(Encounter)):
        phases.add(fights[0].phase)
        arena.stage.wait(seconds=1)
    assert phases == {1, 2, 3, 4}
    assert timedelta(minutes=2) < arena.stage.clock.now - began <= timedelta(minutes=4)
    (state,) = arena.stage.db.read(Lair)
    assert state.wakes_at is not None
    assert state.wakes_at - arena.stage.clock.now <= lair.REST


def test_the_guards_fight_what_they_meet_and_go_on(arena: Arena) -> None:
    arena.stage.wait(minutes=5)
    fights = {
        row.id: arena.stage.flows.view(row.id).fights
        for row in arena.stage.db.read(Workflow)
        if row.workflow_type == "patrol" and row.status is WorkflowStatus.Suspended
    }
    assert len(fights) == 2
    assert all(fights.values())


def test_everything_goes_on_after_a_crash_in_the_middle() -> None:
    stage = CrashStage(module)
    arena = Arena(stage)
    arena.until("the dragon is awake")
    arena.hero.call(drink, "strength")
    stage.wait(seconds=20)
    gold, things = total_gold(stage.db), item_counts(stage.db)
    stage.save()
    before = {row.id: row.current_step for row in running(stage)}
    lots = {lot.auction_id: lot.ends_at for lot in stage.db.read(Lot)}
    ends = {(effect.character_id, effect.kind): effect.until for effect in stage.db.read(Effect)}
    fight = next(iter(stage.db.read(Encounter)))
    stage.wait(seconds=3)
    stage.crash()
    assert {row.id: row.current_step for row in running(stage)} == before
    assert {lot.auction_id: lot.ends_at for lot in stage.db.read(Lot)} == lots
    assert {(effect.character_id, effect.kind): effect.until for effect in stage.db.read(Effect)} == ends
    assert list(stage.db.read(Encounter)) == [fight]
    assert (total_gold(stage.db), item_counts(stage.db)) == (gold, things)
    figure = stage.db.read(Figure).get(arena.hero.id)
    assert figure is not None
    assert not figure.online, "its connection was lost with the process"
    again = arena.enter(1001)
    assert again.id == arena.hero.id
    stage.wait(minutes=10)
    assert not arena.failed()
    assert (total_gold(stage.db), item_counts(stage.db)) == (gold, things)
    stage.db.close()


def running(stage: Stage) -> list[Workflow]:
    return [row for row in stage.db.read(Workflow) if row.status is WorkflowStatus.Suspended]


# --- joining and leaving


def test_a_player_gets_a_character_gold_and_a_thing_from_the_bank(arena: Arena) -> None:
    db = arena.stage.db
    gold, things = total_gold(db), item_counts(db)
    ann = arena.enter(5)
    assert ann.gold == 100
    assert len(ann.things) == 1
    assert (total_gold(db), item_counts(db)) == (gold, things)
    assert any("enters the arena" in line for line in arena.stage.announced)


def test_two_tabs_are_one_character_until_both_are_closed(arena: Arena) -> None:
    db = arena.stage.db
    identity = arena.hero.identity
    arena.connect(identity, 2)
    arena.disconnect(1001)
    figure = db.read(Figure).get(arena.hero.id)
    assert figure is not None
    assert figure.online
    arena.disconnect(2)
    figure = db.read(Figure).get(arena.hero.id)
    assert figure is not None
    assert not figure.online


def test_who_only_connects_gets_no_character_and_plays_in_no_tab(arena: Arena) -> None:
    db, announced = arena.stage.db, len(arena.stage.announced)
    operator = Identity.from_int(77)
    db.connect(operator, ConnectionId.from_int(77))
    assert db.read(Character).find(identity=operator) is None
    db.connect(arena.hero.identity, ConnectionId.from_int(78))
    arena.disconnect(1001)
    figure = db.read(Figure).get(arena.hero.id)
    assert figure is not None
    assert not figure.online, "the connection that is left is not of one who plays"
    arena.disconnect(77)
    arena.disconnect(78)
    assert [line for line in arena.stage.announced[announced:] if "enters" in line or "leaves" in line] == [
        f"{arena.hero.row.name} leaves."
    ]


def test_entering_twice_is_entering_once(arena: Arena) -> None:
    db, announced = arena.stage.db, len(arena.stage.announced)
    db.caller(arena.hero.identity, ConnectionId.from_int(1001)).call(enter)
    assert not any("enters" in line for line in arena.stage.announced[announced:])
    arena.disconnect(1001)
    figure = db.read(Figure).get(arena.hero.id)
    assert figure is not None
    assert not figure.online


def test_characters_of_players_who_do_not_come_back_leave_with_nothing_lost(arena: Arena) -> None:
    db = arena.stage.db
    gold, things = total_gold(db), item_counts(db)
    arena.hero.call(drink, "strength")
    arena.disconnect(1001)
    arena.stage.wait(minutes=20)
    assert db.read(Character).get(arena.hero.id) is not None
    arena.stage.wait(minutes=11)
    assert db.read(Character).get(arena.hero.id) is None
    assert (total_gold(db), item_counts(db)) == (gold, things)
    assert not arena.failed()


def test_a_crowd_of_visitors_does_not_stay(arena: Arena) -> None:
    for number in range(100):
        arena.enter(2000 + number)
        arena.disconnect(2000 + number)
    arena.stage.wait(seconds=31)
    absent = [row for row in arena.stage.db.read(Figure) if not row.online]
    assert len(absent) == upkeep.ABSENT_MAX


# --- what players may not do


def test_walking_is_checked_and_takes_time(arena: Arena) -> None:
    with refused(arena, r"\(1001, 3\) is not on the map"):
        arena.hero.call(move, 1001, 3)
    arena.put(arena.hero.id, Point(100, 100))
    arena.hero.call(move, 400, 500)
    (walk,) = arena.stage.db.read(Walk).where(character_id=arena.hero.id)
    assert walk.arrives_at - arena.stage.clock.now == timedelta(seconds=6)
    arena.hero.call(move, 100, 100)
    assert not arena.stage.db.read(Walk).where(character_id=arena.hero.id), "it is there already"


def test_talking_is_checked(arena: Arena) -> None:
    arena.hero.call(say, "  hello   there ")
    assert [line.text for line in arena.stage.db.read(ChatLine) if line.author_id == arena.hero.id] == ["hello there"]
    with refused(arena, "not so fast"):
        arena.hero.call(say, "again")
    with refused(arena, "say something"):
        arena.hero.call(say, "  ")
    with refused(arena, "161 characters are too many"):
        arena.hero.call(say, "x" * 161)


def test_names_are_checked(arena: Arena) -> None:
    arena.hero.call(rename, "Ann  of Mill")
    assert arena.hero.row.name == "Ann of Mill"
    with refused(arena, "called Brakka already"):
        arena.hero.call(rename, "Brakka")
    with refused(arena, "2 to 16 characters"):
        arena.hero.call(rename, "x")
    with refused(arena, "already"):
        arena.hero.call(rename, "the left minion")


def test_potions_cost_a_herb_or_gold_and_stack(arena: Arena) -> None:
    hero = arena.hero
    with refused(arena, "there is no potion of 'wisdom'"):
        hero.call(drink, "wisdom")
    hero.call(drink, "strength")
    assert (hero.gold, hero.row.strength) == (95, 15)
    herb = next(item for item in arena.stage.db.read(Item) if item.kind == "herb" and item.owner_id is None)
    with refused(arena, "steps away, and you reach"):
        arena.put(hero.id, Point(999, 639))
        hero.call(pick_up, herb.id)
    arena.put(hero.id, herb.at)
    hero.call(pick_up, herb.id)
    with refused(arena, "nothing to pick up any more"):
        hero.call(pick_up, herb.id)
    hero.call(drink, "strength")
    assert (hero.gold, hero.row.strength) == (95, 20)
    assert "herb" not in hero.things, "it grows somewhere else again"
    (effect,) = [e for e in arena.stage.db.read(Effect).where(character_id=hero.id) if e.kind == "strength"]
    assert effect.stacks == 2
    assert effect.until == arena.stage.clock.now + timedelta(seconds=60)
    arena.change(hero.id, gold=4)
    with refused(arena, "a potion costs a herb or 5 gold; you have 4"):
        hero.call(drink, "strength")


def test_a_potion_at_the_very_end_of_another_is_a_new_one(arena: Arena) -> None:
    hero = arena.hero
    hero.call(drink, "strength")
    arena.stage.clock.advance(timedelta(seconds=60))
    hero.call(drink, "strength")
    assert hero.row.strength == 15
    assert len([e for e in arena.stage.db.read(Effect).where(character_id=hero.id) if e.kind == "strength"]) == 1


def test_dispelling_is_checked(arena: Arena) -> None:
    hero, other = arena.hero, arena.enter(7)
    other.call(drink, "swiftness")
    arena.put(hero.id, Point(20, 20))
    with refused(arena, "walk closer"):
        hero.call(dispel, other.id, "swiftness")
    arena.put(hero.id, other.row.at)
    with refused(arena, "there is no strength on"):
        hero.call(dispel, other.id, "strength")
    hero.call(dispel, other.id, "swiftness")
    assert hero.gold == 90
    assert not [e for e in arena.stage.db.read(Effect).where(character_id=other.id) if e.kind == "swiftness"]
    other.call(drink, "swiftness")
    arena.change(hero.id, gold=9)
    with refused(arena, "to dispel costs 10 gold; you have 9"):
        hero.call(dispel, other.id, "swiftness")


def test_selling_is_checked(arena: Arena) -> None:
    hero = arena.hero
    mine = next(item.id for item in arena.stage.db.read(Item).where(owner_id=hero.id))
    theirs = next(item.id for item in arena.stage.db.read(Item) if item.owner_id not in (None, hero.id))
    with refused(arena, "does not have item"):
        hero.call(sell, theirs, 5, None, 60)
    with refused(arena, "30 to 120 seconds, not 5"):
        hero.call(sell, mine, 5, None, 5)
    with refused(arena, "1 to 10000 gold, not 0"):
        hero.call(sell, mine, 0, None, 60)
    with refused(arena, "more than the starting price"):
        hero.call(sell, mine, 5, 5, 60)
    hero.call(sell, mine, 5, 50, 60)
    with refused(arena, "promised elsewhere"):
        hero.call(sell, mine, 5, None, 60)
    with arena.stage.db.transaction() as ctx:
        more = [ctx.db[Item].insert(Item(kind="horn", owner_id=hero.id)).id for _ in range(3)]
    hero.call(sell, more[0], 5, None, 60)
    hero.call(sell, more[1], 5, None, 60)
    with refused(arena, "3 lots at a time"):
        hero.call(sell, more[2], 5, None, 60)


def test_bidding_is_checked(arena: Arena) -> None:
    ann, bob = arena.hero, arena.enter(8)
    item = next(item.id for item in arena.stage.db.read(Item).where(owner_id=ann.id))
    ann.call(sell, item, 10, 101, 60)
    lot = next(lot.auction_id for lot in arena.stage.db.read(Lot) if lot.seller == ann.id)
    with refused(arena, "this lot is yours"):
        ann.call(place_bid, lot, 20)
    with refused(arena, "bid at least 10"):
        bob.call(place_bid, lot, 9)
    with refused(arena, "you have 100 gold"):
        bob.call(place_bid, lot, 1000)
    with refused(arena, "it costs 101 gold; you have 100"):
        bob.call(buy_out, lot)
    with refused(arena, "this lot is not yours"):
        bob.call(withdraw, lot)
    bob.call(place_bid, lot, 20)
    assert bob.gold == 80
    with refused(arena, "you lead already"):
        bob.call(place_bid, lot, 30)
    with refused(arena, "too late to withdraw"):
        ann.call(withdraw, lot)
    cleo = arena.enter(9)
    cleo.call(place_bid, lot, 40)
    assert bob.gold == 100
    assert bob.heard[-1] == f"{cleo.row.name} has outbid you."
    arena.stage.clock.advance(timedelta(minutes=3))
    with refused(arena, "this auction is over"):
        bob.call(place_bid, lot, 60)
    arena.stage.wait(seconds=1)
    with refused(arena, "this auction is over"):
        bob.call(buy_out, lot)


def test_a_bid_in_the_last_seconds_keeps_the_auction_open(arena: Arena) -> None:
    ann, bob = arena.hero, arena.enter(8)
    item = next(item.id for item in arena.stage.db.read(Item).where(owner_id=ann.id))
    ann.call(sell, item, 100, None, 30)
    lot = next(lot.auction_id for lot in arena.stage.db.read(Lot) if lot.seller == ann.id)
    arena.stage.wait(seconds=28)
    bob.call(place_bid, lot, 100)
    arena.stage.wait(seconds=9)
    assert arena.stage.db.read(Lot).get(lot) is not None
    arena.stage.wait(seconds=1)
    assert arena.stage.db.read(Lot).get(lot) is None
    assert ann.gold >= 200 - 5


def test_the_raid_is_checked(arena: Arena) -> None:
    hero, dragon = arena.hero, arena.named("the dragon")
    with refused(arena, "the dragon sleeps"):
        hero.call(attack, dragon.id)
    arena.until("the dragon is awake")
    arena.put(hero.id, Point(20, 620))
    with refused(arena, "the dragon is .* steps away, and you reach 110: walk closer"):
        hero.call(attack, dragon.id)
    arena.put(hero.id, dragon.at)
    before = arena.stage.character(dragon.id).hp
    hero.call(attack, dragon.id)
    assert arena.stage.character(dragon.id).hp == before - 10
    assert arena.stage.db.read(RaidMember).find(hero=hero.id) is not None
    with refused(arena, "catching your breath"):
        hero.call(attack, dragon.id)
    arena.until("the minions are there")
    arena.put(hero.id, dragon.at)
    arena.change(hero.id, hp=100)
    with refused(arena, "immune"):
        hero.call(attack, dragon.id)
    minion = next(row for row in arena.stage.db.read(Character) if row.name.endswith(" minion"))
    hero.call(attack, minion.id)
    assert arena.stage.character(minion.id).hp < minion.hp


def test_those_who_are_no_enemies_are_not_hit(arena: Arena) -> None:
    hero = arena.hero
    for name in ("Brakka", "the miller", "Sir Aldo"):
        victim = arena.named(name)
        arena.put(hero.id, victim.at)
        with refused(arena, f"{name} is no enemy of yours"):
            hero.call(attack, victim.id)


def test_a_fight_with_a_foe_by_turns(arena: Arena) -> None:
    hero, foe = arena.hero, arena.foe()
    for decision in (defend, flee):
        with refused(arena, "you are in no fight"):
            hero.call(decision)
    hero.call(attack, foe.id)
    assert arena.stage.character(foe.id).hp < foe.hp
    with refused(arena, "you are in a fight: win it, or flee"):
        hero.call(move, 10, 10)
    other = arena.enter(10)
    arena.put(other.id, foe.at)
    with refused(arena, f"{hero.row.name} fights {foe.name} already"):
        other.call(attack, foe.id)
    for _ in range(30):
        arena.stage.wait(seconds=1)
        row = arena.stage.db.read(Character).get(foe.id)
        if row is None or row.hp == 0:
            break
        hero.call(attack, foe.id)
    arena.stage.wait(seconds=2)
    assert arena.stage.db.read(Character).get(foe.id) is None
    returning = [row for row in running(arena.stage) if row.workflow_type == "respawn"]
    assert any(arena.stage.flows.view(row.id).init.name == foe.name for row in returning)


def test_one_fight_at_a_time(arena: Arena) -> None:
    hero, first = arena.hero, arena.foe()
    hero.call(attack, first.id)
    second = next(
        row
        for row in arena.stage.db.read(Figure)
        if row.role is Role.Foe and row.character_id != first.id and row.opponent is None
    )
    arena.put(second.character_id, first.at)
    arena.stage.wait(seconds=1)
    arena.put(second.character_id, first.at)
    with refused(arena, "one fight at a time"):
        hero.call(attack, second.character_id)


def test_the_fallen_can_do_nothing_and_wake_up_at_the_fountain(arena: Arena) -> None:
    hero, foe = arena.hero, arena.foe()
    arena.change(hero.id, hp=0)
    for refusal in (
        lambda: hero.call(move, 10, 10),
        lambda: hero.call(drink, "strength"),
        lambda: hero.call(attack, foe.id),
        lambda: hero.call(dispel, hero.id, "strength"),
        lambda: hero.call(accept_quest, arena.named("the miller").id),
    ):
        with refused(arena, "you have fallen"):
            refusal()
    arena.stage.wait(seconds=12)
    assert hero.hp == hero.row.hp_max
    assert abs(hero.row.at.x - the_place("fountain").x) <= 50


def test_a_quest_is_accepted_at_the_mill_and_done_in_any_order(arena: Arena) -> None:
    hero, miller = arena.hero, arena.named("the miller")
    arena.put(hero.id, Point(900, 20))
    with refused(arena, "the miller is .* steps away"):
        hero.call(accept_quest, miller.id)
    with refused(arena, "the bank has no quest for you"):
        hero.call(accept_quest, arena.named("the bank").id)
    with refused(arena, "you have no quest"):
        hero.call(abandon_quest)
    arena.put(hero.id, miller.at)
    hero.call(accept_quest, miller.id)
    with refused(arena, "one quest at a time"):
        hero.call(accept_quest, miller.id)
    quest = next(row for row in running(arena.stage) if row.workflow_type == "quest")
    for item in [i for i in arena.stage.db.read(Item) if i.kind == "herb" and i.owner_id is None][:2]:
        arena.put(hero.id, item.at)
        hero.call(pick_up, item.id)
    assert arena.stage.flows.view(quest.id).progress == [0, 2, 0]
    oak = the_place("oak")
    hero.call(move, oak.x + 5, oak.y)
    arena.stage.wait(seconds=20)
    assert arena.stage.flows.view(quest.id).progress == [0, 2, 1]
    hero.call(abandon_quest)
    assert arena.stage.character(miller.id).gold == miller.gold


def test_the_heartbeat_is_not_for_players(arena: Arena) -> None:
    with pytest.raises(NotAllowed):
        arena.stage.db.caller(arena.hero.identity).call("heartbeat", None)
    (row,) = arena.stage.db.read(Bank)
    assert arena.stage.character(row.character_id).gold > 0
    assert not list(arena.stage.db.read(HeldGold).where(owner_id=arena.hero.id))


def test_nobody_reads_what_is_told_to_another() -> None:
    """Whatever they ask: the rows do not leave the server."""
    arena = Arena()
    db, ann, ben = arena.stage.db, arena.hero, arena.enter(1002)

    def told(to: Player, text: str) -> None:
        with db.transaction() as ctx:
            tell(ctx, to.id, text)

    told(ann, "a secret")
    told(ben, "a word")
    clients = World(db)
    asked = ("SELECT * FROM notice", f"SELECT * FROM notice WHERE to_id = {ann.id}")
    reading = {name: clients.client(identity=player.identity) for name, player in (("ann", ann), ("ben", ben))}
    reading["a stranger"] = clients.client()
    for client in reading.values():
        for number, query in enumerate(asked):
            client.subscribe(number, query)
    told(ann, "another secret")
    clients.turn()
    read = {name: {row.text for row in client.rows("notice")} for name, client in reading.items()}
    assert read == {"ann": {"a secret", "another secret"}, "ben": {"a word"}, "a stranger": set()}
