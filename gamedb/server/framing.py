"""How server messages become one websocket frame: made once, written to as many sockets as have the same to hear.

`websockets` frames what else is sent (handshakes, pings, closes); this is its binary frame of a server, byte for byte,
without the copies that matter for an answer of many megabytes.
"""

from __future__ import annotations

import struct
from typing import Final

_BINARY: Final = 0x82
"""A final frame with a binary message (RFC 6455, section 5.2)."""
_SHORT: Final = struct.Struct(">BBB")
_MEDIUM: Final = struct.Struct(">BBHB")
_LONG: Final = struct.Struct(">BBQB")
_UNCOMPRESSED: Final = 0


def to_frame(messages: tuple[bytes, ...]) -> bytes:
    """Some server messages as one binary websocket frame."""
    length = 1 + sum(map(len, messages))
    if length < 126:
        head = _SHORT.pack(_BINARY, length, _UNCOMPRESSED)
    elif length < 65_536:
        head = _MEDIUM.pack(_BINARY, 126, length, _UNCOMPRESSED)
    else:
        head = _LONG.pack(_BINARY, 127, length, _UNCOMPRESSED)
    return b"".join((head, *messages))
