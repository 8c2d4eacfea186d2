"""A row that no place could keep is refused where it is written, and stops nobody else."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamedb import (
    AutoInc,
    ColumnError,
    Database,
    Identity,
    Module,
    PrimaryKey,
    Row,
    ScheduleAt,
    Struct,
    f32,
    u8,
    u64,
    u256,
)
from gamedb.columns import column_type, weight_function
from gamedb.store.codegen import ROW_BYTES_MAX
from gamedb.testing import values


class Mood(enum.Enum):
    CALM = 1
    FURIOUS_BEYOND_ALL_MEASURE_AND_REASON = 2


class Part(Struct):
    kind: str
    number: u64
    mood: Mood = Mood.CALM


class Tree(Struct):
    name: str
    branches: list[Tree]


class Text(Struct, tag=True):
    text: str


class Blob(Struct, tag=True):
    data: bytes


module = Module("sizes")


@module.table
class Thing(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    text: str = ""
    data: bytes | None = None
    parts: list[Part] = []
    numbers: list[u8] = []
    note: str = ""


SIZE_MAX = 1_000_000


@pytest.fixture
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamedb.store.codegen.ROW_BYTES_MAX", SIZE_MAX)


def test_a_row_that_is_too_large_is_refused_and_the_game_goes_on(tmp_path: Path) -> None:
    with Database(module, tmp_path / "sizes.db", quiet=True) as db:
        with (
            db.transaction() as ctx,
            pytest.raises(
                ColumnError, match=r"thing: a row of about 67108873 bytes is too large .* most of it in 'text'"
            ),
        ):
            ctx.db[Thing].insert(Thing(text="x" * (ROW_BYTES_MAX + 1)))
        with db.transaction() as ctx:
            ctx.db[Thing].insert(Thing(text="small"))
        db.flush()
    with Database(module, tmp_path / "sizes.db", quiet=True) as db:
        assert [row.text for row in db.read(Thing)] == ["small"]


@pytest.mark.usefixtures("small_rows")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", "x" * (SIZE_MAX + 1)),
        ("data", bytes(SIZE_MAX + 1)),
        ("parts", [Part(kind="x" * 1000, number=1)] * 1000),
        ("parts", [Part(kind="", number=1)] * 20_000),
        ("numbers", [1] * SIZE_MAX),
    ],
)
def test_whatever_makes_it_large(column: str, value: Any) -> None:
    with Database(module) as db, db.transaction() as ctx:
        kept = ctx.db[Thing].insert(Thing())
        large: dict[str, Any] = {column: value}
        for write in (ctx.db[Thing].insert, ctx.db[Thing].update, ctx.db[Thing].upsert):
            with pytest.raises(ColumnError, match=f"too large .at most {SIZE_MAX}., most of it in {column!r}"):
                write(kept.replace(**large))
        assert list(ctx.db[Thing]) == [kept]


@pytest.mark.usefixtures("small_rows")
def test_it_is_the_whole_row_that_counts() -> None:
    with Database(module) as db, db.transaction() as ctx:
        row = ctx.db[Thing].insert(Thing(text="x" * (SIZE_MAX - 1000)))
        row = ctx.db[Thing].update(row.replace(note="small things may change"))
        with pytest.raises(ColumnError, match="most of it in 'text'"):
            ctx.db[Thing].update(row.replace(note="y" * 100_000))
        ctx.db[Thing].update(row.replace(text="", note="y" * 100_000))


@pytest.mark.usefixtures("small_rows")
def test_a_large_row_that_is_not_too_large_stays_what_it_is(tmp_path: Path) -> None:
    row = Thing(text="é" * 400_000, data=bytes(100_000), parts=[Part(kind="sword", number=2)] * 1000)
    with Database(module, tmp_path / "sizes.db", quiet=True) as db, db.transaction() as ctx:
        kept = ctx.db[Thing].insert(row)
    with Database(module, tmp_path / "sizes.db", quiet=True) as db:
        assert list(db.read(Thing)) == [kept]


TYPES: list[Any] = [
    bool, u8, u64, u256, int, f32, float, str, bytes, datetime, timedelta, UUID, Identity, ScheduleAt, Mood, Part, Tree,
    Text | Blob, str | None, list[bool], list[u8], list[str], list[Part], list[Tree], list[list[str]],
    list[Text | Blob], list[str | None],
]  # fmt: skip


@pytest.mark.parametrize("annotation", TYPES, ids=str)
@given(st.data())
def test_what_a_value_takes_is_at_most_six_times_what_it_weighs(annotation: Any, data: st.DataObject) -> None:
    kind = column_type(annotation, "a test")
    value = kind.coerce(data.draw(values(annotation)), "a test")
    weigh = weight_function(kind)
    weight = int(kind.weight("v", {})) if weigh is None else weigh(value)
    assert len(msgspec.json.encode(kind.to_json(value))) <= 6 * weight + 2
