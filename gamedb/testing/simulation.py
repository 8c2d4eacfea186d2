"""`Simulation`: a game in one thread, on a simulated clock, disk and network, that can lose its process at any moment.

It runs the real database, scheduler, sessions and codecs; only time, threads, sockets and the file are simulated. The
same seed gives the same run.
"""

from __future__ import annotations

import contextvars
import itertools
import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, overload

from gamedb.clock import ManualClock
from gamedb.columns import from_micros
from gamedb.errors import ConnectionLost, DatabaseClosed, GamedbError, WriteFailed
from gamedb.identity import identity_of
from gamedb.module import Module
from gamedb.schema import Row
from gamedb.store import ReadTable
from gamedb.testing.database import ProcessDied, SimulatedDatabase
from gamedb.testing.disk import Disk
from gamedb.testing.loop import SimulatedLoop
from gamedb.testing.outside import Outside
from gamedb.testing.wrong import does_not_hold, failures, shown
from gamedb.types import Identity

if TYPE_CHECKING:
    from gamedb.client.remote import Remote
    from gamedb.server.limits import Limits
    from gamedb.testing.clients import SimulatedClient
    from gamedb.testing.exploring import Explored, Scenario
    from gamedb.testing.network import Gate

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Row)

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE: Final = timedelta(days=366)
"""How much simulated time `run_until` lets pass by default."""
MOVES_MAX: Final = 100_000
"""How often `run_until` moves the clock at most: once in a simulated second is a day."""
FIRINGS_MAX: Final = 100_000
"""How much may happen without time passing."""
LINGER: Final = timedelta(hours=1)
"""How much time passes at the end of a run of `explore` by default."""
CRASHES_MAX: Final = 3
"""How often the process dies in a run of `explore` at most by default."""
DISK_ERRORS_MAX: Final = 1
"""How often the disk fails in a run of `explore` at most by default."""
DISK_FULL: Final = "No space left on device"

Invariant = Callable[[Any], object]
"""Takes the simulation; raises, or gives False, when something is wrong."""


class SimulationStuck(GamedbError):
    """What is waited for will not come: nothing is due any more, or far too much is."""


def identity(name: str | Identity) -> Identity:
    """Who somebody of this name is in simulations; an identity is itself."""
    if not isinstance(name, str | Identity):
        raise TypeError(f"somebody in a simulation is named by a str or an Identity, not by {name!r}")
    return name if isinstance(name, Identity) else identity_of("simulation", name)


class Simulation:
    """A simulated game: its process, its disk, its clients, and time that stands still until it is told to pass.

    `seed` makes chance repeatable; `limits` are those of the simulated server. In tests the fixture `gamedb_sim` makes
    them, and closes them.

    ```python
    module = Module("well")

    @module.table
    class Wish(Row):
        name: PrimaryKey[str]

    @module.reducer
    def wish(ctx: ReducerContext, name: str) -> None:
        ctx.db[Wish].insert(Wish(name=name))

    with Simulation(module) as sim:
        sim.hold_disk()
        sim.caller("ann").call(wish, "rain")
        print(len(sim.read(Wish)))  # 1
        sim.crash()  # nobody had been told that it is on disk
        print(len(sim.read(Wish)))  # 0
    ```
    """

    db: SimulatedDatabase
    """The `Database` of this life of the process; another one after each crash."""

    def __init__(
        self, module: Module, *, seed: int | str = 0, start: datetime = START, limits: Limits | None = None
    ) -> None:
        self.module = module
        """The game, as it was given or last deployed."""
        self.seed = seed
        """What makes chance repeatable."""
        self.clock = ManualClock(start)
        """The simulated time; `advance` moves it, and lets happen what falls due."""
        self.disk = Disk()
        self.lives = 0
        """How many processes there have been."""
        self.commits = 0
        """How many transactions have committed, over all lives."""
        self.invariants: list[Invariant] = []
        """What must hold after every commit; `always` adds to it."""
        self.latency: Callable[[], float] = lambda: 0.0
        """How long messages of clients and of the server take, in seconds."""
        self.cut: Callable[[], int | None] = lambda: None
        """After a death by itself: at which commit the disk is cut; `None`: after the last that is written."""
        self.confirms = False
        """Whether calls return only when they are on disk, so that no crash undoes them."""
        self.supervised = False
        """Whether somebody starts the process again when it cannot write any more (`fail_disk`)."""
        self.broken: BaseException | None = None
        """The first invariant that did not hold."""
        self._start = start
        self._limits = limits
        self._clients: list[SimulatedClient] = []
        self._connections = 0
        self._gate: Gate | None = None
        self._described: dict[Module, Remote] = {}
        self._closed = False
        self.context = contextvars.Context()
        """What procedures run in."""
        self.outside = Outside(self)
        """Where things live that go on when the process ends."""
        self._open()

    # --- its process

    def _open(self) -> None:
        self.lives += 1
        self.loop = SimulatedLoop(self.clock, self.context)
        self.disk.later = self.loop.call_later
        self.disk.on_failure = lambda: None
        self._gate = None
        self.db = SimulatedDatabase(self.module, self.disk, self.clock, self.loop, f"{self.seed}/{self.lives}")
        self.db.on_commit = self._committed
        self.db.run_to_end = self._run_to_end
        self._opened()
        if self.invariants:
            self._look()
        for client in self._clients:
            client.returns()

    def _opened(self) -> None:
        """For kinds of simulations that have more to a life."""

    def _committed(self) -> None:
        self.commits += 1
        if self.invariants:
            self._look()

    def _look(self) -> None:
        if self.broken is not None:
            return
        db, self.db.looking = self.db, True
        try:
            for invariant in self.invariants:
                if invariant(self) is False:
                    raise does_not_hold(invariant)
        except failures() as error:
            self.broken = error
        finally:
            db.looking = False

    def _must_be_idle(self, what: str) -> None:
        """Raise when what wants to move the world is called from within it, or when that is over."""
        if self._closed:
            raise DatabaseClosed(f"{self!r} is over; make another one")
        self.db.must_not_look()
        if self.db.running is not None or self.loop.is_running() or self.outside.is_running():
            raise GamedbError(
                f"sim.{what}() was called by what runs in the simulation (a reducer, a procedure, a fake, a client's "
                "callback); only the test itself can. To let the process die in the middle: sim.crash_after(...)"
            )

    def always(self, invariant: Invariant) -> Invariant:
        """From now on this must hold after every commit; the action that breaks it raises. Also a decorator."""
        self.invariants.append(invariant)
        self._look()
        self.check()
        return invariant

    def check(self) -> None:
        """Raise what has gone wrong and has not been raised yet."""
        if self.broken is not None:
            raise self.broken
        for loop in (self.loop, self.outside):
            if loop.failures:
                raise loop.failures.pop(0)

    def crash(self, at: int | None = None, *, settle: bool = True) -> None:
        """Kill the process, lose what is not on disk, and start it again.

        `at`: one of `boundaries`, the last transaction that survives; by default the last one that is written.
        `settle=False`: what is due by then does not happen yet.
        """
        self._must_be_idle("crash")
        boundaries = self.disk.boundaries
        if at is not None and at not in boundaries:
            raise ValueError(f"crash(at={at!r}): a crash can cut after one of {_shown(boundaries)}")
        self._bury(at)
        if settle:
            self.settle()

    def _bury(self, at: int | None) -> None:
        self.db.die()
        self.outside.died()
        self.loop.close()
        for client in self._clients:
            client.died()
        self.disk.cut(self.disk.durable_tx_id if at is None else at)
        self.supervised = False
        self._open()

    def crash_after(self, commits: int = 0) -> None:
        """Let the process die by itself right after so many more commits and one, in the middle of what it does.

        Whoever made the call that it dies in gets a `ConnectionLost`.
        """
        if not isinstance(commits, int) or commits < 0:
            raise ValueError(f"crash_after(commits={commits!r}): how many commits are still made, 0 or more")
        self.db.commits_left = commits

    def restart(self) -> None:
        """Stop the process in good order, and start it again."""
        self.deploy(self.module)

    def deploy(self, module: Module) -> None:
        """Stop in good order, and go on with another version of the game.

        `SchemaChangeRefused` as a server has it; then the version from before is started again.
        """
        self._must_be_idle("deploy")
        if not isinstance(module, Module):
            raise TypeError(f"what is deployed is a Module, not {module!r}")
        old = self.db.module
        self.db.die()
        self.outside.died()
        self.loop.close()
        for client in self._clients:
            client.died()
        self.disk.write()
        self.disk.cut(self.disk.durable_tx_id)
        self.supervised = False
        try:
            if module is not self.module:
                self.disk.convert(old, module.resolve())
            self.module = module
        finally:
            self._open()
            self.settle()

    @property
    def boundaries(self) -> list[int]:
        """The transactions after which a crash can cut: from the last that somebody relies on, to the last one."""
        return self.disk.boundaries

    def flush(self) -> None:
        """All that is committed is on disk now, and no crash undoes it."""
        self.db.flush()
        self.settle()

    def hold_disk(self, held: bool = True) -> None:
        """Write nothing to disk until `flush` (or `hold_disk(False)`)."""
        self.disk.held = held
        if not held:
            self.flush()

    def fail_disk(self, why: str = DISK_FULL, *, restart_after: float | None = None) -> None:
        """Let writing to disk fail from now on, until the process is started again (`crash`, `restart`).

        What was not written may be lost. After the first write that fails, calls raise `WriteFailed`, as in a real
        process; with `restart_after`, somebody starts it again so many seconds later, and whoever calls meanwhile
        gets a `ConnectionLost`.
        """
        self.disk.failing = why
        self.supervised = restart_after is not None
        if restart_after is not None:
            loop = self.loop
            self.disk.on_failure = lambda: loop.call_later(restart_after, self._end_life, self.db)

    def _end_life(self, db: SimulatedDatabase) -> None:
        db.die()
        raise ProcessDied

    # --- calling

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: Any, /, *args: Any, sender: str | Identity | None = None, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a reducer as the database itself, or as `sender` (who may be a name); gives what it returns.

        Whatever is due by then runs, too: nothing is left for later but what is later.
        """
        sender = kwargs.pop("sender", None)
        if sender is not None:
            return self.act(lambda: self.db.caller(identity(sender)).call(reducer, *args, **kwargs))
        return self.act(lambda: self.db.call(reducer, *args, **kwargs))

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a procedure to its end, in simulated time; gives what it returns."""
        return self.act(lambda: self.db.call_procedure(procedure, *args, **kwargs))

    def caller(self, who: str | Identity) -> SimulatedCaller:
        """The game as somebody uses it: `sim.caller("ann").call(attack, 3)`. Over all lives of the process."""
        return SimulatedCaller(self, identity(who))

    def client(
        self, who: str | Identity = "client", *, confirmed: bool = True, reconnects: bool = True
    ) -> SimulatedClient:
        """A connected client, with a cache of its own for what it subscribes to."""
        from gamedb.testing.clients import SimulatedClient

        client = SimulatedClient(self, identity(who), confirmed=confirmed, reconnects=reconnects)
        self.act(client.connect)
        self._clients.append(client)
        self.run_until(lambda: client.connected or client.error is not None)
        return client

    @property
    def gate(self) -> Gate:
        """The server's side of connections, in this life. For clients."""
        if self._gate is None:
            from gamedb.server.limits import Limits
            from gamedb.testing.network import Gate

            self._gate = Gate(self.db, self.loop, self._limits if self._limits is not None else Limits())
        return self._gate

    def described(self) -> Remote:
        """What the server says of its module; made once, as that is slow. For clients."""
        if self.module not in self._described:
            from gamedb.client.remote import Remote
            from gamedb.codegen.module_def import module_def

            self._described[self.module] = Remote(module_def(self.db.module), self.module)
        return self._described[self.module]

    def next_connection(self) -> int:
        """A number for another connection. For clients."""
        self._connections += 1
        return self._connections

    def act(self, work: Callable[[], T]) -> T:
        """Do something as somebody who waits for its outcome, and all that comes of it without time passing."""
        try:
            with self._alive():
                result = work()
                self._settle()
                if self.confirms:
                    self._confirm()
        except ProcessDied:
            self._bury(self.cut())
            self.settle()
            raise ConnectionLost("the process died during this call, which may or may not have happened") from None
        except WriteFailed as error:
            if not self.supervised:
                raise
            raise ConnectionLost(f"this call may or may not have happened: {error}") from None
        self.check()
        return result

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Whatever comes of a death of the process is that death, also where it was taken for something else."""
        db = self.db
        if self._closed:
            raise DatabaseClosed(f"{self!r} is over; make another one")
        db.must_not_look()
        try:
            yield
        except Exception:
            if db.dead and db is self.db and not self._closed:
                raise ProcessDied from None
            raise
        if db.dead and db is self.db and not self._closed:
            raise ProcessDied

    def _confirm(self) -> None:
        tx_id, disk = self.db.last_tx_id, self.disk
        while disk.durable_tx_id < tx_id:
            if disk.failure is not None:
                raise disk.failure.with_traceback(None)
            due = self._next_due()
            if due is None:
                raise SimulationStuck("the disk is held; let it write with sim.flush()")
            self._move(due)
        disk.rely(tx_id)

    # --- rows

    def read(self, row: type[R], /) -> ReadTable[R]:
        """The committed rows of a table."""
        return self.db.read(row)

    def insert(self, *rows: Row) -> list[Row]:
        """Put rows into their tables, for a test to begin with; gives them with what the database assigned."""

        def body() -> list[Row]:
            with self.db.transaction(name="insert") as ctx:
                return [ctx.db[type(row)].insert(row) for row in rows]

        return self.act(body)

    # --- time

    @property
    def now(self) -> datetime:
        """The simulated time."""
        return self.clock.now

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        try:
            with self._alive():
                self._settle()
        except ProcessDied:
            self._bury(self.cut())
            self.settle()
        self.check()

    def _settle(self) -> None:
        for _ in range(FIRINGS_MAX):
            fired = self.db.fire_due(FIRINGS_MAX)
            if fired == FIRINGS_MAX:
                break
            if not (self.loop.turn() | self.outside.turn()) and not fired:
                return
        raise SimulationStuck(f"more than {FIRINGS_MAX} things happened at {self.now}; does one cause itself again?")

    def _next_due(self) -> int | None:
        moments = (self.db.next_due_micros(), self.loop.next_due(), self.outside.next_due())
        return min((due for due in moments if due is not None), default=None)

    def _move(self, micros: int) -> None:
        if micros > self.clock.micros():
            self.clock.set(from_micros(micros))
        self._settle()

    @property
    def next_due(self) -> datetime | None:
        """When something happens next by itself; `None` when nothing will."""
        due = self._next_due()
        return None if due is None else from_micros(due)

    def advance(self, by: timedelta | float) -> None:
        """Let so much time (seconds, or a timedelta) pass. Whatever falls due meanwhile happens at its own time."""
        self._must_be_idle("advance")
        step = _duration(by)
        if step < timedelta(0):
            raise ValueError(f"advance({by!r}) would go backwards")
        self._pass(self.now + step, lambda: False)

    def run_until(self, predicate: Callable[[], object], *, within: timedelta = PATIENCE) -> None:
        """Let time pass from one due time to the next until `predicate()` is true.

        `SimulationStuck` when nothing is due any more, or after so much time.
        """
        began = self.now
        if not self._pass(began + within, predicate, jump=False):
            passed = f"{self.now - began} have passed"
            why = "nothing is due any more" if self._next_due() is None else passed
            held = "; the disk is held, let it write with sim.flush()" if self.disk.held else ""
            raise SimulationStuck(f"{shown(predicate)} did not come true, and {why}{held}")

    def _pass(self, until: datetime, predicate: Callable[[], object], *, jump: bool = True) -> bool:
        """Says whether the predicate came true."""
        for _ in itertools.count() if jump else range(MOVES_MAX):
            try:
                with self._alive():
                    self._settle()
            except ProcessDied:
                self._bury(self.cut())
                continue
            self.check()
            if predicate():
                return True
            due = self._next_due()
            if due is not None and from_micros(due) <= until:
                self.clock.set(max(self.now, from_micros(due)))
            elif jump and until > self.now:
                self.clock.set(until)
            else:
                break
        return False

    def _run_to_end(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.loop.spawn(work)
        loop = self.loop
        self.run_until(lambda: task.done() or loop.is_closed())
        if loop.is_closed():
            raise ConnectionLost("the process died during this call, which may or may not have happened")
        return task.result()

    # --- many runs

    def random_pauses(self, seed: object) -> None:
        """Let procedures take random times. For kinds of simulations that can."""

    def fresh(self, seed: int | str) -> Self:
        """Another simulation of the same kind, from the beginning, with another seed."""
        made = type(self)(self.module, seed=seed, start=self._start, limits=self._limits)
        made._described = self._described
        return made

    def explore(
        self,
        scenario: Scenario[Self],
        *,
        seeds: int | Iterable[int] = 200,
        invariants: Sequence[Invariant] = (),
        crashes: int = CRASHES_MAX,
        disk_errors: int = DISK_ERRORS_MAX,
        linger: timedelta | float = LINGER,
        shrink: bool = True,
    ) -> Explored:
        """Run a scenario under many seeds, each with its own order of events, latencies, slow disks and crashes.

        `crashes` and `disk_errors`: how often the process dies in a run, and how often its disk fails, at most.
        `linger`: how much time passes at the end, for what was begun to come to its end.

        See `gamedb.testing.exploring`. Raises `ExplorationFailed` with the seed and a shortened run.
        """
        from gamedb.testing.exploring import Bounds, explore

        __tracebackhide__ = True

        bounds = Bounds(crashes=crashes, disk_errors=disk_errors, linger_seconds=_duration(linger).total_seconds())
        return explore(self, scenario, seeds=seeds, invariants=invariants, bounds=bounds, shrink=shrink)

    # --- the end

    def close(self) -> None:
        """End the simulation. Twice is once."""
        if not self._closed:
            self._closed = True
            self.db.die()
            self.loop.close()
            self.outside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<simulation of {self.db.module.name}: seed {self.seed!r}, life {self.lives}, {self.now}>"


class SimulatedCaller:
    """The game as one identity uses it."""

    def __init__(self, sim: Simulation, sender: Identity) -> None:
        self._sim = sim
        self.identity = sender
        """Who this is."""

    @overload
    def call(self, reducer: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, reducer: str, /, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, reducer: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a reducer as this identity. `NotAllowed` for private ones."""
        return self._sim.act(lambda: self._sim.db.caller(self.identity).call(reducer, *args, **kwargs))

    def call_procedure(self, procedure: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a procedure as this identity, to its end."""
        return self._sim.act(lambda: self._sim.db.caller(self.identity).call_procedure(procedure, *args, **kwargs))

    def view(self, view: Callable[..., Any] | str, /, *args: Any) -> Any:
        """The result of a view, as this identity sees it."""
        return self._sim.db.caller(self.identity).view(view, *args)


def _duration(time: timedelta | float) -> timedelta:
    """A time that may be given in seconds."""
    if isinstance(time, timedelta):
        return time
    if not isinstance(time, int | float):
        raise TypeError(f"a time is a timedelta or a number of seconds, not {time!r}")
    if not math.isfinite(time):
        raise ValueError(f"{time} s is no length of time")
    return timedelta(seconds=time)


def _shown(boundaries: list[int]) -> str:
    if len(boundaries) < 20:
        return f"the transactions {boundaries} (earlier ones are relied upon; sim.hold_disk() keeps more open)"
    return f"the transactions {boundaries[0]} to {boundaries[-1]}"
