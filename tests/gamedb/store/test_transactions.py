"""What a transaction leaves behind: net changes, rollback, savepoints, auto-increment, event tables."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Commit,
    ConstraintError,
    Database,
    Index,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    TransactionError,
    Unique,
    i8,
    u8,
    u32,
    u64,
)

module = Module("transactions")


@module.table(indexes=[("zone", "hp")])
class Unit(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    zone: Index[u32] = 0
    hp: u32 = 100
    x: float = 0.0


@module.table
class Seat(Row):
    row: u32
    x: float = 0.0


@module.table
class Tiny(Row):
    id: PrimaryKey[AutoInc[u8]] = 0
    name: Unique[str | None] = None


@module.table
class Signed(Row):
    id: PrimaryKey[AutoInc[i8]] = 0


@module.table
class Ticket(Row):
    """A number that is not the key."""

    name: PrimaryKey[str]
    number: Unique[AutoInc[u32]] = 0


@module.table(event=True)
class Hit(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    unit: Index[u64]


@module.table(event=True)
class Shout(Row):
    text: str


class Undo(Exception):
    """Ends a transaction or savepoint of these tests."""


@pytest.fixture
def db() -> Any:
    with Database(module) as db:
        yield db


@pytest.fixture
def commits(db: Database) -> list[Commit]:
    seen: list[Commit] = []
    db.subscribe([Unit, Seat, Hit, Shout, Ticket], seen.append)
    return seen


def unit(ctx: ReducerContext, name: str, **columns: Any) -> Unit:
    return ctx.db[Unit].insert(Unit(name=name, **columns))


def assert_indexes_fit(db: Database) -> None:
    """The indexes hold exactly the rows."""
    data = db.tables[Unit].data
    rows = list(data.rows.values())
    assert data.unique["name"].keys == {row.name: row.id for row in rows}  # type: ignore[attr-defined]
    for columns, index in data.indexes.items():
        held = {}
        for value, key in index.keys.items():
            for k in key if isinstance(key, dict) else [key]:
                held[k] = value if len(columns) > 1 else (value,)
        assert held == {key: tuple(getattr(row, c) for c in columns) for key, row in data.rows.items()}


# --- net changes


def test_a_commit_tells_who_when_what(db: Database, commits: list[Commit]) -> None:
    with db.transaction(name="spawn") as ctx:
        ann = unit(ctx, "ann")
        now = ctx.now
    [commit] = commits
    assert commit.tx_id == db.last_tx_id
    assert commit.timestamp == now
    assert commit.caller == db.identity
    assert commit.reducer == "spawn"
    changes = commit.of(Unit)
    assert changes is not None
    assert (changes.inserted, changes.deleted, changes.updated) == ([ann], [], [])
    assert commit.of(Seat) is None
    assert "spawn" in repr(commit)


def test_an_update_is_one_change_with_both_rows(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        old = unit(ctx, "ann")
    with db.transaction() as ctx:
        ctx.db[Unit].update(old.replace(hp=1))
        new = ctx.db[Unit].update(old.replace(hp=2))
    changes = commits[-1].of(Unit)
    assert changes is not None
    assert changes.updated == [(old, new)]
    assert (changes.deleted, changes.inserted) == ([old], [new])


def test_what_comes_and_goes_in_one_transaction_is_no_change(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann")
        seat = ctx.db[Seat].insert(Seat(row=1))
        ctx.db[Unit].delete(ann)
        ctx.db[Seat].delete(seat)
    assert commits == []


def test_what_goes_and_comes_back_is_no_change(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann")
        ctx.db[Seat].insert(Seat(row=1))
    last = db.last_tx_id
    with db.transaction() as ctx:
        ctx.db[Unit].delete(ann)
        ctx.db[Unit].insert(Unit(id=ann.id, name="ann"))
        ctx.db[Seat].delete(Seat(row=1))
        ctx.db[Seat].insert(Seat(row=1))
        ctx.db[Unit].update(ann.replace(hp=1))
        ctx.db[Unit].update(ann)
    assert len(commits) == 1
    assert db.last_tx_id == last


def test_delete_and_insert_under_one_key_is_an_update(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann")
    with db.transaction() as ctx:
        ctx.db[Unit].delete(ann)
        bob = ctx.db[Unit].insert(Unit(id=ann.id, name="bob"))
    changes = commits[-1].of(Unit)
    assert changes is not None
    assert changes.updated == [(ann, bob)]


def test_without_a_key_a_change_is_a_delete_and_an_insert(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        ctx.db[Seat].insert(Seat(row=1))
    with db.transaction() as ctx:
        ctx.db[Seat].delete(Seat(row=1))
        ctx.db[Seat].insert(Seat(row=2))
    changes = commits[-1].of(Seat)
    assert changes is not None
    assert (changes.deleted, changes.inserted, changes.updated) == ([Seat(row=1)], [Seat(row=2)], [])


@pytest.mark.parametrize("x", [1.5, 0.0, -0.0, math.inf, math.nan])
def test_an_update_to_equal_values_is_no_change(db: Database, commits: list[Commit], x: float) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann", x=x)
    with db.transaction() as ctx:
        ctx.db[Unit].update(ann.replace(x=float(repr(x))))
    assert len(commits) == 1


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (-0.0, 0.0), (math.nan, 0.0), (0.0, math.nan)])
def test_an_update_to_another_float_is_a_change(
    db: Database, commits: list[Commit], before: float, after: float
) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann", x=before)
    with db.transaction() as ctx:
        ctx.db[Unit].update(ann.replace(x=after))
    assert len(commits) == 2
    row = db.read(Unit).get(1)
    assert row is not None
    assert repr(row.x) == repr(after)


def test_a_transaction_that_changes_nothing_has_no_number(db: Database) -> None:
    last = db.last_tx_id
    with db.transaction() as ctx:
        ctx.db[Unit].delete_where(zone=1)
    assert db.last_tx_id == last


def test_a_deleted_key_in_another_form_is_reported_as_the_row_has_it(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        unit(ctx, "ann")
    with db.transaction() as ctx:
        key: Any = True  # Python finds the key 1 with it
        assert ctx.db[Unit].delete(key)
    [(key, _, _)] = commits[-1].changes["unit"].changes
    assert type(key) is int


# --- rollback


def test_an_exception_leaves_nothing(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        for name in "abc":
            unit(ctx, name, zone=1)
            ctx.db[Seat].insert(Seat(row=ord(name)))
    units, seats = list(db.read(Unit)), list(db.read(Seat))
    db.read(Unit).between("zone", None, None)
    db.read(Unit).between("id", None, None)
    with pytest.raises(Undo), db.transaction() as ctx:
        a, b, _ = units
        ctx.db[Unit].delete(a)
        ctx.db[Unit].update(b.replace(name="a", zone=7, hp=1))
        unit(ctx, "b", zone=3)
        ctx.db[Unit].insert(Unit(id=a.id, name="z"))
        ctx.db[Seat].clear()
        ctx.db[Seat].insert(Seat(row=7))
        raise Undo
    assert sorted(db.read(Unit), key=lambda row: row.id) == units
    assert sorted(db.read(Seat), key=lambda row: row.row) == seats
    assert len(commits) == 1
    assert_indexes_fit(db)
    assert sorted(db.read(Unit).between("zone", None, None), key=lambda row: row.id) == units
    assert db.read(Unit).between("id", None, None) == units


def test_unique_values_that_moved_between_rows_move_back(db: Database) -> None:
    with db.transaction() as ctx:
        a, b = unit(ctx, "a"), unit(ctx, "b")
    with pytest.raises(Undo), db.transaction() as ctx:
        ctx.db[Unit].update(a.replace(name="tmp"))
        ctx.db[Unit].update(b.replace(name="a"))
        ctx.db[Unit].update(a.replace(name="b"))
        raise Undo
    assert db.read(Unit).find(name="a") == a
    assert db.read(Unit).find(name="b") == b
    assert_indexes_fit(db)


def test_an_error_in_the_middle_of_a_write_leaves_the_row_as_it_was(db: Database) -> None:
    with db.transaction() as ctx:
        a, b = unit(ctx, "a"), unit(ctx, "b")
        with pytest.raises(ConstraintError):
            ctx.db[Unit].update(b.replace(name="a", zone=9))
    assert list(db.read(Unit)) == [a, b]
    assert_indexes_fit(db)


# --- savepoints


def test_a_savepoint_that_raises_undoes_its_own_part(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        ann = unit(ctx, "ann")
        with pytest.raises(Undo), ctx.savepoint():
            ctx.db[Unit].update(ann.replace(hp=1))
            unit(ctx, "bob")
            ctx.db[Seat].insert(Seat(row=1))
            raise Undo
        assert list(ctx.db[Unit]) == [ann]
        unit(ctx, "cid")
    assert [row.name for row in db.read(Unit)] == ["ann", "cid"]
    assert list(commits[-1].changes) == ["unit"]
    assert_indexes_fit(db)


def test_a_savepoint_that_ends_well_keeps_its_part(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        old = unit(ctx, "ann")
    with db.transaction() as ctx:
        ctx.db[Unit].update(old.replace(hp=1))
        with ctx.savepoint():
            ctx.db[Unit].update(old.replace(hp=2))
            ctx.db[Seat].insert(Seat(row=1))
    changes = commits[-1].of(Unit)
    assert changes is not None
    assert changes.updated == [(old, old.replace(hp=2))]
    assert db.read(Seat).count() == 1


def test_a_kept_savepoint_is_undone_with_its_transaction(db: Database) -> None:
    with pytest.raises(Undo), db.transaction() as ctx:
        with ctx.savepoint():
            unit(ctx, "ann")
        raise Undo
    assert db.read(Unit).count() == 0
    assert_indexes_fit(db)


def test_savepoints_nest(db: Database) -> None:
    with db.transaction() as ctx:
        row = unit(ctx, "ann", hp=0)
        with ctx.savepoint():
            row = ctx.db[Unit].update(row.replace(hp=1))
            with pytest.raises(Undo), ctx.savepoint():
                ctx.db[Unit].update(row.replace(hp=2))
                with ctx.savepoint():
                    ctx.db[Unit].update(row.replace(hp=3))
                    unit(ctx, "bob")
                raise Undo
            assert ctx.db[Unit].get(1) == row
            with ctx.savepoint():
                ctx.db[Unit].delete(1)
    assert db.read(Unit).count() == 0
    assert_indexes_fit(db)


def test_a_savepoint_that_is_left_open_fails_the_transaction(db: Database) -> None:
    with pytest.raises(TransactionError, match="savepoint is still open"), db.transaction() as ctx:
        unit(ctx, "ann")
        db.store.savepoint()
        unit(ctx, "bob")
    assert db.read(Unit).count() == 0
    with db.transaction() as ctx:
        assert unit(ctx, "cid").id == 3


# --- auto-increment


def test_numbers_count_up_from_one(db: Database) -> None:
    with db.transaction() as ctx:
        assert [unit(ctx, name).id for name in "abc"] == [1, 2, 3]


def test_an_explicit_larger_key_moves_the_numbers_on(db: Database) -> None:
    with db.transaction() as ctx:
        assert unit(ctx, "a", id=10).id == 10
        assert unit(ctx, "b").id == 11
        assert unit(ctx, "c", id=5).id == 5
        assert unit(ctx, "d").id == 12


def test_a_number_is_never_handed_out_twice(db: Database) -> None:
    with db.transaction() as ctx:
        unit(ctx, "a")
        ctx.db[Unit].delete(1)
        with pytest.raises(Undo), ctx.savepoint():
            assert unit(ctx, "b").id == 2
            raise Undo
        assert unit(ctx, "c").id == 3
    with pytest.raises(Undo), db.transaction() as ctx:
        assert unit(ctx, "d").id == 4
        raise Undo
    with db.transaction() as ctx:
        ctx.db[Unit].clear()
        assert unit(ctx, "e").id == 5


def test_an_explicit_key_that_is_rolled_back_uses_up_no_numbers(db: Database) -> None:
    with db.transaction() as ctx:
        unit(ctx, "a")
    with pytest.raises(Undo), db.transaction() as ctx:
        unit(ctx, "b", id=2**64 - 1)
        raise Undo
    with db.transaction() as ctx:
        with pytest.raises(Undo), ctx.savepoint():
            unit(ctx, "b", id=2**64 - 1)
            with ctx.savepoint():
                unit(ctx, "c", id=2**63)
            raise Undo
        assert unit(ctx, "d").id == 2


def test_a_number_after_an_explicit_key_is_not_handed_out_again_after_rollback(db: Database) -> None:
    with pytest.raises(Undo), db.transaction() as ctx:
        unit(ctx, "a", id=100)
        assert unit(ctx, "b").id == 101
        raise Undo
    with db.transaction() as ctx:
        assert unit(ctx, "c").id == 102


def test_the_last_number_can_be_used_and_then_none_is_left(db: Database) -> None:
    with db.transaction() as ctx:
        ctx.db[Tiny].insert(Tiny(id=254))
        assert ctx.db[Tiny].insert(Tiny()).id == 255
        with pytest.raises(ConstraintError, match=r"tiny\.id: .*used up \(the highest is 255\); use a wider type"):
            ctx.db[Tiny].insert(Tiny())
        assert ctx.db[Tiny].insert(Tiny(id=7)).id == 7


def test_a_refused_explicit_key_uses_up_nothing(db: Database) -> None:
    with db.transaction() as ctx:
        ctx.db[Tiny].insert(Tiny(name="ann"))
        with pytest.raises(ConstraintError, match="'ann'"):
            ctx.db[Tiny].insert(Tiny(id=255, name="ann"))
        assert ctx.db[Tiny].insert(Tiny()).id == 2


def test_negative_keys_leave_the_numbers_alone(db: Database) -> None:
    with db.transaction() as ctx:
        assert ctx.db[Signed].insert(Signed(id=-5)).id == -5
        assert ctx.db[Signed].insert(Signed()).id == 1


def test_a_number_beside_the_key_is_assigned_by_insert_and_by_update(db: Database) -> None:
    with db.transaction() as ctx:
        table = ctx.db[Ticket]
        ann = table.insert(Ticket(name="ann"))
        bob = table.insert(Ticket(name="bob"))
        assert (ann.number, bob.number) == (1, 2)
        assert table.update(Ticket(name="ann")).number == 3
        assert table.upsert(Ticket(name="bob")).number == 4
        assert table.update(Ticket(name="ann", number=10)).number == 10
        assert table.insert(Ticket(name="cid")).number == 11
        assert table.find(number=4) == table.get("bob")


# --- event tables


def test_events_live_in_their_transaction_and_are_told_of(db: Database, commits: list[Commit]) -> None:
    with db.transaction() as ctx:
        hit = ctx.db[Hit].insert(Hit(unit=1))
        assert ctx.db[Hit].where(unit=1) == ctx.db[Hit].between("unit", 0, 9) == [hit]
        ctx.db[Shout].insert(Shout(text="ouch"))
    assert db.read(Hit).count() == db.read(Shout).count() == 0
    assert db.read(Hit).where(unit=1) == db.read(Hit).between("unit", 0, 9) == []
    [commit] = commits
    assert commit.changes["hit"].inserted == [hit]
    assert commit.changes["shout"].inserted == [Shout(text="ouch")]
    with db.transaction() as ctx:
        assert ctx.db[Hit].insert(Hit(unit=1)).id == 2
        ctx.db[Shout].insert(Shout(text="ouch"))
    assert commits[-1].changes["shout"].inserted == [Shout(text="ouch")]


def test_events_of_a_rolled_back_part_are_not_told(db: Database, commits: list[Commit]) -> None:
    with pytest.raises(Undo), db.transaction() as ctx:
        ctx.db[Hit].insert(Hit(unit=1))
        raise Undo
    with db.transaction() as ctx:
        with pytest.raises(Undo), ctx.savepoint():
            ctx.db[Hit].insert(Hit(unit=1))
            raise Undo
        kept = ctx.db[Hit].insert(Hit(unit=2))
        ctx.db[Shout].insert(Shout(text="a"))
        ctx.db[Shout].delete(Shout(text="a"))
    [commit] = commits
    assert {name: changes.inserted for name, changes in commit.changes.items()} == {"hit": [kept]}
