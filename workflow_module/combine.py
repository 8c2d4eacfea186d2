"""Waits made of waits: `select`, `gather` and `wait_all`, with results inferred for up to ten arguments.

Part of the language; authors import these from `workflow_module`. The overloads are one a line, since they
are all alike.
"""

# ruff: noqa: E501

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypeVar, overload

from .structs import Signal
from .waits import (
    Arm,
    CallWait,
    GatherWait,
    Handle,
    SelectWait,
    SignalWait,
    SleepWait,
    SpawnWait,
    TimerWait,
    WaitAllWait,
)

T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
T6 = TypeVar("T6")
T7 = TypeVar("T7")
T8 = TypeVar("T8")
T9 = TypeVar("T9")
T10 = TypeVar("T10")
S1 = TypeVar("S1", bound=Signal)
S2 = TypeVar("S2", bound=Signal)
S3 = TypeVar("S3", bound=Signal)
S4 = TypeVar("S4", bound=Signal)
S5 = TypeVar("S5", bound=Signal)
S6 = TypeVar("S6", bound=Signal)
S7 = TypeVar("S7", bound=Signal)
S8 = TypeVar("S8", bound=Signal)
S9 = TypeVar("S9", bound=Signal)
S10 = TypeVar("S10", bound=Signal)

_Arm: TypeAlias = Arm[T1] | type[T1]
_Name: TypeAlias = str | None
_True: TypeAlias = Literal[True]
_False: TypeAlias = Literal[False]
_Failed: TypeAlias = BaseException


_ARMS: frozenset[type] = frozenset({TimerWait, SleepWait, SignalWait, CallWait, SpawnWait, Handle, GatherWait})
_bare: dict[type, SignalWait] = {}


def _arm(arm: object, where: str) -> Any:
    """A bare signal class stands for a wait for that signal."""
    if type(arm) in _ARMS:
        return arm
    if isinstance(arm, type):
        wait = _bare.get(arm)
        if wait is not None:
            return wait
        if issubclass(arm, Signal):
            return _bare.setdefault(arm, SignalWait(arm.__name__))
    raise TypeError(f"{where} takes timers, signals, sleeps, calls, spawns, handles and gathers, not {arm!r}")


# fmt: off
@overload
def select(a1: _Arm[T1], /, *, name: _Name = None) -> Arm[T1]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], /, *, name: _Name = None) -> Arm[T1 | T2]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], /, *, name: _Name = None) -> Arm[T1 | T2 | T3]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], a6: _Arm[T6], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5 | T6]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], a6: _Arm[T6], a7: _Arm[T7], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5 | T6 | T7]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], a6: _Arm[T6], a7: _Arm[T7], a8: _Arm[T8], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5 | T6 | T7 | T8]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], a6: _Arm[T6], a7: _Arm[T7], a8: _Arm[T8], a9: _Arm[T9], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5 | T6 | T7 | T8 | T9]: ...
@overload
def select(a1: _Arm[T1], a2: _Arm[T2], a3: _Arm[T3], a4: _Arm[T4], a5: _Arm[T5], a6: _Arm[T6], a7: _Arm[T7], a8: _Arm[T8], a9: _Arm[T9], a10: _Arm[T10], /, *, name: _Name = None) -> Arm[T1 | T2 | T3 | T4 | T5 | T6 | T7 | T8 | T9 | T10]: ...
def select(*arms: Any, name: str | None = None) -> Arm[Any]:
    """Wait for the first of several waits; the value is the winner's.

    A bare signal class stands for `signal(S)`. Timers of the losers are cancelled, signals of the losers
    stay queued, children and procedures started inside are cancelled. A tie goes to the earlier argument.
    The type of the value is the union of the arms', for up to ten: match on it.

    <!-- not run -->
    ```python
    match await select(timer(BuffTimer.EXPIRE, at=expires), Dispel, Stack):
        case BuffTimer.EXPIRE | Dispel():
            break
        case Stack(n):
            stacks += n
    ```
    """
    if not arms:
        raise TypeError("select needs at least one arm, or it would wait for ever")
    return SelectWait(tuple([arm if type(arm) in _ARMS else _arm(arm, "select") for arm in arms]), name)


@overload
def gather(*, return_exceptions: bool = False, name: _Name = None) -> Arm[tuple[()]]: ...
@overload
def gather(a1: Arm[T1], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1]]: ...
@overload
def gather(a1: Arm[T1], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5, T6]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed, T6 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5, T6, T7]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed, T6 | _Failed, T7 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5, T6, T7, T8]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed, T6 | _Failed, T7 | _Failed, T8 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], a9: Arm[T9], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5, T6, T7, T8, T9]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], a9: Arm[T9], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed, T6 | _Failed, T7 | _Failed, T8 | _Failed, T9 | _Failed]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], a9: Arm[T9], a10: Arm[T10], /, *, return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, T2, T3, T4, T5, T6, T7, T8, T9, T10]]: ...
@overload
def gather(a1: Arm[T1], a2: Arm[T2], a3: Arm[T3], a4: Arm[T4], a5: Arm[T5], a6: Arm[T6], a7: Arm[T7], a8: Arm[T8], a9: Arm[T9], a10: Arm[T10], /, *, return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, T2 | _Failed, T3 | _Failed, T4 | _Failed, T5 | _Failed, T6 | _Failed, T7 | _Failed, T8 | _Failed, T9 | _Failed, T10 | _Failed]]: ...
@overload
def gather(*arms: Arm[T1], return_exceptions: _False = False, name: _Name = None) -> Arm[tuple[T1, ...]]: ...
@overload
def gather(*arms: Arm[T1], return_exceptions: _True, name: _Name = None) -> Arm[tuple[T1 | _Failed, ...]]: ...
def gather(*arms: Any, return_exceptions: bool = False, name: str | None = None) -> Arm[Any]:
    """Wait for all of several waits; the value is a tuple in argument order, `()` for none.

    The first failure cancels the rest and is raised. With `return_exceptions=True` all are waited for, and
    a failure is the exception in its place.

    <!-- not run -->
    ```python
    loot, fame = await gather(call(roll_loot, boss), spawn(parade, Parade(boss)))
    scouts = await gather(*[spawn(scout, zone) for zone in zones], return_exceptions=True)
    ```
    """
    return GatherWait(tuple([_arm(arm, "gather") for arm in arms]), return_exceptions, name)


@overload
def wait_all(s1: type[S1], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1]]: ...
@overload
def wait_all(s1: type[S1], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5, S6]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None, S6 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5, S6, S7]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None, S6 | None, S7 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5, S6, S7, S8]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None, S6 | None, S7 | None, S8 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], s9: type[S9], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5, S6, S7, S8, S9]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], s9: type[S9], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None, S6 | None, S7 | None, S8 | None, S9 | None]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], s9: type[S9], s10: type[S10], /, *, timeout: None = None, name: _Name = None) -> Arm[tuple[S1, S2, S3, S4, S5, S6, S7, S8, S9, S10]]: ...
@overload
def wait_all(s1: type[S1], s2: type[S2], s3: type[S3], s4: type[S4], s5: type[S5], s6: type[S6], s7: type[S7], s8: type[S8], s9: type[S9], s10: type[S10], /, *, timeout: timedelta, name: _Name = None) -> Arm[tuple[S1 | None, S2 | None, S3 | None, S4 | None, S5 | None, S6 | None, S7 | None, S8 | None, S9 | None, S10 | None]]: ...
def wait_all(*signals: Any, timeout: timedelta | None = None, name: str | None = None) -> Arm[Any]:
    """Wait for one signal of each class; the value is a tuple in argument order.

    `timeout` is one deadline for all; what had not come by then is None.

    <!-- not run -->
    ```python
    mine, theirs = await wait_all(SellerReady, BuyerReady, timeout=timedelta(hours=1))
    ```
    """
    for which in signals:
        if not (isinstance(which, type) and issubclass(which, Signal)):
            raise TypeError(f"wait_all takes Signal classes, not {which!r}")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"wait_all(timeout=...) needs a timedelta, such as timedelta(days=1), not {timeout!r}")
    return WaitAllWait(tuple([which.__name__ for which in signals]), timeout, name)
