"""One SQLite file: whose it is, whether it is sound, its creation in one piece, and the lock on it.

A file that is not ours or is damaged is never written to: the header is read as bytes and the rest through a
read-only connection before the file is opened for good.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from gamedb.errors import DatabaseLocked, ForeignFile, StorageError

APPLICATION_ID: Final = int.from_bytes(b"gmdb", "big")
FILE_FORMAT: Final = 1
"""The version of the file format, in `user_version`; a program refuses newer ones."""
BUSY_SECONDS_MAX: Final = 60.0
"""How long a write waits for another tool that is writing to the file, before it counts as failed."""
STATEMENTS_PREPARED_MAX: Final = 512
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_SIDECARS: Final = ("-journal", "-wal", "-shm")
_open_here: Final[set[tuple[int, int]]] = set()
"""The (device, inode) of the files that this process has open; see `check_file`."""


class SQLiteBackend:
    """An open SQLite file, locked against other openers (other tools may read it)."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.label = os.path.basename(self.path)
        self.is_new = False
        self._creating: str | None = None
        self._inodes: dict[str, tuple[int, int] | None] = {}
        directory = os.path.dirname(self.path)
        if not os.path.isdir(directory):
            raise StorageError(f"{path}: the directory {directory} does not exist; create it first")
        _check_directory(self.path)
        self._lock = _locked(self.path)
        try:
            self.connection = self._open()
        except BaseException:
            self._lock.release()
            raise
        try:
            if not self.is_new:
                self._note_files()
        except BaseException:
            self.close()
            raise

    def _open(self) -> Connection:
        self.is_new = is_absent(self.path)
        if not self.is_new:
            check_file(self.path)
            if not os.access(self.path, os.W_OK, effective_ids=True):
                raise StorageError(f"{self.path} cannot be written by this user; change its owner or mode")
            return _connect(self.path, "rw")
        wal = f"{self.path}-wal"
        if os.path.exists(wal):
            raise ForeignFile(
                f"{self.path} is missing, but {wal} of an earlier database is there; put the database back, "
                f"or delete {wal} to begin anew"
            )
        self._creating = f"{self.path}.creating"
        _remove(self._creating)
        return _connect(self._creating, "rwc", journal="DELETE")  # all of it in the one file that gets renamed

    def start_creation(self) -> None:
        """Mark the file as ours."""
        self.connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        self.connection.exec_driver_sql(f"PRAGMA user_version = {FILE_FORMAT}")

    def finish_creation(self) -> None:
        """Sync the file that was built, give it its name, and sync the directory that holds the name."""
        assert self._creating is not None
        _close(self.connection)
        sync(self._creating)
        os.rename(self._creating, self.path)
        self._creating = None
        sync(os.path.dirname(self.path))
        self.connection = _connect(self.path, "rw")
        self._note_files()

    def _note_files(self) -> None:
        """Remember which files these are, for `check_in_place`."""
        try:
            with self.connection.begin():  # from now on there is a -wal file
                self.connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema")
        except (sqlite3.Error, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StorageError(f"{self.path} cannot be written: {cause}") from None
        names = (self.path, f"{self.path}-wal", f"{self.path}.lock")
        self._inodes = {name: _inode(name) for name in names}
        _open_here.add(self._inodes[self.path] or (0, 0))

    def check_in_place(self) -> None:
        """`StorageError` when a file of the database was deleted or replaced: what is written would be lost."""
        for name, inode in self._inodes.items():
            if _inode(name) != inode:
                raise StorageError(f"{name} was deleted or replaced while the database was open")

    def read_cursor(self) -> AbstractContextManager[Any]:
        """A driver cursor; SQLite's fetch piece by piece by themselves."""
        return closing(self.connection.connection.cursor())

    def close(self) -> None:
        """Bring everything into the main file and release the lock."""
        try:
            if self._creating is None and not self.connection.closed:
                driver = self.connection.connection.driver_connection
                assert driver is not None
                with suppress(sqlite3.Error):  # what cannot be moved now stays safe in the -wal file
                    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
            _close(self.connection)
            if self._creating is not None:
                _remove(self._creating)
        finally:
            _open_here.discard(self._inodes.get(self.path) or (0, 0))
            self._lock.release()


def is_absent(path: str) -> bool:
    """Whether there is no file yet (or an empty one, which holds nothing that could be lost)."""
    try:
        return os.path.getsize(path) == 0 and not os.path.isdir(path)
    except FileNotFoundError:
        return True


def check_file(path: str) -> None:
    """`ForeignFile` unless this is a sound database of ours; nothing is written."""
    _check_directory(path)
    if _inode(path) not in _open_here:  # POSIX: closing a file drops the locks that the process holds on it
        check_header(path)
    try:
        with closing(read_only(path)) as connection:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        problem = str(error)
    problem = problem.replace("*** in database main ***", "").strip()
    if problem != "ok":
        raise ForeignFile(
            f"{path} is damaged: {problem}. It was not touched. Restore a backup; without one, save what can be read:\n"
            f"  sqlite3 {path} .recover | sqlite3 saved.db\n"
            "(if that says 'SQL logic error', as Debian 12's sqlite3 does, take the one from sqlite.org)"
        )


def _check_directory(path: str) -> None:
    if os.path.isdir(path):
        raise ForeignFile(f"{path} is a directory, not a database file; give a file name in it")


def check_header(path: str) -> None:
    """`ForeignFile` unless this begins like a database of ours; `StorageError` when it is of a newer gamedb."""
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from None
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise ForeignFile(f"{path} is not a database (it has no SQLite header); it was not touched: give another path")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise ForeignFile(f"{path} is an SQLite file of another program; it was not touched: give another path")
    if int.from_bytes(header[60:64], "big") > FILE_FORMAT:
        raise StorageError(
            f"{path} was written by a newer gamedb (file format {int.from_bytes(header[60:64], 'big')}, this one "
            f"knows {FILE_FORMAT}); upgrade gamedb"
        )


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def read_only(path: str) -> sqlite3.Connection:
    """A driver connection that cannot change the file, nor leave anything beside it."""
    settled = "" if os.path.exists(f"{path}-wal") else "&immutable=1"  # everything is in the file itself
    uri = Path(os.path.realpath(path)).as_uri()
    return sqlite3.connect(f"{uri}?mode=ro{settled}", uri=True, isolation_level=None)


def engine_for(driver: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Engine:
    """A SQLAlchemy engine over this one driver connection, with transactions that begin when told to."""
    engine = create_engine("sqlite://", creator=lambda: driver, poolclass=StaticPool)

    def start(_connection: Connection) -> None:
        driver.execute(begin)

    event.listen(engine, "begin", start)
    return engine


def _connect(path: str, mode: str, journal: str = "WAL") -> Connection:
    uri = f"{Path(path).as_uri()}?mode={mode}"
    try:
        driver = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_SECONDS_MAX,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_PREPARED_MAX,
        )
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be opened: {error}") from None
    try:
        driver.execute(f"PRAGMA journal_mode = {journal}")
        driver.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        driver.close()
        raise StorageError(f"{path} cannot be written: {error}") from None
    return engine_for(driver).connect()


def _close(connection: Connection) -> None:
    engine = connection.engine
    with suppress(sqlite3.Error):
        connection.close()
    engine.dispose()


def _locked(path: str) -> FileLock:
    name = f"{path}.lock"
    lock = FileLock(name, timeout=0, thread_local=False)
    try:
        lock.acquire()
        Path(name).write_text(f"{os.getpid()}\n")
    except Timeout:
        holder = Path(name).read_text().strip()
        who = f"process {holder}" if holder else "another process"
        if holder == str(os.getpid()):
            who = f"this process ({holder})"
        raise DatabaseLocked(f"{path} is open in {who}; close it there first") from None
    except OSError as error:
        lock.release()
        raise StorageError(f"{path} cannot be locked: {error.strerror} ({name})") from None
    return lock


def sync(path: str | os.PathLike[str]) -> None:
    """Bring a file, or the names in a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    for name in (path, *(path + suffix for suffix in _SIDECARS)):
        with suppress(FileNotFoundError):
            os.remove(name)
