"""`GET /v1/database/{db}/schema`: the module definition as JSON, of what the caller may use."""

from __future__ import annotations

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from gamedb.codegen.module_def import schema_json
from gamedb.resolved import Resolved
from gamedb.server.http.answers import Refused
from gamedb.server.http.databases import Visit, for_database
from gamedb.server.server import Server
from gamedb.wire.sats_json import dumps
from gamedb.wire.typespace import client_functions, client_tables


def routes(server: Server) -> list[Route]:
    """The route."""
    return [Route("/database/{db}/schema", for_database(server, _schema))]


async def _schema(visit: Visit) -> Response:
    version = visit.request.query_params.get("version")
    if version not in ("9", "10"):
        given = "version is missing" if version is None else f"version={version[:20]!r} is not known"
        raise Refused(400, f"{given}; ask for /schema?version=10 (or 9)")
    module = visit.hosted.db.module if visit.operates else public_part(visit.hosted.db.module)
    return Response(dumps(schema_json(module, int(version))), media_type="application/json")


def public_part(module: Resolved) -> Resolved:
    """What of a module clients may know: public tables, and functions that they may call."""
    return msgspec.structs.replace(
        module,
        tables={schema.name: schema for schema in client_tables(module)},
        functions={function.name: function for function in client_functions(module)},
        lifecycle={event: [] for event in module.lifecycle},
        visibility_filters=[],
    )
