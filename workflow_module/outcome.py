"""What goes into a step and what comes out of it."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from .waits import Wait


class Value(msgspec.Struct, frozen=True):
    """Resume with a value: what the `await` gives."""

    value: Any


class Throw(msgspec.Struct, frozen=True):
    """Resume by raising at the `await`: `Cancelled()`, `ChildFailed(...)`, `ProcedureFailed(...)`."""

    error: BaseException


Event: TypeAlias = Value | Throw


class Suspended(msgspec.Struct, frozen=True):
    """The workflow waits. `state` is UTF-8 JSON, `label` the name of the place, `line` its line now.

    `frame` is what `resume` would read from `state`, where that can be kept in its place.
    """

    state: bytes
    label: str
    wait: Wait
    line: int
    frame: Any = None


class Completed(msgspec.Struct, frozen=True):
    """The workflow returned. `data` is the result as JSON."""

    result: Any
    data: bytes


class ContinueAsNew(msgspec.Struct, frozen=True):
    """The workflow ended with `continue_as_new`. `init` is the JSON of the next run's init."""

    init: bytes


Outcome: TypeAlias = Suspended | Completed | ContinueAsNew


class SuspensionPoint(msgspec.Struct, frozen=True):
    """A place where a workflow can wait: its label, line, kind, and the variables stored there by name."""

    label: str
    line: int
    kind: str
    variables: dict[str, Any]
