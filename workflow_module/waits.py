"""What a workflow can wait for, as small serialisable Structs: the language makes them, the engine reads them.

Everything here is data. Names stand for code (a signal's class name, a procedure's name, a workflow's name);
whoever interprets a wait looks them up in the workflow's definition. This room knows no engine and no clock.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

T_co = TypeVar("T_co", covariant=True)

OnParentEnd: TypeAlias = Literal["cancel", "abandon"]


class Arm(msgspec.Struct, Generic[T_co], frozen=True, tag_field="kind"):
    """Something a workflow can await, and that can be an argument of `select` and `gather`."""

    def __await__(self) -> Generator[Arm[T_co], object, T_co]:
        """Hand the wait to whoever drives the coroutine, and return what it sends back."""
        return cast(T_co, (yield self))


class TimerWait(Arm[Any], frozen=True, tag="timer"):
    """Due `after` a duration from when the wait starts, or `at` a time; exactly one of the two is set.

    `timer` is the value of the enum member; the result is the member itself (`definition.timers[timer]`).
    """

    timer: str
    after: timedelta | None = None
    at: datetime | None = None
    name: str | None = None


class SleepWait(Arm[None], frozen=True, tag="sleep"):
    """Due `duration` from when the wait starts; the result is None."""

    duration: timedelta
    name: str | None = None


class SignalWait(Arm[Any], frozen=True, tag="signal"):
    """The oldest unread signal of this class name, or None when `timeout` passes first."""

    signal: str
    timeout: timedelta | None = None
    name: str | None = None


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait before the next attempt: `first`, then times `factor`, never more than `cap`."""

    first: timedelta = timedelta(seconds=1)
    """The pause after the first failed attempt."""
    factor: float = 2.0
    """What each pause is multiplied by for the next."""
    cap: timedelta = timedelta(minutes=5)
    """The longest pause."""

    def delay(self, attempt: int) -> timedelta:
        """The pause after failed attempt number `attempt` (the first is 1)."""
        seconds = self.first.total_seconds()
        cap_seconds = self.cap.total_seconds()
        for _ in range(attempt - 1):
            seconds *= self.factor
            if seconds >= cap_seconds:
                break
        return timedelta(seconds=min(seconds, cap_seconds))


class CallWait(Arm[Any], frozen=True, tag="call"):
    """One call of a procedure. `args` is a JSON array and `kwargs` a JSON object of its arguments.

    `attempts` counts all attempts, `timeout` limits each of them, `queue` names the workers that may take
    it, `non_retryable` lists the class names (`module:qualname`) of errors that end it at once.
    """

    procedure: str
    args: msgspec.Raw
    kwargs: msgspec.Raw
    attempts: int = 5
    backoff: Backoff = Backoff()
    timeout: timedelta | None = None
    heartbeat: timedelta | None = None
    queue: str | None = None
    non_retryable: tuple[str, ...] = ()
    name: str | None = None


class SpawnWait(Arm[Any], frozen=True, tag="spawn"):
    """Starts a child when the wait starts; the result is the child's. `init` is JSON."""

    workflow: str
    init: msgspec.Raw
    entity_id: int | None = None
    correlation_id: str | None = None
    on_parent_end: OnParentEnd = "cancel"
    name: str | None = None


class Handle(Arm[T_co], Generic[T_co], frozen=True, tag="handle"):
    """A started child: can be stored, awaited twice, and be an arm. The result is the child's."""

    workflow_id: int
    """The id of the child."""
    workflow_type: str
    """The name of its workflow."""


class SelectWait(Arm[Any], frozen=True, tag="select"):
    """The first of `arms` to be ready; the engine decides which, and the result is that arm's."""

    arms: tuple[Wait, ...]
    name: str | None = None


class GatherWait(Arm[Any], frozen=True, tag="gather"):
    """All of `arms`; the result is a tuple in their order. Without arms it is ready at once: `()`.

    The first failure is raised, unless `return_exceptions`, which puts exceptions into the tuple.
    """

    arms: tuple[Wait, ...]
    return_exceptions: bool = False
    name: str | None = None


class WaitAllWait(Arm[Any], frozen=True, tag="wait_all"):
    """One signal of each name; the result is a tuple in their order, None for what `timeout` cut off."""

    signals: tuple[str, ...]
    timeout: timedelta | None = None
    name: str | None = None


Wait: TypeAlias = (
    TimerWait | SleepWait | SignalWait | CallWait | SpawnWait | Handle[Any] | SelectWait | GatherWait | WaitAllWait
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Wait] = msgspec.json.Decoder(Wait)


def encode_wait(wait: Wait) -> bytes:
    """JSON text of a wait; `decode_wait` is its inverse."""
    return _encoder.encode(wait)


def decode_wait(data: bytes | str) -> Wait:
    """The wait that `encode_wait` wrote. Raises `msgspec.ValidationError` for anything else."""
    return _decoder.decode(data)
