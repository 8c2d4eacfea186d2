"""`POST /v1/database/{db}/sql`: a query, answered once.

Everybody may ask in the language of subscriptions, and sees what a subscription would show them. What an operator
asks beyond it goes to the storage engine, read only. Large answers are made in threads, so that games go on.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from time import perf_counter
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from gamedb.columns import ColumnType
from gamedb.errors import QueryError
from gamedb.query import Matcher, Query
from gamedb.server.http.answers import Refused, address_of, read_body
from gamedb.server.http.databases import Visit, for_database
from gamedb.server.server import Server
from gamedb.store import ReadTables
from gamedb.wire.sats_json import dumps, to_sats
from gamedb.wire.typespace import anonymous, product

SQL_BYTES_MAX: Final = 1 << 20
ROWS_MAX: Final = 100_000

Answer = tuple[list[tuple[str, ColumnType]], list[tuple[Any, ...]]]


def routes(server: Server) -> list[Route]:
    """The route."""
    return [Route("/database/{db}/sql", for_database(server, _sql), methods=["POST"])]


async def _sql(visit: Visit) -> Response:
    try:
        text = (await read_body(visit.request, SQL_BYTES_MAX)).decode()
    except UnicodeDecodeError:
        raise Refused(400, "the body must be the text of a query, in UTF-8") from None
    before = perf_counter()
    columns, rows = await _answer(visit, text)
    micros = int((perf_counter() - before) * 1_000_000)
    body = await asyncio.to_thread(_encoded, columns, rows, micros)
    headers = {"spacetime-execution-duration-micros": str(micros)}
    return Response(body, media_type="application/json", headers=headers)


def _encoded(columns: list[tuple[str, ColumnType]], rows: list[tuple[Any, ...]], micros: int) -> bytes:
    kinds = [kind for _, kind in columns]
    body = {
        "schema": product((name, anonymous(kind)) for name, kind in columns),
        "rows": [[to_sats(kind, value, named=False) for kind, value in zip(kinds, row, strict=True)] for row in rows],
        "total_duration_micros": micros,
        "stats": {"rows_inserted": 0, "rows_deleted": 0, "rows_updated": 0},
    }
    return dumps([body])


async def _answer(visit: Visit, text: str) -> Answer:
    if not visit.operates:
        async with visit.server.asking:  # before its budget is looked at, so that many at once cannot overdraw it
            spend = visit.server.admission.query(address_of(visit.server, visit.request))
            before = perf_counter()
            try:
                return await _clients_answer(visit, text)
            finally:
                spend(perf_counter() - before)
    try:
        return await _clients_answer(visit, text)
    except QueryError:
        pass  # it may be SQL of the storage engine
    found = await asyncio.to_thread(visit.hosted.db.sql, text)
    return list(found.columns), found.rows


async def _clients_answer(visit: Visit, text: str) -> Answer:
    most = visit.hosted.limits.query_conditions_max
    query = visit.hosted.catalog.parse(text, operator=visit.operates, conditions_max=most)
    return await asyncio.to_thread(_rows, visit, query)


def _rows(visit: Visit, query: Query) -> Answer:
    """As a subscription to it begins."""
    db = visit.hosted.db
    matcher = Matcher(visit.hosted.catalog, ReadTables(visit.hosted.name, db.game_tables), log=db.log)
    with db.lock:
        db._assert_readable()
        rows = matcher.answer(query, visit.identity, min(ROWS_MAX, visit.hosted.limits.rows_max))
    columns = [(column.name, column.type) for column in query.table.columns]
    value_of = attrgetter(*(name for name, _ in columns))
    values = [(value_of(row),) for row in rows] if len(columns) == 1 else list(map(value_of, rows))
    return columns, values
