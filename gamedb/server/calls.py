"""`Calls`: the reducers and procedures that one client calls, and what it is told of their outcome.

A refusal of the game (`ReducerError`) reaches the client in the game's words. Of any other failure the client learns
that there was one, and the log learns the rest. What is private looks like what does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from gamedb.callables import runs_elsewhere
from gamedb.errors import DatabaseClosed, ReducerError, StorageError, WireError
from gamedb.server.endpoints import Endpoint, Endpoints
from gamedb.server.rates import Budget
from gamedb.wire import messages
from gamedb.wire.messages import CallProcedure, CallReducer

if TYPE_CHECKING:
    from gamedb.server.session import Session

_log: Final = logging.getLogger("gamedb.server")

NAME_MAX: Final = 100
"""How much of an unknown name is said back."""


class Calls:
    """The calls of one session."""

    def __init__(
        self,
        session: Session,
        endpoints: Endpoints,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._session = session
        self._hub = session.hub
        self._db = session.hub.db
        self._clock = session.hub.db.clock
        self._who = (session.identity, session.connection_id)
        self._reducers = endpoints.reducers
        self._procedures = endpoints.procedures
        self._spawn = spawn
        self._running: set[asyncio.Task[None]] = set()
        rate = session.limits.calls_per_second_max
        self._budget = None if rate == math.inf else Budget(rate, session.seconds())

    def __len__(self) -> int:
        """How many procedures are running."""
        return len(self._running)

    def cancel(self) -> None:
        """The client has gone: nobody waits for its procedures."""
        for task in list(self._running):
            task.cancel()

    # --- reducers

    def reducer(self, message: CallReducer) -> None:
        """Run a reducer, and answer."""
        name, request_id = message.reducer, message.request_id
        hub = self._hub
        hub.counters.calls += 1
        if self._budget is not None and (refusal := self._over(self._budget)) is not None:
            self._fail(request_id, refusal)
            return
        endpoint = self._reducers.get(name)
        if endpoint is None or endpoint.private:
            refusal = self._refusal(endpoint, name, "reducer")
            if refusal is not None or endpoint is None:
                self._fail(request_id, refusal or "")
                return
        try:
            arguments, _ = endpoint.decode(message.arguments)
        except WireError as error:
            self._fail(request_id, f"invalid arguments for reducer {name}: {error}")
            return
        hub.calling = (self._session, request_id, get_ident())
        try:
            self._db.execute(name, endpoint.invoke, arguments, *self._who)
        except ReducerError as error:
            answer = messages.reducer_error(request_id, self._clock.micros(), str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() in a reducer must not end the server
            self._fail(request_id, self._failure(name, error))
            return
        else:
            if hub.calling is None:  # the hub has answered, at the place of the commit
                return
            answer = messages.reducer_ok(request_id, self._clock.micros(), b"", ())
        finally:
            hub.calling = None
        self._session.answer_now(answer)

    def _fail(self, request_id: int, text: str) -> None:
        self._session.answer_now(messages.reducer_internal_error(request_id, self._clock.micros(), text))

    # --- procedures

    def procedure(self, message: CallProcedure) -> None:
        """Start a procedure, which answers when it ends."""
        name = message.procedure
        endpoint = self._procedures.get(name)
        limit = self._session.limits.procedures_max
        problem = None if self._budget is None else self._over(self._budget)
        if problem is None:
            problem = self._refusal(endpoint, name, "procedure")
        if problem is None and len(self._running) >= limit:
            problem = f"{limit} procedures of this connection are running; wait for one to end"
        arguments: tuple[Any, ...] = ()
        if problem is None and endpoint is not None:
            try:
                arguments, _ = endpoint.decode(message.arguments)
            except WireError as error:
                problem = f"invalid arguments for procedure {name}: {error}"
        if problem is not None or endpoint is None:
            self._session.answer_now(messages.procedure_error(message.request_id, problem or ""))
            return
        task = self._spawn(self._run(message.request_id, endpoint, arguments))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, request_id: int, endpoint: Endpoint, arguments: tuple[Any, ...]) -> None:
        started = self._clock.micros()
        began = perf_counter()
        try:
            value = await self._db.run_procedure_async(endpoint.function, arguments, *self._who)
            data = endpoint.encode_result(value)
        except asyncio.CancelledError:
            if self._session.ended:
                raise
            answer = messages.procedure_error(request_id, f"{endpoint.name} was cancelled")
        except ReducerError as error:
            answer = messages.procedure_error(request_id, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = messages.procedure_error(request_id, self._failure(endpoint.name, error))
        else:
            micros = round((perf_counter() - began) * 1_000_000)
            answer = messages.procedure_returned(request_id, started, micros, data)
        self._session.answer_now(answer)
        self._session.flush()

    # --- both

    def _over(self, budget: Budget) -> str | None:
        """Why this client has to wait with its calls; `None` when it need not."""
        wait = budget.wait(self._session.seconds())
        if not wait:
            budget.use()
            return None
        self._hub.counters.refused["calls_per_second_max"] += 1
        rate = f"{budget.per_second:g} calls a second"
        return f"too many calls: at most {rate} on average (calls_per_second_max); call again in {wait:.1f} s"

    def _refusal(self, endpoint: Endpoint | None, name: str, kind: str) -> str | None:
        """Why this client may not call a function; `None` when it may."""
        if endpoint is None:
            return f"no such {kind}: `{name[:NAME_MAX]}`"
        if endpoint.private and self._session.identity not in self._db.operators:
            if endpoint.function.lifecycle is not None:
                return f"can't directly call special {endpoint.function.lifecycle} lifecycle reducer"
            return f"no such {kind}: `{name}`"
        if endpoint.function.queue is not None:
            return runs_elsewhere(endpoint.function)
        return None

    def _failure(self, name: str, error: BaseException) -> str:
        """Log an unexpected exception; what the client is told of it."""
        if isinstance(error, DatabaseClosed | StorageError):
            _log.warning("%s was not called: %s", name, error)
            return "the database takes no calls at the moment"
        self._db.report_failure(name, error)
        return f"{name} failed; the log of the server says why"
