"""What goes into a step and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from .waits import Wait


@dataclass(frozen=True, slots=True)
class Value:
    """Resume with a value: what the `await` gives."""

    value: Any


@dataclass(frozen=True, slots=True)
class Throw:
    """Resume by raising at the `await`: `Cancelled()`, `ChildFailed(...)`, `ProcedureFailed(...)`."""

    error: BaseException


Event: TypeAlias = Value | Throw


@dataclass(frozen=True, slots=True)
class Suspended:
    """The workflow waits. `state` is UTF-8 JSON, `label` the name of the place, `line` its line now."""

    state: bytes
    label: str
    wait: Wait
    line: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The workflow returned. `data` is the result as JSON."""

    result: Any
    data: bytes


@dataclass(frozen=True, slots=True)
class ContinueAsNew:
    """The workflow ended with `continue_as_new`. `init` is the JSON of the next run's init."""

    init: bytes


Outcome: TypeAlias = Suspended | Completed | ContinueAsNew


@dataclass(frozen=True, slots=True)
class SuspensionPoint:
    """A place where a workflow can wait: its label, line, kind, and the variables stored there by name."""

    label: str
    line: int
    kind: str
    variables: dict[str, Any]
