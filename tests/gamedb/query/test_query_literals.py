"""Literals of every column type: what is exact, what fits, and what is answered to the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gamedb import ConnectionId, Identity, QueryError
from tests.gamedb.query.game import ANN, Asked, Everything, Mode, a_module

MOMENT = datetime(2026, 11, 29, 0, 0, 0, 123456, tzinfo=UTC)
UID = UUID("01888d6e-5c00-7000-8000-000000000001")
OVER = ConnectionId.from_hex("000102030405060708090a0b0c0d0e0f")


@pytest.mark.parametrize(
    ("column", "value", "literals"),
    [
        ("wide", 2**256 - 1, [str(2**256 - 1), hex(2**256 - 1)]),
        ("wide", 10**21, ["1e21", "1e+21", "1000000000000000000000", "+1000000000000000000000", "1000.0e18"]),
        ("wide", 0, ["0", "-0", "- 0", "0x0", "0e5"]),
        ("small", 255, ["255", "0xff", "0XFF", "2.55e2", "255.0"]),
        ("real", 1.5, ["1.5", "15e-1", "+1.5", "1.50"]),
        ("real", -0.0, ["0", "-0", "0.0", "-0.0", "0e0"]),
        ("real", 1e300, ["1e300", "1E+300"]),
        ("single", 0.10000000149011612, ["0.1", "0.10000000149011612"]),
        ("text", 'it\'s "q" \\ é\n;--', ["'it''s \"q\" \\ é\n;--'"]),
        ("text", "", ["''"]),
        ("text", "\0", ["'\0'"]),
        ("text", "'", ["''''"]),
        ("data", b"\x0a\xff", ["0x0aff", "x'0aff'", "X'0AFF'", "'0aff'", "'0x0AFF'"]),
        ("data", b"", ["x''", "0x", "''"]),
        ("at", MOMENT, ["'2026-11-29T00:00:00.123456Z'", "'2026-11-29T01:00:00.1234560+01:00'"]),
        ("at", MOMENT.replace(microsecond=0), ["'2026-11-29T00:00:00Z'", "'2026-11-29 00:00:00.000000000-00:00'"]),
        ("lasts", timedelta(seconds=-1), ["-1000000", "-1e6"]),
        ("uuid", UID, [f"'{UID}'", f"0x{UID.hex}", f"'{UID.hex}'"]),
        ("who", ANN, [f"0x{ANN.hex()}", f"'{ANN.hex()}'", f"'0x{ANN.hex()}'", ":sender"]),
        ("over", OVER, [f"0x{OVER.hex()}", f"x'{OVER.hex()}'"]),
        ("mode", Mode.BUSY, ["'BUSY'"]),
        ("flag", True, ["TRUE", "true", "True"]),
        ("maybe", 7, ["7"]),
        ("maybe_text", "x", ["'x'"]),
        ("maybe_who", ANN, [":sender", f"0x{ANN.hex()}"]),
    ],
)
def test_a_literal_finds_its_value(column: str, value: Any, literals: list[str]) -> None:
    asked = Asked(a_module())
    [row, _] = asked.add(Everything(id=1, **{column: value}), Everything(id=2, small=3, flag=False))
    for literal in literals:
        found = asked.ask(f"SELECT * FROM everything WHERE everything.{column} = {literal}", ANN)
        assert row in found, literal
        assert asked.ask(f"SELECT * FROM everything WHERE id = 1 AND {literal} <> {column}", ANN) == []


@pytest.mark.parametrize(
    ("column", "literal", "text"),
    [
        ("small", "256", "everything.small: 256 is out of range for u8 (0..255)"),
        ("small", "-1", "out of range for u8"),
        ("small", "1.5", "is no u8; write a whole number from 0 to 255"),
        ("small", "1e-1", "write a whole number"),
        ("small", "1e999999999", "write a whole number"),
        ("small", "1e-999999999", "write a whole number"),
        ("small", "1e99999999999999999999999", "write a whole number"),
        ("small", "9" * 5000, "write a whole number"),
        ("small", "'1'", "write a whole number"),
        ("small", "TRUE", "write a whole number"),
        ("wide", str(2**256), "out of range for u256"),
        ("wide", "0x" + "f" * 65, "out of range for u256"),
        ("real", "'1.5'", "write a number such as 1.5"),
        ("real", "1e999", "out of range for f64"),
        ("single", "1e39", "out of range for f32"),
        ("text", "5", "write a text in single quotes"),
        ("data", "0xabc", "write pairs of hex digits"),
        ("data", "'zz'", "write pairs of hex digits"),
        ("data", "'0a ff'", "write pairs of hex digits"),
        ("at", "'2026-11-29T00:00:00'", "write a time such as '2026-11-29T12:00:00.000000Z'"),
        ("at", "'2026-02-30T00:00:00Z'", "write a time"),
        ("at", "'2026-11-29T00:00:00.1234567Z'", "write a time"),
        ("at", "'0001-01-01T00:00:00+01:00'", "write a time"),
        ("at", "'1969-12-31T23:59:59.-00001Z'", "write a time"),
        ("at", "1764374400000000", "write a time"),
        ("lasts", "1.5", "whole microseconds"),
        ("lasts", str(2**63), "whole microseconds"),
        ("uuid", "'123'", "is no UUID"),
        ("uuid", "0x12", "is no UUID"),
        ("who", "0x12", "write 0x and 64 hex digits, or :sender"),
        ("over", "5", "write 0x and 32 hex digits"),
        ("over", ":sender", ":sender is an Identity"),
        ("mode", "'busy'", "write one of 'IDLE', 'BUSY'"),
        ("mode", "1", "write one of"),
        ("flag", "1", "write TRUE or FALSE"),
        ("maybe", "'x'", "write a whole number"),
        ("many", "5", "cannot be compared"),
        ("point", "5", "cannot be compared"),
        ("when", "5", "cannot be compared"),
    ],
)
def test_a_literal_that_does_not_fit_is_refused_where_it_stands(column: str, literal: str, text: str) -> None:
    asked = Asked(a_module())
    sql = f"SELECT * FROM everything WHERE {column} = {literal}"
    with pytest.raises(QueryError) as caught:
        asked.catalog.parse(sql)
    assert text in str(caught.value)
    expected = sql.index(column) if "cannot be compared" in text else sql.index(f"= {literal}") + 2
    assert caught.value.position == expected


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(QueryError, match="lone surrogate"):
        Asked(a_module()).catalog.parse("SELECT * FROM everything WHERE text = '\ud800'")


def test_absent_values_are_in_no_comparison() -> None:
    asked = Asked(a_module())
    asked.add(Everything(id=1), Everything(id=2, maybe=5), Everything(id=3, maybe=9))

    def ids(condition: str) -> list[int]:
        return sorted(r.id for r in asked.ask(f"SELECT * FROM everything WHERE {condition}"))  # type: ignore[attr-defined]

    assert ids("maybe = 5") == [2]
    assert ids("maybe <> 5") == ids("NOT maybe = 5") == [3]
    assert ids("maybe < 9") == [2]
    assert ids("NOT maybe < 9") == [3]
    assert ids("NOT (maybe < 9 OR maybe = 100)") == [3]
    assert ids("maybe = maybe") == [2, 3]
    assert ids("maybe <> small") == [2, 3]


def test_sixty_four_bits_are_exact() -> None:
    """L23: no literal passes through a float."""
    asked = Asked(a_module())
    asked.add(Everything(id=2**63), Everything(id=2**63 + 1))
    [row] = asked.ask(f"SELECT * FROM everything WHERE id = {2**63 + 1}")
    assert row.id == 2**63 + 1  # type: ignore[attr-defined]
    assert len(asked.ask(f"SELECT * FROM everything WHERE id > {2**63}")) == 1


def test_who_asks_is_an_identity() -> None:
    asked = Asked(a_module())
    asked.add(Everything(id=1, maybe_who=ANN), Everything(id=2))
    query = asked.catalog.parse("SELECT * FROM everything WHERE maybe_who = :sender")
    assert [r.id for r in asked.matcher.answer(query, ANN)] == [1]  # type: ignore[attr-defined]
    assert asked.matcher.answer(query, Identity.from_int(5)) == []
