"""How a call is bound to a reducer: positional, keyword and JSON arguments, and every way to get them wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gamedb import (
    ArgumentError,
    Database,
    Module,
    ReducerContext,
    ReducerError,
    Row,
    SchemaError,
    Struct,
    UnknownName,
    ViewContext,
    u8,
    u32,
    u64,
)

module = Module("functions")


class At(Struct):
    x: u8
    y: u8 = 0


class Thing(Row):
    id: u8


@module.reducer
def damage(ctx: ReducerContext, player_id: u64, amount: u32 = 1) -> tuple[int, int]:
    return player_id, amount


@module.reducer
def move(ctx: ReducerContext, to: At, *, fast: bool = False, steps: list[u8]) -> tuple[At, bool, list[int]]:
    return to, fast, steps


@module.reducer(name="hail")
def greet(ctx: ReducerContext) -> str:
    return "hello"


@module.reducer
def shadow(ctx: ReducerContext, type: u8, int: u8, float: bytes, str: float, bytes: str, tuple: list[u8]) -> Any:
    return type, int, float, str, bytes, tuple


@module.procedure
def ask(ctx: Any) -> u8:
    return 1


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(module) as db:
        yield db


def test_a_reducer_is_called_by_function_or_by_name(db: Database) -> None:
    assert db.call(damage, 1, 5) == (1, 5)
    assert db.call("damage", 1, 5) == (1, 5)
    assert db.call(greet) == db.call("hail") == "hello"


def test_arguments_go_by_position_or_keyword_and_may_be_left_to_defaults(db: Database) -> None:
    assert db.call(damage, player_id=1, amount=5) == (1, 5)
    assert db.call(damage, 1, amount=5) == (1, 5)
    assert db.call(damage, 1) == (1, 1)


def test_keyword_only_parameters_are_given_by_keyword(db: Database) -> None:
    assert db.call(move, At(x=1), steps=[1]) == (At(x=1), False, [1])
    assert db.call("move", to=At(x=1), fast=True, steps=(1,)) == (At(x=1), True, [1])
    with pytest.raises(ArgumentError, match="takes 1 positional arguments, got 2"):
        db.call("move", At(x=1), True, steps=[])


def test_arguments_come_as_a_json_array_or_object(db: Database) -> None:
    assert db.call_json("damage", "[1, 5]") == (1, 5)
    assert db.call_json("damage", b"[1]") == (1, 1)
    assert db.call_json("damage", {"amount": 5, "player_id": 1}) == (1, 5)
    assert db.call_json("move", [{"x": 1}, True, [2]]) == (At(x=1), True, [2])
    assert db.call_json("move", {"to": {"x": 1, "y": 2}, "steps": []}) == (At(x=1, y=2), False, [])
    assert db.call_json("hail", "[]") == db.call_json("hail", "{}") == "hello"


def test_parameters_may_have_the_names_of_builtins(db: Database) -> None:
    assert db.call(shadow, 1, 2, b"3", 4, "5", [6]) == (1, 2, b"3", 4.0, "5", [6])


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"reducer 'damage' needs 'player_id'; it takes \(player_id: u64, amount: u32 = 1\)"),
        ((1, 2, 3), {}, "takes 2 positional arguments, got 3"),
        ((1,), {"speed": 1}, "has no parameter 'speed'"),
        ((1,), {"player_id": 1}, "got 'player_id' twice"),
        (("x",), {}, "reducer 'damage': player_id: expected u64, got 'x'"),
        ((-1,), {}, "player_id: -1 is out of range"),
        ((1, None), {}, "amount: expected u32, got None"),
    ],
)
def test_wrong_arguments_are_refused_naming_what_is_wrong(db: Database, args: Any, kwargs: Any, message: str) -> None:
    last = db.last_tx_id
    with pytest.raises(ArgumentError, match=message):
        db.call("damage", *args, **kwargs)
    assert db.last_tx_id == last


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[1", "the arguments are not JSON"),
        (b"\xff", "the arguments are not JSON"),
        ("5", "as a JSON array or object, got 5"),
        ("null", "as a JSON array or object, got None"),
        ("[1, 2, 3]", r"takes 2 arguments \(player_id: u64, amount: u32 = 1\)"),
        ("[]", "needs 'player_id'"),
        ('{"player_id": 1, "speed": 2}', "has no parameter 'speed'"),
        ('["1"]', "player_id: expected u64, got '1'"),
        ("[1, 1.5]", "amount: expected u32, got 1.5"),
        ("[null]", "player_id: expected u64, got None"),
    ],
)
def test_wrong_json_is_refused_naming_what_is_wrong(db: Database, arguments: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"reducer 'damage'.*{message}"):
        db.call_json("damage", arguments)


def test_an_unknown_reducer_is_refused_with_the_nearest_name(db: Database) -> None:
    with pytest.raises(UnknownName, match=r"module 'functions' has no reducer 'damag'; did you mean 'damage'\?"):
        db.call("damag", 1)
    with pytest.raises(UnknownName, match="it has: damage, move, hail, shadow"):
        db.call("xyz")
    with pytest.raises(UnknownName, match="no reducer 'ask'; it is a procedure"):
        db.call("ask")
    with pytest.raises(UnknownName, match="no procedure 'damage'; it is a reducer"):
        db.call_procedure(damage)
    with pytest.raises(UnknownName, match="no reducer 'stranger'"):
        db.call(stranger)


def stranger(ctx: ReducerContext) -> None: ...


def test_a_type_error_of_the_reducer_itself_is_not_taken_for_a_wrong_argument() -> None:
    module = Module("m")

    @module.reducer
    def broken(ctx: ReducerContext) -> None:
        raise TypeError("mine")

    with Database(module) as db, pytest.raises(TypeError, match=r"^mine$"):
        db.call(broken)


def test_a_decorated_function_is_still_the_function() -> None:
    assert damage(None, 1, 2) == (1, 2)  # type: ignore[arg-type]


# --- functions that cannot be reducers, procedures or views


async def waits(ctx: ReducerContext) -> None: ...


def yields(ctx: ReducerContext) -> Any:
    yield 1


async def yields_and_waits(ctx: ReducerContext) -> Any:
    yield 1


def no_context() -> None: ...


def forgot_context(amount: u8) -> None: ...


def untyped(ctx, a):  # type: ignore[no-untyped-def]
    ...


def starred(ctx: ReducerContext, *args: u8) -> None: ...


def double_starred(ctx: ReducerContext, **kwargs: u8) -> None: ...


def underscored(ctx: ReducerContext, _a: u8) -> None: ...


def wrong_type(ctx: ReducerContext, a: object) -> None: ...


def wrong_default(ctx: ReducerContext, a: u8 = 256) -> None: ...


def undefined(ctx: ReducerContext, a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (waits, "reducer waits is async, but a transaction cannot wait; use def, or @module.procedure"),
        (yields, "is a generator"),
        (yields_and_waits, "is a generator"),
        (no_context, r"needs the context as its first parameter: def no_context\(ctx, ...\)"),
        (
            forgot_context,
            r"the context as its first parameter, before 'amount': def forgot_context\(ctx, amount, ...\)",
        ),
        (untyped, "parameter 'a' needs a type, such as a: u64"),
        (starred, r"\*args cannot come over the wire"),
        (double_starred, r"\*kwargs cannot come over the wire"),
        (underscored, "must not begin with an underscore"),
        (wrong_type, "parameter a: object is not a column type"),
        (wrong_default, "the default of a: 256 is out of range"),
        (undefined, "'Nowhere' is not defined"),
        (Thing, "is for functions, not"),
        (5, "is for functions, not 5"),
    ],
)
def test_a_function_that_cannot_be_a_reducer_is_refused(function: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Module("m").reducer(function)


def lifecycle_with_argument(ctx: ReducerContext, a: u8) -> None: ...


def view_of_nothing(ctx: ViewContext) -> None: ...


def view_of_numbers(ctx: ViewContext) -> list[u8]:
    return []


def view_of_structs(ctx: ViewContext) -> At:
    return At(x=1)


async def view_that_waits(ctx: ViewContext) -> Thing: ...  # type: ignore[empty-body]


def procedure_of_anything(ctx: Any) -> object: ...


def test_lifecycle_views_and_procedures_have_rules_of_their_own() -> None:
    with pytest.raises(SchemaError, match="a lifecycle reducer takes the context alone, not 'a'"):
        Module("m").init(lifecycle_with_argument)
    for view in (view_of_nothing, view_of_numbers, view_of_structs):
        with pytest.raises(SchemaError, match=rf"view {view.__name__} must return a Row"):
            Module("m").view(view)
    with pytest.raises(SchemaError, match="is async"):
        Module("m").view(view_that_waits)
    with pytest.raises(SchemaError, match="procedure procedure_of_anything: result: object is not a column type"):
        Module("m").procedure(procedure_of_anything)


def test_reducer_error_is_told_from_other_exceptions_and_both_roll_back() -> None:
    module = Module("m")
    module.table(Thing)

    @module.reducer
    def refuse(ctx: ReducerContext) -> None:
        ctx.db[Thing].insert(Thing(id=1))
        raise ReducerError("not today")

    @module.reducer
    def fail(ctx: ReducerContext) -> None:
        ctx.db[Thing].insert(Thing(id=1))
        raise LookupError("secret")

    with Database(module) as db:
        with pytest.raises(ReducerError, match=r"^not today$"):
            db.call(refuse)
        with pytest.raises(LookupError, match="secret") as caught:
            db.call(fail)
        assert not isinstance(caught.value, ReducerError)
        assert db.read(Thing).count() == 0


class _NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


class Even(Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise KeyError(self.n)


hostile = Module("hostile")


@hostile.reducer
def take(
    _ctx: ReducerContext,
    n: u64 = 0,
    x: float = 0.0,
    text: str = "",
    numbers: list[u64] = [],  # noqa: B006
    even: Even = Even(n=0),  # noqa: B008
) -> None:
    """One parameter of each kind that a message may have to show."""


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"n":' * 100_000,
        '{"numbers":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"text": "\ud800"}',
        '{"text": "\\ud800"}',
        b'{"text": "\xff"}',
        '{"n": ' + "9" * 5000 + "}",
        '{"x": 1e999}',
        '{"x": NaN}',
        '{"even": {"n": 1}}',
        _nested(100_000),
        {"numbers": _nested(100_000)},
        {"text": _nested(100_000)},
        {"n": 10**5000},
        {"x": 10**5000},
        {"text": _NoRepr()},
        {1: 2},
        None,
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:20] if isinstance(value, str | bytes) else ''}",
)
def test_hostile_json_is_an_argument_error_and_never_another_exception(arguments: Any) -> None:
    with Database(hostile) as db, pytest.raises(ArgumentError, match="'take'"):
        db.call_json("take", arguments)


def test_a_value_that_cannot_be_shown_is_still_refused_by_an_argument_error() -> None:
    with Database(hostile) as db:
        with pytest.raises(ArgumentError, match=r"n: <int of 16610 bits that cannot be shown> is out of range for u64"):
            db.call("take", 10**5000)
        with pytest.raises(ArgumentError, match=r"text: expected str, got <_NoRepr that cannot be shown>"):
            db.call("take", text=_NoRepr())
        with pytest.raises(UnknownName, match=r"no reducer 'xxx"):
            db.call_json("x" * 1_000_000, "{}")
