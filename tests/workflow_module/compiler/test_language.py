"""What the language's functions build, and what a definition tells about the code."""

# ruff: noqa: E501  (programs and tables are easier to read on one line)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from compiler_harness import Context, define, drive
from compiler_support import SECOND, Clock, Pair, Ping, Quit, ask

from workflow_module import (
    Backoff,
    ChildFailed,
    Handle,
    ProcedureFailed,
    StateError,
    Timer,
    call,
    gather,
    select,
    signal,
    sleep,
    timer,
    wait_all,
)
from workflow_module.outcome import Completed, ContinueAsNew, Throw, Value
from workflow_module.waits import CallWait, SelectWait, SignalWait, TimerWait, decode_wait, encode_wait

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "wait",
    [
        timer(Clock.RING, after=SECOND),
        timer(Clock.RING, at=NOW, name="x"),
        sleep(timedelta(days=400)),
        signal(Ping, timeout=SECOND),
        select(timer(Clock.RING, after=SECOND), Ping, Quit, Handle(3, "child"), gather(sleep(SECOND))),
        gather(),
        gather(call(ask, 1), signal(Ping), return_exceptions=True),
        wait_all(Ping, Quit, timeout=SECOND),
        call(ask, 1, attempts=2, backoff=Backoff(SECOND, 3.0, SECOND * 9), timeout=SECOND, queue="mail"),
    ],
)
def test_waits_are_plain_data(wait: Any) -> None:
    assert encode_wait(decode_wait(encode_wait(wait))) == encode_wait(wait)


def test_a_timer_needs_one_time_and_an_aware_one() -> None:
    with pytest.raises(TypeError, match=r"either after=\.\.\. or at="):
        timer(Clock.RING)
    with pytest.raises(TypeError, match=r"either after=\.\.\. or at="):
        timer(Clock.RING, after=SECOND, at=NOW)
    with pytest.raises(ValueError, match="aware datetime"):
        timer(Clock.RING, at=datetime(2026, 1, 1))


def test_a_timers_value_is_its_name() -> None:
    with pytest.raises(TypeError, match="a string, not 5"):

        class Bad(Timer):
            FIVE = 5


def test_wrong_arms_are_type_errors() -> None:
    with pytest.raises(TypeError, match="not 5"):
        select(5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="at least one arm"):
        select()  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="Signal classes"):
        wait_all(int)  # type: ignore[type-var]


def test_a_call_stores_its_arguments_by_their_types() -> None:
    wait = call(ask, 2**70)
    assert isinstance(wait, CallWait)
    assert (wait.procedure, bytes(wait.args), bytes(wait.kwargs)) == ("ask", b"[1180591620717411303424]", b"{}")
    with pytest.raises(Exception, match="argument 1 of ask is declared as int"):
        call(ask, "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ask takes"):
        call(ask, 1, 2)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="attempts"):
        call(ask, 1, attempts=0)


def test_backoff_grows_to_its_cap() -> None:
    backoff = Backoff(SECOND, 2.0, timedelta(seconds=5))
    assert [backoff.delay(n).total_seconds() for n in (1, 2, 3, 4, 400)] == [1, 2, 4, 5, 5]


def test_errors_say_who_failed() -> None:
    assert str(ChildFailed(7, "combat", "boom")) == "workflow 7 (combat): boom"
    assert str(ProcedureFailed("fetch", 3, "OSError", "down")) == "fetch failed after 3 attempts: OSError: down"


def test_effects_outside_a_workflow_are_errors() -> None:
    from workflow_module import subscribe

    with pytest.raises(RuntimeError, match="inside a running workflow"):
        subscribe(Ping, 1)


BIG = """
async def price(ctx: Any, item: str) -> int: ...
class Init(Struct):
    seller: int
@workflow
async def child(ctx: WorkflowContext, init: Init) -> str:
    return "x"
@subroutine
async def notify(ctx: WorkflowContext, n: int) -> None:
    await signal(Quit)
@workflow(name="sale", version=4, retention=timedelta(days=1))
async def program(ctx: WorkflowContext, init: Init) -> Pair:
    "Sells."
    subscribe(Ping, init.seller)
    unsubscribe(Ping, "k")
    ctx.signal(5, Ping(3))
    await notify(ctx, 1)
    bid = await call(price, "sword", attempts=3)
    what = await spawn(child, Init(1))
    handle = start(child, Init(2))
    found = await select(timer(Clock.RING, after=SECOND), Ping, handle)
    return Pair(bid, len(what))
"""


def test_a_definition_tells_what_the_code_names() -> None:
    names = define(BIG)
    program = names["program"]
    assert (program.name, program.version, program.retention) == ("sale", 4, timedelta(days=1))
    assert (program.init_type, program.result_type) == (names["Init"], Pair)
    assert program.signals == {"Ping": Ping, "Quit": Quit}
    assert program.timers == {"ring": Clock.RING, "stop": Clock.STOP}
    assert program.procedures == {"price": names["price"]}
    assert program.children == {"child": names["child"]}
    assert program.subroutines == {"notify": names["notify"]}
    assert program.__doc__ == "Sells."
    assert "def _wf_step" in program.compiled_source
    assert "block 0" in program.dump()
    assert "version 4" in repr(program)


def test_effects_go_to_the_context_at_once() -> None:
    names = define(BIG)
    ctx = Context()
    names["program"].start(ctx, names["Init"](9))
    assert ctx.done == [("subscribe", "Ping", 9), ("unsubscribe", "Ping", "k"), ("signal", 5, Ping(3))]


def test_values_are_decoded_by_the_wait_they_are_for() -> None:
    names = define(BIG)
    program = names["program"]
    assert program.decode_value(TimerWait("ring", SECOND), None) is Clock.RING
    assert program.decode_value(SignalWait("Ping"), b'{"n":3}') == Ping(3)
    assert program.decode_value(SignalWait("Ping", SECOND), None) is None
    assert program.decode_value(call(names["price"], "x"), b"5") == 5
    assert program.decode_value(Handle(1, "child"), b'"a"') == "a"
    with pytest.raises(msgspec.ValidationError, match=r"\$\.n"):
        program.decode_value(SignalWait("Ping"), b'{"n":"x"}')
    with pytest.raises(LookupError):
        program.decode_value(SelectWait(()), b"1")
    with pytest.raises(KeyError):
        program.decode_value(Handle(1, "nobody"), b"1")


def test_init_and_result_are_typed_json() -> None:
    names = define(BIG)
    program = names["program"]
    assert program.decode_init(program.encode_init(names["Init"](3))) == names["Init"](3)
    assert program.decode_result(b'{"left":1,"right":2}') == Pair(1, 2)
    with pytest.raises(Exception, match="init is declared as Init"):
        program.encode_init(5)


def test_a_result_of_the_wrong_type_is_an_error() -> None:
    names = define(
        "def given() -> Any:\n    return 'x'\n@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    return given()\n"
    )
    with pytest.raises(Exception, match="the result of program is declared as int"):
        names["program"].start(Context(), None)


def test_completed_has_the_result_as_json() -> None:
    names = define("@workflow\nasync def program(ctx: WorkflowContext) -> float:\n    return float('inf')\n")
    assert names["program"].start(Context(), None) == Completed(float("inf"), b'"inf"')


NEW = """
class Init(Struct):
    n: int
@workflow
async def program(ctx: WorkflowContext, init: Init) -> int:
    try:
        await call(ask, init.n)
        if init.n < 3:
            {how}continue_as_new(Init(init.n + 1))
    except Exception:
        emit("not this")
    finally:
        emit("cleanup", await call(ask, 99))
    return init.n
"""


@pytest.mark.parametrize("how", ["", "await "])
def test_continue_as_new_runs_finally_blocks_that_wait(how: str) -> None:
    names = define(NEW.replace("{how}", how))
    outcome = drive(names["program"], [1, 5], init=names["Init"](1))
    assert outcome == ContinueAsNew(b'{"n":2}')
    assert names["LOG"] == ["('cleanup', 5)"]


def test_continue_as_new_checks_the_init() -> None:
    names = define(
        "class Init(Struct):\n    n: int\n@workflow\nasync def program(ctx: WorkflowContext, init: Init) -> int:\n    continue_as_new(Pair(1, 2))\n"
    )
    with pytest.raises(StateError, match=r"continue_as_new of program with an init that does not fit: .* field `n`"):
        names["program"].start(Context(), names["Init"](1))


def test_a_computed_wait_can_be_awaited_when_its_type_is_known() -> None:
    names = define(
        """
        def chosen(fast: bool) -> Arm[None]:
            return sleep(SECOND) if fast else sleep(SECOND * 9)

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            arm = chosen(True)
            await arm
            x, y = await gather(*[call(ask, i) for i in range(2)])
            first, second = await wait_all(Ping, Quit, timeout=SECOND)
            emit(first, second)
            return x + y
        """
    )
    assert drive(names["program"], [None, (1, 2), (Ping(1), None)]).result == 3


def test_two_timers_of_one_name_are_an_error() -> None:
    names = define(
        """
        class Other(Timer):
            RING = "ring"

        @workflow
        async def program(ctx: WorkflowContext) -> int:
            await select(timer(Clock.RING, after=SECOND), timer(Other.RING, after=SECOND))
            return 0
        """
    )
    with pytest.raises(TypeError, match="two different timers are named 'ring'"):
        _ = names["program"].timers


def test_a_throw_is_raised_at_the_wait() -> None:
    names = define("@workflow\nasync def program(ctx: WorkflowContext) -> int:\n    return await call(ask, 1)\n")
    program = names["program"]
    state = program.start(Context(), None).state
    with pytest.raises(ProcedureFailed):
        program.resume(Context(), state, Throw(ProcedureFailed("ask", 5, "OSError", "x")))
    assert program.resume(Context(), state, Value(3)).result == 3
