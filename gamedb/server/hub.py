"""`Hub`: what each commit of one database means to its clients, as bytes.

It observes the database, so it runs under the database's lock in whichever thread commits. It evaluates each live
query once and encodes its change once for a commit, however many clients follow it, and puts one message for the
commit into the queue of each client concerned. It knows no socket and no event loop: it says to `schedule` that there
is something to send, and whoever owns the loop calls `flush`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Final

from gamedb.commit import Commit
from gamedb.database import Database
from gamedb.query import Delta, LiveQuery, Matcher, Query
from gamedb.server.audience import AUDIENCE_MIN, Audience, Backlog
from gamedb.server.feed import Feed, HubCounters
from gamedb.server.snapshot import Snapshot, Snapshots
from gamedb.wire import messages

if TYPE_CHECKING:
    from gamedb.server.session import Session

_log: Final = logging.getLogger("gamedb.server")

Frame = tuple[bytes, ...]
"""The messages that are sent together."""


class Hub:
    """The live queries and the sessions of one database."""

    def __init__(
        self,
        db: Database,
        matcher: Matcher,
        *,
        schedule: Callable[[Callable[[], None]], None],
        encode_frame: Callable[[Frame], bytes] = messages.frame,
    ) -> None:
        self.db = db
        self.matcher = matcher
        self.counters = HubCounters()
        self.backlog = Backlog()
        self.sessions: dict[Session, None] = {}
        self.calling: tuple[Session, int, int] | None = None
        """Whose reducer call is running, its request id and its thread: taken by the commit that it makes."""
        self._schedule = schedule
        self._encode_frame = encode_frame
        self._frames: dict[Frame, bytes] | None = None
        self._feeds: dict[LiveQuery, Feed] = {}
        self._snapshots = Snapshots()
        self._marked: deque[Session] = deque()
        self._scheduled_at: float | None = None
        self._waiting: dict[Session, None] = {}
        self._asked = False
        self.failure: Exception | None = None
        """Why nothing will be confirmed any more."""
        self._stop = db.observe(self.observe)

    def close(self) -> None:
        """Follow commits no longer."""
        self._stop()

    # --- following queries (under the database's lock)

    def follow(self, session: Session, query_set_id: int, query: Query) -> Feed | None:
        """Let a session have the changes of a query from here on; `None` if the query set has it already.

        Raises what evaluating the query raises.
        """
        live = self.matcher.open(query, session.identity)
        feed = self._feeds.get(live)
        if feed is None:
            feed = self._feeds[live] = Feed(live, query)
        audience = feed.audiences.get(query_set_id)
        if audience is None:
            audience = feed.audiences[query_set_id] = Audience()
        elif session in audience.members:
            self.matcher.close(live)
            return None
        self.backlog.join(audience, session)
        return feed

    def unfollow(self, session: Session, query_set_id: int, feeds: Iterable[Feed]) -> None:
        """End what `follow` began, for a session that has been told everything."""
        for feed in feeds:
            audience = feed.audiences[query_set_id]
            self.backlog.leave(audience, session)
            if not audience.members:
                del feed.audiences[query_set_id]
            if not feed.audiences:
                del self._feeds[feed.live]
                self._snapshots.drop(feed.live)
            self.matcher.close(feed.live)

    def snapshot(self, feed: Feed, rows_max: int | None = None) -> Snapshot:
        """The rows of a query at this moment; `QueryError` for more than `rows_max`."""
        snapshot = self._snapshots.get(feed.live)
        if snapshot is None or snapshot.failed:
            rows = [] if feed.is_event else feed.live.rows(rows_max)
            snapshot = Snapshot(rows, feed.encode, feed.fixed_size)
            self._snapshots.keep(feed.live, snapshot)
        return snapshot

    # --- commits

    def observe(self, commit: Commit) -> None:
        """Take in a commit. Called by the database."""
        calling, caller = self.calling, None
        if calling is not None:
            if calling[2] == get_ident():
                caller, self.calling = calling[0], None
            else:  # another thread was faster
                calling = None
        own: list[bytes] = []
        if self._feeds:
            self.counters.commits += 1
            try:
                deltas = self.matcher.commit(commit)
                if deltas:
                    own = self._distribute(commit.tx_id, deltas, caller)
            except Exception as error:  # a bug of ours: nobody can be told any more what has changed
                _log.error("commit %d could not be told to clients: %r", commit.tx_id, error, exc_info=error)
                for session in list(self.sessions):
                    session.abandon("the server lost track of the subscriptions; connect again")
        if calling is not None:
            session, request_id, _ = calling
            session.answer(messages.reducer_ok(request_id, commit.micros, b"", own), commit.tx_id)

    def _distribute(self, tx_id: int, deltas: list[Delta], caller: Session | None) -> list[bytes]:
        """Encode changes and queue them for all but the caller, whose QuerySetUpdates are the result."""
        if any(delta.error is not None for delta in deltas):
            self._end_failed(tx_id, deltas)
            deltas = [delta for delta in deltas if delta.error is None and delta.live in self._feeds]
        self.counters.deltas += len(deltas)
        if len(deltas) == 1:
            return self._distribute_one(tx_id, deltas[0], caller)
        return self._distribute_many(tx_id, deltas, caller)

    def _distribute_one(self, tx_id: int, delta: Delta, caller: Session | None) -> list[bytes]:
        feed = self._feeds[delta.live]
        self._snapshots.drop(delta.live)
        update = feed.update(delta, None)
        own: list[bytes] = []
        if len(feed.audiences) == 1:  # most often: message and members of the one query set id
            for query_set_id, audience in feed.audiences.items():
                change = messages.query_set_update(query_set_id, [update])
                count = len(audience.members)
                is_member = caller in audience.members
                if is_member:
                    own.append(change)
                    count -= 1
                if not count:
                    break
                message = messages.transaction_update([change])
                self.counters.messages += count
                if count >= AUDIENCE_MIN:
                    self.backlog.add(audience, tx_id, message, caller if is_member else None)
                    self._call_flush()
                else:
                    for session in audience.members:
                        if session is not caller:
                            session.push(message, tx_id)
            return own
        changes: dict[Session, list[bytes]] = {}
        for query_set_id in sorted(feed.audiences):
            change = messages.query_set_update(query_set_id, [update])
            for session in feed.audiences[query_set_id].members:
                changes.setdefault(session, []).append(change)
        return self._send(tx_id, changes, caller)

    def _distribute_many(self, tx_id: int, deltas: list[Delta], caller: Session | None) -> list[bytes]:
        encoded: dict[int, bytes] = {}
        updates: dict[int, dict[Session, list[bytes]]] = {}
        feeds = self._feeds
        for delta in sorted(deltas, key=lambda delta: feeds[delta.live].name):
            feed = feeds[delta.live]
            self._snapshots.drop(delta.live)
            update = feed.update(delta, encoded)
            for query_set_id, audience in feed.audiences.items():
                of_set = updates.setdefault(query_set_id, {})
                for session in audience.members:
                    of_set.setdefault(session, []).append(update)
        changes: dict[Session, list[bytes]] = {}
        for query_set_id in sorted(updates):
            made: dict[Frame, bytes] = {}
            for session, parts in updates[query_set_id].items():
                key = tuple(parts)
                change = made.get(key)
                if change is None:
                    change = made[key] = messages.query_set_update(query_set_id, parts)
                changes.setdefault(session, []).append(change)
        return self._send(tx_id, changes, caller)

    def _send(self, tx_id: int, changes: dict[Session, list[bytes]], caller: Session | None) -> list[bytes]:
        own = changes.pop(caller, []) if caller is not None else []
        made: dict[Frame, bytes] = {}
        self.counters.messages += len(changes)
        for session, parts in changes.items():
            key = tuple(parts)
            message = made.get(key)
            if message is None:
                message = made[key] = messages.transaction_update(parts)
            session.push(message, tx_id)
        return own

    def _end_failed(self, tx_id: int, deltas: list[Delta]) -> None:
        """Some queries can no longer be answered (a view raised): their query sets end, and nothing else does."""
        changes = {delta.live: delta for delta in deltas}
        for delta in deltas:
            feed = self._feeds.get(delta.live)
            if delta.error is None or feed is None:  # all its sets have ended, for other queries in them that failed
                continue
            for query_set_id, audience in list(feed.audiences.items()):
                for session in list(audience.members):
                    session.query_sets.end(query_set_id, delta.error, changes, tx_id)

    # --- sending (`mark` under the database's lock from any thread, `flush` in the loop's thread)

    def mark(self, session: Session) -> None:
        """There is something to send to a session."""
        if not session.marked:
            session.marked = True
            self._marked.append(session)
            self._call_flush()

    def _call_flush(self) -> None:
        if self._scheduled_at is None:
            self._scheduled_at = perf_counter()
            self._schedule(self.flush)

    def flush(self) -> None:
        """Send what there is to send."""
        self._scheduled_at = None
        if self.backlog.pending:
            with self.db.lock:
                self.backlog.settle_all()
        self._frames = {}  # clients with the same subscriptions get the same frames
        try:
            for _ in range(len(self._marked)):
                session = self._marked.popleft()
                session.marked = False
                try:
                    session.flush()
                except Exception as error:  # a bug of ours must not keep the others from their updates
                    _log.error("%r could not be sent to: %r", session, error, exc_info=error)
        finally:
            self._frames = None

    def frame(self, parts: Frame) -> bytes:
        """Some messages as what goes out on the socket."""
        frames = self._frames
        if frames is None:
            data = self._encode_frame(parts)
        else:
            found = frames.get(parts)
            data = self._encode_frame(parts) if found is None else found
            frames[parts] = data
        counters = self.counters
        counters.frames += 1
        counters.frame_bytes += len(data)
        return data

    # --- durability

    def wait_for_disk(self, session: Session) -> None:
        """Flush a session again when more is on disk."""
        self._waiting[session] = None
        if not self._asked:
            self._asked = True
            self.db.when_durable(self._told)

    def _told(self, error: Exception | None) -> None:
        """From the writer's thread: all that was committed when it was asked is on disk, or never will be."""
        if error is not None:
            self.failure = error
        self._schedule(self._release)

    def _release(self) -> None:
        self._asked = False
        waiting, self._waiting = self._waiting, {}
        if self.failure is not None:
            for session in waiting:
                session.abandon("the database cannot write to its disk any more")
        for session in waiting:
            self.mark(session)

    # --- sessions

    def enter(self, session: Session) -> None:
        """A session begins."""
        self.sessions[session] = None

    def leave(self, session: Session) -> None:
        """A session has ended."""
        self.sessions.pop(session, None)
        self._waiting.pop(session, None)

    @property
    def live_queries(self) -> int:
        """Distinct queries that somebody follows."""
        return len(self._feeds)

    def delivery_lag_seconds(self) -> float:
        """For how long updates have been waiting for the loop or for the disk; 0.0 when none are."""
        scheduled_at = self._scheduled_at
        lag = 0.0 if scheduled_at is None else perf_counter() - scheduled_at
        if self._waiting:
            lag = max(lag, self.db.write_lag.total_seconds())
        return lag
