"""The database: calls and reentrancy, threads, lifecycle, connections, procedures, contexts, closing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gamedb import (
    AutoInc,
    Commit,
    ConnectionId,
    ConstraintError,
    Database,
    DatabaseClosed,
    Identity,
    ManualClock,
    Module,
    NotAllowed,
    PrimaryKey,
    ProcedureContext,
    ReducerContext,
    ReducerError,
    Row,
    RowNotFound,
    TransactionError,
    UnknownName,
    ViewContext,
    u8,
    u64,
)

ANN, BOB = Identity.from_int(1), Identity.from_int(2)
ONE, TWO = ConnectionId.from_int(1), ConnectionId.from_int(2)


class Log(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    text: str


class Counter(Row):
    id: PrimaryKey[u8]
    value: u64 = 0


def note(ctx: ReducerContext, text: str) -> None:
    ctx.db[Log].insert(Log(text=text))


def a_module() -> Module:
    module = Module("game")
    module.table(Log)
    module.table(Counter)
    return module


def texts(db: Database) -> list[str]:
    return [row.text for row in db.read(Log)]


@pytest.fixture
def module() -> Module:
    return a_module()


# --- calls


def test_call_returns_what_the_reducer_returns_and_counts_transactions(module: Module) -> None:
    @module.reducer
    def add(ctx: ReducerContext, text: str) -> int:
        return ctx.db[Log].insert(Log(text=text)).id

    with Database(module) as db:
        last = db.last_tx_id
        assert db.call(add, "a") == 1
        assert db.call(add, "b") == 2
        assert db.last_tx_id == db.durable_tx_id == last + 2


def test_a_reducer_may_call_another_one_with_its_context(module: Module) -> None:
    @module.reducer
    def inner(ctx: ReducerContext, text: str) -> None:
        note(ctx, text)

    @module.reducer
    def outer(ctx: ReducerContext) -> None:
        inner(ctx, "a")
        inner(ctx, "b")

    commits: list[Commit] = []
    with Database(module) as db:
        db.subscribe(Log, commits.append)
        db.call(outer)
        assert texts(db) == ["a", "b"]
    assert len(commits) == 1


@pytest.mark.parametrize("how", ["call", "transaction", "json", "read", "view", "procedure", "close"])
def test_entering_the_database_from_inside_a_transaction_is_an_error_not_a_deadlock(module: Module, how: str) -> None:
    @module.reducer
    def inner(ctx: ReducerContext) -> None: ...

    @module.procedure
    def fetch(ctx: ProcedureContext) -> None: ...

    @module.view
    def logs(ctx: Any) -> list[Log]:
        return list(ctx.db[Log])

    @module.reducer
    def outer(ctx: ReducerContext) -> None:
        note(ctx, "outer")
        with pytest.raises(TransactionError):
            enter[how]()
        note(ctx, "went on")

    def transaction() -> None:
        with db.transaction():
            pass

    with Database(module) as db:
        enter: dict[str, Any] = {
            "call": lambda: db.call(inner),
            "transaction": transaction,
            "json": lambda: db.call_json("inner", "[]"),
            "read": lambda: db.read(Log).count(),
            "view": lambda: db.view(logs),
            "procedure": lambda: db.call_procedure(fetch),
            "close": db.close,
        }
        db.call(outer)
        assert texts(db) == ["outer", "went on"]


def test_the_end_of_a_transaction_in_another_thread_is_no_reentrance(module: Module) -> None:
    @module.procedure
    def fetch(ctx: ProcedureContext) -> str:
        return "fetched"

    with Database(module) as db:
        db.running = ("another thread's, which lets go of the lock right now", 0.0, threading.get_ident() + 1)
        assert db.call_procedure(fetch) == "fetched"


def test_the_reentrancy_error_says_what_to_do(module: Module) -> None:
    @module.reducer
    def outer(ctx: ReducerContext) -> None:
        note(ctx, "undone")
        db.call("outer")

    with Database(module) as db:
        with pytest.raises(TransactionError, match=r"pass it your ctx: other_reducer\(ctx, ...\)"):
            db.call(outer)
        assert texts(db) == []
        with db.transaction() as ctx:
            note(ctx, "the next one works")


def test_calls_from_several_threads_run_one_at_a_time(module: Module) -> None:
    inside = 0

    @module.reducer
    def increment(ctx: ReducerContext) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        counter = ctx.db[Counter].get(1) or ctx.db[Counter].insert(Counter(id=1))
        ctx.db[Counter].update(counter.replace(value=counter.value + 1))
        inside -= 1

    with Database(module) as db:
        order: list[int] = []
        db.subscribe(Counter, lambda commit: order.append(commit.changes["counter"].inserted[0].value))  # type: ignore[attr-defined]
        threads = [threading.Thread(target=lambda: [db.call(increment) for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        row = db.read(Counter).get(1)
        assert row is not None
        assert row.value == 400
        assert order == list(range(1, 401))


def test_readers_in_other_threads_see_only_committed_rows(module: Module) -> None:
    entered, seen = threading.Event(), []

    with Database(module) as db:

        def look() -> None:
            entered.wait(10)
            seen.append(texts(db))

        thread = threading.Thread(target=look)
        thread.start()
        with db.transaction() as ctx:
            note(ctx, "a")
            entered.set()
            thread.join(0.05)
            note(ctx, "b")
        thread.join(10)
    assert seen == [["a", "b"]]


def test_a_caller_is_somebody_else_and_private_reducers_are_refused_to_them(module: Module) -> None:
    @module.reducer
    def who(ctx: ReducerContext) -> tuple[Identity, ConnectionId | None]:
        return ctx.sender, ctx.connection_id

    @module.reducer(private=True)
    def secret(ctx: ReducerContext) -> Identity:
        return ctx.sender

    @module.init
    def start(ctx: ReducerContext) -> None: ...

    with Database(module) as db:
        assert db.call(who) == (db.identity, None)
        assert db.caller(ANN, ONE).call(who) == (ANN, ONE)
        assert db.call_json("who", "[]", sender=BOB, connection_id=TWO) == (BOB, TWO)
        assert db.call(secret) == db.identity
        with pytest.raises(NotAllowed, match="'secret' is a private"):
            db.caller(ANN).call(secret)
        with pytest.raises(NotAllowed, match="'start' is a lifecycle reducer; only the database itself and operators"):
            db.caller(ANN).call("start")
        with pytest.raises(NotAllowed, match="'secret'"):
            db.call_json("secret", "[]", sender=ANN)
        with pytest.raises(TypeError, match="a caller is an Identity, not 'ann'"):
            db.caller("ann")  # type: ignore[arg-type]


def test_two_databases_of_one_module_share_nothing(module: Module) -> None:
    with Database(module) as first, Database(module) as second:
        with first.transaction() as ctx:
            note(ctx, "a")
        assert texts(second) == []


# --- context


def test_time_stands_still_in_a_transaction(module: Module, clock: ManualClock) -> None:
    with Database(module, clock=clock) as db, db.transaction() as ctx:
        now = ctx.now
        clock.advance(5)
        assert ctx.now == now
        assert now.utcoffset() == timedelta(0)


def test_a_seed_reproduces_chance(module: Module) -> None:
    @module.reducer
    def roll(ctx: ReducerContext) -> Any:
        note(ctx, "roll")
        return ctx.random.random(), ctx.new_uuid(), ctx.random.randint(1, 6)

    def run(seed: Any) -> list[Any]:
        with Database(module, seed=seed) as db:
            return [db.call(roll) for _ in range(3)]

    assert run(1) == run(1)
    assert run("word") == run("word")
    assert run(1) != run(2)
    assert run(None) != run(None)
    assert len(set(run(1))) == 3
    assert {uuid.version for _, uuid, _ in run(1)} == {4}


def test_the_log_is_named_after_the_module(module: Module) -> None:
    with Database(module) as db, db.transaction() as ctx:
        assert ctx.log.name == "gamedb.game"


# --- lifecycle and connections


def test_init_runs_once_when_the_database_is_new(module: Module) -> None:
    @module.init
    def start(ctx: ReducerContext) -> None:
        assert ctx.connection_id is None
        note(ctx, f"init {ctx.sender == db_identity}")

    db_identity = Database(a_module()).identity
    with Database(module) as db:
        assert texts(db) == ["init True"]


def test_an_init_that_raises_makes_no_database(module: Module) -> None:
    @module.init
    def start(ctx: ReducerContext) -> None:
        ctx.db[Counter].insert(Counter(id=1))
        ctx.db[Counter].insert(Counter(id=1))

    with pytest.raises(ConstraintError, match=r"counter\.id: .* 1 "):
        Database(module)


@pytest.fixture
def hooked(module: Module) -> Iterator[Database]:
    @module.client_connected
    def joined(ctx: ReducerContext) -> None:
        note(ctx, f"joined {ctx.sender.to_int()} {ctx.connection_id and ctx.connection_id.to_int()}")
        if ctx.sender == BOB:
            raise ReducerError("banned")

    @module.client_disconnected
    def left(ctx: ReducerContext) -> None:
        note(ctx, f"left {ctx.sender.to_int()} {ctx.connection_id and ctx.connection_id.to_int()}")
        if ctx.db[Counter].get(9) is not None:
            raise RuntimeError("the hook is broken")
        if ctx.db[Counter].get(8) is not None:
            raise SystemExit("the hook is broken")

    with Database(module) as db:
        yield db


def test_connecting_and_disconnecting_run_their_reducers_once_each(hooked: Database) -> None:
    hooked.connect(ANN, ONE)
    hooked.connect(ANN, TWO)
    hooked.disconnect(ONE)
    assert texts(hooked) == ["joined 1 1", "joined 1 2", "left 1 1"]
    with pytest.raises(UnknownName, match="is not open"):
        hooked.disconnect(ONE)
    with pytest.raises(ConstraintError):
        hooked.connect(ANN, TWO)
    assert texts(hooked) == ["joined 1 1", "joined 1 2", "left 1 1"]


def test_a_refused_client_leaves_nothing_and_does_not_disconnect(hooked: Database) -> None:
    last = hooked.last_tx_id
    with pytest.raises(ReducerError, match="banned"):
        hooked.connect(BOB, ONE)
    assert hooked.last_tx_id == last
    with pytest.raises(UnknownName):
        hooked.disconnect(ONE)
    hooked.connect(ANN, ONE)
    assert texts(hooked) == ["joined 1 1"]


@pytest.mark.parametrize(("trigger", "kind"), [(9, "RuntimeError"), (8, "SystemExit")])
def test_a_disconnect_hook_that_raises_is_undone_and_logged_and_the_client_is_gone(
    hooked: Database, caplog: pytest.LogCaptureFixture, trigger: int, kind: str
) -> None:
    hooked.connect(ANN, ONE)
    with hooked.transaction() as ctx:
        ctx.db[Counter].insert(Counter(id=trigger))
    hooked.disconnect(ONE)
    assert texts(hooked) == ["joined 1 1"]
    assert f"client_disconnected failed and was rolled back: {kind}('the hook is broken')" in caplog.text
    with pytest.raises(UnknownName):
        hooked.disconnect(ONE)


def test_clients_and_settings_are_not_among_the_tables_of_a_game(hooked: Database) -> None:
    from gamedb.system import ClientConnection

    with hooked.transaction() as ctx, pytest.raises(UnknownName):
        ctx.db[ClientConnection]


# --- procedures


@pytest.fixture
def procedures(module: Module) -> Iterator[Database]:
    @module.procedure
    def price(ctx: ProcedureContext, item: str) -> u64:
        with ctx.transaction() as tx:
            note(tx, f"{item} for {tx.sender.to_int() % 1000}")
        return len(item)

    @module.procedure
    async def slow_price(ctx: ProcedureContext, item: str) -> u64:
        await asyncio.sleep(0)
        with ctx.transaction() as tx:
            note(tx, item)
        await asyncio.sleep(0)
        return len(item)

    @module.procedure
    def wrong(ctx: ProcedureContext) -> u8:
        return 256

    @module.procedure
    async def wrong_async(ctx: ProcedureContext) -> list[u8]:
        return "abc"  # type: ignore[return-value]

    @module.procedure
    def half(ctx: ProcedureContext) -> None:
        with ctx.transaction() as tx:
            note(tx, "kept")
        with ctx.transaction() as tx:
            note(tx, "undone")
            raise ReducerError("no")

    @module.procedure(private=True)
    def secret(ctx: ProcedureContext) -> None: ...

    with Database(module) as db:
        yield db


def test_a_procedure_returns_a_value_and_commits_its_transactions(procedures: Database) -> None:
    assert procedures.call_procedure("price", "sword") == 5
    assert procedures.call_procedure("slow_price", item="axe") == 3
    assert texts(procedures)[1] == "axe"


def test_each_transaction_of_a_procedure_is_on_its_own(procedures: Database) -> None:
    commits: list[Commit] = []
    procedures.subscribe(Log, commits.append)
    with pytest.raises(ReducerError, match="no"):
        procedures.call_procedure("half")
    assert texts(procedures) == ["kept"]
    assert [commit.reducer for commit in commits] == ["half"]


def test_a_procedure_acts_in_the_name_of_its_caller(procedures: Database) -> None:
    procedures.caller(ANN, ONE).call_procedure("price", "bow")
    assert texts(procedures) == ["bow for 1"]
    with pytest.raises(NotAllowed):
        procedures.caller(ANN).call_procedure("secret")


def test_a_procedure_can_wait_until_what_was_committed_is_on_disk(tmp_path: Path) -> None:
    module = Module("game")

    @module.table
    class Note(Row):
        id: PrimaryKey[AutoInc[u64]] = 0

    @module.procedure
    async def write(ctx: ProcedureContext) -> bool:
        with ctx.transaction() as tx:
            tx.db[Note].insert(Note())
        await ctx.durable()
        return opened[-1].durable_tx_id == opened[-1].last_tx_id

    opened: list[Database] = []
    for path in (None, tmp_path / "game.db"):
        with Database(module, path) as db:
            opened.append(db)
            assert db.call_procedure(write)


def test_procedures_can_be_called_inside_a_running_loop(procedures: Database) -> None:
    async def main() -> list[int]:
        return [
            procedures.call_procedure("price", "a"),
            procedures.call_procedure("slow_price", "bb"),
            await procedures.call_procedure_async("price", "ccc"),
            await procedures.call_procedure_async("slow_price", "dddd"),
        ]

    assert asyncio.run(main()) == [1, 2, 3, 4]
    assert procedures.read(Log).count() == 4


def test_many_procedures_that_block_run_beside_a_loop_at_the_same_time() -> None:
    module = Module("blocking")
    together = threading.Barrier(40)

    @module.procedure
    def meet(ctx: ProcedureContext) -> u64:
        return together.wait(30)

    async def main(db: Database) -> list[int]:
        return await asyncio.gather(*(db.call_procedure_async("meet") for _ in range(40)))

    with Database(module) as db:
        assert sorted(asyncio.run(main(db))) == list(range(40))


def test_a_result_of_another_type_is_an_error_naming_the_procedure(procedures: Database) -> None:
    with pytest.raises(TypeError, match="procedure 'wrong' returned something else than it declares: result: 256"):
        procedures.call_procedure("wrong")
    with pytest.raises(TypeError, match="procedure 'wrong_async'"):
        procedures.call_procedure("wrong_async")
    with pytest.raises(TypeError, match="procedure 'wrong_async'"):
        asyncio.run(procedures.call_procedure_async("wrong_async"))


def test_an_await_inside_a_transaction_does_not_let_another_one_in(module: Module) -> None:
    @module.procedure
    async def careless(ctx: ProcedureContext) -> None:
        with ctx.transaction() as tx:
            note(tx, "first")
            await asyncio.sleep(0)

    with Database(module) as db:

        async def main() -> list[Any]:
            calls = [db.call_procedure_async("careless") for _ in range(2)]
            return await asyncio.gather(*calls, return_exceptions=True)

        results = asyncio.run(main())
        assert [type(result) for result in results] == [type(None), TransactionError]
        assert texts(db) == ["first"]


# --- the end


def test_a_closed_database_refuses_everything_and_closing_twice_is_once(module: Module) -> None:
    db = Database(module, clock=ManualClock())
    with db.transaction() as ctx:
        note(ctx, "a")
    table = db.read(Log)
    db.run()
    db.run()
    db.flush()
    db.close()
    db.close()
    with pytest.raises(DatabaseClosed, match="database 'game' was closed"), db.transaction():
        pass
    for use in (table.count, lambda: db.read(Log).get(1), db.run, lambda: db.connect(ANN, ONE)):
        with pytest.raises(DatabaseClosed):
            use()
    assert db.run_due() == 0


def test_a_raising_with_block_closes_the_database(module: Module) -> None:
    with pytest.raises(ZeroDivisionError), Database(module) as db:
        raise ZeroDivisionError
    with pytest.raises(DatabaseClosed):
        db.read(Log).count()


def test_errors_of_the_tables_reach_the_caller_as_they_are(module: Module) -> None:
    with Database(module) as db, pytest.raises(RowNotFound), db.transaction() as ctx:
        ctx.db[Counter].update(Counter(id=5))


# --- memory


def test_memory_stays_flat_over_updates_connections_and_subscriptions(module: Module, tmp_path: Path) -> None:
    @module.view
    def counters(ctx: ViewContext) -> list[Counter]:
        return list(ctx.db[Counter])

    @module.reducer
    def count(ctx: ReducerContext) -> None:
        row = ctx.db[Counter].get(1)
        assert row is not None
        ctx.db[Counter].update(row.replace(value=row.value + 1))

    @module.reducer
    def fail(ctx: ReducerContext) -> None:
        count(ctx)
        raise ValueError

    def round(times: int) -> int:
        for number in range(times):
            for _ in range(10):
                db.call(count)
            with contextlib.suppress(ValueError):
                db.call(fail)
            connection = ConnectionId.from_int(number % 7 + 1)
            db.connect(Identity.from_int(1), connection)
            with db.subscribe(Counter, changes.append), db.subscribe(counters, changes.append):
                pass
            db.disconnect(connection)
        db.flush()
        gc.collect()
        return sys.getallocatedblocks()

    changes: list[object] = []
    with Database(module, tmp_path / "game.db", quiet=True) as db:
        with db.transaction() as ctx:
            ctx.db[Counter].insert(Counter(id=1, value=0))
        before = round(500)
        assert round(10_000) < before * 1.02
