"""The table views: insert, get, find, where, between, update, upsert, delete, count, iteration, membership."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    ColumnError,
    ConstraintError,
    Database,
    Identity,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    RowNotFound,
    TransactionError,
    Unique,
    UnknownName,
    f32,
    u8,
    u32,
    u64,
)

module = Module("tables")


@module.table(indexes=[("zone", "level"), ("zone", "speed")])
class Player(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    email: Unique[str | None] = None
    zone: Index[u32] = 0
    team: Index[str | None] = None
    level: u8 | None = 1
    speed: Index[float] = 1.0
    size: f32 = 1.0
    items: list[u8] = []


@module.table
class Tag(Row):
    """A table without a primary key."""

    owner: Index[u32]
    text: str = ""
    weights: list[u8] = []


@module.table
class Keyed(Row):
    at: PrimaryKey[datetime]


@module.table
class ByBytes(Row):
    key: PrimaryKey[bytes]
    identity: Unique[Identity]


@pytest.fixture
def ctx() -> Iterator[ReducerContext]:
    with Database(module) as db, db.transaction() as ctx:
        yield ctx


def add(ctx: ReducerContext, name: str, **columns: Any) -> Player:
    return ctx.db[Player].insert(Player(name=name, **columns))


def names(rows: list[Player]) -> list[str]:
    return [row.name for row in rows]


# --- insert, get, find


def test_insert_returns_the_row_as_stored_with_its_number(ctx: ReducerContext) -> None:
    row = add(ctx, "ann", size=0.1)
    assert row.id == 1
    assert row.size == 0.10000000149011612
    assert ctx.db[Player].get(1) is row


def test_get_gives_none_for_a_key_that_is_not_there(ctx: ReducerContext) -> None:
    assert ctx.db[Player].get(1) is None


@pytest.mark.parametrize("key", ["1", None, -1, 2**64, 1.5, [1], {}])
def test_get_refuses_a_key_of_another_type(ctx: ReducerContext, key: Any) -> None:
    add(ctx, "ann")
    with pytest.raises(ColumnError, match=r"player\.id: "):
        ctx.db[Player].get(key)


def test_get_takes_a_key_in_any_form_that_insert_takes(ctx: ReducerContext) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    row = ctx.db[Keyed].insert(Keyed(at=moment.astimezone(timezone(timedelta(hours=5)))))
    assert row.at.tzinfo is UTC
    assert ctx.db[Keyed].get(moment.astimezone(timezone(timedelta(hours=-3)))) is row
    blob = ctx.db[ByBytes].insert(ByBytes(key=b"ab", identity=Identity.from_int(1)))
    assert ctx.db[ByBytes].get(bytearray(b"ab")) is blob
    assert ctx.db[ByBytes].where(key=bytearray(b"ab")) == [blob]


def test_find_looks_up_by_a_unique_column_or_the_primary_key(ctx: ReducerContext) -> None:
    ann = add(ctx, "ann", email="a@x")
    assert ctx.db[Player].find(name="ann") is ann
    assert ctx.db[Player].find(email="a@x") is ann
    assert ctx.db[Player].find(id=1) is ann
    assert ctx.db[Player].find(name="bob") is None


def test_find_refuses_what_cannot_have_one_answer(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    with pytest.raises(UnknownName, match="zone is not unique: declare it Unique"):
        table.find(zone=1)
    with pytest.raises(UnknownName, match=r"no column 'speeed' \(it has id, name"):
        table.find(speeed=1)
    with pytest.raises(ColumnError, match="None may stand in many rows"):
        table.find(email=None)
    with pytest.raises(ColumnError, match=r"player\.name: expected str, got 5"):
        table.find(name=5)
    with pytest.raises(ColumnError, match=r"player\.name: expected str, got \[\]"):
        table.find(name=[])
    with pytest.raises(TypeError, match="one unique column"):
        table.find()
    with pytest.raises(TypeError, match="got id, name"):
        table.find(id=1, name="ann")


def test_a_row_of_another_class_is_refused(ctx: ReducerContext) -> None:
    table: Any = ctx.db[Player]
    for change in (table.insert, table.update, table.upsert, table.delete):
        with pytest.raises(ColumnError, match="table 'player' holds Player rows, got Tag"):
            change(Tag(owner=1))

    class Sub(Player):
        pass

    with pytest.raises(ColumnError, match=r"holds Player rows, got .*Sub"):
        table.insert(Sub(name="x"))


def test_a_taken_primary_key_is_refused_naming_it(ctx: ReducerContext) -> None:
    add(ctx, "ann", id=7)
    with pytest.raises(ConstraintError, match=r"player\.id: .* primary key 7 is there already; use update") as caught:
        add(ctx, "bob", id=7)
    assert (caught.value.table, caught.value.column, caught.value.value) == ("player", "id", 7)
    assert ctx.db[Player].count() == 1


def test_a_taken_unique_value_is_refused_naming_it(ctx: ReducerContext) -> None:
    add(ctx, "ann", email="a@x")
    with pytest.raises(ConstraintError, match=r"player\.email: .*'a@x' already") as caught:
        add(ctx, "bob", email="a@x")
    assert (caught.value.table, caught.value.column, caught.value.value) == ("player", "email", "a@x")
    assert ctx.db[Player].find(name="bob") is None


def test_none_may_stand_in_many_rows_of_a_unique_column(ctx: ReducerContext) -> None:
    add(ctx, "ann")
    add(ctx, "bob")
    assert names(ctx.db[Player].where(email=None)) == ["ann", "bob"]


# --- where


def test_where_gives_rows_in_order_of_arrival(ctx: ReducerContext) -> None:
    for name in ("c", "a", "b"):
        add(ctx, name, zone=1)
    assert names(ctx.db[Player].where(zone=1)) == ["c", "a", "b"]


WHERE: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["ann", "bob", "cid", "dan"]),
    ({"id": 2}, ["bob"]),
    ({"id": 2, "zone": 2}, []),
    ({"id": 2, "zone": 1, "level": None}, ["bob"]),
    ({"name": "cid"}, ["cid"]),
    ({"name": "cid", "zone": 1}, []),
    ({"email": None}, ["ann", "cid", "dan"]),
    ({"email": None, "zone": 1}, ["ann"]),
    ({"email": "b@x", "team": None}, ["bob"]),
    ({"zone": 1}, ["ann", "bob"]),
    ({"zone": 1, "level": 1}, ["ann"]),
    ({"level": None, "zone": 1}, ["bob"]),
    ({"zone": 2, "level": 1, "team": "red"}, ["cid"]),
    ({"team": None}, ["ann", "bob"]),
    ({"team": "red", "speed": 2}, ["cid"]),
    ({"speed": 0.0}, ["dan"]),
    ({"speed": -0.0}, ["dan"]),
    ({"level": 1}, ["ann", "cid"]),
    ({"size": 0.1}, ["ann"]),
    ({"items": [1, 2]}, ["cid"]),
    ({"items": (1, 2), "zone": 2}, ["cid"]),
    ({"zone": 3}, []),
]


@pytest.mark.parametrize(("equalities", "expected"), WHERE)
def test_where_gives_the_rows_that_match_whichever_index_it_uses(
    ctx: ReducerContext, equalities: dict[str, Any], expected: list[str]
) -> None:
    add(ctx, "ann", zone=1, size=0.1)
    add(ctx, "bob", zone=1, level=None, email="b@x")
    add(ctx, "cid", zone=2, team="red", speed=2.0, items=[1, 2])
    add(ctx, "dan", zone=2, team="red", level=2, speed=-0.0)
    assert names(ctx.db[Player].where(**equalities)) == expected


def test_where_uses_the_widest_index(ctx: ReducerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    add(ctx, "ann", zone=1, level=1)
    add(ctx, "bob", zone=1, level=2)
    data = ctx.db[Player].data
    for columns, index in data.indexes.items():
        if columns != ("zone", "level"):
            index.keys.clear()
    data.unique["name"].keys.clear()
    assert names(ctx.db[Player].where(level=2, zone=1)) == ["bob"]
    assert names(ctx.db[Player].where(level=2, team=None, zone=1)) in (["bob"], [])


def test_where_refuses_unknown_columns_and_values_that_no_row_can_have(ctx: ReducerContext) -> None:
    add(ctx, "ann")
    table = ctx.db[Player]
    with pytest.raises(UnknownName, match="table 'player' has no column 'hp'"):
        table.where(hp=1)
    for column, value in [("zone", "a"), ("zone", -1), ("zone", [1]), ("level", 256), ("name", 1), ("id", "x")]:
        with pytest.raises(ColumnError, match=rf"player\.{column}: "):
            table.where(**{column: value})


def test_nan_equals_nothing_with_and_without_an_index(ctx: ReducerContext) -> None:
    add(ctx, "ann", speed=math.nan, size=math.nan, zone=1)
    add(ctx, "bob", speed=math.nan, size=math.nan, zone=1)
    table = ctx.db[Player]
    assert table.where(speed=math.nan) == []
    assert table.where(speed=math.nan, zone=1) == []
    assert table.where(size=math.nan) == []
    assert table.delete_where(speed=math.nan) == 0
    assert table.delete(1)
    assert table.update(table.find(name="bob").replace(zone=2)).zone == 2  # type: ignore[union-attr]


# --- between

RANGES: list[tuple[Any, Any, Any, list[str]]] = [
    ("id", 2, 3, ["bob", "cid"]),
    ("id", None, 2, ["ann", "bob"]),
    ("id", 4, None, ["dan", "eve"]),
    ("id", 3, 2, []),
    ("id", None, None, ["ann", "bob", "cid", "dan", "eve"]),
    ("name", "b", "d", ["bob", "cid"]),
    ("email", None, None, ["bob"]),
    ("zone", 1, 1, ["ann", "bob"]),
    ("zone", 1, 2, ["ann", "bob", "cid", "dan"]),
    ("zone", 2, None, ["cid", "dan", "eve"]),
    ("team", None, None, ["dan", "cid"]),
    ("team", "g", "z", ["cid"]),
    ("level", None, None, ["ann", "cid", "dan"]),
    ("level", 2, 9, ["dan"]),
    ("speed", None, None, ["dan", "ann", "cid"]),
    ("speed", -1, 1, ["dan", "ann"]),
    ("size", 0.1, 0.1, ["ann"]),
    (("zone", "level"), (1, 0), (2, 1), ["ann", "cid"]),
    (("zone", "level"), (2, 0), None, ["cid", "dan"]),
    (("zone", "speed"), None, None, ["ann", "dan", "cid"]),
    (("level", "zone"), (1, 1), (1, 9), ["ann", "cid"]),
    (("level", "zone"), None, (1, 1), ["ann"]),
]


@pytest.mark.parametrize("twice", [False, True], ids=["sorts", "kept"])
@pytest.mark.parametrize(("column", "low", "high", "expected"), RANGES)
def test_between_gives_the_rows_in_order_on_any_column(
    ctx: ReducerContext, column: Any, low: Any, high: Any, expected: list[str], twice: bool
) -> None:
    table = ctx.db[Player]
    if twice:
        assert table.between(column, None, None) == []
    add(ctx, "ann", zone=1, size=0.1)
    add(ctx, "bob", zone=1, level=None, email="b@x", speed=math.nan)
    add(ctx, "cid", zone=2, team="red", speed=2.0, size=2)
    add(ctx, "dan", zone=2, team="blue", level=2, speed=-0.0, size=3)
    add(ctx, "eve", zone=3, level=None, speed=math.nan, size=math.nan)
    assert names(table.between(column, low, high)) == expected


def test_between_takes_datetimes_of_any_zone(ctx: ReducerContext) -> None:
    moments = [datetime(2026, 1, day, tzinfo=UTC) for day in (3, 1, 2)]
    for moment in moments:
        ctx.db[Keyed].insert(Keyed(at=moment))
    low = moments[2].astimezone(timezone(timedelta(hours=9)))
    assert [row.at.day for row in ctx.db[Keyed].between("at", low, None)] == [2, 3]


@pytest.mark.parametrize(
    ("column", "low", "high", "error", "message"),
    [
        ("hp", 1, 2, UnknownName, "no column 'hp'"),
        (("zone", "hp"), None, None, UnknownName, "no column 'hp'"),
        ("items", None, None, ColumnError, "has no order"),
        ("zone", "a", None, ColumnError, r"player\.zone: .*'a'"),
        ("zone", None, -1, ColumnError, r"player\.zone: -1"),
        ("speed", math.nan, None, ColumnError, "nan cannot bound a range"),
        (("zone", "level"), 1, None, ColumnError, "tuples of 2, got 1"),
        (("zone", "level"), (1,), None, ColumnError, "tuples of 2"),
        (("zone", "level"), (1, None), None, ColumnError, "None cannot bound"),
        (("zone", "level"), (1, 300), None, ColumnError, r"player\.level: 300"),
    ],
)
def test_between_refuses_what_has_no_order(
    ctx: ReducerContext, column: Any, low: Any, high: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ctx.db[Player].between(column, low, high)


# --- update, upsert, delete


def test_update_replaces_the_row_with_its_key_and_moves_it_in_the_indexes(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    ann = add(ctx, "ann", zone=1)
    assert table.between("zone", 0, 9) == [ann]
    after = table.update(ann.replace(name="anna", zone=2, team="red", level=5))
    assert table.get(1) is after
    assert table.find(name="ann") is None
    assert table.find(name="anna") is after
    assert table.where(zone=1) == []
    assert table.where(zone=2, level=5) == table.between(("zone", "level"), (2, 5), (2, 5)) == [after]
    assert table.between("zone", 2, 2) == [after]


def test_update_to_equal_values_gives_the_row_that_is_there(ctx: ReducerContext) -> None:
    ann = add(ctx, "ann", speed=math.nan)
    assert ctx.db[Player].update(ann.replace(zone=0, speed=float("nan"))) is ann


def test_update_of_a_row_that_is_not_there_is_refused(ctx: ReducerContext) -> None:
    with pytest.raises(RowNotFound, match=r"player: no row has id = 5; use insert or upsert"):
        ctx.db[Player].update(Player(id=5, name="x"))
    with pytest.raises(RowNotFound, match="id = 0"):
        ctx.db[Player].update(Player(name="x"))


def test_update_to_a_taken_unique_value_changes_nothing(ctx: ReducerContext) -> None:
    ann, bob = add(ctx, "ann", zone=1), add(ctx, "bob", zone=2)
    with pytest.raises(ConstraintError, match=r"player\.name: .*'ann'"):
        ctx.db[Player].update(bob.replace(name="ann", zone=3))
    assert ctx.db[Player].where() == [ann, bob]
    assert ctx.db[Player].where(zone=3) == []


def test_a_unique_value_is_free_again_when_its_row_has_gone(ctx: ReducerContext) -> None:
    ann = add(ctx, "ann")
    ctx.db[Player].update(ann.replace(name="anna"))
    add(ctx, "ann")
    ctx.db[Player].delete(1)
    add(ctx, "anna")
    assert sorted(names(list(ctx.db[Player]))) == ["ann", "anna"]


def test_upsert_inserts_or_updates(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    first = table.upsert(Player(name="ann"))
    assert first.id == 1
    assert table.upsert(Player(id=1, name="anna")).name == "anna"
    assert table.upsert(Player(id=9, name="bob")).id == 9
    assert table.upsert(Player(name="cid")).id == 10
    with pytest.raises(ConstraintError, match="'bob'"):
        table.upsert(Player(id=1, name="bob"))
    assert table.count() == 3


def test_delete_takes_a_key_or_a_row_and_says_whether_it_was_there(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    ann = add(ctx, "ann", zone=4)
    add(ctx, "bob", zone=4)
    assert table.delete(ann.replace(zone=9))  # by its key
    assert table.delete(2)
    assert not table.delete(2)
    assert not table.delete(ann)
    with pytest.raises(ColumnError, match=r"player\.id"):
        table.delete("2")
    assert table.where(zone=4) == []
    assert table.between("id", None, None) == []


def test_delete_where_says_how_many(ctx: ReducerContext) -> None:
    for n, name in enumerate("abcd"):
        add(ctx, name, zone=n % 2)
    assert ctx.db[Player].delete_where(zone=1) == 2
    assert ctx.db[Player].delete_where(zone=1) == 0
    with pytest.raises(TypeError, match=r"use clear\(\)"):
        ctx.db[Player].delete_where()
    assert ctx.db[Player].clear() == 2
    assert ctx.db[Player].count() == 0


def test_count_len_iteration_and_membership_agree(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    ann = add(ctx, "ann", speed=math.nan, items=[1])
    assert table.count() == len(table) == len(list(table)) == 1
    assert ann in table
    assert Player(id=1, name="ann", speed=math.nan, items=[1]) in table
    assert ann.replace(zone=5) not in table
    assert ann.replace(items=["x"]) not in table
    assert Tag(owner=1) not in table
    assert 1 not in table
    assert "1 rows" in repr(table)


def test_counting_finds_what_where_finds_in_whatever_form_a_value_is_given(ctx: ReducerContext) -> None:
    table = ctx.db[Player]
    add(ctx, "ann", zone=1, team=None, speed=2.0)
    add(ctx, "bob", zone=1, team="red", speed=3.0)
    questions: list[dict[str, Any]] = [
        {"zone": 1}, {"zone": 7}, {"team": None}, {"team": "red"}, {"team": "blue"}, {"speed": 2}, {"speed": 5},
        {"speed": math.nan}, {"zone": 1, "team": "red"}, {"zone": 1, "level": 1},
    ]  # fmt: skip
    for question in questions:
        for _ in range(2):
            assert table.count(**question) == len(table.where(**question)), question
    for wrong in ({"zone": -1}, {"zone": "1"}, {"team": 5}):
        with pytest.raises(ColumnError):
            table.count(**wrong)
        with pytest.raises(ColumnError):
            table.where(**wrong)


def test_a_table_is_named_by_its_class(ctx: ReducerContext) -> None:
    class Stranger(Row):
        id: PrimaryKey[u8]

    db: Any = ctx.db
    with pytest.raises(UnknownName, match="Stranger is not a table of module 'tables'; its tables: Player, Tag"):
        db[Stranger]
    with pytest.raises(UnknownName, match=r"such as ctx.db\[Player\]; got 'player'"):
        db["player"]
    other = type(Row)("Player", (Row,), {"__annotations__": {"id": int}})
    with pytest.raises(UnknownName, match="another class of that name is"):
        db[other]


# --- loops over a table that changes


@pytest.mark.parametrize(
    "look",
    [
        iter,
        lambda table: table.where(),
        lambda table: table.where(zone=1),
        lambda table: table.where(zone=1, level=1),
        lambda table: table.where(level=1),
        lambda table: table.between("zone", None, None),
        lambda table: table.between("id", None, None),
        lambda table: table.between("level", None, None),
    ],
)
def test_a_loop_goes_over_the_rows_as_they_were_when_it_began(ctx: ReducerContext, look: Callable[[Any], Any]) -> None:
    table = ctx.db[Player]
    for name in "abc":
        add(ctx, name, zone=1)
    seen = []
    for row in look(table):
        seen.append(row.name)
        add(ctx, row.name * 2, zone=1)
        table.upsert(row.replace(zone=2, level=2))
        table.delete(1 + row.id % 3)
    assert seen == ["a", "b", "c"]
    assert sorted(names(table.where(zone=1))) == ["aa", "bb", "cc"]


# --- tables without a primary key


def test_a_table_without_key_is_a_set_of_rows(ctx: ReducerContext) -> None:
    table = ctx.db[Tag]
    first = table.insert(Tag(owner=1, weights=[1]))
    assert table.insert(Tag(owner=1, weights=[1])) is first
    table.insert(Tag(owner=1, weights=[2]))
    assert table.count() == 2
    assert Tag(owner=1, weights=[1]) in table
    assert Tag(owner=1, weights=[3]) not in table
    assert table.delete(Tag(owner=1, weights=[1]))
    assert not table.delete(Tag(owner=1, weights=[1]))
    assert table.where(owner=1) == [Tag(owner=1, weights=[2])]


def test_upsert_into_a_table_without_key_is_insert(ctx: ReducerContext) -> None:
    ctx.db[Tag].upsert(Tag(owner=1))
    ctx.db[Tag].upsert(Tag(owner=1))
    assert ctx.db[Tag].count() == 1


def test_what_needs_a_key_is_refused_in_a_table_without(ctx: ReducerContext) -> None:
    table: Any = ctx.db[Tag]
    with pytest.raises(TransactionError, match="has no primary key, so update cannot tell"):
        table.update(Tag(owner=1))
    for look in (table.get, table.delete):
        with pytest.raises(UnknownName, match="has no primary key; use where"):
            look(1)


class Place(Row):
    x: float
    label: str = ""

    def __repr__(self) -> str:
        return "somewhere"


def test_floats_in_a_table_without_key_are_told_apart_exactly() -> None:
    module = Module("places")
    module.table(Place)
    with Database(module) as db, db.transaction() as ctx:
        table = ctx.db[Place]
        for x in (0.0, -0.0, math.nan, 0.0, -0.0, float("nan"), 1.0):
            table.insert(Place(x=x))
        assert list(map(str, (row.x for row in table))) == ["0.0", "-0.0", "nan", "1.0"]
        assert Place(x=math.nan) in table
        assert table.delete(Place(x=-0.0))
        assert not table.delete(Place(x=-0.0))
        assert Place(x=0.0) in table


def test_a_repr_of_its_own_does_not_make_rows_alike() -> None:
    module = Module("places")

    @module.table
    class Spot(Row):
        id: PrimaryKey[u8]
        x: float

        def __repr__(self) -> str:
            return "somewhere"

    with Database(module) as db, db.transaction() as ctx:
        ctx.db[Spot].insert(Spot(id=1, x=1.0))
        assert ctx.db[Spot].update(Spot(id=1, x=2.0)).x == 2.0


# --- outside of transactions


def test_a_table_written_outside_a_transaction_is_refused() -> None:
    with Database(module) as db:
        with db.transaction() as ctx:
            table = ctx.db[Tag]
        with pytest.raises(TransactionError, match="table 'tag' was written outside a transaction"):
            table.insert(Tag(owner=1))
        with pytest.raises(TransactionError, match="savepoint outside a transaction"), ctx.savepoint():
            pass
        assert db.read(Tag).count() == 0


def test_committed_rows_can_be_read_in_every_way_but_not_written() -> None:
    with Database(module) as db:
        with db.transaction() as ctx:
            ann = add(ctx, "ann", zone=1)
        table = db.read(Player)
        assert table is db.read(Player)
        assert table.get(1) == table.find(name="ann") == ann
        assert table.where(zone=1) == table.between("zone", 1, 1) == list(table) == [ann]
        assert ann in table
        assert len(table) == table.count() == 1
        assert not hasattr(table, "insert")
        with pytest.raises(UnknownName):
            db.read(Place)
