"""Slips that Python itself would only notice when the step runs: refused at import, like the rest."""

from __future__ import annotations

import ast
import builtins
import difflib
import enum
from types import FunctionType
from typing import Any, get_origin

from workflow_module.language import Timer, start
from workflow_module.structs import Signal
from workflow_module.waits import Arm, Handle

from . import awaitables
from .inference import Types
from .names import own_nodes
from .source import Source
from .typeops import UNKNOWN, members

_DURATIONS = {
    "sleep": ("duration",),
    "timer": ("after",),
    "signal": ("timeout",),
    "wait_all": ("timeout",),
    "call": ("timeout", "heartbeat", "backoff"),
}


def refuse_slips(source: Source, types: Types) -> None:
    """Misspelt names, numbers for durations, timers without a time, waits used as their own value, and the like."""
    for statement in source.node.body:
        for node in own_nodes(statement):
            if isinstance(node, ast.Attribute):
                _misspelt_member(source, types, node)
                _not_awaited_yet(source, types, node)
            elif isinstance(node, ast.Call):
                _arguments(source, types, node)
            elif isinstance(node, ast.MatchAs):
                _class_without_parentheses(source, node)
            elif isinstance(node, ast.MatchClass):
                _member_with_parentheses(source, types, node)


def _misspelt_member(source: Source, types: Types, node: ast.Attribute) -> None:
    cls = types.known(node.value)
    if not (isinstance(cls, type) and issubclass(cls, enum.Enum)) or hasattr(cls, node.attr):
        return
    names = list(cls.__members__)
    near = difflib.get_close_matches(node.attr.upper(), names, 1, 0.5) or names[:1]
    remedy = f"write {ast.unparse(node.value)}.{near[0]}" if near else "define it in the class"
    source.refuse(node, f"{cls.__name__} has no member {node.attr}; it has {', '.join(names) or 'none'}", remedy)


def _class_without_parentheses(source: Source, node: ast.MatchAs) -> None:
    if node.pattern is None and node.name is not None and isinstance(source.names.get(node.name), type):
        source.refuse(
            node, f"case {node.name}: takes everything, and calls it {node.name}", f"write case {node.name}():"
        )


def _member_with_parentheses(source: Source, types: Types, node: ast.MatchClass) -> None:
    if isinstance(types.known(node.cls), enum.Enum):
        text = ast.unparse(node.cls)
        source.refuse(node, f"{text} is a value, not a class", f"write case {text}:")


def _not_awaited_yet(source: Source, types: Types, node: ast.Attribute) -> None:
    found = types.of(node.value)
    if found is UNKNOWN:
        return
    classes = [get_origin(member) or member for member in members(found)]
    if all(isinstance(cls, type) and issubclass(cls, Arm) and cls is not Handle for cls in classes):
        text = ast.unparse(node.value)
        source.refuse(
            node,
            f"{text} is a wait, and has no {node.attr} before it is awaited",
            f"await it where it is made, or write (await {text}).{node.attr}",
        )


def _arguments(source: Source, types: Types, call: ast.Call) -> None:
    kind = awaitables.builder_of(types, call)
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    if kind == "sleep" and call.args:
        options["duration"] = call.args[0]
    for name in _DURATIONS.get(kind or "", ()):
        if name in options and types.of(options[name]) in (int, float):
            text = ast.unparse(options[name])
            what = "sleep" if kind == "sleep" else f"{kind}({name}=...)"
            source.refuse(options[name], f"{what} needs a timedelta, not a number", f"write timedelta(seconds={text})")
    if kind is not None:
        _unknown_names(source, types, call)
    if kind in ("signal", "wait_all", "select", "gather"):
        _signal_classes(source, types, kind, call)
    if kind == "timer" and call.args:
        _timer(source, types, call, options)
    if kind == "call" and call.args:
        _call(source, types, call)
    starts = kind == "spawn" or types.known(call.func) is start
    if starts and call.args and isinstance(types.known(call.args[0]), FunctionType | awaitables.Awaitable):
        text = ast.unparse(call.args[0])
        source.refuse(
            call.args[0],
            f"{ast.unparse(call.func)} starts workflows, and {text} is not one",
            f"decorate {text} with @workflow, or write call({text}, ...) if it is a procedure",
        )


def _call(source: Source, types: Types, call: ast.Call) -> None:
    """What is called is a procedure itself, not its name, and not what it returned."""
    if isinstance(call.args[0], ast.Lambda):
        source.refuse(
            call.args[0],
            "a lambda has no name by which a restart could find it",
            "write a function at the top of the module: def charge(ctx: StepContext, ...): ...",
        )
    if isinstance(call.args[0], ast.Call) and is_procedure(types, call.args[0].func):
        source.refuse(call.args[0], "this calls the procedure here", f"write {called_later(call.args[0])}")
    if types.of(call.args[0]) is str:
        source.refuse(call.args[0], "call takes a procedure itself, not its name", "write the function's name plainly")


def _unknown_names(source: Source, types: Types, call: ast.Call) -> None:
    """A misspelt signal, timer, procedure or workflow; what the module defines further down is known."""
    for arg in call.args:
        node = arg
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            continue
        known = {*types.local_names, *types.variables, *source.names, *vars(builtins)}
        if node.id not in known and not {node.id, "*"} & _bound(source):
            near = difflib.get_close_matches(node.id, known, 1)
            source.refuse(node, f"{node.id} is not defined", f"write {near[0]}" if near else "define or import it")


def _bound(source: Source) -> set[str]:
    """Every name that the module binds somewhere; `*` if it imports further down what cannot be known."""
    found: set[str] = set()
    for node in ast.walk(source.module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias) and (node.name != "*" or node.lineno > source.node.lineno):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _signal_classes(source: Source, types: Types, kind: str, call: ast.Call) -> None:
    """A class that is no Signal would be waited for in vain."""
    for arg in call.args[:1] if kind == "signal" else call.args:
        found = types.known(arg)
        made = types.known(arg.func) if isinstance(arg, ast.Call) else None
        if isinstance(made, type) and issubclass(made, Signal):
            source.refuse(arg, f"{ast.unparse(arg)} is a signal, not a class of them", f"write {made.__name__}")
        if types.of(arg) is str or (isinstance(found, type) and not issubclass(found, Signal)):
            text = ast.unparse(arg)
            what = f"{found.__name__}(Signal)" if isinstance(found, type) else "Bid(Signal)"
            source.refuse(arg, f"{kind} waits for Signal classes, and {text} is not one", f"declare class {what}: ...")


def _timer(source: Source, types: Types, call: ast.Call, options: dict[str | None, ast.expr]) -> None:
    found = types.of(call.args[0])
    if isinstance(found, type) and not issubclass(found, Timer) and found in (str, int):
        source.refuse(
            call.args[0],
            f"{ast.unparse(call.args[0])} is not a member of a Timer class",
            'write class MyTimer(Timer): END = "end" at the top of the module, and timer(MyTimer.END, ...)',
        )
    if None not in options and len(call.args) == 1 and not options.keys() & {"after", "at"}:
        source.refuse(
            call,
            "timer needs either after=... or at=...",
            f"write timer({ast.unparse(call.args[0])}, after=timedelta(...)), or at=ctx.now + timedelta(...)",
        )


def is_procedure(types: Types, function: ast.expr) -> bool:
    """Whether this names a function whose first parameter is a procedure's context."""
    found: Any = types.known(function)
    found = getattr(found, "function", found)
    if not isinstance(found, FunctionType) or not found.__code__.co_argcount:
        return False
    first = found.__annotations__.get(found.__code__.co_varnames[0])
    return (first if isinstance(first, str) else getattr(first, "__name__", "")) in ("StepContext", "ProcedureContext")


def called_later(call: ast.Call) -> str:
    """How `procedure(ctx, 1)` is written: `call(procedure, 1)`."""
    given = [ast.unparse(arg) for arg in call.args if not (isinstance(arg, ast.Name) and arg.id == "ctx")]
    given += [ast.unparse(keyword) for keyword in call.keywords]
    return f"call({', '.join([ast.unparse(call.func), *given])})"
