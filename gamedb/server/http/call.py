"""`POST /v1/database/{db}/call/{function}`: one reducer or procedure, with arguments from SATS-JSON.

The caller counts as a client for the time of the call: `client_connected` runs before it and `client_disconnected`
after it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from gamedb.callables import runs_elsewhere
from gamedb.database import Database
from gamedb.errors import ArgumentError, DatabaseClosed, ReducerError, StorageError, WireError
from gamedb.functions import Function
from gamedb.identity import new_connection_id
from gamedb.server.http.answers import Refused, read_body
from gamedb.server.http.databases import Visit, for_database
from gamedb.server.server import Server
from gamedb.types import ConnectionId
from gamedb.wire.sats_json import dumps, from_sats, loads, to_sats

REDUCER_FAILED: Final = 530
"""The status of a call whose reducer refused or failed."""
FAILURES: Final = (Exception, SystemExit)
"""What code of a game may raise: sys.exit() in it must not end the server."""
_UNSHOWN: Final = "failed inside the server and was rolled back; the database's log says why"


def routes(server: Server) -> list[Route]:
    """The route."""
    return [Route("/database/{db}/call/{function}", for_database(server, _call), methods=["POST"])]


async def _call(visit: Visit) -> Response:
    if visit.request.headers.get("content-type") != "application/json":
        raise Refused(
            415, "send the arguments as a JSON array, with exactly this header: Content-Type: application/json"
        )
    function = _function(visit, visit.request.path_params["function"])
    body = await read_body(visit.request, visit.server.limits.message_bytes_max)
    arguments = _arguments(function, body)
    db, connection_id = visit.hosted.db, new_connection_id()
    lifecycle = db.module.lifecycle["client_connected"] + db.module.lifecycle["client_disconnected"]
    if lifecycle:
        try:
            db.connect(visit.identity, connection_id)
        except FAILURES as error:
            raise Refused(403, _told(visit, error, "client_connected")) from None
    try:
        if function.kind == "reducer":
            return await _reducer(visit, function, arguments, connection_id)
        return await _procedure(visit, function, arguments, connection_id)
    finally:
        if lifecycle:
            db.disconnect(connection_id)


def _function(visit: Visit, name: str) -> Function:
    """The function that the caller may call; what is private does not exist for others."""
    functions = visit.hosted.db.module.functions
    function = functions.get(name)
    if function is not None and function.lifecycle is not None:
        event = function.lifecycle.replace("_", " ")
        raise Refused(400, f"can't directly call special {event} lifecycle reducer `{name}`; it runs by itself")
    if function is None or function.kind == "view" or (function.private and not visit.operates):
        callable_ = [n for n, f in functions.items() if f.kind != "view" and not f.private]
        raise Refused(404, f"No such procedure or reducer: `{name[:100]}`. There is: {', '.join(callable_) or 'none'}")
    if function.queue is not None:
        raise Refused(400, runs_elsewhere(function))
    return function


def _arguments(function: Function, body: bytes) -> tuple[Any, ...]:
    """The canonical arguments of a JSON array in parameter order, or of an object by parameter name."""
    try:
        return function.arguments_decoded(loads(body), from_sats)
    except (WireError, ArgumentError) as error:
        text = str(error).removeprefix(f"{function.kind} {function.name!r}: ")
        raise Refused(400, f"invalid arguments for {function.kind} {function.name}: {text}") from None


async def _reducer(
    visit: Visit, function: Function, arguments: tuple[Any, ...], connection_id: ConnectionId
) -> Response:
    db = visit.hosted.db
    before = perf_counter()
    try:
        db.execute(function.name, function.invoke, arguments, visit.identity, connection_id)
    except FAILURES as error:
        raise Refused(REDUCER_FAILED, _told(visit, error, function.name)) from None
    micros = _micros_since(before)
    if visit.request.query_params.get("confirmed") != "false":
        await on_disk(db)
    return Response(headers={"spacetime-energy-used": "0", "spacetime-execution-duration-micros": micros})


async def _procedure(
    visit: Visit, function: Function, arguments: tuple[Any, ...], connection_id: ConnectionId
) -> Response:
    db = visit.hosted.db
    before = perf_counter()
    try:
        value = await db.run_procedure_async(function, arguments, visit.identity, connection_id)
    except FAILURES as error:
        raise Refused(REDUCER_FAILED, _told(visit, error, function.name)) from None
    micros = _micros_since(before)
    await on_disk(db)
    body = b"[]" if function.returns is None else dumps(to_sats(function.returns, value, named=False))
    return Response(body, media_type="application/json", headers={"spacetime-execution-duration-micros": micros})


def _told(visit: Visit, error: BaseException, name: str) -> str:
    """What a caller is told of a failure: a refusal's own words; of other failures only operators see more."""
    if isinstance(error, ReducerError):
        return str(error)
    if isinstance(error, DatabaseClosed | StorageError):
        raise error  # not the game's failure
    visit.hosted.db.report_failure(name, error)
    return f"`{name}` {_UNSHOWN}" + (f": {error!r}" if visit.operates else "")


def _micros_since(before: float) -> str:
    return str(int((perf_counter() - before) * 1_000_000))


async def on_disk(db: Database) -> None:
    """Return when all that is committed by now is on disk; raises why it never will be."""
    if db.durable_tx_id == db.last_tx_id:
        return
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if written.done():
            return
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

    def tell(error: Exception | None) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, error)

    db.when_durable(tell)
    await written
