"""Every error that gamedb raises on purpose.

One small hierarchy below `GamedbError`. A message names the thing, the value and what to do about it.
"""

from __future__ import annotations


class GamedbError(Exception):
    """Base class of all errors of gamedb."""


class SchemaError(GamedbError):
    """A declaration (table, column, index, reducer, view, module) that cannot work; raised at import."""


class ColumnError(GamedbError, ValueError):
    """A value that does not fit its column or parameter: wrong type, out of range, not storable."""


class ConstraintError(GamedbError, ValueError):
    """A primary key or unique value that is taken already.

    `table` and `column` name the constraint, `value` is the offending value.
    """

    def __init__(self, table: str, column: str, value: object, message: str) -> None:
        super().__init__(message)
        self.table = table
        """The name of the table."""
        self.column = column
        """The column whose value is taken."""
        self.value = value
        """The value that is taken."""


class RowNotFound(GamedbError, LookupError):
    """An update or delete of a row that is not in the table."""


class UnknownName(GamedbError, LookupError):
    """A table, column, reducer, procedure or view that the module does not have."""


class ArgumentError(GamedbError, TypeError):
    """A call with a missing, an unknown or a badly typed argument."""


class ReducerError(GamedbError):
    """Raised by a reducer to refuse a call: everything rolls back and the caller sees the text.

    Any other exception rolls back as well, but its text is for the log, not for a remote caller.
    """


class TransactionError(GamedbError, RuntimeError):
    """An operation at a moment when it cannot work: a call inside a reducer, a row view used too late."""


class NotAllowed(GamedbError):
    """A caller that may not do this: a player who calls a scheduled or a lifecycle reducer, for instance."""


class DatabaseClosed(GamedbError, RuntimeError):
    """The database was closed; open a new one."""


class StorageError(GamedbError):
    """The file or server under the database cannot be used."""


class DatabaseLocked(StorageError):
    """Another process (or another `Database` of this one) has the file open."""


class ForeignFile(StorageError):
    """The file is damaged, or was not made by gamedb; it was not touched."""


class WriteFailed(StorageError):
    """Writing failed (a full disk, an I/O error): nothing more is accepted, and nothing of it was confirmed.

    What was not confirmed may be lost, from some transaction on.
    """


class SchemaChangeRefused(StorageError):
    """The stored tables do not fit the module and cannot be changed without help; nothing was changed.

    `differences` holds one text for each difference, with its remedy.
    """

    def __init__(self, message: str, differences: list[str]) -> None:
        super().__init__(message)
        self.differences = differences
        """One text for each difference, with its remedy."""


class WireError(GamedbError, ValueError):
    """Bytes or JSON that are no message or value of the client protocol: cut off, too long, an unknown tag."""


class QueryError(GamedbError, ValueError):
    """A query that cannot be answered: its text, an unknown or private table, a literal that does not fit.

    `position` is the character of the query text that it is about (from 0), or `None`.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position
        """The character of the query text that it is about, from 0; `None` for the whole."""


class TokenError(GamedbError):
    """A token that was given and cannot be accepted.

    `code`: `malformed`, `too_long`, `algorithm`, `claims`, `signature`, `expired`, `not_yet_valid`, `issuer`,
    `audience`, `identity`, `missing`, `scheme`, or `issuer_unreachable` (the only one that another try may mend).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """One of the words above, for programs."""


class ConnectionLost(GamedbError, ConnectionError):
    """There is no connection to the server, or it ended before an answer came: a call may or may not have happened."""


class CallFailed(GamedbError):
    """A call that a server could not do: an unknown name, arguments that do not fit, or a bug (its log says more)."""
