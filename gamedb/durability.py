"""What ties the store to the storage: loading, handing commits to the writer, reserving auto-increment numbers.

Made only for a database that has a path; imports the storage room, which is slow, for that moment.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from datetime import timedelta
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Final, Protocol

from gamedb.errors import WriteFailed
from gamedb.resolved import Resolved
from gamedb.schema import Row
from gamedb.store import RowChange, Store, TableData
from gamedb.store.index import Sequence

if TYPE_CHECKING:
    from gamedb.storage.adhoc import AdHocLimits, SqlAnswer

RESERVED_NUMBERS: Final = 4096
"""How many auto-increment numbers of a table are reserved at a time: a crash skips at most what was reserved."""
RESERVED_NUMBERS_MAX: Final = 1 << 20
"""What the reservation grows to for a table that uses up many."""


class Stored(Protocol):
    """The storage, as it is needed here."""

    sequences: dict[str, int]

    def load(self) -> Iterable[tuple[str, list[Row]]]:
        """All rows, by table."""

    def write_sequences(self, sequences: Mapping[str, int]) -> None:
        """Set the next auto-increment numbers of these tables, on disk when this returns."""

    def close(self) -> None:
        """Let others open it."""


class Writing(Protocol):
    """Who brings commits to the storage, as it is needed here and by `transactions`."""

    @property
    def error(self) -> WriteFailed | None:
        """The write that failed; nothing is accepted after it."""

    @property
    def blocked(self) -> bool:
        """Whether a transaction should see `admit` before it starts."""

    @property
    def durable_tx_id(self) -> int:
        """All transactions up to this one are on disk."""

    @property
    def flush_lag(self) -> float:
        """Seconds for which the write in progress has been going on."""

    def submit(self, tx_id: int, changes: SequenceOf[tuple[str, SequenceOf[RowChange]]]) -> None:
        """Note a committed transaction."""

    def admit(self) -> None:
        """Return when there is room for another transaction."""

    def flush(self, *, timeout: float | None = None) -> None:
        """Return when all that was submitted is on disk."""

    def when_durable(self, tx_id: int, callback: Callable[[WriteFailed | None], None]) -> None:
        """Call back when this transaction is on disk, or never will be."""

    def fail(self, failure: WriteFailed) -> None:
        """Take nothing more: the storage has refused a write that was not its own."""

    def close(self) -> None:
        """Write everything, and stop."""


class Durability:
    """The storage of one database and its writer thread."""

    def __init__(self, path: str | os.PathLike[str], module: Resolved, store: Store, *, quiet: bool = False) -> None:
        self._target = (path, module.name)
        self._schemas = {name: data.schema for name, data in store.tables.items()}
        self._storage = self._open(module, quiet)
        self._sequences = [data.sequence for data in store.tables.values() if data.sequence is not None]
        self._blocks: dict[str, int] = {}
        self._closing = threading.Lock()
        self._closed = False
        try:
            self._load(store)
            for sequence in self._sequences:
                sequence.next = sequence.handed = self._storage.sequences.get(sequence.table, 1)
                sequence.extend = self._extend
            self._reserve(self._sequences)
        except BaseException:
            self._storage.close()
            raise
        self.writer = self._start_writer()

    def _open(self, module: Resolved, quiet: bool) -> Stored:
        from gamedb.storage import open_storage

        progress = None if quiet else sys.stderr
        return open_storage(self._target[0], self._schemas, module.migrations, name=module.name, progress=progress)

    def _start_writer(self) -> Writing:
        from gamedb.storage import Storage, Writer

        assert isinstance(self._storage, Storage)
        return Writer(self._storage)

    def _load(self, store: Store) -> None:
        """Fill the tables. Rows are no work for the garbage collector, which would look at a growing heap in vain."""
        collects = gc.isenabled()
        gc.disable()
        try:
            for name, rows in self._storage.load():
                store.tables[name].load(rows)
        finally:
            if collects:
                gc.enable()

    def _reserve(self, sequences: SequenceOf[Sequence]) -> None:
        """Make higher limits durable, then let the numbers below them be handed out."""
        limits = {}
        for sequence in sequences:
            block = self._blocks.get(sequence.table, RESERVED_NUMBERS)
            self._blocks[sequence.table] = min(2 * block, RESERVED_NUMBERS_MAX)
            block = min(block, 1 + sequence.high // 64)  # small types must not lose their numbers to crashes
            limits[sequence.table] = min(sequence.next + block, sequence.high + 1)
        if limits:
            self._storage.write_sequences(limits)
        for sequence in sequences:
            sequence.limit = limits[sequence.table]

    def _extend(self, sequence: Sequence) -> None:
        try:
            self._reserve([sequence])
        except WriteFailed as error:
            self.writer.fail(error)
            raise

    def submit(self, tx_id: int, changes: list[tuple[TableData, list[RowChange]]]) -> None:
        """Hand a commit to the writer."""
        self.writer.submit(tx_id, [(table.schema.name, rows) for table, rows in changes if not table.schema.event])

    def flush(self, timeout: timedelta | None) -> None:
        """Return when all that was submitted is on disk; `WriteFailed` or `TimeoutError` otherwise."""
        self.writer.flush(timeout=None if timeout is None else min(timeout.total_seconds(), TIMEOUT_MAX))

    def ask(self, sql: str, limits: AdHocLimits | None) -> SqlAnswer:
        """The answer to a query over what is on disk; from any thread."""
        from gamedb.storage.adhoc import ask

        path, name = self._target
        return ask(path, self._schemas, sql, name=name, limits=limits)

    def close(self) -> None:
        """Write what is left, give unused numbers back, release the file; `WriteFailed` when something is lost.

        Twice is once, and whoever comes second waits for the first.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            try:
                self.writer.close()
                if self._sequences:
                    self._storage.write_sequences({s.table: s.next for s in self._sequences})
            finally:
                self._storage.close()
