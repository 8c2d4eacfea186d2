"""What an `await` waits for, read from the call: its kind, a label, and the type of its value."""

from __future__ import annotations

import ast
import collections.abc as abc
import typing
from typing import TYPE_CHECKING, Any, get_args, get_origin

from workflow_module import language
from workflow_module.structs import Signal
from workflow_module.waits import Arm

from .typeops import TUPLE, UNKNOWN, join, members

if TYPE_CHECKING:
    from .inference import Types

BUILDERS: dict[Any, str] = {
    language.timer: "timer",
    language.sleep: "sleep",
    language.signal: "signal",
    language.select: "select",
    language.call: "call",
    language.spawn: "spawn",
    language.gather: "gather",
    language.wait_all: "wait_all",
    language.continue_as_new: "continue_as_new",
}


class Awaitable:
    """Base of what the compiler recognises as a subroutine: has `name` and `result_type`."""

    name: str
    result_type: Any


def builder_of(types: Types, node: ast.expr) -> str | None:
    """Which function of the language this calls, by name, or None. Subroutines are "subroutine"."""
    if not isinstance(node, ast.Call):
        return None
    found = types.known(node.func)
    if isinstance(found, Awaitable):
        return "subroutine"
    try:
        return BUILDERS.get(found)
    except TypeError:
        return None


def kind_of(types: Types, node: ast.expr) -> str | None:
    """What kind of wait awaiting this is, or None when it is not known to be one."""
    builder = builder_of(types, node)
    if builder is not None:
        return builder
    found = types.of(node)
    if found is UNKNOWN:
        return None
    for member in members(found):
        cls = get_origin(member) or member
        if not (isinstance(cls, type) and issubclass(cls, Arm)):
            return None
    return "handle"


def await_type(types: Types, node: ast.expr) -> Any:
    """The type of the value of `await node`."""
    kind = builder_of(types, node)
    if kind is not None:
        assert isinstance(node, ast.Call)
        return _result(types, kind, node)
    found = types.of(node)
    if get_origin(found) is abc.Coroutine:
        return get_args(found)[2]
    parts = []
    for member in members(found):
        args = get_args(member)
        parts.append(args[0] if args and issubclass(get_origin(member) or object, Arm) else UNKNOWN)
    return join(parts)


def arm_type(types: Types, node: ast.expr) -> Any:
    """The type of the value of an argument of `select` or `gather`."""
    found = types.known(node)
    if isinstance(found, type) and issubclass(found, Signal):
        return found
    return await_type(types, node)


def _result(types: Types, kind: str, node: ast.Call) -> Any:
    args = node.args
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    if kind in ("sleep", "continue_as_new"):
        return type(None)
    if kind == "subroutine":
        return getattr(types.known(node.func), "result_type", UNKNOWN)
    if kind == "wait_all":
        parts = [_signal(types, arg) for arg in args]
        if "timeout" in options:
            parts = [join([part, type(None)]) for part in parts]
        return UNKNOWN if UNKNOWN in parts else TUPLE[tuple(parts)]
    if kind == "select":
        return join([arm_type(types, arg) for arg in args])
    if kind == "gather":
        return _gathered(types, args, options)
    if not args:
        return UNKNOWN
    if kind == "timer":
        return types.of(args[0])
    if kind == "signal":
        found = _signal(types, args[0])
        return join([found, type(None)]) if "timeout" in options else found
    if kind == "call":
        return _procedure_result(types.known(args[0]))
    child = types.known(args[0])
    return getattr(child, "result_type", UNKNOWN)


def _signal(types: Types, node: ast.expr) -> Any:
    found = types.known(node)
    return found if isinstance(found, type) and issubclass(found, Signal) else UNKNOWN


def _gathered(types: Types, args: list[ast.expr], options: dict[str | None, ast.expr]) -> Any:
    keep = options.get("return_exceptions")
    failures = [] if keep is None or (isinstance(keep, ast.Constant) and not keep.value) else [BaseException]
    if any(isinstance(arg, ast.Starred) for arg in args):
        inside = []
        for arg in args:
            if isinstance(arg, ast.Starred):
                inside.append(_starred_arms(types, arg.value))
            else:
                inside.append(arm_type(types, arg))
        found = join([*inside, *failures])
        return UNKNOWN if found is UNKNOWN else TUPLE[found, ...]
    parts = [join([arm_type(types, arg), *failures]) for arg in args]
    if UNKNOWN in parts:
        return UNKNOWN
    return TUPLE[tuple(parts)] if parts else TUPLE[()]


def _starred_arms(types: Types, node: ast.expr) -> Any:
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return arm_type(types, node.elt)
    found = types.element(types.of(node))
    args = get_args(found)
    return args[0] if args else UNKNOWN


def _procedure_result(procedure: Any) -> Any:
    function = getattr(procedure, "function", procedure)
    try:
        return typing.get_type_hints(function).get("return", UNKNOWN)
    except Exception:
        return UNKNOWN


def describe(types: Types, node: ast.expr) -> str:
    """A readable name of what is awaited: `select(EXPIRE, Dispel)`, `call(fetch_price)`, `helper`."""
    if isinstance(node, ast.Starred):
        return "*"
    kind = builder_of(types, node)
    if kind is None:
        found = types.known(node)
        return found.__name__ if isinstance(found, type) else _short(node)
    assert isinstance(node, ast.Call)
    if kind == "subroutine":
        return _short(node.func)
    if kind == "sleep" or not node.args:
        return kind
    if kind in ("select", "gather", "wait_all"):
        arms = ", ".join(_arm_text(types, arg) if kind == "select" else describe(types, arg) for arg in node.args)
        return f"{kind}({arms})"
    return f"{kind}({_short(node.args[0])})"


def _arm_text(types: Types, node: ast.expr) -> str:
    """An arm of a select: timers and signals by their bare names."""
    kind = builder_of(types, node)
    if kind in ("timer", "signal") and isinstance(node, ast.Call) and node.args:
        return _short(node.args[0])
    return describe(types, node)


def _short(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def explicit_name(node: ast.expr) -> str | None:
    """The `name=` of a wait, when it is written as a string."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None
