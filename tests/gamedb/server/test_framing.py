"""Our frames are the ones that `websockets` makes."""

from __future__ import annotations

import pytest
from websockets.frames import Frame, Opcode

from gamedb.server.framing import to_frame
from gamedb.wire.messages import frame


@pytest.mark.parametrize("sizes", [(1,), (124,), (125,), (60, 70), (65_534,), (65_535,), (65_536,), (200_000, 3)])
def test_a_frame_is_that_of_websockets(sizes: tuple[int, ...]) -> None:
    messages = tuple(bytes([number]) * size for number, size in enumerate(sizes))
    assert to_frame(messages) == Frame(Opcode.BINARY, frame(messages)).serialize(mask=False)
