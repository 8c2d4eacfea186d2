"""How a procedure runs: outside of transactions, sync or async, wherever it was called."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from gamedb.context import ProcedureContext
from gamedb.errors import ColumnError, TransactionError
from gamedb.functions import Function
from gamedb.transactions import Transactions
from gamedb.types import ConnectionId, Identity

THREADS_MAX: Final = 64
"""Sync procedures of the process that run at the same time beside a loop; more wait for one of them to end."""

_threads = ThreadPoolExecutor(THREADS_MAX, "gamedb-procedure")  # asyncio's own few are for short work


async def run_async(
    db: Transactions,
    function: Function,
    arguments: tuple[Any, ...],
    sender: Identity | None = None,
    connection_id: ConnectionId | None = None,
) -> Any:
    """Run a procedure with canonical arguments without blocking the loop."""
    ctx = ProcedureContext(db, function.name, sender or db.identity, connection_id)
    if function.is_async:
        return _result(function, await function.invoke(ctx, *arguments))
    work = partial(contextvars.copy_context().run, function.invoke, ctx, *arguments)
    return _result(function, await asyncio.get_running_loop().run_in_executor(_threads, work))


def run(
    db: Transactions,
    function: Function,
    arguments: tuple[Any, ...],
    sender: Identity | None = None,
    connection_id: ConnectionId | None = None,
) -> Any:
    """Run a procedure with canonical arguments to its end. What `call_procedure` is made of."""
    if db._is_inside():
        raise TransactionError(
            f"procedure {function.name!r} was called inside a transaction, which would have to wait for it"
        )
    ctx = ProcedureContext(db, function.name, sender or db.identity, connection_id)
    if not function.is_async:
        return _result(function, function.invoke(ctx, *arguments))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _result(function, asyncio.run(function.invoke(ctx, *arguments)))
    if db._has_lock():
        raise TransactionError(
            f"procedure {function.name!r} is async and was called in a callback inside an asyncio loop, where it "
            "could never begin; start it after the callback: loop.call_soon(...)"
        )
    with ThreadPoolExecutor(1) as pool:  # a loop is running here: use another thread's
        return _result(function, pool.submit(asyncio.run, function.invoke(ctx, *arguments)).result())


def _result(function: Function, value: Any) -> Any:
    """A procedure's result in canonical form; `TypeError` naming the procedure when it is not what it declared."""
    if function.returns is None:
        return value
    try:
        return function.returns.coerce(value, "result")
    except ColumnError as error:
        raise TypeError(f"procedure {function.name!r} returned something else than it declares: {error}") from None
