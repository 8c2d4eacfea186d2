"""`Writer`: the thread that brings committed transactions to disk, many of them in one write.

The committing thread only notes the final state of each row that it changed. The writer takes all that is noted and
hands it to `Storage.write` as one SQL transaction; so a busy game makes larger batches, not more of them.
Transactions are written in order and whole. After the first failed write nothing is written any more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from gamedb.errors import WriteFailed
from gamedb.schema import Row
from gamedb.storage.storage import Storage

RowChanges = Sequence[tuple[str, Sequence[tuple[Any, Row | None, Row | None]]]]
"""Table names with (key, row before, row after) of the changed rows; None where there is none."""
DurableCallback = Callable[[WriteFailed | None], None]

_log: Final = logging.getLogger("gamedb.storage")

LINGER_SECONDS: Final = 0.02
"""How long changes gather before a write while nobody waits for it."""
QUEUED_ROWS_MAX: Final = 1_000_000
"""Row changes that may wait for the disk before transactions have to wait."""


class Writer:
    """Writes what is submitted, in order, from a thread of its own."""

    def __init__(
        self,
        storage: Storage,
        on_durable: Callable[[int], None] | None = None,
        *,
        queued_rows_max: int = QUEUED_ROWS_MAX,
    ) -> None:
        self.error: WriteFailed | None = None
        """The write that failed; set once, for good."""
        self.durable_tx_id = storage.last_tx_id
        """All transactions up to this one are on disk."""
        self.submitted_tx_id = storage.last_tx_id
        self.queued_rows_max = queued_rows_max
        self.pending_rows = 0
        """Row changes that no write has begun with."""
        self.blocked = False
        """Whether a transaction should see `admit` before it starts: the writer is full, or it failed."""
        self._storage = storage
        self._row_keys = storage.row_keys
        self._on_durable = on_durable
        self._guard = threading.Lock()  # guards what is pending; held for moments only
        self._pending: dict[str, dict[Any, Any]] = {}
        self._pending_since: float | None = None
        self._asleep = False
        self._closing = False
        self._wake = threading.Event()
        self._urgent = threading.Event()  # somebody waits for what is pending
        self._progress = threading.Condition()  # guards the callbacks; notified after each write
        self._callbacks: deque[tuple[int, DurableCallback]] = deque()
        self._thread = threading.Thread(target=self._run, name=f"gamedb-writer-{storage.label}", daemon=True)
        self._thread.start()

    def submit(self, tx_id: int, changes: RowChanges) -> None:
        """Note a committed transaction; ids must rise. Never raises: what failed is told by `admit` and `flush`."""
        with self._guard:
            try:
                self._note(tx_id, changes)
            except BaseException:  # Ctrl-C: once more, so that the disk does not get half of a transaction
                self._note(tx_id, changes)
                raise
        if self.pending_rows >= self.queued_rows_max:
            self.blocked = True
            self._urgent.set()
        if self._asleep:
            self._asleep = False
            self._wake.set()

    def _note(self, tx_id: int, changes: RowChanges) -> None:
        pending = self._pending
        for table, rows in changes:
            final = pending.get(table)
            if final is None:
                final = pending[table] = {}
            if table in self._row_keys:  # no primary key: the row itself says what to store or delete
                for key, before, after in rows:
                    final[key] = (before, after)
            else:
                for key, _, after in rows:
                    final[key] = after
            self.pending_rows += len(rows)
        self.submitted_tx_id = tx_id

    @property
    def pending_tx(self) -> int:
        """Submitted transactions that are not on disk."""
        return self.submitted_tx_id - self.durable_tx_id

    @property
    def flush_lag(self) -> float:
        """Seconds for which the write in progress has been going on; 0.0 when all is on disk."""
        since = self._pending_since
        return 0.0 if since is None else time.monotonic() - since

    def admit(self, timeout: float | None = None) -> None:
        """Return when there is room; raises the `WriteFailed`, or `TimeoutError` after so many seconds."""
        self._wait(lambda: self.pending_rows < self.queued_rows_max, timeout, "no room for another transaction")
        if self.error is not None:
            raise self.error.with_traceback(None)

    def flush(self, tx_id: int | None = None, timeout: float | None = None) -> None:
        """Return when this transaction (default: the last submitted) is on disk.

        Raises the `WriteFailed` when it will never be, `TimeoutError` when it is not after so many seconds.
        """
        wanted = self.submitted_tx_id if tx_id is None else tx_id
        if self.durable_tx_id < wanted:
            self._wait(lambda: self.durable_tx_id >= wanted, timeout, f"transaction {wanted} is not on disk yet")
        elif self.error is not None:
            raise self.error.with_traceback(None)

    def when_durable(self, tx_id: int, callback: DurableCallback) -> None:
        """Call back once, in the order of transactions: with None when it is on disk, else with the failure.

        The call comes from the writer's thread (or from this one when there is nothing to wait for) and must be
        short; an exception in it ends the writer.
        """
        with self._progress:
            if self.durable_tx_id < tx_id and self.error is None:
                self._callbacks.append((tx_id, callback))
                self._urgent.set()
                return
        callback(None if self.durable_tx_id >= tx_id else self.error)

    def fail(self, failure: WriteFailed) -> None:
        """Take nothing more: the storage has refused a write that was not this writer's."""
        self._fail(failure, failure)

    def close(self) -> None:
        """Write everything, then stop the thread; raises the `WriteFailed` if something was not written."""
        self._closing = True
        self._urgent.set()
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if self.error is not None:
            raise self.error.with_traceback(None)

    def _wait(self, done: Callable[[], bool], timeout: float | None, what: str) -> None:
        self._urgent.set()
        with self._progress:
            if not self._progress.wait_for(lambda: done() or self.error is not None, timeout):
                raise TimeoutError(f"{what}, {timeout} s after it was asked for")
        if not done() and self.error is not None:
            raise self.error.with_traceback(None)

    def _run(self) -> None:
        try:
            while self._wait_for_work():
                self._write_batch()
        except BaseException as error:
            failure = error if isinstance(error, WriteFailed) else WriteFailed(f"the writer ended: {error!r}")
            self._fail(failure, error)

    def _wait_for_work(self) -> bool:
        """Sleep until something is pending; False when there is nothing and never will be."""
        while not self.pending_tx:  # a transaction of event rows only is one, too
            if self._closing:
                return self.pending_tx > 0
            self._pending_since = None
            self._wake.clear()
            self._asleep = True
            if self.pending_tx or self._closing:  # noted between the look above and falling asleep
                self._asleep = False
                continue
            self._wake.wait()
        self._pending_since = time.monotonic()
        self._urgent.wait(LINGER_SECONDS)
        return True

    def _write_batch(self) -> None:
        if not self._closing:
            self._urgent.clear()
        with self._guard:
            batch, self._pending = self._pending, {}
            tx_id = self.submitted_tx_id
            self.pending_rows = 0
        for table, row_key in self._row_keys.items():
            if table in batch:
                pairs = batch[table].values()
                batch[table] = {row_key(before if after is None else after): after for before, after in pairs}
        self._storage.write(tx_id, batch)
        self._announce(tx_id)

    def _announce(self, tx_id: int) -> None:
        due = []
        with self._progress:
            self.durable_tx_id = tx_id
            self.blocked = self.error is not None or self.pending_rows >= self.queued_rows_max
            self._progress.notify_all()
            while self._callbacks and self._callbacks[0][0] <= tx_id:
                due.append(self._callbacks.popleft()[1])
        if self._on_durable is not None:
            self._on_durable(tx_id)
        for callback in due:
            callback(None)

    def _fail(self, failure: WriteFailed, cause: BaseException) -> None:
        if failure is not cause:
            failure.__cause__ = cause
        with self._progress:
            if self.error is not None:
                return
            self.error = failure
            self.blocked = True
            self._pending_since = None
            waiting = [callback for _, callback in self._callbacks]
            self._callbacks.clear()
            self._progress.notify_all()
        _log.critical("%s", failure)  # once, and at once: who calls next may come much later, or never
        for callback in waiting:
            callback(failure)
