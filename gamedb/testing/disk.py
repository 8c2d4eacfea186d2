"""`Disk`: what a simulated process leaves behind when it dies. It records each commit, and knows which are written.

A crash may cut at any commit that nobody relies on yet: those that were flushed, or told to a client as confirmed,
stay. Writing can be made to fail, as on a full disk: nothing is written any more until another process begins. The rows
are kept as they are; how they become SQL is tested where that is done, and `convert` uses it.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gamedb.durability import Durability, Stored, Writing
from gamedb.errors import WriteFailed
from gamedb.resolved import Resolved
from gamedb.schema import Row, TableSchema
from gamedb.store import RowChange, Store
from gamedb.system import SYSTEM_TABLES

if TYPE_CHECKING:
    from gamedb.storage.adhoc import AdHocLimits, SqlAnswer

RECORDED_MAX: Final = 10_000
"""How many commits a crash can choose from; older ones are kept for good."""

Changes = Sequence[tuple[str, Sequence[RowChange]]]
Rows = dict[str, dict[Any, Row]]


class Disk:
    """The durable side of a simulation, over all lives of its process."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        """What no crash can undo any more."""
        self.sequences: dict[str, int] = {}
        self.recorded: deque[tuple[int, Changes]] = deque()
        """The commits after that, in order."""
        self.kept_tx_id = 0
        """The last commit in `rows`."""
        self.submitted_tx_id = 0
        self.durable_tx_id = 0
        """The last commit that is written."""
        self.relied_tx_id = 0
        """The last commit of which somebody was told that it is written."""
        self.held = False
        """Whether nothing is written until `write`."""
        self.delay_seconds = 0.0
        """How long a commit takes to be written."""
        self.failing: str | None = None
        """Why writing fails from now on, in the words of an operating system; `None` while it does not."""
        self.failure: WriteFailed | None = None
        """The write of this life that failed: it was the last."""
        self.failures = 0
        """How many there were, over all lives."""
        self.on_failure: Callable[[], object] = lambda: None
        """Called when a write has failed."""
        self._attempted_tx_id = 0
        self._callbacks: deque[tuple[int, Callable[[WriteFailed | None], None]]] = deque()
        self.later: Callable[[float, Callable[[], None]], object] = lambda _seconds, _callback: None
        """Calls back in simulated time."""

    @property
    def boundaries(self) -> list[int]:
        """The commits at which a crash can cut: what comes after it is lost.

        What a failed write was about may be there or not: a disk that fails to sync may have it all the same.
        """
        first = max(self.relied_tx_id, self.kept_tx_id)
        last = self.submitted_tx_id if self.failure is None else max(self.durable_tx_id, self._attempted_tx_id)
        return [first, *(tx_id for tx_id, _ in self.recorded if first < tx_id <= last)]

    def submit(self, tx_id: int, changes: Changes) -> None:
        """Record a commit."""
        self.recorded.append((tx_id, changes))
        self.submitted_tx_id = tx_id
        if len(self.recorded) > RECORDED_MAX:
            for _ in range(RECORDED_MAX // 2):
                self._keep()
        if self.held:
            return
        if self.delay_seconds:
            self.later(self.delay_seconds, lambda: self.write(tx_id))
        else:
            self.write(tx_id)

    def write(self, tx_id: int | None = None) -> None:
        """Commits up to this one (by default all) are on disk; unless writing fails."""
        wanted = self.submitted_tx_id if tx_id is None else tx_id
        if wanted <= self.durable_tx_id or self.failure is not None:
            return
        if self.failing is not None:
            self._fail(wanted)
            return
        self.durable_tx_id = wanted
        while self._callbacks and self._callbacks[0][0] <= self.durable_tx_id:
            _, callback = self._callbacks.popleft()
            self.rely()
            callback(None)

    def _fail(self, tx_id: int) -> None:
        self._attempted_tx_id = tx_id
        self.end(self.refusal())

    def end(self, failure: WriteFailed) -> None:
        """A write has failed: nothing is written any more."""
        self.failure = failure
        self.failures += 1
        callbacks, self._callbacks = self._callbacks, deque()
        for _, callback in callbacks:
            callback(self.failure)
        self.on_failure()

    def refusal(self) -> WriteFailed:
        """What is said of a write that fails."""
        return WriteFailed(f"the simulated disk: writing failed ({self.failing}); nothing more is accepted")

    def rely(self, tx_id: int | None = None) -> None:
        """Somebody has been told that this (by default all that is written) is on disk."""
        self.relied_tx_id = max(self.relied_tx_id, self.durable_tx_id if tx_id is None else tx_id)

    def when_durable(self, tx_id: int, callback: Callable[[WriteFailed | None], None]) -> None:
        """Call back when a commit is written, or never will be."""
        if tx_id <= self.durable_tx_id:
            self.rely(tx_id)
            callback(None)
        elif self.failure is not None:
            callback(self.failure)
        else:
            self._callbacks.append((tx_id, callback))

    def _keep(self) -> None:
        """Let the first recorded commit be one that no crash can undo."""
        self.kept_tx_id, changes = self.recorded.popleft()
        for name, rows in changes:
            table = self.rows.setdefault(name, {})
            for key, _, after in rows:
                if after is None:
                    table.pop(key, None)
                else:
                    table[key] = after

    def cut(self, tx_id: int) -> None:
        """The process has ended: this commit is the last that is on disk. What was wrong with the disk is mended."""
        self.failing = self.failure = None
        while self.recorded and self.recorded[0][0] <= tx_id:
            self._keep()
        self.recorded.clear()
        self._callbacks.clear()
        self.durable_tx_id = self.submitted_tx_id = self.relied_tx_id = self.kept_tx_id = tx_id

    def convert(self, old: Resolved, new: Resolved) -> None:
        """Bring the rows to another version of the game, as an opening of its file would; `SchemaChangeRefused`."""
        from gamedb.storage import open_storage

        before, after = {**old.tables, **SYSTEM_TABLES}, {**new.tables, **SYSTEM_TABLES}
        self.cut(self.submitted_tx_id)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "deployed.db"
            storage = open_storage(path, before, name=old.name, progress=None)
            try:
                rows = {
                    name: _by_stored_key(before[name], table, storage.row_keys) for name, table in self.rows.items()
                }
                storage.write(self.kept_tx_id, rows)
                storage.write_sequences(self.sequences)
            finally:
                storage.close()
            storage = open_storage(path, after, new.migrations, name=new.name, progress=None)
            try:
                store = Store(after)
                for name, found in storage.load():
                    store.tables[name].load(found)
                self.rows = {name: dict(table.rows) for name, table in store.tables.items() if table.rows}
                self.sequences = dict(storage.sequences)
            finally:
                storage.close()


def _by_stored_key(
    schema: TableSchema, rows: Mapping[Any, Row], row_keys: Mapping[str, Callable[[Row], bytes]]
) -> dict[Any, Row | None]:
    if schema.name in row_keys:
        return {row_keys[schema.name](row): row for row in rows.values()}
    return dict(rows)


class DiskStorage(Stored):
    """A disk, as a storage to load from."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.sequences = disk.sequences

    def load(self) -> Iterable[tuple[str, list[Row]]]:
        """All rows, by table."""
        return [(name, list(rows.values())) for name, rows in self._disk.rows.items()]

    def write_sequences(self, sequences: Mapping[str, int]) -> None:
        """Numbers are reserved at once, as before any commit that uses them."""
        if self._disk.failing is not None:
            raise self._disk.failure or self._disk.refusal()
        self._disk.sequences.update(sequences)

    def close(self) -> None:
        """The disk stays."""


class DiskWriter(Writing):
    """A disk, as the writer that is given commits."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.dead = False
        """Whether the process that it is of has died."""

    @property
    def error(self) -> WriteFailed | None:
        """The write that failed."""
        return self._disk.failure

    @property
    def blocked(self) -> bool:
        """Whether a transaction should see `admit` before it starts."""
        return self._disk.failure is not None

    @property
    def durable_tx_id(self) -> int:
        """All transactions up to this one are on disk."""
        return self._disk.durable_tx_id

    @property
    def flush_lag(self) -> float:
        """Nothing waits in real time."""
        return 0.0

    def submit(self, tx_id: int, changes: Changes) -> None:
        """Record a commit."""
        if not self.dead:
            self._disk.submit(tx_id, changes)

    def admit(self) -> None:
        """There is room, unless writing has failed."""
        if self._disk.failure is not None:
            raise self._disk.failure.with_traceback(None)

    def flush(self, *, timeout: float | None = None) -> None:
        """Write everything."""
        self._disk.write()
        self.admit()
        self._disk.rely()

    def when_durable(self, tx_id: int, callback: Callable[[WriteFailed | None], None]) -> None:
        """Call back when this transaction is on disk."""
        self._disk.when_durable(tx_id, callback)

    def fail(self, failure: WriteFailed) -> None:
        """Take nothing more."""
        if self._disk.failure is None:
            self._disk.end(failure)

    def close(self) -> None:
        """Write everything."""
        if not self.dead:
            self.flush()


class SimulatedDurability(Durability):
    """What ties a store to a `Disk`."""

    writer: DiskWriter

    def __init__(self, disk: Disk, module: Resolved, store: Store) -> None:
        self._disk = disk
        self._store = store
        super().__init__("", module, store)

    def _open(self, module: Resolved, quiet: bool) -> Stored:
        return DiskStorage(self._disk)

    def _start_writer(self) -> Writing:
        return DiskWriter(self._disk)

    def ask(self, sql: str, limits: AdHocLimits | None) -> SqlAnswer:
        """The answer to a query over what is committed."""
        from gamedb.storage.adhoc import ask_rows

        tables = self._store.tables

        def rows(names: list[str]) -> dict[str, dict[Any, Row]]:
            return {name: dict(tables[name].rows) for name in names}

        return ask_rows(self._schemas, rows, sql, limits=limits)
