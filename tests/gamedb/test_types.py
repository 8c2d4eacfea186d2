"""Identity, ConnectionId and the sized integers as values."""

from __future__ import annotations

import copy
import pickle

import pytest

from gamedb import ConnectionId, Identity


def test_an_identity_is_written_as_hex_most_significant_byte_first() -> None:
    identity = Identity.from_int(0xAB)
    assert str(identity) == "00" * 31 + "ab"
    assert f"{identity}" == str(identity)
    assert identity.to_int() == 0xAB
    assert Identity.from_hex("0x" + str(identity)) == identity


def test_repr_of_an_identity_evaluates_to_it() -> None:
    identity = Identity(bytes(range(32)))
    assert eval(repr(identity)) == identity


@pytest.mark.parametrize("text", ["", "zz", "00", "00" * 33, None, 5])
def test_hex_that_is_no_identity_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="Identity"):
        Identity.from_hex(text)


def test_wrong_sizes_and_types_are_refused() -> None:
    with pytest.raises(ValueError, match="takes 16 bytes, got 2"):
        ConnectionId(b"ab")
    with pytest.raises(TypeError, match=r"from_hex"):
        ConnectionId("00" * 16)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not fit"):
        ConnectionId.from_int(1 << 128)
    with pytest.raises(ValueError, match="does not fit"):
        ConnectionId.from_int(-1)


def test_identities_survive_pickle_and_copy() -> None:
    identity = Identity.from_int(7)
    for other in (pickle.loads(pickle.dumps(identity)), copy.copy(identity), copy.deepcopy(identity)):
        assert other == identity
        assert type(other) is Identity
