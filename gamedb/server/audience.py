"""`Audience`: the followers of one live query, and `Backlog`: what whole audiences have yet to be told.

A commit that a thousand clients follow is noted once, in the log of their audience, not a thousand times. The log goes
into the queue of a client when that client gets anything else (so that the order stays), and into all queues when they
are about to be sent. Everything here happens under the database's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gamedb.server.session import Session

AUDIENCE_MIN: Final = 8
"""From how many followers on a log is kept; fewer are told one by one."""
LOG_BYTES_MAX: Final = 256 << 10
"""How long a log grows before it goes into the queues."""


class Run:
    """Some updates of successive commits, made once for all who get the same."""

    __slots__ = ("joined", "messages", "tx_id")

    def __init__(self, entries: list[tuple[int, bytes]]) -> None:
        self.messages = [message for _, message in entries]
        self.joined = b"".join(self.messages)
        """All of them, as they stand one after the other in a frame."""
        self.tx_id = entries[-1][0]
        """The last commit that it tells of."""


class Audience:
    """The followers of one live query under one query set id."""

    __slots__ = ("log", "log_bytes", "members", "told")

    def __init__(self) -> None:
        self.members: dict[Session, None] = {}
        self.log: list[tuple[int, bytes]] = []
        """Updates that are not in the queues of all members, with their commits."""
        self.log_bytes = 0
        self.told: dict[Session, int] = {}
        """How much of the log is in the queues of those who could not wait."""


class Backlog:
    """The audiences that have something to be told."""

    def __init__(self) -> None:
        self.pending: dict[Audience, None] = {}

    def add(self, audience: Audience, tx_id: int, message: bytes, besides: Session | None) -> None:
        """Note an update for all members, or for all besides one."""
        if besides is not None:
            self.settle(besides)
        audience.log.append((tx_id, message))
        audience.log_bytes += len(message)
        if besides is not None:
            audience.told[besides] = len(audience.log)
        self.pending[audience] = None
        if audience.log_bytes > LOG_BYTES_MAX:
            self.settle_all()

    def join(self, audience: Audience, member: Session) -> None:
        """A member who needs to be told of later commits only."""
        audience.members[member] = None
        if audience.log:
            audience.told[member] = len(audience.log)

    def leave(self, audience: Audience, member: Session) -> None:
        """A member who is to be told nothing any more."""
        del audience.members[member]
        audience.told.pop(member, None)
        if not audience.members:
            self.pending.pop(audience, None)

    def settle(self, member: Session) -> None:
        """Tell one member everything, so that something else can come behind it."""
        entries: list[tuple[int, bytes]] = []
        for audience in self.pending:
            if member in audience.members:
                entries += audience.log[audience.told.get(member, 0) :]
                audience.told[member] = len(audience.log)
        if entries:
            entries.sort(key=_tx_id)
            member.tell(Run(entries))

    def settle_all(self) -> None:
        """Tell all members everything."""
        pending, self.pending = self.pending, {}
        open_logs: dict[Session, list[tuple[Audience, int]]] = {}
        for audience in pending:
            told = audience.told
            for member in audience.members:
                start = told.get(member, 0)
                if start < len(audience.log):
                    open_logs.setdefault(member, []).append((audience, start))
        runs: dict[tuple[tuple[Audience, int], ...], Run] = {}
        for member, logs in open_logs.items():
            key = tuple(logs)
            run = runs.get(key)
            if run is None:
                entries = [entry for audience, start in logs for entry in audience.log[start:]]
                entries.sort(key=_tx_id)
                run = runs[key] = Run(entries)
            member.tell(run)
        for audience in pending:
            audience.log, audience.told, audience.log_bytes = [], {}, 0


def _tx_id(entry: tuple[int, bytes]) -> int:
    return entry[0]
