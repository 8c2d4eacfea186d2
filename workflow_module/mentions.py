"""What a workflow's code names: signals, timers, procedures, children and subroutines."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .compiler import Code
from .compiler.awaitables import builder_of
from .language import Timer, start
from .structs import Signal
from .subroutine import Subroutine


@dataclass(slots=True)
class Mentions:
    signals: dict[str, type[Signal]] = field(default_factory=dict)
    timers: dict[str, Timer] = field(default_factory=dict)
    procedures: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Any] = field(default_factory=dict)
    subroutines: dict[str, Subroutine[..., Any]] = field(default_factory=dict)


def mentions_of(code: Code, workflow: Any) -> Mentions:
    """Collect from a workflow and the subroutines it can reach. Raises `TypeError` for two of one name."""
    found = Mentions()
    waiting = [code]
    while waiting:
        waiting += [added.code for added in _collect(waiting.pop(), found)]
    return found


def _add(kind: str, into: dict[str, Any], name: str, value: Any) -> bool:
    known = into.setdefault(name, value)
    if known is not value:
        raise TypeError(f"two different {kind} are named {name!r}: {known!r} and {value!r}; rename one of them")
    return True


def _collect(code: Code, found: Mentions) -> list[Subroutine[..., Any]]:
    added: list[Subroutine[..., Any]] = []
    types = code.types
    for node in ast.walk(code.source.node):
        if isinstance(node, ast.Call):
            kind = builder_of(types, node)
            if kind == "call" and node.args:
                procedure = types.known(node.args[0])
                if procedure is not None:
                    name = str(getattr(procedure, "name", None) or procedure.__name__)
                    _add("procedures", found.procedures, name, procedure)
            elif (kind == "spawn" or types.known(node.func) is start) and node.args:
                child = types.known(node.args[0])
                if child is not None:
                    _add("workflows", found.children, child.name, child)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        value = types.known(node)
        if isinstance(value, type) and issubclass(value, Signal) and value is not Signal:
            _add("signals", found.signals, value.__name__, value)
        elif isinstance(value, type) and issubclass(value, Timer) and value is not Timer:
            for member in value:
                _add("timers", found.timers, member.value, member)
        elif isinstance(value, Subroutine) and value.name not in found.subroutines:
            found.subroutines[value.name] = value
            added.append(value)
        elif isinstance(value, Subroutine):
            _add("subroutines", found.subroutines, value.name, value)
    return added
