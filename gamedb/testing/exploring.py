"""`explore`: one scenario under many seeds, in search of the order of events that breaks it.

A scenario takes a `Run`: it sets the stage with `run.sim` and names actors, generator functions that stop at each
`yield`. From then on chance decides: which actor goes on, how much time passes, how slow disk, network and procedures
are, and after which commit the process dies and what is lost with it. What an actor was told is done stays done; a
call in which the process dies raises `ConnectionLost`, after which nobody knows. An actor that does not catch it is
gone.

Each run is a list of decisions. One that fails is shortened by leaving decisions out while it still fails.
"""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from gamedb.errors import ConnectionLost
from gamedb.testing.decisions import Act, Decision, Die, Fail, Jitter, Pass, Slow, simpler
from gamedb.testing.shrinking import shortened, simplified
from gamedb.testing.simulation import CRASHES_MAX, DISK_ERRORS_MAX, LINGER
from gamedb.testing.wrong import does_not_hold, failures, place_of

if TYPE_CHECKING:
    from gamedb.testing.simulation import Invariant, Simulation

SimT = TypeVar("SimT", bound="Simulation")

DECISIONS_MAX: Final = 500
"""How many decisions a run has at most."""
ROUNDS_MAX: Final = 50
"""How many steps actors that are not done by then may still take: those that take more are not waited for."""
REPLAYS_MAX: Final = 300
"""How many shorter runs are tried before the shortest so far is shown."""
PASS_SECONDS_MAX: Final = 3600.0
"""How far at most time passes until something is due: retentions should not be over all the time."""
LATENCY_SECONDS_MAX: Final = 0.5

Actor = Callable[[], Iterator[Any]]
Scenario = Callable[["Run[SimT]"], Any]


class Bounds(msgspec.Struct, frozen=True):
    """How much may go wrong in a run, and how long it lasts."""

    crashes: int
    disk_errors: int
    linger_seconds: float
    """How much time passes at the end, for what was begun to come to its end."""

    def __post_init__(self) -> None:
        for name, value in (
            ("crashes", self.crashes),
            ("disk_errors", self.disk_errors),
            ("linger", self.linger_seconds),
        ):
            if value < 0:
                raise ValueError(f"explore({name}={value:g}) must not be negative")


class Run(Generic[SimT]):
    """One run of a scenario: what the scenario gets."""

    def __init__(self, sim: SimT, invariants: Sequence[Invariant]) -> None:
        self.sim = sim
        """The simulation, which the scenario drives."""
        self.random = Random(f"{sim.seed}/scenario")
        """Chance of the scenario's own, the same for the same seed."""
        self.decisions: list[Decision] = []
        """What has been decided so far."""
        self.left: list[str] = []
        """The actors that were not done when the decisions were over."""
        self._actors: dict[str, Iterator[Any]] = {}
        self._at_end: list[Invariant] = []
        self._lost = 0
        """Of what nobody relies on, how many commits the next death loses."""
        sim.invariants.extend(invariants)

    def actor(self, function: Actor) -> Actor:
        """Somebody who acts: a generator function without parameters. As a decorator."""
        name = getattr(getattr(function, "func", function), "__name__", "actor")  # a partial is called by its function
        while name in self._actors:
            name += "'"
        steps: object = function()
        if not isinstance(steps, Iterator):
            _dropped(steps)
            raise TypeError(f"the actor {name} must be a generator function: a def with a yield where others may go on")
        self._actors[name] = steps
        return function

    def always(self, invariant: Invariant) -> Invariant:
        """What must hold after every commit. As a decorator; the simulation is its argument."""
        self.sim.invariants.append(invariant)
        return invariant

    def at_end(self, check: Invariant) -> Invariant:
        """What must hold at the end, when all actors are done and an hour has passed. As a decorator."""
        self._at_end.append(check)
        return check

    # --- for `explore`

    def begin(self, scenario: Scenario[SimT]) -> None:
        """Set the stage; no faults yet."""
        made = scenario(self)
        name = getattr(scenario, "__name__", "scenario")
        if inspect.isgenerator(made):
            self._actors[name] = made
        elif inspect.isawaitable(made) or inspect.isasyncgen(made):
            _dropped(made)
            raise TypeError(f"the scenario {name} must be a def, not an async def: a simulation needs no await")
        self.sim.confirms = True
        self.sim.flush()
        self.sim.cut = self._cut

    @property
    def waiting(self) -> list[str]:
        """The actors that are not done."""
        return list(self._actors)

    def apply(self, decision: Decision) -> None:
        """Let it happen. Raises what has gone wrong by it."""
        self.decisions.append(decision)
        sim = self.sim
        match decision:
            case Act(actor):
                self._act(actor)
            case Pass(seconds):
                due = sim.next_due
                if seconds is not None:
                    sim.advance(seconds)
                elif due is not None:
                    sim.advance(min(max((due - sim.now).total_seconds(), 0.0), PASS_SECONDS_MAX))
            case Die(commits, lost):
                self._lost = lost
                if commits < 0:
                    sim.crash(at=self._cut())
                else:
                    sim.crash_after(commits)
            case Fail(seconds, lost):
                self._lost = lost
                sim.fail_disk(restart_after=seconds)
            case Slow(seconds):
                sim.disk.delay_seconds = seconds
            case Jitter(seed):
                chance = Random(seed)
                sim.latency = lambda: chance.uniform(0, LATENCY_SECONDS_MAX)
                sim.random_pauses(seed)
        sim.check()

    def _act(self, name: str) -> None:
        actor = self._actors.get(name)
        if actor is None:
            return
        try:
            next(actor)
        except (StopIteration, ConnectionLost):
            del self._actors[name]

    def _cut(self) -> int:
        """Where the disk is cut when the process dies."""
        boundaries = self.sim.boundaries
        return boundaries[max(0, len(boundaries) - 1 - self._lost)]

    def finish(self, linger_seconds: float) -> None:
        """Let everything come to its end, without more faults, and check that."""
        sim = self.sim
        sim.db.commits_left = None
        sim.disk.delay_seconds = 0.0
        if sim.disk.failure is None:
            sim.disk.failing = None
        sim.disk.write()
        self.left = self.waiting
        for _ in range(ROUNDS_MAX):
            for name in self.waiting:
                self._act(name)
                sim.check()
        sim.advance(linger_seconds)
        for check in self._at_end:
            if check(sim) is False:
                raise does_not_hold(check, "at the end")

    def close(self) -> None:
        """Actors that have not come to their end are sent home."""
        for actor in self._actors.values():
            with suppress(BaseException):
                _dropped(actor)
        self.sim.close()


def _dropped(unfinished: object) -> None:
    """End a generator or coroutine that nobody will go on with."""
    close = getattr(unfinished, "close", None)
    if close is not None:
        close()


class Explored(msgspec.Struct, frozen=True):
    """What `explore` went through without finding anything."""

    seeds: int
    """How many runs there were."""
    commits: int
    """How many transactions committed in them."""
    crashes: int
    """How often a process ended, by itself or after a failed write."""
    disk_errors: int
    """How often a write failed."""


class Failure(msgspec.Struct, frozen=True):
    """What came of a run that failed."""

    error: BaseException
    decisions: list[Decision]
    left: list[str]
    """The actors that went on to their end after the decisions."""

    def place(self, scenario: Any) -> str:
        """Where it happened: in the file of the scenario if it was there at all."""
        if (place := place_of(self.error)) is not None:
            return place
        frames = list(traceback.extract_tb(self.error.__traceback__))
        file = inspect.unwrap(scenario).__code__.co_filename if inspect.isfunction(scenario) else ""
        frames = [frame for frame in frames if frame.filename == file] or frames
        return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


class ExplorationFailed(AssertionError):
    """A run in which something went wrong: `seed`, the shortened `decisions`, and the `error`."""

    def __init__(self, seed: int, decisions: Sequence[Decision], error: BaseException, text: str) -> None:
        super().__init__(text)
        self.seed = seed
        """The seed of the run; `explore(..., seeds=[seed])` runs it alone."""
        self.decisions = list(decisions)
        """What happened in it, in order, without what the failure does not need."""
        self.error = error
        """What was raised, or the broken invariant's."""


def explore(
    sim: SimT,
    scenario: Scenario[SimT],
    *,
    seeds: int | Iterable[int],
    invariants: Sequence[Invariant],
    bounds: Bounds,
    shrink: bool,
) -> Explored:
    """What `Simulation.explore` does."""
    __tracebackhide__ = True  # pytest shows where it was called
    commits = deaths = failed_writes = count = 0
    for seed in _listed(seeds):
        run, failure = _run(sim, scenario, invariants, seed, bounds, partial(_decide, seed=seed, bounds=bounds))
        count, commits, deaths = count + 1, commits + run.sim.commits, deaths + run.sim.lives - 1
        failed_writes += run.sim.disk.failures
        if failure is not None:
            if shrink:
                failure = _shrunk(sim, scenario, invariants, seed, bounds, failure)
            text = _told(scenario, seed, invariants, bounds, failure, shrink=shrink)
            raise ExplorationFailed(seed, failure.decisions, failure.error, text) from failure.error
    return Explored(count, commits, deaths, failed_writes)


def _listed(seeds: int | Iterable[int]) -> list[int]:
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    found = list(numbers) if isinstance(numbers, Iterable) else []
    if not found or not all(isinstance(seed, int) for seed in found):
        raise ValueError(f"explore(seeds={seeds!r}): how many seeds, at least one, or a list of numbers such as [18]")
    return found


def _run(
    sim: SimT,
    scenario: Scenario[SimT],
    invariants: Sequence[Invariant],
    seed: int,
    bounds: Bounds,
    play: Callable[[Run[SimT]], None],
) -> tuple[Run[SimT], Failure | None]:
    run = Run(sim.fresh(seed), invariants)
    logs = [run.sim.db.log, logging.getLogger("gamedb.server")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)  # of failures of games, and of what comes of faults, there will be many
    try:
        run.begin(scenario)
        play(run)
        run.finish(bounds.linger_seconds)
    except failures() as error:
        return run, Failure(error, run.decisions, run.left)
    finally:
        run.close()
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
    return run, None


def _decide(run: Run[SimT], seed: int, bounds: Bounds) -> None:
    """Chance decides, until all actors are done."""
    chance = Random(f"{seed}/decisions")
    if chance.random() < 0.7:
        run.apply(Jitter(f"{seed}/jitter"))
    deaths = disk_errors = idle = 0
    for _ in range(DECISIONS_MAX):
        waiting = run.waiting
        if not waiting:  # give what they began a while to go wrong
            idle += 1
            if idle > 8:
                return
        kind = chance.random()
        if waiting and kind < 0.6:
            run.apply(Act(chance.choice(waiting)))
        elif kind < 0.8:
            run.apply(
                Pass(chance.choice((None, None, round(chance.uniform(0, 3), 3), round(chance.uniform(0, 60), 2))))
            )
        elif kind < 0.93 and deaths < bounds.crashes:
            deaths += 1
            run.apply(Die(chance.choice((-1, -1, 0, 0, 1, 2, 5)), chance.choice((0, 0, 1, 2, 5))))
        elif 0.93 <= kind < 0.97 and disk_errors < bounds.disk_errors:
            disk_errors += 1
            run.apply(Fail(chance.choice((0.0, 2.0, 30.0)), chance.choice((0, 0, 1, 5))))
        elif kind > 0.97:
            run.apply(Slow(chance.choice((0.0, 0.0, 0.02, 1.0))))


def _shrunk(
    sim: SimT,
    scenario: Scenario[SimT],
    invariants: Sequence[Invariant],
    seed: int,
    bounds: Bounds,
    failure: Failure,
) -> Failure:
    """The same failure in a shorter and simpler run."""
    place = failure.place(scenario)
    failures = {tuple(failure.decisions): failure}

    def fails(decisions: Sequence[Decision]) -> bool:
        def play(run: Run[SimT]) -> None:
            for decision in decisions:
                run.apply(decision)

        _, found = _run(sim, scenario, invariants, seed, bounds, play)
        if found is None or type(found.error) is not type(failure.error) or found.place(scenario) != place:
            return False
        failures[tuple(decisions)] = found
        return True

    decisions = shortened(failure.decisions, fails, replays_max=REPLAYS_MAX)
    return failures[tuple(simplified(decisions, simpler, fails))]


def _told(
    scenario: Any, seed: int, invariants: Sequence[Invariant], bounds: Bounds, failure: Failure, *, shrink: bool
) -> str:
    name = getattr(scenario, "__name__", "scenario")
    what = str(failure.error).partition("\n")[0]  # pytest's view of an assertion has many lines, and stands above
    steps = [f"  {number}. {decision}" for number, decision in enumerate(failure.decisions, 1)]
    verb = "goes" if len(failure.left) == 1 else "go"
    rest = f"{', '.join(failure.left)} {verb} on to the end, and " if failure.left else ""
    return "\n".join(
        [
            f"{name} fails with seed {seed}: {type(failure.error).__name__}: {what}".rstrip(": "),
            f"  at {failure.place(scenario)}",
            "the shortest run that was found:" if shrink else "the run:",
            *steps,
            f"  {'then ' if steps else ''}{rest}{bounds.linger_seconds:g} s pass",
            f"repeat it with explore({name}, {_options(seed, invariants, bounds)})",
        ]
    )


def _options(seed: int, invariants: Sequence[Invariant], bounds: Bounds) -> str:
    """What `explore` must be given to decide the same again: all that is not as by default."""
    options = [f"seeds=[{seed}]"]
    if invariants:
        options.append(f"invariants=[{', '.join(getattr(each, '__name__', repr(each)) for each in invariants)}]")
    if bounds.crashes != CRASHES_MAX:
        options.append(f"crashes={bounds.crashes}")
    if bounds.disk_errors != DISK_ERRORS_MAX:
        options.append(f"disk_errors={bounds.disk_errors}")
    if bounds.linger_seconds != LINGER.total_seconds():
        options.append(f"linger={bounds.linger_seconds!r}")
    return ", ".join(options)
