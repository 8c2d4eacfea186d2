"""The lifecycle reducers: when a database is new, and when clients come and go."""

from __future__ import annotations

from gamedb.context import ReducerContext
from gamedb.errors import UnknownName
from gamedb.system import ClientConnection, Setting
from gamedb.transactions import Transactions
from gamedb.types import ConnectionId, Identity


def initialise(db: Transactions) -> None:
    """Run the `init` reducers of a database that is new."""
    if db._committed_system[Setting].get("initialised") is not None:
        return

    def body(ctx: ReducerContext) -> None:
        db._system[Setting].insert(Setting(key="initialised", value=ctx.now.isoformat()))
        for function in db.module.lifecycle["init"]:
            function.invoke(ctx)

    db.execute("init", body, ())


def connect(db: Transactions, identity: Identity, connection_id: ConnectionId) -> None:
    """A client comes: runs `client_connected`; if that raises, the client is refused and nothing has changed."""

    def body(ctx: ReducerContext) -> None:
        db._system[ClientConnection].insert(
            ClientConnection(connection_id=connection_id, identity=identity, connected_at=ctx.now)
        )
        for function in db.module.lifecycle["client_connected"]:
            function.invoke(ctx)

    db.execute("client_connected", body, (), identity, connection_id)


def disconnect(db: Transactions, connection_id: ConnectionId) -> None:
    """A client has gone: runs `client_disconnected` once; if that raises, the client is gone all the same."""
    with db.lock:
        connection = db._committed_system[ClientConnection].get(connection_id)
        if connection is None:
            raise UnknownName(f"connection {connection_id} is not open")

        def forget(_ctx: ReducerContext) -> None:
            db._system[ClientConnection].delete(connection_id)

        def body(ctx: ReducerContext) -> None:
            forget(ctx)
            for function in db.module.lifecycle["client_disconnected"]:
                function.invoke(ctx)

        try:
            db.execute("client_disconnected", body, (), connection.identity, connection_id)
        except (Exception, SystemExit) as error:
            db.execute("client_disconnected", forget, (), connection.identity, connection_id)
            db.report_failure("client_disconnected", error)  # not before: if the database has ended, that was the error


def end_lost(db: Transactions) -> None:
    """The connections of a process that is gone end."""
    for connection in db._committed_system[ClientConnection]:
        disconnect(db, connection.connection_id)
