"""`Outbound`: the messages that wait to be sent to one client, in order, and how many bytes they are.

A message waits for the transaction that it tells of to be on disk when the client asked for confirmed reads, and for
its own bytes when they are still being made (`Place`). What waits behind such a message waits, too.

Messages come from any thread, one at a time under the database's lock; they are taken by the loop's thread alone. So
each side counts for itself, and no lock is needed here.
"""

from __future__ import annotations

from collections import deque
from typing import Final

EVERYTHING: Final = 1 << 63
"""A transaction id above all others."""


class Place:
    """A message's place in the order, held until its bytes are there."""

    __slots__ = ("message",)

    def __init__(self) -> None:
        self.message: bytes | None = None


class Outbound:
    """A queue of messages with the transactions that they tell of."""

    __slots__ = (
        "_answers_pushed",
        "_answers_taken",
        "_frame_bytes_max",
        "_held",
        "_pack",
        "_pushed",
        "_queue",
        "_taken",
    )

    def __init__(self, *, pack: bool, frame_bytes_max: int) -> None:
        self._queue: deque[tuple[int, bytes | Place, bool]] = deque()
        self._pack = pack
        self._frame_bytes_max = frame_bytes_max
        self._pushed = self._taken = 0
        self._answers_pushed = self._answers_taken = 0
        self._held = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def bytes_waiting(self) -> int:
        """How much waits."""
        return self._pushed - self._taken + self._held

    @property
    def update_bytes_waiting(self) -> int:
        """As `bytes_waiting`, without the answers to what the client asked for: those it can only pile up itself."""
        return self._pushed - self._taken - (self._answers_pushed - self._answers_taken)

    def push(self, message: bytes, tx_id: int) -> None:
        """Append an update: what the client did not ask for just now."""
        self._queue.append((tx_id, message, False))
        self._pushed += len(message)

    def answer(self, message: bytes, tx_id: int) -> None:
        """Append an answer to a message of the client."""
        self._queue.append((tx_id, message, True))
        size = len(message)
        self._pushed += size
        self._answers_pushed += size

    def hold(self, tx_id: int) -> Place:
        """Append a place for an answer that is still being made; nothing behind it is sent before."""
        place = Place()
        self._queue.append((tx_id, place, True))
        return place

    def fill(self, place: Place, message: bytes) -> None:
        """Give a place its message."""
        place.message = message
        self._held += len(message)

    def waits_for(self) -> int | None:
        """The transaction of the first message; `None` when there is none, or when its bytes are still being made."""
        try:
            tx_id, message, _ = self._queue[0]
        except IndexError:
            return None
        return None if type(message) is Place and message.message is None else tx_id

    def take(self, durable_tx_id: int) -> tuple[bytes, ...]:
        """The messages of the next frame: what may be sent by now, up to the size of a frame; empty when none may."""
        queue = self._queue
        taken: list[bytes] = []
        size = 0
        while queue:
            tx_id, message, is_answer = queue[0]
            if tx_id > durable_tx_id:
                break
            held = type(message) is Place
            data: bytes | None = message.message if held else message  # type: ignore[union-attr, assignment]
            if data is None or (taken and size + len(data) > self._frame_bytes_max):
                break
            queue.popleft()
            taken.append(data)
            size += len(data)
            if held:
                self._held -= len(data)
            else:
                self._taken += len(data)
                if is_answer:
                    self._answers_taken += len(data)
            if not self._pack:
                break
        return tuple(taken)

    def clear(self) -> None:
        """Forget all: the client is gone."""
        self._queue.clear()
        self._taken, self._answers_taken, self._held = self._pushed, self._answers_pushed, 0
