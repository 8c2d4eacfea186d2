"""Single values as bytes: known vectors, the edges of types, and what is refused."""

from __future__ import annotations

import enum
import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gamedb import types
from gamedb.columns import FrozenList, column_type
from gamedb.errors import SchemaError, WireError
from gamedb.functions import Parameter, declare
from gamedb.schema import PrimaryKey, Row, Struct, table_schema
from gamedb.types import ConnectionId, Identity, ScheduleAt
from gamedb.wire.bsatn import Codec, codec, parameters_codec, row_codec
from gamedb.wire.decoding import ZERO_SIZE_ITEMS_MAX


class Circle(Struct, tag=True):
    radius: types.f32


class Named(Struct, tag=True):
    name: str


class Nothing(Struct, tag=True):
    pass


class Mixed(Struct):
    number: types.u8
    text: str
    flag: bool | None


class Ok(Struct, tag="ok"):
    value: types.u32


class Err(Struct, tag="err"):
    value: str


class Unit(Struct):
    pass


class Place(Struct):
    x: types.f32
    y: types.f32


class Suit(enum.Enum):
    HEARTS = "h"
    SPADES = "s"
    PIKES = "s"  # noqa: PIE796  # an alias


def of(annotation: Any) -> Codec:
    return codec(column_type(annotation, "a value"))


IDENTITY = Identity.from_hex("c200" + "00" * 29 + "7f")
VECTORS = [
    (types.u16, 513, "0102"),
    (types.i64, -1, "ff" * 8),
    (types.u128, 2**64 + 2, "02000000000000000100000000000000"),
    (types.i256, -2, "fe" + "ff" * 31),
    (types.u256, 1, "01" + "00" * 31),
    (types.i128, -1, "ff" * 16),
    (types.f32, 1.5, "0000c03f"),
    (float, 1.5, "000000000000f83f"),
    (float, -0.0, "0000000000000080"),
    (float, math.inf, "000000000000f07f"),
    (bool, True, "01"),
    (bool, False, "00"),
    (str, "héllo", "0600000068c3a96c6c6f"),
    (bytes, b"\x01\x02\xff", "030000000102ff"),
    (list[types.u16], [1, 2], "0200000001000200"),
    (list[types.u8], [1, 255], "0200000001ff"),
    (list[bool], [True, False], "020000000100"),
    (list[str], ["a", "bc"], "020000000100000061020000006263"),
    (types.u32 | None, 5, "0005000000"),
    (types.u32 | None, None, "01"),
    (Ok | Err, Ok(7), "0007000000"),
    (Ok | Err, Err("no"), "01020000006e6f"),
    (Circle | Named | Nothing, Named("x"), "010100000078"),
    (Circle | Named | Nothing, Nothing(), "02"),
    (Mixed, Mixed(1, "z", True), "01010000007a0001"),
    (Suit, Suit.SPADES, "01"),
    (Unit, Unit(), ""),
    (list[Unit], [Unit(), Unit()], "02000000"),
    (Identity, IDENTITY, "7f" + "00" * 29 + "00c2"),
    (ConnectionId, ConnectionId(bytes(range(16))), "0f0e0d0c0b0a09080706050403020100"),
    (UUID, UUID("01888d6e-5c00-7000-8000-000000000001"), "01000000000000800070005c6e8d8801"),
    (datetime, datetime(2026, 11, 29, tzinfo=UTC), "00c070f95e610600"),
    (timedelta, timedelta(seconds=-1), "c0bdf0ffffffffff"),
    (ScheduleAt, timedelta(seconds=1), "0040420f0000000000"),
    (ScheduleAt, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "0140420f0000000000"),
]


@pytest.mark.parametrize(("annotation", "value", "hexed"), VECTORS)
def test_known_bytes(annotation: Any, value: Any, hexed: str) -> None:
    data = bytes.fromhex(hexed)
    kind = column_type(annotation, "a value")
    value = kind.coerce(value, "a value")
    assert codec(kind).encode(value) == data
    decoded = codec(kind).decode_whole(data)
    assert decoded == value
    scope: dict[str, Any] = {}
    assert eval(kind.fast("decoded", scope), scope, {"decoded": decoded}), "canonical"


def test_there_is_one_nan() -> None:
    other = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
    assert of(float).encode(other).hex() == of(float).encode(math.nan).hex() == "000000000000f87f"
    assert of(types.f32).encode(math.nan).hex() == "0000c07f"
    back = of(float).decode_whole(bytes.fromhex("010000000000f8ff"))
    assert struct.pack("<d", back).hex() == "000000000000f87f"


@pytest.mark.parametrize(
    ("annotation", "hexed", "text"),
    [
        (bool, "02", "a bool"),
        (Suit, "02", "an enum"),
        (types.u32 | None, "02", "no variant 2"),
        (Circle | Named, "02", "no variant 2"),
        (str, "02000000ff", "2 bytes should follow, but only 1"),
        (str, "01000000ff", "not UTF-8"),
        (str, "03000000eda080", "not UTF-8"),
        (types.u64, "00", "end in the middle"),
        (datetime, "ff" * 7 + "7f", "years 1 to 9999"),
        (datetime, "ff" * 7 + "80", "years 1 to 9999"),
        (ScheduleAt, "000000000000000000", "must be positive"),
        (ScheduleAt, "02" + "00" * 8, "variant 0 or 1"),
        (list[types.u64], "ffffffff", "bytes should follow"),
        (list[list[str]], "ffffffff00000000", "bytes should follow"),
        (list[Unit], "ffffffff", "at most 1024"),
        (Mixed, "01" + "01000000", "1 bytes should follow"),
    ],
)
def test_bad_bytes_are_refused(annotation: Any, hexed: str, text: str) -> None:
    with pytest.raises(WireError, match=text):
        of(annotation).decode(bytes.fromhex(hexed))


def test_surplus_bytes_are_an_error_of_a_whole_value() -> None:
    assert of(types.u8).decode(b"\x01\x02") == (1, 1)
    assert of(types.u8).decode(b"\x01\x02", 1) == (2, 2)
    with pytest.raises(WireError, match="1 bytes follow the value"):
        of(types.u8).decode_whole(b"\x01\x02")


def test_what_does_not_fit_its_type_has_no_bytes() -> None:
    with pytest.raises(WireError, match="u8: 256 has no form"):
        of(types.u8).encode(256)
    with pytest.raises(WireError, match="'x' has no form"):
        of(Mixed).encode("x")
    with pytest.raises(WireError, match="no form"):
        of(Circle | Named).encode(Nothing())


def test_lists_without_bytes_are_bounded() -> None:
    count = ZERO_SIZE_ITEMS_MAX
    units = FrozenList([Unit()] * count)
    assert of(list[Unit]).decode_whole(of(list[Unit]).encode(units)) == units


def test_enums_and_unions_have_one_byte_for_the_variant() -> None:
    big = enum.Enum("big", [f"M{n}" for n in range(257)])
    with pytest.raises(SchemaError, match="257 variants; the wire has room for 256"):
        of(big)


class Checked(Struct):
    level: types.u8

    def __post_init__(self) -> None:
        if self.level > 60:
            raise LookupError("there is no level above 60")


def test_what_a_struct_refuses_is_bad_input() -> None:
    assert of(Checked).decode(b"\x3c") == (Checked(60), 1)
    with pytest.raises(WireError, match="no level above 60"):
        of(Checked).decode(b"\x3d")
    with pytest.raises(WireError, match="no level above 60"):
        of(list[Checked]).decode(b"\x01\x00\x00\x00\x3d")


def test_deeply_nested_types_work() -> None:
    annotation: Any = types.u8
    for _ in range(40):
        annotation = list[annotation]
    value: Any = 7
    for _ in range(40):
        value = FrozenList([value])
    assert of(annotation).decode_whole(of(annotation).encode(value)) == value


def test_rows_are_the_fields_in_order() -> None:
    class Player(Row):
        id: PrimaryKey[types.u32]
        name: str
        hp: types.u16 = 100

    rows = row_codec(table_schema(Player))
    assert rows.encode(Player(id=1, name="a")).hex() == "01000000" + "0100000061" + "6400"
    assert rows.decode_whole(rows.encode(Player(id=1, name="a"))) == Player(id=1, name="a")
    assert rows.fixed_size is None
    assert row_codec(table_schema(Player)).name == "player"


def test_rows_of_fixed_size_say_so() -> None:
    class Tower(Row):
        id: PrimaryKey[types.u32]
        at: Place
        owner: Identity
        when: ScheduleAt

    assert row_codec(table_schema(Tower)).fixed_size == 4 + 8 + 32 + 9
    assert of(types.u8 | None).fixed_size is None


def parameters(function: Any) -> tuple[Parameter, ...]:
    return declare(function, "reducer").parameters


def test_arguments_are_a_tuple() -> None:
    def damage(ctx: Any, player: types.u32, reason: str, /, *, amount: types.u8 = 1) -> None: ...

    arguments = parameters_codec(parameters(damage))
    data = arguments.encode((1, "fire", 3))
    assert data.hex() == "01000000" + "0400000066697265" + "03"
    assert arguments.decode(data) == ((1, "fire", 3), len(data))
    assert arguments.decode(data + b"surplus") == ((1, "fire", 3), len(data))
    with pytest.raises(WireError, match="3 arguments"):
        arguments.encode((1,))


def test_no_arguments_are_no_bytes() -> None:
    def tick(ctx: Any) -> None: ...

    arguments = parameters_codec(parameters(tick))
    assert arguments.encode(()) == b""
    assert arguments.decode(b"") == ((), 0)


def test_codecs_are_made_once() -> None:
    kind = column_type(Mixed, "a value")
    assert codec(kind) is codec(kind)
    assert "def encode" in codec(kind).source
