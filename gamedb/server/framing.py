"""How server messages become one websocket frame: made once, written to as many sockets as have the same to hear."""

from __future__ import annotations

from websockets.frames import Frame, Opcode

from gamedb.wire.messages import frame


def to_frame(messages: tuple[bytes, ...]) -> bytes:
    """Some server messages as one binary websocket frame."""
    return Frame(Opcode.BINARY, frame(messages)).serialize(mask=False)
