"""`QuerySets`: what one client follows, and the rows that it is answered with.

Each query set stands alone: its rows as applied, plus what was inserted, minus what was deleted, are at every moment
the answers of its queries. Large answers are made a share at a time and sent at their place in the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from gamedb.errors import QueryError
from gamedb.query import Catalog, Delta, LiveQuery, Query
from gamedb.server.admission import Spend, TooMany
from gamedb.server.feed import Feed
from gamedb.server.rates import Budget
from gamedb.server.snapshot import Snapshot
from gamedb.server.turns import Turns
from gamedb.wire import messages
from gamedb.wire.bsatn import row_codec
from gamedb.wire.messages import OneOffQuery, Subscribe, Unsubscribe, UnsubscribeFlags

if TYPE_CHECKING:
    from gamedb.server.session import Session

UNFINISHED_MAX: Final = 4
"""How many large answers to a client are being made at the same time; its next messages wait for them."""

Rows = list[tuple[str, Snapshot]]
"""Names of tables, and the rows that there are to send of each."""


class QuerySet:
    """A live query set."""

    __slots__ = ("feeds", "request_id")

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self.feeds: list[Feed] = []


class QueryFailed(Exception):
    """A query that cannot be answered; the text is for the client."""


class QuerySets:
    """The query sets of one session."""

    def __init__(self, session: Session, catalog: Catalog, turns: Turns) -> None:
        self._session = session
        self._hub = session.hub
        self._db = session.hub.db
        self._lock: Any = session.hub.db.lock
        self._catalog = catalog
        self._turns = turns
        self._live: dict[int, QuerySet] = {}
        self._queries = 0
        limits = session.limits
        self._budget = Budget(limits.query_share_max, turns.seconds(), limits.query_seconds_burst)
        self.unfinished = 0
        """Answers that are being made."""

    def __len__(self) -> int:
        return len(self._live)

    # --- subscribing

    def subscribe(self, message: Subscribe) -> None:
        """Begin a query set, and answer with its rows."""
        if message.query_set_id in self._live:
            self._session.refuse(f"query set {message.query_set_id} is live already; unsubscribe it first")
            return
        texts = list(dict.fromkeys(text.strip() for text in message.queries))
        try:
            with self._budgeted() as began:
                until = began + self._session.limits.query_set_seconds_max
                self._check_room(len(texts))
                queries = self._parse(texts, until)
                with self._lock:
                    self._begin(message, queries, until)
        except QueryFailed as error:
            answer = messages.subscription_error(message.request_id, message.query_set_id, str(error))
            self._session.answer_now(answer)

    def _check_room(self, queries: int) -> None:
        limits = self._session.limits
        if len(self._live) >= limits.query_sets_max:
            raise QueryFailed(f"this connection has {limits.query_sets_max} query sets; unsubscribe some first")
        if self._queries + queries > limits.queries_max:
            raise QueryFailed(f"this connection would have more than {limits.queries_max} queries; subscribe to less")

    def _check_time(self, until: float, text: str) -> float:
        """How many seconds there are left; none are an error."""
        left = until - self._turns.seconds()
        if left < 0:
            raise QueryFailed(
                f"the query set takes more than {self._session.limits.query_set_seconds_max:g} s; subscribe to less at "
                f"a time, and index the columns that are compared, executing: `{text}`"
            )
        return left

    def _parse(self, texts: list[str], until: float) -> list[tuple[str, Query]]:
        operator = self._session.identity in self._db.operators
        most = self._session.limits.query_conditions_max
        found = []
        for text in texts:
            self._check_time(until, text)
            try:
                queries = self._catalog.parse_all(text, operator=operator, conditions_max=most)
            except QueryError as error:
                raise QueryFailed(f"{error}, executing: `{text}`") from None
            found.extend([(text, query) for query in queries])
        return found

    def _begin(self, message: Subscribe, queries: list[tuple[str, Query]], until: float) -> None:
        """Under the lock: rows and registration belong to the same point in the order of commits."""
        query_set = QuerySet(message.request_id)
        query_set_id = message.query_set_id
        rows: Rows = []
        rows_max = self._session.limits.rows_max
        try:
            for text, query in queries:
                with self._evaluating(text, query, until):
                    feed = self._hub.follow(self._session, query_set_id, query)
                    if feed is not None:
                        query_set.feeds.append(feed)
                        rows.append((feed.name, self._hub.snapshot(feed, rows_max)))
        except QueryFailed:
            self._hub.unfollow(self._session, query_set_id, query_set.feeds)
            raise
        self._live[query_set_id] = query_set
        self._queries += len(query_set.feeds)
        self._answer(rows, lambda tables: messages.subscribe_applied(message.request_id, query_set_id, tables))

    # --- the end of a set

    def unsubscribe(self, message: Unsubscribe) -> None:
        """End a query set, and answer with the rows that it had if they are asked for."""
        query_set_id, request_id = message.query_set_id, message.request_id
        query_set = self._live.get(query_set_id)
        if query_set is None:
            text = f"query set {query_set_id} is not live"
            self._session.answer_now(messages.subscription_error(request_id, query_set_id, text))
            return
        with self._paid(self._budget.use), self._lock:
            if message.flags is UnsubscribeFlags.SEND_DROPPED_ROWS:
                rows = [(feed.name, self._hub.snapshot(feed)) for feed in query_set.feeds]
                self._answer(rows, lambda tables: messages.unsubscribe_applied(request_id, query_set_id, tables))
            else:
                self._session.answer_now(messages.unsubscribe_applied(request_id, query_set_id, None))
            self._drop(query_set_id)

    def drop_all(self) -> None:
        """Under the lock: the client has gone."""
        for query_set_id in list(self._live):
            self._drop(query_set_id)

    def _drop(self, query_set_id: int) -> None:
        query_set = self._live.pop(query_set_id)
        self._queries -= len(query_set.feeds)
        self._hub.unfollow(self._session, query_set_id, query_set.feeds)

    def end(self, query_set_id: int, error: str, changes: dict[LiveQuery, Delta], tx_id: int) -> None:
        """Under the lock: a query of a set cannot be answered any more, so the set ends; its rows are taken back.

        `changes`: what the commit that ended it did, and what this client has not been told.
        """
        query_set = self._live[query_set_id]
        withdrawn = [feed.withdrawal(changes.get(feed.live)) for feed in query_set.feeds]
        tables = [table for table in withdrawn if table is not None]
        if tables:
            change = messages.query_set_update(query_set_id, tables)
            self._session.push(messages.transaction_update([change]), tx_id)
        # without a request id, official clients would end the whole connection
        self._session.push(messages.subscription_error(query_set.request_id, query_set_id, error), tx_id)
        self._drop(query_set_id)

    # --- queries that are answered once

    def one_off(self, message: OneOffQuery) -> None:
        """Answer a query, and follow nothing."""
        request_id, text = message.request_id, message.query.strip()
        try:
            with self._budgeted() as began:
                until = began + self._session.limits.query_set_seconds_max
                queries = self._parse([text], until)
                with self._lock:
                    rows = [self._rows_once(text, query, until) for _, query in queries]
                    self._answer(rows, lambda tables: messages.one_off_result(request_id, tables))
        except QueryFailed as error:
            self._session.answer_now(messages.one_off_error(request_id, str(error)))

    def _rows_once(self, text: str, query: Query, until: float) -> tuple[str, Snapshot]:
        with self._evaluating(text, query, until):
            rows = self._hub.matcher.answer(query, self._session.identity, self._session.limits.rows_max)
        codec = row_codec(query.table)
        return query.name, Snapshot(rows, codec.encode, codec.fixed_size)

    # --- both

    @contextmanager
    def _evaluating(self, text: str, query: Query, until: float) -> Iterator[None]:
        """Under the lock: the query may take what is left of the time; `QueryFailed` is why it has no answer."""
        left = self._check_time(until, text)
        try:
            with self._hub.matcher.within(left):
                yield
        except Exception as error:
            raise self._failed(text, query, error) from None

    @contextmanager
    def _budgeted(self) -> Iterator[float]:
        """What is done in it is paid for by the client's share of the server's time, and by that of its address; gives
        when it begins.
        """
        wait = self._budget.wait(self._turns.seconds(), 0.0)
        if wait:
            self._hub.counters.refused["query_share_max"] += 1
            share = f"{self._budget.per_second:.0%} of the server's time"
            raise QueryFailed(f"the queries of this connection take more than {share}; ask again in {wait:.1f} s")
        try:
            spend = None if self._session.follow is None else self._session.follow()
        except TooMany as error:
            raise QueryFailed(str(error)) from None
        with self._paid(self._budget.use, *([] if spend is None else [spend])) as began:
            yield began

    @contextmanager
    def _paid(self, *spend: Spend) -> Iterator[float]:
        began = self._turns.seconds()
        try:
            yield began
        finally:
            seconds = self._turns.seconds() - began
            for each in spend:
                each(seconds)

    def _answer(self, rows: Rows, finish: Callable[[list[bytes]], bytes]) -> None:
        """Under the lock: answer with rows as they are now, even if making bytes of them takes a while."""
        session = self._session
        unfinished = {id(snapshot): snapshot for _, snapshot in rows if snapshot.row_list is None}
        if not unfinished:
            session.answer_now(finish(_tables(rows)))
            return
        place = session.hold_place()
        self.unfinished += 1
        left = len(unfinished)

        def one_finished() -> None:
            nonlocal left
            left -= 1
            if left or session.ended:
                return
            self.unfinished -= 1
            if any(snapshot.row_list is None for _, snapshot in rows):
                session.refuse("rows could not be sent; the log of the server says why")
            else:
                session.fill_place(place, finish(_tables(rows)))

        for snapshot in unfinished.values():
            if not snapshot.waiting:
                self._turns.add(snapshot.work)
            snapshot.waiting.append(one_finished)

    def _failed(self, text: str, query: Query, error: Exception) -> QueryFailed:
        """What the client is told of a query that raised; what it is not told is logged."""
        if isinstance(error, QueryError):
            return QueryFailed(f"{error}, executing: `{text}`")
        self._db.report_failure(f"a query on {query.name}", error)
        return QueryFailed(f"the query failed; the log of the server says why, executing: `{text}`")


def _tables(rows: Rows) -> list[bytes]:
    return [messages.table_rows(name, snapshot.row_list or b"") for name, snapshot in rows]
