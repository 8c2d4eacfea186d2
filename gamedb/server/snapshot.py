"""`Snapshots`: the rows of live queries as bytes, made in small shares and once for all who ask at the same time.

A snapshot is taken (as a list of immutable rows) at one point in the order of commits; turning a large one into bytes
may take longer than a tick of a game, so it is done a share at a time, by whoever works off `Turns`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from gamedb.errors import WireError
from gamedb.schema import Row
from gamedb.wire.rows import RowListBuilder

_log: Final = logging.getLogger("gamedb.server")

SHARE_ROWS: Final = 1_000
"""How many rows are turned into bytes at a time."""
KEPT_ROWS_MIN: Final = 100
KEPT_ROWS_MAX: Final = 1_000_000
"""How many rows of snapshots are kept in all for the next who asks, while no commit changes them."""

Encode = Callable[[Row], bytes]


class Snapshot:
    """Some rows on their way to being bytes."""

    __slots__ = ("_builder", "_done", "_encode", "_rows", "count", "failed", "row_list", "waiting")

    def __init__(self, rows: Sequence[Row], encode: Encode, fixed_size: int | None) -> None:
        self._rows = rows
        self.count = len(rows)
        self._encode = encode
        self._builder = RowListBuilder(fixed_size)
        self._done = 0
        self.row_list: bytes | None = None
        """The finished bytes."""
        self.failed = False
        self.waiting: list[Callable[[], None]] = []
        """Called once it is finished, or has failed and has no bytes."""
        if len(rows) <= SHARE_ROWS:
            self.work()

    def work(self) -> bool:
        """Do a share; says whether there is more to do."""
        if self.row_list is not None or self.failed:
            return False
        share = self._rows[self._done : self._done + SHARE_ROWS]
        self._done += len(share)
        try:
            self._builder.add(list(map(self._encode, share)))
            if self._done < self.count:
                return True
            self.row_list = self._builder.finish()
        except WireError as error:  # more than a message can hold, say: who waits finds no bytes
            _log.error("rows could not be encoded: %s", error)
            self.failed = True
        self._rows, self._builder = (), RowListBuilder(None)
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()
        return False


class Snapshots:
    """The larger snapshots that are current: those of queries that no commit has changed since."""

    def __init__(self, kept_rows_max: int = KEPT_ROWS_MAX) -> None:
        self._current: OrderedDict[object, Snapshot] = OrderedDict()
        self._kept_rows_max = kept_rows_max
        self._rows = 0

    def __len__(self) -> int:
        return len(self._current)

    def get(self, query: object) -> Snapshot | None:
        """The snapshot of a query, if it is still what the query gives."""
        return self._current.get(query)

    def keep(self, query: object, snapshot: Snapshot) -> None:
        """Have it ready for the next who asks; small ones are made again as quickly."""
        self.drop(query)
        if snapshot.count < KEPT_ROWS_MIN:
            return
        self._current[query] = snapshot
        self._rows += snapshot.count
        while self._rows > self._kept_rows_max:
            _, oldest = self._current.popitem(last=False)
            self._rows -= oldest.count

    def drop(self, query: object) -> None:
        """A commit has changed the query's rows, or nobody follows it any more."""
        snapshot = self._current.pop(query, None)
        if snapshot is not None:
            self._rows -= snapshot.count
