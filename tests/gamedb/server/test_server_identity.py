"""Identities: the rule that SpacetimeDB has, with its vectors."""

from __future__ import annotations

import pytest

from gamedb import Database, Identity, Module
from gamedb.identity import identity_of, identity_of_database, is_sound, new_connection_id

VECTORS = [
    ("example.com", "123", "c200ef884364c1a99be0298dc68f2004e6b97c09d1b1658b7db22f51fb662059"),
    ("localhost", "test-subject", "c200b3ce65d91b79ecfb7d881cd65bf8da2f647d590af1474ad19faa7aa87e38"),
]


@pytest.mark.parametrize(("issuer", "subject", "text"), VECTORS)
def test_identity_is_that_of_spacetimedb(issuer: str, subject: str, text: str) -> None:
    assert identity_of(issuer, subject).hex() == text
    assert is_sound(Identity.from_hex(text))


def test_a_mistyped_identity_is_not_sound() -> None:
    text = VECTORS[0][2]
    assert not is_sound(Identity.from_hex(text[:-1] + "a"))
    assert not is_sound(Identity.from_hex("c1" + text[2:]))
    assert not is_sound(Identity(bytes(32)))


def test_a_database_has_a_sound_identity_of_its_own() -> None:
    with Database(Module("arena")) as arena, Database(Module("market")) as market:
        assert is_sound(arena.identity)
        assert arena.identity == identity_of_database("arena") != market.identity


def test_connection_ids_differ_and_are_never_zero() -> None:
    ids = {new_connection_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(one.to_int() for one in ids)
