"""The SQLModel classes that people query a database with: typed values in and out."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import msgspec
import pytest
from conftest import Place, schemas
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import StatementError
from sqlmodel import Session, col, func, select
from tables import Hit, Tag

from gamedb.module import Module
from gamedb.schema import AutoInc, Index, PrimaryKey, Row, Struct, Unique
from gamedb.storage import models_for
from gamedb.types import ConnectionId, Identity, u32, u64


class Rank(enum.Enum):
    NOVICE = 1
    MASTER = 2


class Point(Struct):
    x: float
    y: float


class Player(Row):
    """One who plays."""

    id: PrimaryKey[AutoInc[u64]] = 0
    identity: Unique[Identity]
    name: str
    zone: Index[u32] = 0
    rank: Rank = Rank.NOVICE
    joined: datetime
    online: timedelta = timedelta(0)
    home: Point | None = None
    friends: list[u64] = []  # msgspec copies it
    token: UUID = UUID(int=0)
    connection: ConnectionId | None = None


class Odd(Row):
    """Columns with names that SQLModel or pydantic use."""

    id: PrimaryKey[u64]
    metadata: str
    registry: str
    json: str
    copy: str
    copy_: str
    model_config: str
    model_dump: str
    schema: str


TABLES = schemas(Player, Tag, Hit, Odd, hit={"event": True})
JOINED = datetime(2026, 11, 29, 12, 30, 0, 250, tzinfo=UTC)
ADA = Player(
    id=2**64 - 1,
    identity=Identity.from_int(1),
    name="Ada\x00",
    zone=1,
    rank=Rank.MASTER,
    joined=JOINED,
    online=timedelta(hours=2),
    home=Point(1.5, -2.5),
    friends=[7, 2**63],
    token=UUID(int=5),
    connection=ConnectionId.from_int(9),
)
BOB = Player(id=7, identity=Identity.from_int(2), name="Bob", zone=2, joined=JOINED + timedelta(days=1))
models = models_for(TABLES)


@pytest.fixture
def session(place: Place) -> Iterator[Session]:
    with closing(place.open(TABLES)) as storage:
        schema = TABLES["player"]
        rows = [Player(**{c.name: c.type.coerce(getattr(r, c.name), "") for c in schema.columns}) for r in (ADA, BOB)]
        storage.write(1, {"player": {row.id: row for row in rows}, "tag": {(tag := Tag(player=7, label="x")): tag}})
    url = place.url if place.is_sqlite else f"{place.url}&options=-csearch_path%3D{place.name}"
    engine: Engine = create_engine(url, poolclass=NullPool)
    with Session(engine) as session:
        yield session
    engine.dispose()


def test_a_row_has_the_values_of_its_columns_types(session: Session) -> None:
    found = session.exec(select(models.Player).where(models.Player.zone == 1)).one()
    assert {name: getattr(found, name) for name in Player.__struct_fields__} == {
        name: getattr(ADA, name) for name in Player.__struct_fields__
    }


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 2**64 - 1),
        ("identity", Identity.from_int(1)),
        ("name", "Ada\x00"),
        ("rank", Rank.MASTER),
        ("joined", JOINED.astimezone(timezone(timedelta(hours=5)))),
        ("online", timedelta(hours=2)),
        ("home", Point(1.5, -2.5)),
        ("friends", [7, 2**63]),
        ("token", UUID(int=5)),
        ("connection", ConnectionId.from_int(9)),
    ],
)
def test_columns_compare_with_values_of_their_type(session: Session, column: str, value: object) -> None:
    attribute = getattr(models.Player, column)
    assert session.exec(select(models.Player.id).where(attribute == value)).all() == [ADA.id]
    assert session.exec(select(models.Player.id).where(attribute.in_([value]))).all() == [ADA.id]


def test_times_compare_in_order_and_optional_columns_with_none(session: Session) -> None:
    player = models.Player
    assert session.exec(select(player.name).where(player.joined > JOINED)).all() == ["Bob"]
    assert session.exec(select(player.name).where(col(player.home).is_(None))).all() == ["Bob"]
    assert session.exec(select(func.max(player.joined))).one() == BOB.joined
    assert session.exec(select(player.name).where(col(player.name).like("B%"))).all() == ["Bob"]


def test_a_value_of_another_type_is_an_error(session: Session) -> None:
    with pytest.raises(StatementError, match="expected Identity"):
        session.exec(select(models.Player).where(col(models.Player.identity).in_(["ada"]))).all()


def test_tables_join(session: Session) -> None:
    query = select(models.Player.name, models.Tag.label).join(models.Tag, models.Tag.player == models.Player.id)
    assert session.exec(query).all() == [("Bob", "x")]


def test_names_that_sqlmodel_needs_get_an_underscore_in_the_model_only() -> None:
    fields = set(models.Odd.model_fields)
    assert fields == {
        *("id", "metadata_", "registry_", "json_", "copy_", "copy__", "model_config_", "model_dump_", "schema_")
    }
    assert [column.name for column in models.Odd.__table__.columns] == list(Odd.__struct_fields__)


def test_the_hidden_key_of_a_table_without_one_gives_way_to_columns() -> None:
    class Keyless(Row):
        row_key: str

    model = models_for(schemas(Keyless)).Keyless
    assert set(model.model_fields) == {"row_key_", "row_key"}
    assert [column.name for column in model.__table__.columns] == ["_row_key", "row_key"]


def test_models_go_by_class_and_by_table_name() -> None:
    class Other(Row):
        id: PrimaryKey[u64]

    assert models["player"] is models.Player
    assert models.Player.__doc__ == "One who plays."
    assert "Player" in dir(models)
    assert [model.__tablename__ for model in models] == ["player", "tag", "odd"]
    with pytest.raises(AttributeError, match=r"no stored table has the Row class 'Hit' \(there are Player, Tag, Odd\)"):
        _ = models.Hit
    same = schemas(Other)["other"]
    two = models_for({"a": msgspec.structs.replace(same, name="a"), "b": msgspec.structs.replace(same, name="b")})
    with pytest.raises(AttributeError, match=r"several tables have a Row class Other; write models\['a'\], models"):
        _ = two.Other


def test_each_call_makes_classes_of_its_own() -> None:
    assert models_for(TABLES).Player is not models.Player


def test_a_module_is_taken_as_well() -> None:
    module = Module("arena")
    module.table(Tag)
    assert models_for(module).Tag.__tablename__ == "tag"
