"""What a workflow author types, apart from `@workflow` and `@subroutine`.

Each function builds a wait (see `waits`), to be awaited at once or passed to `select` or `gather`; the few
that act at once go through the running step's context. Nothing here knows the engine or the compiler.
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, TypeVarTuple, overload

import msgspec

from .codec import Unstorable, codec_for, encode
from .combine import gather, select, wait_all
from .context import WorkflowContext, active_context
from .errors import Cancelled, ChildCancelled, ChildError, ChildFailed, ProcedureFailed
from .structs import Json, Signal, Struct
from .waits import Arm, Backoff, CallWait, Handle, OnParentEnd, SignalWait, SleepWait, SpawnWait, TimerWait

__all__ = [
    "Arm",
    "Backoff",
    "Cancelled",
    "ChildCancelled",
    "ChildError",
    "ChildFailed",
    "ContinueAsNewRequest",
    "Handle",
    "Json",
    "ProcedureFailed",
    "Signal",
    "Struct",
    "Timer",
    "WorkflowContext",
    "call",
    "continue_as_new",
    "gather",
    "select",
    "signal",
    "sleep",
    "spawn",
    "start",
    "subscribe",
    "timer",
    "unsubscribe",
    "wait_all",
]

TimerT = TypeVar("TimerT", bound="Timer")
SignalT = TypeVar("SignalT", bound=Signal)
InitT_contra = TypeVar("InitT_contra", contravariant=True)
InitT = TypeVar("InitT")
ResultT_co = TypeVar("ResultT_co", covariant=True)
ResultT = TypeVar("ResultT")
P = ParamSpec("P")
Args = TypeVarTuple("Args")


class Timer(enum.Enum):
    """Base of a workflow's timers; the values are the names shown in tables and used in tests.

    >>> class BuffTimer(Timer):
    ...     EXPIRE = "expire"
    """

    def __init__(self, value: str) -> None:
        if type(value) is not str:
            raise TypeError(f"the value of a timer is its name, a string, not {value!r}")


class Child(Protocol[InitT_contra, ResultT_co]):
    """What `spawn` and `start` need of a workflow; `WorkflowDefinition` is one."""

    @property
    def name(self) -> str: ...
    def encode_init(self, init: InitT_contra) -> bytes: ...
    def decode_result(self, data: bytes | str) -> ResultT_co: ...


def _no_duration(what: str, value: object) -> TypeError:
    return TypeError(f"{what} needs a timedelta, such as timedelta(seconds=5), not {value!r}")


def timer(
    which: TimerT, *, after: timedelta | None = None, at: datetime | None = None, name: str | None = None
) -> Arm[TimerT]:
    """Wait until a timer is due; the value is `which`.

    `after` counts from when the wait starts; `at` is a deadline (an aware datetime), which stays the same in a loop.
    Exactly one of them is given. Zero, negative and past times are due at once. `name` names
    the place in the code, for deploys.
    """
    if (after is None) == (at is None):
        raise TypeError("timer needs either after=... or at=...")
    if not isinstance(which, Timer):
        raise TypeError(f"timer needs a member of a Timer class, not {which!r}")
    if at is None:
        if not isinstance(after, timedelta):
            raise _no_duration("timer(after=...)", after)
    elif not isinstance(at, datetime):
        raise TypeError(f"timer(at=...) needs a datetime, such as ctx.now + ..., not {at!r}")
    elif at.tzinfo is None:
        raise ValueError(f"timer(at=...) needs an aware datetime, such as ctx.now + ..., not {at!r}")
    return TimerWait(which._value_, after, at, name)


def sleep(duration: timedelta, *, name: str | None = None) -> Arm[None]:
    """Wait for `duration` from now. In tables, and for `fire_timer`, such a timer is called `sleep`."""
    if not isinstance(duration, timedelta):
        raise _no_duration("sleep", duration)
    return SleepWait(duration, name)


@overload
def signal(which: type[SignalT], *, timeout: None = None, name: str | None = None) -> Arm[SignalT]: ...
@overload
def signal(which: type[SignalT], *, timeout: timedelta, name: str | None = None) -> Arm[SignalT | None]: ...
def signal(which: type[SignalT], *, timeout: timedelta | None = None, name: str | None = None) -> Arm[Any]:
    """Wait for the oldest unread signal of a class; None when `timeout` passes first.

    A signal that came before anybody waited for it is there at once.
    """
    if timeout is not None and not isinstance(timeout, timedelta):
        raise _no_duration("signal(timeout=...)", timeout)
    return SignalWait(which.__name__, timeout, name)


_BACKOFF = Backoff()


@lru_cache(maxsize=1024)
def parameter_types(procedure: Any) -> tuple[list[Any], dict[str, Any]]:
    """The types of a procedure's arguments after ctx: by position, and by keyword."""
    function = getattr(procedure, "function", procedure)
    hints = typing.get_type_hints(function)
    names = list(inspect.signature(function).parameters)[1:]
    types = [hints.get(name, Json) for name in names]
    return types, dict(zip(names, types, strict=True))


def _argument(value: object, annotation: Any, path: str) -> msgspec.Raw:
    return msgspec.Raw(encode(value, annotation, path))


_encode = msgspec.json.Encoder().encode


@overload
def call(
    procedure: Callable[Concatenate[Any, P], Awaitable[ResultT]], /, *args: P.args, **kwargs: P.kwargs
) -> Arm[ResultT]: ...
@overload
def call(
    procedure: Callable[[Any, *Args], Awaitable[ResultT]],
    /,
    *args: *Args,
    attempts: int = 5,
    backoff: Backoff | timedelta = ...,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    queue: str | None = None,
    non_retryable: tuple[type[Exception], ...] = (),
    name: str | None = None,
) -> Arm[ResultT]: ...
@overload
def call(procedure: Callable[Concatenate[Any, P], ResultT], /, *args: P.args, **kwargs: P.kwargs) -> Arm[ResultT]: ...
@overload
def call(
    procedure: Callable[[Any, *Args], ResultT],
    /,
    *args: *Args,
    attempts: int = 5,
    backoff: Backoff | timedelta = ...,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    queue: str | None = None,
    non_retryable: tuple[type[Exception], ...] = (),
    name: str | None = None,
) -> Arm[ResultT]: ...
def call(  # type: ignore[misc]  # no single signature can say what the overloads say
    procedure: Any,
    /,
    *args: Any,
    attempts: int = 5,
    backoff: Backoff | timedelta = _BACKOFF,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    queue: str | None = None,
    non_retryable: tuple[type[Exception], ...] = (),
    name: str | None = None,
    **kwargs: Any,
) -> Arm[Any]:
    """Call a procedure outside the transaction, at least once; the value is its return value.

    Arguments follow the procedure, without its context; they and the result are stored as JSON.

    - `attempts`: how often it is tried in all.
    - `backoff`: the pause between attempts, a `Backoff`, or a `timedelta` for its first pause.
    - `timeout`: the limit of each attempt.
    - `heartbeat`: the longest silence of one, see `StepContext.heartbeat`.
    - `queue`: names workers in other processes.
    - `non_retryable`: errors (with subclasses) that end it at once.

    Raises `ProcedureFailed` after the last attempt. After a crash an attempt runs again: `StepContext.step_key` lets
    the outside world recognise it.

    <!-- not run -->
    ```python
    receipt = await call(charge, player, gold, attempts=3, timeout=timedelta(seconds=20), non_retryable=(Declined,))
    ```
    """
    if attempts < 1:
        raise ValueError(f"attempts counts all attempts and is at least 1, not {attempts}")
    for option, limit in (("timeout", timeout), ("heartbeat", heartbeat)):
        if limit is not None and not isinstance(limit, timedelta):
            raise _no_duration(f"call({option}=...)", limit)
    if queue == "":
        raise ValueError("queue='' is no name; leave it out to run the procedure in this process")
    if not isinstance(backoff, (Backoff, timedelta)):
        raise _no_duration("call(backoff=...)", backoff)
    called = str(getattr(procedure, "name", None) or procedure.__name__)
    types, by_name = parameter_types(procedure)
    if len(args) > len(types) or not kwargs.keys() <= by_name.keys():
        raise TypeError(f"{called} takes ({', '.join(by_name)}) after ctx")
    try:
        packed = [
            _argument(arg, annotation, f"argument {index + 1} of {called}")
            for index, (arg, annotation) in enumerate(zip(args, types, strict=False))
        ]
        packed_by_name = {k: _argument(v, by_name[k], f"argument {k} of {called}") for k, v in kwargs.items()}
    except Unstorable as error:
        raise TypeError(f"an argument of {called} cannot be stored: {error}") from None
    if isinstance(backoff, timedelta):
        backoff = Backoff(first=backoff)
    return CallWait(
        procedure=called,
        args=msgspec.Raw(_encode(packed)),
        kwargs=msgspec.Raw(_encode(packed_by_name)),
        attempts=attempts,
        backoff=backoff,
        timeout=timeout,
        heartbeat=heartbeat,
        queue=queue,
        non_retryable=tuple([f"{cls.__module__}:{cls.__qualname__}" for cls in non_retryable]),
        name=name,
    )


def spawn(
    workflow: Child[InitT, ResultT],
    init: InitT,
    *,
    entity_id: int | None = None,
    correlation_id: str | None = None,
    on_parent_end: OnParentEnd = "cancel",
    name: str | None = None,
) -> Arm[ResultT]:
    """Start a child when the wait starts and wait for its result.

    Raises `ChildFailed` or `ChildCancelled` (both `ChildError`). The child is cancelled when this
    workflow ends, unless `on_parent_end="abandon"`.
    """
    raw = msgspec.Raw(workflow.encode_init(init))
    return SpawnWait(workflow.name, raw, entity_id, correlation_id, on_parent_end, name)


def start(
    workflow: Child[InitT, ResultT],
    init: InitT,
    *,
    entity_id: int | None = None,
    correlation_id: str | None = None,
    on_parent_end: OnParentEnd = "cancel",
) -> Handle[ResultT]:
    """Start a child now, without waiting. The handle can be stored, awaited (twice), and be an arm.

    It is called in a workflow; outside of one, `Workflows.start` and `Engine.start` start workflows. Awaiting raises as
    `spawn` does.
    """
    child_id = active_context("start").start_child(
        workflow.name,
        workflow.encode_init(init),
        entity_id=entity_id,
        correlation_id=correlation_id,
        on_parent_end=on_parent_end,
    )
    return Handle(child_id, workflow.name)


def subscribe(which: type[Signal], key: str | int) -> None:
    """From now on, get broadcasts of this signal with this key, an int or text. Twice is once.

    They are sent by `WorkflowContext.broadcast`, `Engine.broadcast` and `Workflows.broadcast`, and wait in the inbox as
    other signals do. In a workflow only.
    """
    active_context("subscribe").subscribe(which.__name__, key)


def unsubscribe(which: type[Signal], key: str | int) -> None:
    """No longer get broadcasts of this signal with this key. Those that have come stay. In a workflow only."""
    active_context("unsubscribe").unsubscribe(which.__name__, key)


class ContinueAsNewRequest(BaseException):
    """Carries `continue_as_new` through the `finally` blocks to whoever runs the step. `init` is JSON."""

    def __init__(self, init: bytes) -> None:
        super().__init__(init)
        self.init = init


def continue_as_new(init: object) -> NoReturn:
    """End this run and begin the workflow again with `init`: same id, fresh variables, unread signals kept.

    `finally` blocks run first. Plain or awaited, it never returns.
    """
    annotation = None if init is None else type(init)
    codec_for(annotation)
    raise ContinueAsNewRequest(encode(init, annotation, "init"))
