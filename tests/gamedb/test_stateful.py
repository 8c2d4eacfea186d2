"""Random games against a model of plain dicts: tables of every kind, failures, savepoints, schedules, crashes.

After each step the rows, the answers of the indexes, the commits that subscribers saw and what is scheduled next must
be those of the model. With a file, the model also keeps every committed state: after a crash the database must hold
one of them, at least as late as the last flush.

GAMEDB_FUZZ_STEPS says about how many steps to take altogether (1,000 by default).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gamedb import (
    AutoInc,
    Commit,
    ConstraintError,
    Database,
    Index,
    ManualClock,
    Module,
    PrimaryKey,
    ReducerContext,
    Row,
    RowNotFound,
    ScheduleAt,
    Unique,
    ViewChange,
    ViewContext,
    WriteFailed,
    u8,
    u32,
    u64,
)
from gamedb.columns import from_micros, micros_of, to_micros

STEPS: Final = int(os.environ.get("GAMEDB_FUZZ_STEPS", "1000"))
STEPS_PER_GAME: Final = 25
TIMERS_MAX: Final = 6


class Unit(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    name: Unique[str]
    mail: Unique[str | None] = None
    zone: Index[u32] = 0
    level: Index[u8 | None] = None
    x: Index[float] = 0.0


class Spot(Row):
    """A set of rows, told apart also by -0.0 and nan."""

    zone: Index[u32] = 0
    x: float = 0.0
    tags: list[u8] = []


class Ticket(Row):
    """A small counter beside the key."""

    name: PrimaryKey[str]
    number: Unique[AutoInc[u8]] = 0


class Hit(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    zone: Index[u32] = 0


class Ring(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    script: u32 = 0


class Bell(Row):
    id: PrimaryKey[AutoInc[u64]] = 0
    at: ScheduleAt
    script: u32 = 0


PLAIN: Final[tuple[type[Row], ...]] = (Unit, Spot, Ticket, Hit)
TIMERS: Final[tuple[type[Row], ...]] = (Ring, Bell)
TABLES: Final = PLAIN + TIMERS
KEYS: Final[dict[type[Row], str | None]] = {
    Unit: "id", Spot: None, Ticket: "name", Hit: "id", Ring: "id", Bell: "id",
}  # fmt: skip
AUTO: Final = {Unit: ("id", 2**64 - 1), Ticket: ("number", 255), Hit: ("id", 2**64 - 1), Ring: ("id", 2**64 - 1),
               Bell: ("id", 2**64 - 1)}  # fmt: skip
UNIQUE: Final = {Unit: ("name", "mail"), Ticket: ("number",)}


class Failed(Exception):
    """Ends a script or a savepoint."""


# --- the model


class Tables:
    """The state: rows by key, and the next time of each interval row."""

    def __init__(self) -> None:
        self.rows: dict[type[Row], dict[Any, Row]] = {table: {} for table in TABLES}
        self.phases: dict[tuple[type[Row], int], int] = {}

    def copy(self) -> Tables:
        other = copy(self)
        other.rows = {table: dict(rows) for table, rows in self.rows.items()}
        other.phases = dict(self.phases)
        return other

    def shown(self) -> Any:
        """Everything in a form that compares."""
        rows = {table.__name__: {repr(k): repr(r) for k, r in rows.items()} for table, rows in self.rows.items()}
        return rows, {(table.__name__, key): at for (table, key), at in self.phases.items()}


class Model:
    """What the database must do, as slowly and simply as possible."""

    def __init__(self) -> None:
        self.now = self.now_tables = Tables()
        self.next: dict[type[Row], int] = dict.fromkeys(AUTO, 1)
        self.handed: dict[type[Row], int] = dict.fromkeys(AUTO, 1)
        self.tx_id = 1
        self.history: dict[int, Tables] = {1: Tables()}
        self.commits: list[tuple[int, Any]] = []
        self.fired: list[tuple[str, int, int]] = []

    # the table views; each gives what the real one returns, or the class of what it raises

    def take(self, table: type[Row]) -> int | None:
        number = self.next[table]
        if number > AUTO[table][1]:
            return None
        self.next[table] = self.handed[table] = number + 1
        return number

    def skip(self, table: type[Row], row: Row) -> None:
        if table in AUTO:
            self.next[table] = max(self.next[table], getattr(row, AUTO[table][0]) + 1)

    def key(self, row: Row) -> Any:
        key = KEYS[type(row)]
        return repr(row) if key is None else getattr(row, key)

    def taken(self, row: Row, key: Any) -> bool:
        others = [other for k, other in self.now.rows[type(row)].items() if k != key]
        return any(
            getattr(row, column) is not None and getattr(row, column) == getattr(other, column)
            for column in UNIQUE.get(type(row), ())
            for other in others
        )

    def numbered(self, row: Row) -> Row | None:
        table = type(row)
        if table in AUTO and getattr(row, AUTO[table][0]) == 0:
            number = self.take(table)
            return None if number is None else row.replace(**{AUTO[table][0]: number})
        return row

    def insert(self, row: Row) -> Any:
        numbered = self.numbered(row)
        if numbered is None:
            return ConstraintError
        rows, key = self.now.rows[type(row)], self.key(numbered)
        if key in rows:
            return rows[key] if KEYS[type(row)] is None else ConstraintError
        if self.taken(numbered, None):
            return ConstraintError
        self.skip(type(row), numbered)
        rows[key] = numbered
        return numbered

    def update(self, row: Row) -> Any:
        rows, key = self.now.rows[type(row)], self.key(row)
        if key not in rows:
            return RowNotFound
        numbered = self.numbered(row)
        if numbered is None:
            return ConstraintError
        if repr(numbered) != repr(rows[key]):
            if self.taken(numbered, key):
                return ConstraintError
            self.skip(type(row), numbered)
            rows[key] = numbered
        return rows[key]

    def upsert(self, row: Row) -> Any:
        here = KEYS[type(row)] is not None and self.key(row) in self.now.rows[type(row)]
        return self.update(row) if here else self.insert(row)

    def delete(self, row: Row) -> bool:
        return self.now.rows[type(row)].pop(self.key(row), None) is not None

    def where(self, table: type[Row], **equal: Any) -> list[Row]:
        rows = self.now.rows[table].values()
        return [row for row in rows if all(getattr(row, column) == value for column, value in equal.items())]

    # transactions

    def guarded(self, body: Callable[[], None]) -> bool:
        """Run a part that may raise `Failed`; whether it was kept."""
        before, next_before = self.now.copy(), dict(self.next)
        try:
            body()
        except Failed:
            self.now = before
            self.next = {table: max(number, self.handed[table]) for table, number in next_before.items()}
            return False
        return True

    def transaction(self, micros: int, body: Callable[[], None]) -> bool:
        before = self.now.copy()
        if not self.guarded(body):
            return False
        for table in TIMERS:
            for key in before.rows[table].keys() | self.now.rows[table].keys():
                old, new = (tables.rows[table].get(key) for tables in (before, self.now))
                was, at = getattr(old, "at", None), getattr(new, "at", None)
                if was != at and isinstance(at, timedelta):
                    self.now.phases[table, key] = micros + micros_of(at)
                elif was != at and isinstance(was, timedelta):
                    del self.now.phases[table, key]
        seen = changes_of(before, self.now)
        self.now.rows[Hit] = {}
        if seen or before.phases != self.now.phases:
            self.tx_id += 1
            self.history[self.tx_id] = self.now.copy()
        if seen:
            self.commits.append((self.tx_id, seen))
        return True

    def due(self) -> tuple[int, int, int] | None:
        """(when, id, table number) of what fires next."""
        pending = []
        for number, table in enumerate(TIMERS):
            for key, row in self.now.rows[table].items():
                at = row.at  # type: ignore[attr-defined]
                when = to_micros(at) if isinstance(at, datetime) else self.now.phases[table, key]
                pending.append((when, key, number))
        return min(pending, default=None)

    def claim(self, entry: tuple[int, int, int], micros: int) -> None:
        when, key, number = entry
        at = self.now.rows[TIMERS[number]][key].at  # type: ignore[attr-defined]
        if isinstance(at, datetime):
            del self.now.rows[TIMERS[number]][key]
        else:
            step = micros_of(at)
            self.now.phases[TIMERS[number], key] = when + ((micros - when) // step + 1) * step


def changes_of(before: Tables, after: Tables) -> Any:
    """The net changes of a transaction as sets of (before, after)."""
    result = {}
    for table in TABLES:
        old, new = before.rows[table], after.rows[table]
        changed = {(repr(old.get(k)), repr(new.get(k))) for k in old.keys() | new.keys()}
        changed = {pair for pair in changed if pair[0] != pair[1]}
        if changed:
            result[table.__name__.lower()] = changed
    return result


def seen_in(commit: Commit) -> Any:
    return {
        name: {(repr(old), repr(new)) for _, old, new in changes.changes}
        for name, changes in commit.changes.items()
        if not name.startswith("gamedb_")
    }


# --- what is drawn

NAMES = st.sampled_from("abcdefgh")
ZONES = st.integers(0, 2)
FLOAT_VALUES = [0.0, -0.0, 1.5, -math.inf, math.nan]
FLOATS = st.sampled_from(FLOAT_VALUES)
IDS = st.one_of(st.just(0), st.just(0), st.integers(1, 12))
NUMBERS = st.one_of(st.just(0), st.integers(1, 5), st.integers(250, 255))
TIMES = st.one_of(st.integers(1, 8), st.sampled_from([2, 3, 7]).map(lambda n: timedelta(seconds=n)))
UNITS = st.builds(
    Unit, id=IDS, name=NAMES, mail=st.none() | NAMES, zone=ZONES, level=st.none() | st.integers(0, 1), x=FLOATS
)
SPOTS = st.builds(Spot, zone=ZONES, x=FLOATS, tags=st.lists(st.integers(0, 1), max_size=1))
TICKETS = st.builds(Ticket, name=NAMES, number=NUMBERS)
HITS = st.builds(Hit, id=IDS, zone=ZONES)
PLAIN_ROWS = st.one_of(UNITS, UNITS, UNITS, SPOTS, TICKETS, HITS)
TIMER_ROWS = st.tuples(st.sampled_from(TIMERS), IDS, TIMES, st.integers(0, 3))
VERBS = st.sampled_from(["insert", "insert", "insert", "update", "upsert", "delete"])
CHANGES = st.one_of(  # to the n-th row that is there, whatever it is
    st.tuples(st.just(Unit), st.fixed_dictionaries({"zone": ZONES, "level": st.none() | st.integers(0, 1)})),
    st.tuples(
        st.just(Unit), st.fixed_dictionaries({}, optional={"name": NAMES, "mail": st.none() | NAMES, "x": FLOATS})
    ),
    st.tuples(st.just(Spot), st.fixed_dictionaries({}, optional={"x": FLOATS})),
    st.tuples(st.just(Ticket), st.fixed_dictionaries({}, optional={"number": NUMBERS})),
    st.tuples(st.sampled_from(TIMERS), st.fixed_dictionaries({}, optional={"script": st.integers(0, 3), "at": TIMES})),
)
SMALL_WRITES = st.one_of(
    st.tuples(VERBS, PLAIN_ROWS),
    st.tuples(VERBS, TIMER_ROWS),
    *[
        st.tuples(
            st.just("change"), st.sampled_from(["upsert", "upsert", "replace", "delete"]), st.integers(0, 9), CHANGES
        )
    ]
    * 2,
    st.one_of(
        st.tuples(st.just("delete_where"), st.sampled_from([Unit, Spot]), ZONES),
        st.tuples(st.just("clear"), st.sampled_from(PLAIN)),
        st.tuples(st.just("insert"), UNITS),
        st.tuples(st.just("insert"), SPOTS),
    ),
)
SELDOM = st.integers(0, 4).map(lambda n: n == 4)
OPERATIONS = st.recursive(
    SMALL_WRITES,
    lambda inner: st.tuples(st.just("savepoint"), st.lists(inner, min_size=1, max_size=4), SELDOM),
    max_leaves=6,
)
DRAWN_SCRIPTS = st.tuples(st.lists(OPERATIONS, min_size=1, max_size=6), SELDOM)


def random_script(seed: int, size: int) -> Any:
    """A script from a seed: denser than what Hypothesis draws, at the price of shrinking by the size alone."""
    chance = random.Random(seed)
    pick = chance.choice

    def changes() -> Any:
        unit = {
            "zone": chance.randrange(3),
            "level": pick([None, 0, 1]),
            "name": pick("abcdefgh"),
            "x": pick(FLOAT_VALUES),
        }
        some = {column: unit[column] for column in chance.sample(sorted(unit), chance.randint(1, 3))}
        timer: dict[str, Any] = {"script": chance.randrange(4)}
        if chance.random() < 0.4:
            timer["at"] = time()
        tables = [(Unit, some), (Spot, {"x": unit["x"]}), (Ticket, {"number": chance.randrange(4)})]
        return pick([*tables, *[(table, timer) for table in TIMERS] * 2])

    def time() -> Any:
        return pick([1, 3, 8, *[timedelta(seconds=n) for n in (2, 3, 7)]])

    def row() -> Any:
        zone, x, key = chance.randrange(3), pick(FLOAT_VALUES), pick([0, 0, 0, chance.randint(1, 9)])
        unit = Unit(id=key, name=pick("abcdefgh"), mail=pick([None, *"abcd"]), zone=zone, level=pick([None, 0, 1]), x=x)
        others = [Spot(zone=zone, x=x), Ticket(name=pick("abcd"), number=pick([0, 0, 3, 252])), Hit(zone=zone)]
        return pick([unit, unit, unit, *others, *[(table, key, time(), chance.randrange(4)) for table in TIMERS]])

    def operation(depth: int) -> Any:
        kind = chance.choices(["write", "change", "savepoint", "bulk"], [5, 6, 2 * (depth < 3), 0.5])[0]
        if kind == "write":
            return pick(["insert", "insert", "insert", "update", "upsert", "delete"]), row()
        if kind == "change":
            return "change", pick(["upsert", "upsert", "replace", "delete"]), chance.randrange(10), changes()
        if kind == "savepoint":
            inner = [operation(depth + 1) for _ in range(chance.randint(1, 4))]
            return "savepoint", inner, chance.random() < 0.3
        return "delete_where", pick([Unit, Spot]), chance.randrange(3)

    return [operation(0) for _ in range(size)], chance.random() < 0.2


SCRIPTS = st.one_of(
    DRAWN_SCRIPTS, *[st.builds(random_script, st.integers(0, 2**32), st.integers(1, 8)) for _ in range(2)]
)


class Play:
    """Does a script to the database and to the model at once, comparing each answer."""

    def __init__(self, model: Model, ctx: ReducerContext) -> None:
        self.model = model
        self.ctx = ctx

    def script(self, script: Any) -> None:
        operations, fails = script
        for operation in operations:
            self.operation(operation)
        if fails:
            raise Failed

    def operation(self, operation: Any) -> None:
        model, db = self.model, self.ctx.db
        match operation:
            case ("savepoint", inner, fails):

                def body() -> None:
                    with self.ctx.savepoint():
                        self.script((inner, fails))

                assert model.guarded(body) is not fails
            case ("clear", table):
                assert db[table].clear() == len(model.now.rows[table])
                model.now.rows[table].clear()
            case ("delete_where", table, zone):
                rows = model.where(table, zone=zone)
                assert db[table].delete_where(zone=zone) == len(rows)
                for row in rows:
                    model.delete(row)
            case ("change", verb, n, (table, changes)):
                rows = list(model.now.rows[table].values())
                if rows:
                    before = rows[n % len(rows)]
                    row = before.replace(**{c: self.time(v) if c == "at" else v for c, v in changes.items()})
                    if verb == "replace":
                        self.write("delete", before)
                        verb = "insert"
                    self.write(verb, row)
            case (verb, row):
                if isinstance(row, tuple):
                    table, key, at, number = row
                    if len(model.now.rows[table]) >= TIMERS_MAX:
                        return  # timers that make timers would be ever more
                    row = table(id=key, at=self.time(at), script=number)
                self.write("upsert" if verb == "update" and KEYS[type(row)] is None else verb, row)

    def time(self, drawn: int | timedelta) -> datetime | timedelta:
        return drawn if isinstance(drawn, timedelta) else self.ctx.now + timedelta(seconds=drawn)

    def write(self, verb: str, row: Row) -> None:
        expected = getattr(self.model, verb)(row)
        try:
            answer = getattr(self.ctx.db[type(row)], verb)(row)
        except (ConstraintError, RowNotFound) as error:
            answer = type(error)
        assert repr(answer) == repr(expected), (verb, row)


class World:
    """The module; its reducers find the running game here."""

    game: Game


def make_module() -> Module:
    module = Module("fuzz")
    module.table(indexes=[("zone", "level"), ("x", "zone")])(Unit)
    module.table(Spot)
    module.table(Ticket)
    module.table(event=True)(Hit)
    module.table(scheduled="ring")(Ring)
    module.table(scheduled="toll")(Bell)

    @module.reducer
    def ring(ctx: ReducerContext, timer: Ring) -> None:
        World.game.fire(ctx, timer)

    @module.reducer
    def toll(ctx: ReducerContext, timer: Bell) -> None:
        World.game.fire(ctx, timer)

    @module.view
    def crowd(ctx: ViewContext) -> list[Unit]:
        zones = {spot.zone for spot in ctx.db[Spot]}
        return [unit for unit in ctx.db[Unit] if unit.zone in zones]

    return module


MODULE: Final = make_module()


class Game(RuleBasedStateMachine):
    """One random game."""

    stored = False

    def __init__(self) -> None:
        super().__init__()
        World.game = self
        self.directory = Path(tempfile.mkdtemp(prefix="gamedb-fuzz-")) if self.stored else None
        self.clock = ManualClock()
        self.model = Model()
        self.flushed = 1
        self.scripts: list[Any] = [([], False)] * 4
        self.open()
        self.db.flush()

    @initialize(
        scripts=st.lists(SCRIPTS, min_size=4, max_size=4),
        units=st.lists(UNITS, min_size=4, max_size=6, unique_by=lambda unit: unit.name),
        timers=st.lists(TIMER_ROWS, min_size=2, max_size=4),
    )
    def begin(self, scripts: Any, units: Any, timers: Any) -> None:
        self.scripts = scripts
        self.transact(([("insert", row) for row in (*units, *timers)], False))

    def open(self) -> None:
        path = None if self.directory is None else self.directory / "game.db"
        self.db = Database(MODULE, path, clock=self.clock, seed=0, quiet=True)
        self.commits: list[Commit] = []
        self.db.subscribe(TABLES, self.commits.append)
        self.crowd = Counter(map(repr, self.db.view("crowd")))
        self.db.subscribe("crowd", self.crowd_changed)

    def crowd_changed(self, change: ViewChange) -> None:
        gone, come = Counter(map(repr, change.deleted)), Counter(map(repr, change.inserted))
        assert not gone - self.crowd
        assert not gone & come
        self.crowd = self.crowd - gone + come

    def teardown(self) -> None:
        self.db.close()
        if self.directory is not None:
            shutil.rmtree(self.directory)

    # --- steps

    @rule(script=SCRIPTS)
    def transact(self, script: Any) -> None:
        micros = self.clock.micros()

        def body() -> None:
            with self.db.transaction(name="script") as ctx:
                Play(self.model, ctx).script(script)

        assert self.model.transaction(micros, body) is not script[1]

    @rule(seconds=st.sampled_from([0.5, 1, 1, 1.5, 4, 10]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        micros = self.clock.micros()
        self.problems: list[BaseException] = []
        self.firing: Iterator[Any] = self.firings(micros)
        fired = self.db.run_due(limit=10_000)
        if self.problems:
            raise self.problems[0]
        assert next(self.firing, None) is None
        assert fired == self.fired
        self.model.commits.sort(key=lambda commit: commit[0])

    def firings(self, micros: int) -> Iterator[tuple[int, int, int]]:
        """What must fire, one after the other; the model does each before the database comes back for the next."""
        self.fired = 0
        while (due := self.model.due()) is not None and due[0] <= micros:
            self.fired += 1
            yield due

    def fire(self, ctx: ReducerContext, timer: Any) -> None:
        """Called by the scheduled reducers; the scheduler logs what they raise, so what matters is kept for later."""
        try:
            self.fire_beside_the_model(ctx, timer)
        except Failed:
            raise
        except BaseException as error:
            self.problems.append(error)
            raise

    def fire_beside_the_model(self, ctx: ReducerContext, timer: Any) -> None:
        entry = next(self.firing)
        assert (timer.id, TIMERS.index(type(timer))) == entry[1:]
        assert repr(timer) == repr(self.model.now.rows[type(timer)][timer.id])
        micros = self.clock.micros()
        script = self.scripts[timer.script]

        def body() -> None:
            self.model.claim(entry, micros)
            Play(self.model, ctx).script(script)

        if not self.model.transaction(micros, body):
            assert self.model.transaction(micros, lambda: self.model.claim(entry, micros))
            raise Failed

    @precondition(lambda self: self.stored)
    @rule()
    def flush(self) -> None:
        self.db.flush()
        self.flushed = self.db.durable_tx_id
        assert self.flushed == self.db.last_tx_id

    @precondition(lambda self: self.stored)
    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.open()
        self.flushed = self.db.last_tx_id
        assert {t: self.db.tables[t].data.sequence.next for t in AUTO} == self.model.next  # type: ignore[union-attr]

    @precondition(lambda self: self.stored)
    @rule()
    def crash(self) -> None:
        lose_what_is_not_flushed(self.db)
        self.open()
        assert self.flushed <= self.db.last_tx_id <= self.model.tx_id
        self.flushed = self.model.tx_id = self.db.last_tx_id
        self.model.now = self.model.history[self.flushed].copy()
        self.model.history = {self.flushed: self.model.now.copy()}
        for table in AUTO:
            sequence = self.db.tables[table].data.sequence
            assert sequence is not None
            committed = [getattr(row, AUTO[table][0]) for row in self.model.now.rows[table].values()]
            assert sequence.next > max([self.model.handed[table] - 1, *committed])
            self.model.next[table] = self.model.handed[table] = sequence.next

    # --- what must hold after each of them

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        real = Tables()
        for table in TABLES:
            real.rows[table] = {self.model.key(row): row for row in self.db.read(table)}
            assert len(real.rows[table]) == self.db.read(table).count()
        for name, state in self.db.store.tables["gamedb_schedule"].rows.items():
            table_name, _, key = str(name).partition("/")
            table = next(t for t in TIMERS if t.__name__.lower() == table_name)
            real.phases[table, int(key)] = to_micros(state.next_at)  # type: ignore[attr-defined]
        assert real.shown() == self.model.now.shown()
        assert self.db.last_tx_id == self.model.tx_id

    @invariant()
    def subscribers_saw_the_commits(self) -> None:
        seen = [(commit.tx_id, seen_in(commit)) for commit in self.commits]
        assert seen == self.model.commits
        self.commits.clear()
        self.model.commits.clear()
        assert self.crowd == Counter(map(repr, self.db.view("crowd")))

    @invariant()
    def the_next_firing_is_that_of_the_model(self) -> None:
        due = self.model.due()
        assert self.db.next_due == (None if due is None else from_micros(due[0]))

    @invariant()
    def indexes_answer_as_a_scan_does(self) -> None:
        units, rows = self.db.read(Unit), list(self.model.now.rows[Unit].values())
        for zone, level in itertools.product(range(3), (None, 0, 1)):
            check(units.where(zone=zone), [r for r in rows if r.zone == zone])  # type: ignore[attr-defined]
            check(units.where(zone=zone, level=level), self.model.where(Unit, zone=zone, level=level))
            check(units.where(level=level, mail=None), self.model.where(Unit, level=level, mail=None))
        for name in "abcdefgh":
            check(list(filter(None, [units.find(name=name)])), self.model.where(Unit, name=name))
            check(units.where(mail=name), self.model.where(Unit, mail=name))
        for x in (0.0, 1.5, math.nan):
            check(units.where(x=x), self.model.where(Unit, x=x))
        for column, low, high in [
            ("id", 2, 6), ("name", "b", None), ("mail", None, "c"), ("zone", 1, 2), ("level", None, None),
            ("x", None, 1.0), (("zone", "level"), (0, 1), (2, 0)), (("x", "zone"), (0.0, 1), None),
        ]:  # fmt: skip
            columns = (column,) if isinstance(column, str) else column
            expected = []
            for row in rows:
                value = tuple(getattr(row, name) for name in columns)
                if any(v is None or v != v for v in value):
                    continue
                bounds = [(b,) if isinstance(column, str) and b is not None else b for b in (low, high)]
                if (bounds[0] is None or bounds[0] <= value) and (bounds[1] is None or value <= bounds[1]):
                    expected.append(row)
            found = units.between(column, low, high)
            check(found, expected)
            values = [tuple(getattr(row, name) for name in columns) for row in found]
            assert values == sorted(values)
        spots = self.db.read(Spot)
        for zone in range(3):
            check(spots.where(zone=zone), self.model.where(Spot, zone=zone))
        assert all(row in spots for row in self.model.now.rows[Spot].values())


def check(found: list[Any], expected: list[Any]) -> None:
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def lose_what_is_not_flushed(db: Database) -> None:
    """What a crash does to a database: what the writer has not written is gone, nothing is tidied up."""

    class Dead:
        def write(self, *_: Any) -> None:
            raise OSError("crashed")

    durability: Any = db._durability
    durability.writer._storage = Dead()
    durability._sequences = []
    with contextlib.suppress(WriteFailed):
        db.close()


class StoredGame(Game):
    """The same with a file, flushes, crashes and reopenings."""

    stored = True


def games(share: float) -> settings:
    return settings(
        max_examples=max(5, int(STEPS * share) // STEPS_PER_GAME),
        stateful_step_count=STEPS_PER_GAME,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


TestGame = Game.TestCase
TestGame.settings = games(0.85)
TestStoredGame = StoredGame.TestCase
TestStoredGame.settings = games(0.15)
