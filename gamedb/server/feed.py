"""`Feed`: a live query as clients follow it, and its changes as bytes. Counts what a hub has done, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gamedb.query import Delta, LiveQuery, Query
from gamedb.schema import Row
from gamedb.server.audience import Audience
from gamedb.wire import messages
from gamedb.wire.bsatn import row_codec
from gamedb.wire.rows import EMPTY, encode_row_list


class Feed:
    """A live query, and its audiences: by query set id, as that is what their messages differ in."""

    __slots__ = ("audiences", "encode", "fixed_size", "is_event", "live", "name")

    def __init__(self, live: LiveQuery, query: Query) -> None:
        codec = row_codec(query.table)
        self.live = live
        self.name = query.name
        self.is_event = query.is_event
        self.encode: Callable[[Row], bytes] = codec.encode
        self.fixed_size = codec.fixed_size
        self.audiences: dict[int, Audience] = {}

    def update(self, delta: Delta, encoded: dict[int, bytes] | None) -> bytes:
        """A change as a TableUpdate. `encoded`: rows of this commit that another query needed before."""
        inserted = self._row_list(delta.inserted, encoded)
        if self.is_event:
            return messages.event_update(self.name, inserted)
        return messages.table_update(self.name, inserted, self._row_list(delta.deleted, encoded))

    def withdrawal(self, delta: Delta | None) -> bytes | None:
        """A TableUpdate that takes back all rows from before a commit (what it changed is `delta`); `None`: no rows."""
        if self.is_event:
            return None
        rows = Counter(map(self.encode, self.live.rows()))
        if delta is not None:
            rows.update(map(self.encode, delta.deleted))
            rows.subtract(map(self.encode, delta.inserted))
        if not +rows:
            return None
        return messages.table_update(self.name, EMPTY, encode_row_list(list(rows.elements()), self.fixed_size))

    def _row_list(self, rows: list[Row], encoded: dict[int, bytes] | None) -> bytes:
        encode = self.encode
        if encoded is None or len(rows) > 1000:
            return encode_row_list([encode(row) for row in rows], self.fixed_size)
        found = []
        for row in rows:
            data = encoded.get(id(row))
            if data is None:
                data = encoded[id(row)] = encode(row)
            found.append(data)
        return encode_row_list(found, self.fixed_size)


class HubCounters:
    """What a hub has done so far."""

    __slots__ = ("calls", "commits", "deltas", "frame_bytes", "frames", "messages", "refused")

    def __init__(self) -> None:
        self.commits = 0
        """Commits seen while anybody followed anything."""
        self.deltas = 0
        """Changes of live queries, each encoded once."""
        self.messages = 0
        """Updates put into the queues of clients."""
        self.frames = 0
        self.frame_bytes = 0
        self.calls = 0
        """Reducer calls that came over websockets."""
        self.refused: Counter[str] = Counter()
        """How often a client reached a limit of its rates, by the name of the limit."""
