"""Subroutines: helper coroutines that wait, each call with a frame of its own in the workflow's state."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from .compiler import compile_function
from .compiler.awaitables import Awaitable
from .compiler.source import Source
from .state import FrameCodec
from .waits import Arm

P = ParamSpec("P")
R = TypeVar("R")


class Enter:
    """A call of a subroutine that is about to run: what awaiting it hands to whoever runs the step."""

    __slots__ = ("arguments", "subroutine")

    def __init__(self, subroutine: Subroutine[..., Any], arguments: Any) -> None:
        self.subroutine = subroutine
        self.arguments = arguments


class Subroutine(Awaitable, Generic[P, R]):
    """A compiled helper, made by `@subroutine`. `await helper(ctx, ...)` inside a workflow runs it."""

    def __init__(self, function: Callable[..., Any], *, name: str | None) -> None:
        self.function = function
        self.name = name or function.__name__
        self.code = compile_function(function, takes_init=False, name=self.name)
        self.result_type: Any = self.code.result_type
        self.frame = FrameCodec(self.code, self.name)
        self._bind = _binder(self.code.source)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Arm[R]:
        return Enter(self, self._bind(*args, **kwargs))  # type: ignore[return-value]  # an Arm to type checkers

    @property
    def compiled_source(self) -> str:
        """The step function as Python text."""
        return self.code.text


class _Arguments:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def _binder(source: Source) -> Callable[..., Any]:
    """A function with the author's own parameters that gives them by name."""
    arguments = copy.deepcopy(source.node.args)
    every = [*arguments.args, *arguments.kwonlyargs, *(a for a in (arguments.vararg, arguments.kwarg) if a)]
    for arg in every:
        arg.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    keywords = ", ".join(f"{arg.arg}={arg.arg}" for arg in every)
    text = f"def {source.name}({ast.unparse(arguments)}):\n    return _wf_Arguments({keywords})"
    found: dict[str, Any] = {"_wf_Arguments": _Arguments}
    exec(compile(text, source.filename, "exec"), found)
    bind: Any = found[source.name]
    bind.__defaults__ = source.function.__defaults__
    bind.__kwdefaults__ = source.function.__kwdefaults__
    return bind  # type: ignore[no-any-return]
