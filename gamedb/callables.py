"""A module's functions as they are asked for: which one is meant, and who may call it."""

from __future__ import annotations

import difflib
from typing import Any, Final

from gamedb.columns import shown
from gamedb.errors import NotAllowed, UnknownName
from gamedb.functions import Function
from gamedb.resolved import Resolved
from gamedb.types import Identity

NAME_COMPARED_MAX: Final = 100
"""How much of an unknown name is compared with the known ones, for a hint."""


class Callables:
    """The functions of a module. `operators` may call the private ones."""

    def __init__(self, module: Resolved, operators: set[Identity]) -> None:
        self._module = module
        self._by_function = {f.function: f for f in module.functions.values()}
        self.operators = operators

    def reducer(self, reducer: Any) -> Function:
        """A reducer, quickly when it is the function itself."""
        function = self._by_function.get(reducer)
        if function is None or function.kind != "reducer":
            function = self.find(reducer, "reducer")
        return function

    def find(self, name: Any, kind: str) -> Function:
        """A function that is declared as this kind, by its name or itself; `UnknownName` with a hint."""
        function = self._module.functions.get(name) if isinstance(name, str) else self._by_function.get(name)
        if function is not None and function.kind == kind:
            return function
        wanted = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
        known = [n for n, f in self._module.functions.items() if f.kind == kind]
        close = difflib.get_close_matches(wanted[:NAME_COMPARED_MAX], known, 1)
        if function is not None:
            hint = f"it is a {function.kind}"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = f"it has: {', '.join(known) or 'none'}"
        raise UnknownName(f"module {self._module.name!r} has no {kind} {shown(wanted)}; {hint}")

    def allow(self, function: Function, sender: Identity | None) -> None:
        """`NotAllowed` when the function is not for this caller; None is the database itself."""
        if function.queue is not None and sender is not None:
            raise NotAllowed(runs_elsewhere(function))
        if function.private and sender is not None and sender not in self.operators:
            what = f"a lifecycle {function.kind}" if function.lifecycle else f"a private or scheduled {function.kind}"
            raise NotAllowed(f"{function.name!r} is {what}; only the database itself and operators may call it")


def runs_elsewhere(function: Function) -> str:
    """Why nobody may call a procedure that has a queue."""
    return f"{function.name!r} runs in the workers of queue {function.queue!r} only; it cannot be called directly"
