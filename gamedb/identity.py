"""Who somebody is, computed: an `Identity` from an issuer and a subject, and the one of a database.

Pure functions. Where issuers and subjects come from is the business of `gamedb.server`.
"""

from __future__ import annotations

import secrets
from typing import Final

from blake3 import blake3

from gamedb.types import ConnectionId, Identity

_PREFIX: Final = b"\xc2\x00"
_CHECKSUM_BYTES: Final = 4
_HASH_BYTES: Final = 26
_DATABASES: Final = "gamedb:database"


def identity_of(issuer: str, subject: str) -> Identity:
    """The identity of a subject (somebody's id) at an issuer (who vouches for it), as SpacetimeDB computes it.

    Bytes, most significant first: `c2 00`, a checksum of 4 bytes, 26 bytes of BLAKE3 of `issuer|subject`.
    """
    digest = blake3(f"{issuer}|{subject}".encode()).digest(_HASH_BYTES)
    return Identity(_PREFIX + _checksum(digest) + digest)


def identity_of_database(name: str) -> Identity:
    """The identity of the database with this name; no token is ever issued for it."""
    return identity_of(_DATABASES, name)


def is_sound(identity: Identity) -> bool:
    """Whether an identity has the right prefix and checksum: false for mistyped ones."""
    digest = identity[-_HASH_BYTES:]
    return identity == _PREFIX + _checksum(digest) + digest


def new_connection_id() -> ConnectionId:
    """A connection id that nobody can guess; never zero."""
    return ConnectionId.from_int(1 + secrets.randbelow(2**128 - 1))


def _checksum(digest: bytes) -> bytes:
    return blake3(_PREFIX + digest).digest(_CHECKSUM_BYTES)
