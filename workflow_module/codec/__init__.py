"""Values to JSON and back by declared type, exactly: what JSON alone would lose is kept or refused.

`codec_for(type)` says how a type is stored; `register` teaches it a class. Callers are the state of workflows,
their init, results, signals and procedure arguments. This room knows types and values, not workflows.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gamedb import ConnectionId, Identity

from .base import Codec, Unstorable, bad_value, codec_for, register
from .text import decode, encode

__all__ = ["Codec", "Unstorable", "bad_value", "codec_for", "decode", "encode", "register"]

# As hex text. The pattern tells of bad text with its place in the JSON, as for every other type.
register(Identity, Annotated[str, Meta(pattern=r"^(0x)?[0-9a-fA-F]{64}$")], str, Identity.from_hex)
register(ConnectionId, Annotated[str, Meta(pattern=r"^(0x)?[0-9a-fA-F]{32}$")], str, ConnectionId.from_hex)
