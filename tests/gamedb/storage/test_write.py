"""What a write leaves in the database, and what a failed one does not."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Place, rows_of, schemas
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import Hit, Player, Tag

from gamedb.columns import FrozenList
from gamedb.errors import WriteFailed
from gamedb.schema import AutoInc, PrimaryKey, Row
from gamedb.storage.statements import Groups
from gamedb.types import u8, u64, u128

TABLES = schemas(Player, Tag, Hit, hit={"event": True})


def players(count: int, zone: int = 0) -> dict[int, Player]:
    return {i: Player(id=i, name=f"player {i}", zone=zone) for i in range(1, count + 1)}


def test_a_write_leaves_the_final_state_of_each_row(place: Place) -> None:
    storage = place.open(TABLES)
    storage.write(1, {"player": players(3)})
    storage.write(2, {"player": {1: None, 2: Player(id=2, name="Ada"), 9: None}})
    storage.close()

    storage = place.open(TABLES)
    assert storage.last_tx_id == 2
    assert rows_of(storage, "player") == [Player(id=2, name="Ada"), Player(id=3, name="player 3")]
    storage.close()


def test_rows_without_a_primary_key_go_by_their_values(place: Place) -> None:
    storage = place.open(TABLES)
    first, second = Tag(player=1, label="mage"), Tag(player=1, label="elf")
    storage.write(1, {"tag": {first: first, second: second}})
    storage.write(2, {"tag": {first: first}})  # once more is still once
    storage.write(3, {"tag": {Tag(player=1, label="elf"): None}})
    assert rows_of(storage, "tag") == [first]
    storage.close()


def test_hidden_keys_tell_minus_zero_from_zero_and_take_nan_for_itself(place: Place) -> None:
    class Reading(Row):
        value: float
        values: list[float]

    storage = place.open(schemas(Reading))
    nan, zero = float("nan"), Reading(value=0.0, values=FrozenList([0.0]))
    minus, nans = Reading(value=-0.0, values=FrozenList([-0.0])), Reading(value=nan, values=FrozenList([nan]))
    storage.write(1, {"reading": {zero: zero, nans: nans}})
    storage.write(2, {"reading": {minus: minus}})
    assert len(rows_of(storage, "reading")) == 3
    storage.write(3, {"reading": {minus: None, Reading(value=-nan, values=FrozenList([nan])): None}})
    assert [repr(row) for row in rows_of(storage, "reading")] == [repr(zero)]
    storage.close()


def test_event_rows_are_not_stored(place: Place) -> None:
    storage = place.open(TABLES)
    storage.write(1, {"hit": {Hit(player=1): Hit(player=1)}, "player": players(1)})
    assert [name for name, _ in storage.load()] == ["player"]
    storage.close()


@pytest.mark.parametrize("count", [1, 2, 3, 100, 1000, 9000])
def test_any_number_of_rows_is_written_and_deleted(place: Place, count: int) -> None:
    storage = place.open(TABLES)
    storage.write(1, {"player": players(count)})
    storage.write(2, {"player": players(count, zone=5)})
    assert {row.id: row for row in rows_of(storage, "player")} == players(count, zone=5)
    storage.write(3, {"player": dict.fromkeys(range(1, count + 1))})
    assert rows_of(storage, "player") == []
    storage.close()


@settings(deadline=None)
@given(st.integers(1, 30_000), st.integers(1, 40))
def test_statements_are_few_and_of_few_sizes(rows: int, width: int) -> None:
    class Cursor:
        def __init__(self) -> None:
            self.executed: list[tuple[int, int]] = []

        def execute(self, text: str, parameters: list[Any]) -> None:
            seen.update(parameters[::width])
            self.executed.append((text.count("?"), len(parameters)))

    seen: set[int] = set()
    cursor = Cursor()
    statement = Groups("", ", ".join("?" * width), "", width)
    statement.run(cursor, [i for i in range(rows) for _ in range(width)])

    assert seen == set(range(rows))
    assert all(marks == given <= 32_766 for marks, given in cursor.executed)
    sizes = [marks // width for marks, _ in cursor.executed]
    assert all(size & (size - 1) == 0 for size in sizes)
    assert sum(sizes) <= rows * 4 / 3 + 1
    assert len(sizes) <= rows // statement.rows_max + 2


def test_a_table_of_more_columns_than_fit_a_large_statement(place: Place) -> None:
    names = [f"c{i}" for i in range(300)]
    wide: Any = type(Row)(
        "Wide", (Row,), {"__annotations__": {"id": PrimaryKey[u64], **dict.fromkeys(names, int)}, "__module__": "x"}
    )
    rows = {i: wide(id=i, **dict.fromkeys(names, i)) for i in range(500)}
    storage = place.open(schemas(wide))
    storage.write(1, {"wide": rows})
    assert rows_of(storage, "wide") == list(rows.values())
    storage.close()


def test_names_that_sql_reserves_are_ordinary_names(place: Place) -> None:
    class Order(Row):
        group: PrimaryKey[u64]
        select: int
        Mixed: int
        größe: int

    storage = place.open(schemas(Order))
    row = Order(group=1, select=2, Mixed=3, größe=4)
    storage.write(1, {"order": {1: row}})
    storage.write(2, {"order": {1: row.replace(select=5)}})
    assert rows_of(storage, "order") == [row.replace(select=5)]
    storage.write(3, {"order": {1: None}})
    assert rows_of(storage, "order") == []
    storage.close()


def test_sequences_come_back(place: Place) -> None:
    storage = place.open(TABLES)
    assert storage.sequences == {"player": 1}
    storage.write_sequences({"player": 2**64})
    storage.close()

    storage = place.open(TABLES)
    assert storage.sequences == {"player": 2**64}
    storage.close()


@pytest.mark.parametrize(("kind", "largest"), [(u8, 200), (u64, 5), (u64, 2**63 + 5), (u128, 2**100)])
def test_the_next_number_is_above_every_stored_one(place: Place, kind: Any, largest: int) -> None:
    counted: Any = type(Row)(
        "Counted",
        (Row,),
        {"__annotations__": {"id": PrimaryKey[AutoInc[kind]]}, "__module__": "x"},
    )
    storage = place.open(schemas(counted))
    storage.write(1, {"counted": {n: counted(id=n) for n in (3, 99, largest)}})
    storage.close()
    storage = place.open(schemas(counted))
    assert storage.sequences == {"counted": max(99, largest) + 1}
    storage.close()


def test_an_update_of_one_row_again_and_again_keeps_the_files_small(sqlite_place: Place) -> None:
    storage = sqlite_place.open(TABLES)
    for i in range(2000):
        storage.write(i + 1, {"player": {1: Player(id=1, name="x" * 1000, zone=i)}})
    wal = os.path.getsize(f"{sqlite_place.target}-wal")
    storage.close()
    assert wal < 8_000_000
    assert os.path.getsize(sqlite_place.target) < 200_000
    assert not os.path.exists(f"{sqlite_place.target}-wal")


def test_a_full_disk_fails_the_write_as_a_whole(sqlite_place: Place) -> None:
    code = """
import resource, sys
from gamedb.errors import WriteFailed
from gamedb.storage import open_storage
from conftest import schemas
from test_write import TABLES, players
storage = open_storage(sys.argv[1], TABLES, progress=None)
storage.write(1, {"player": players(100)})
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
for attempt in range(2):
    try:
        storage.write(2, {"player": players(50_000, zone=7)})
    except WriteFailed as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(storage.last_tx_id)
storage.close()
"""
    output = _python(code, sqlite_place.target)
    assert output.count("writing failed") == 2
    assert output.split()[-1] == "1"

    storage = sqlite_place.open(TABLES)
    assert storage.last_tx_id == 1
    assert {row.id: row for row in rows_of(storage, "player")} == players(100)
    storage.close()


def _python(code: str, *arguments: str) -> str:
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parents[2])])
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    return subprocess.run(
        [sys.executable, "-c", ignore + code, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_a_write_that_the_database_refuses_leaves_nothing(place: Place) -> None:
    storage = place.open(TABLES)
    storage.write(1, {"player": players(1)})
    wrong: Any = Player(id=2, name="Ada", zone="north")  # type: ignore[arg-type]  # as no row check would let it by
    with pytest.raises(WriteFailed, match="writing failed"):
        storage.write(2, {"player": {1: None, 2: wrong}})
    assert storage.last_tx_id == 1
    assert rows_of(storage, "player") == [players(1)[1]]
    storage.close()


def test_a_lost_server_fails_the_write_and_closing_works(postgres_place: Place) -> None:
    storage = postgres_place.open(TABLES)
    postgres_place.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE application_name LIKE 'gamedb, process {os.getpid()} %'"
    )
    for _ in range(2):
        with pytest.raises(WriteFailed):
            storage.write(1, {"player": players(1)})
    storage.close()
    storage = postgres_place.open(TABLES)
    assert rows_of(storage, "player") == []
    storage.close()


def test_another_tool_may_read_a_large_result_meanwhile(sqlite_place: Place) -> None:
    storage = sqlite_place.open(TABLES)
    storage.write(1, {"player": players(1000)})
    reader = sqlite3.connect(sqlite_place.target)
    cursor = reader.execute("SELECT id FROM player")
    cursor.fetchone()
    storage.write(2, {"player": dict.fromkeys(range(1, 1001))})
    assert len(cursor.fetchall()) == 999  # it still sees the rows of its own moment
    reader.close()
    storage.close()
