"""Values on the command line: how they are shown, and how they are typed."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gamedb import ConnectionId, Identity, Module, ReducerContext, ScheduleAt, Struct, f32, u8, u64, u256
from gamedb.cli.values import Typed, as_plain, as_text
from gamedb.codegen.module_def import schema_json
from gamedb.columns import column_type
from gamedb.wire.sats_json import from_sats, to_sats
from gamedb.wire.typespace import anonymous


class Kind(enum.Enum):
    SWORD = 1
    BOW = 2


class Point(Struct):
    x: f32
    y: f32


class Walk(Struct, tag=True):
    to: Point


class Wait(Struct, tag=True): ...


ALL: list[tuple[Any, Any, str, Any]] = [
    (u64, 2**64 - 1, "18446744073709551615", 2**64 - 1),
    (u256, 255, "0xff", "0xff"),
    (bool, True, "true", True),
    (float, 1.5, "1.5", 1.5),
    (float, float("nan"), "nan", None),
    (str, 'a "b" é', 'a "b" é', 'a "b" é'),
    (bytes, b"\x00\xff", "00ff", "00ff"),
    (list[u8], [1, 2], "[1, 2]", [1, 2]),
    (list[str], ["a", 'b"c'], '["a", "b\\"c"]', ["a", 'b"c']),
    (str | None, None, "", None),
    (str | None, "x", "x", "x"),
    (list[u64 | None], [None, 1], "[none, 1]", [None, 1]),
    (Kind, Kind.BOW, "BOW", "BOW"),
    (Point, Point(x=1.0, y=2.5), "(x=1.0, y=2.5)", {"x": 1.0, "y": 2.5}),
    (Walk | Wait, Wait(), "Wait", "Wait"),
    (Walk | Wait, Walk(to=Point(x=0.0, y=1.0)), "Walk(to=(x=0.0, y=1.0))", {"Walk": {"to": {"x": 0.0, "y": 1.0}}}),
    (datetime, datetime(2026, 11, 29, 12, 0, 0, 5, UTC), "2026-11-29T12:00:00.000005Z", "2026-11-29T12:00:00.000005Z"),
    (timedelta, timedelta(seconds=90), "0:01:30", "0:01:30"),
    (ScheduleAt, timedelta(seconds=1), "every 0:00:01", "every 0:00:01"),
    (ScheduleAt, datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    (UUID, UUID(int=7), str(UUID(int=7)), str(UUID(int=7))),
    (Identity, Identity(b"\xc2" * 32), "c2" * 32, "c2" * 32),
    (ConnectionId, ConnectionId(b"\x01" * 16), "01" * 16, "01" * 16),
]


@pytest.mark.parametrize(("hint", "value", "text", "plain"), ALL, ids=[str(case[2])[:30] for case in ALL])
def test_values_are_shown(hint: Any, value: Any, text: str, plain: Any) -> None:
    kind = column_type(hint, "here")
    sats = to_sats(kind, kind.coerce(value, "here"), named=False)
    described = anonymous(kind)
    assert as_text(sats, described) == text
    assert as_plain(sats, described) == plain


TYPED: list[tuple[Any, str, Any]] = [
    (str, "ann", "ann"),
    (str, "5", "5"),
    (str, '"5"', "5"),
    (str, "", ""),
    (str, '"half', '"half'),
    (str, "null", "null"),
    (u64, "18446744073709551615", 2**64 - 1),
    (bool, "true", True),
    (float, "1.5", 1.5),
    (bytes, "00ff", b"\x00\xff"),
    (bytes, "0x00ff", b"\x00\xff"),
    (bytes, "[1, 2]", b"\x01\x02"),
    (str | None, "null", None),
    (str | None, "x", "x"),
    (u64 | None, "5", 5),
    (Kind | None, "BOW", Kind.BOW),
    (Kind, "SWORD", Kind.SWORD),
    (Kind, '{"SWORD": []}', Kind.SWORD),
    (list[u64], "[1, 2]", [1, 2]),
    (Point, '{"x": 1, "y": 2.5}', Point(x=1.0, y=2.5)),
    (Point, "[1, 2.5]", Point(x=1.0, y=2.5)),
    (Walk | Wait, "Wait", Wait()),
    (datetime, "2026-11-29T12:00:00Z", datetime(2026, 11, 29, 12, tzinfo=UTC)),
    (datetime, "2026-11-29", datetime(2026, 11, 29, tzinfo=UTC)),
    (datetime, "5", datetime(1970, 1, 1, 0, 0, 0, 5, UTC)),
    (timedelta, "1000000", timedelta(seconds=1)),
    (UUID, str(UUID(int=7)), UUID(int=7)),
    (Identity, "c2" * 32, Identity(b"\xc2" * 32)),
    (Identity, "0x" + "c2" * 32, Identity(b"\xc2" * 32)),
    (ConnectionId, "01" * 16, ConnectionId(b"\x01" * 16)),
]


@pytest.mark.parametrize(("hint", "text", "value"), TYPED, ids=[f"{c[1]}-{i}" for i, c in enumerate(TYPED)])
def test_values_are_typed(hint: Any, text: str, value: Any) -> None:
    module = Module("arena")

    def take(ctx: ReducerContext, it: Any) -> None: ...

    take.__annotations__["it"] = hint
    module.reducer(take)
    schema = schema_json(module.resolve(), 10)
    [sats] = Typed(schema).arguments("take", [text])
    assert from_sats(column_type(hint, "here"), sats) == value


def test_what_does_not_fit_is_left_to_the_server() -> None:
    typed = Typed(schema_json(Module("arena").resolve(), 10))
    assert typed.arguments("no_such", ["ann", "5", "[", "null"]) == ["ann", 5, "[", None]
