"""Finds what cannot be compiled before anything else runs, and says what to write instead."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any, get_origin

from workflow_module import language
from workflow_module.codec import Unstorable, codec_for
from workflow_module.structs import Signal
from workflow_module.waits import Arm

from . import awaitables, slips
from .inference import Types
from .ir import PREFIX
from .names import COMPREHENSIONS, SCOPES, any_wait, bound_names, own_nodes
from .source import Source
from .typeops import UNKNOWN, members

CALL_OPTIONS = frozenset(
    name for name, p in inspect.signature(language.call).parameters.items() if p.kind is p.KEYWORD_ONLY
)
"""What `call` takes for itself."""


def refuse_syntax(source: Source, takes_init: bool) -> None:
    """What can be seen without types."""
    for statement in source.node.body:
        for node in own_nodes(statement):
            _statement(source, node)
    for node in ast.walk(source.node):
        _anywhere(source, node)
    for node in _nested_scopes(source.node):
        _inside_scope(source, node)
    _refuse_assigned(source, [arg.arg for arg in source.node.args.args[: 2 if takes_init else 1]])


def _refuse_assigned(source: Source, fixed: list[str]) -> None:
    """ctx belongs to the step, and init stays what the workflow was started with."""
    for statement in source.node.body:
        for node in own_nodes(statement):
            names = bound_names(node) & set(fixed) if isinstance(node, ast.Name) or _binds_by_name(node) else set()
            for name in names:
                source.refuse(node, f"{name} is assigned", "use another name: ctx and init stay what they are")


def _binds_by_name(node: ast.AST) -> bool:
    kinds = (
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
        ast.FunctionDef,
        ast.Import,
        ast.ImportFrom,
    )
    return isinstance(node, kinds)


def _nested_scopes(function: ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, (*SCOPES, *COMPREHENSIONS)):
                yield node


def _anywhere(source: Source, node: ast.AST) -> None:
    if isinstance(node, ast.Name) and node.id.startswith(PREFIX):
        source.refuse(node, f"names that begin with {PREFIX} are the compiler's", "use another name")
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        source.refuse(node, "a workflow cannot yield", "await select(...) or send a signal with ctx.signal(...)")
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        word = "global" if isinstance(node, ast.Global) else "nonlocal"
        source.refuse(
            node,
            f"{word} {', '.join(node.names)}: what it names would not survive a restart",
            "keep it in a local variable, or in a table",
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _sees_variables(node.func.id, node.args):
        source.refuse(
            node,
            f"{node.func.id}() would see the compiled code's variables, not the workflow's",
            "name the variables that you need",
        )


def _sees_variables(function: str, arguments: list[ast.expr]) -> bool:
    return function in ("eval", "exec", "locals") or (function == "vars" and not arguments)


def _statement(source: Source, node: ast.AST) -> None:
    if isinstance(node, ast.AsyncFor):
        source.refuse(node, "async for cannot be stored", "collect the items in a procedure, and loop over its result")
    if isinstance(node, ast.AsyncWith):
        source.refuse(node, "async with cannot be stored", "do it inside a procedure, and call(...) that")
    if isinstance(node, ast.With) and any_wait([*node.body, *_after_first(node)]):
        source.refuse(
            node,
            "a wait inside with: the context manager cannot be stored over it",
            "close it before the wait, or use try/finally",
        )
    if hasattr(ast, "TryStar") and isinstance(node, ast.TryStar):
        source.refuse(node, "except* is not compiled", "await the arms one by one, or use except")
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            if handler.type is not None and any_wait([handler.type]):
                source.refuse(handler.type, "a wait in an except clause's type", "await it before the try")
    if isinstance(node, ast.Match):
        for case in node.cases:
            if any_wait([case.pattern]):
                source.refuse(case.pattern, "a wait in a pattern", "await it before the match")


def _after_first(node: ast.With) -> list[ast.AST]:
    """What runs when the first context manager has been entered."""
    first = [node.items[0].optional_vars] if node.items[0].optional_vars else []
    return [*first, *node.items[1:]]


def _inside_scope(source: Source, node: ast.AST) -> None:
    kinds = {
        ast.Lambda: "a lambda", ast.FunctionDef: "a nested function", ast.ClassDef: "a class",
        ast.AsyncFunctionDef: "a nested async function",
    }  # fmt: skip
    what = kinds.get(type(node), "a comprehension")
    if isinstance(node, ast.AsyncFunctionDef):
        source.refuse(node, f"{what} inside a workflow", "move it to the module and decorate it with @subroutine")
    for wait in _waits_in_scope(node):
        if what == "a comprehension":
            remedy = "write a for loop, or gather(*[...]) with the arms in the comprehension"
        else:
            remedy = "move it to the module and decorate it with @subroutine"
        source.refuse(wait, f"a wait inside {what}", remedy)


def _waits_in_scope(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, COMPREHENSIONS):
        if any(generator.is_async for generator in node.generators):
            yield node
        outside = set(map(id, ast.walk(node.generators[0].iter)))
    else:
        outside = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Await) and id(part) not in outside:
            yield part


def refuse_awaits(source: Source, types: Types) -> None:
    """Waits that are not of this language, and waits that are never awaited."""
    nodes = [node for statement in source.node.body for node in own_nodes(statement)]
    loaded = {
        part.id for part in ast.walk(source.node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    for node in nodes:
        if isinstance(node, ast.Await):
            _await(source, types, node)
        elif isinstance(node, (ast.Expr, ast.Assign)) and _is_lost(getattr(node, "targets", []), loaded):
            _never_awaited(source, types, node.value)


def _is_lost(targets: list[ast.expr], loaded: set[str]) -> bool:
    return all(isinstance(target, ast.Name) and target.id not in loaded for target in targets)


def _never_awaited(source: Source, types: Types, node: ast.expr) -> None:
    if awaitables.builder_of(types, node) in (None, "continue_as_new"):
        return
    what = awaitables.describe(types, node)
    source.refuse(node, f"{what} is built and never awaited", f"write await {ast.unparse(node)}")


def _await(source: Source, types: Types, node: ast.Await) -> None:
    kind = awaitables.kind_of(types, node.value)
    if kind is None:
        _foreign(source, types, node)
    _payloads(source, types, node.value)
    if isinstance(node.value, ast.Call):
        if kind in ("select", "gather"):
            _arms(source, types, node.value)
        elif kind == "subroutine":
            _subroutine(source, node.value)
        for keyword in node.value.keywords:
            if keyword.arg == "name" and kind != "subroutine" and not isinstance(keyword.value, ast.Constant):
                source.refuse(keyword.value, "the name of a wait is computed", 'write it as a string: name="..."')


def _payloads(source: Source, types: Types, wait: ast.expr) -> None:
    """Signals and results of procedures have to be stored on their way."""
    for node in ast.walk(wait):
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = types.known(node)
            if isinstance(found, type) and issubclass(found, Signal):
                _storable(source, node, found, f"the signal {found.__name__}")
        elif isinstance(node, ast.Call) and awaitables.builder_of(types, node) == "call" and node.args:
            _arguments(source, types, node)
            found = awaitables.await_type(types, node)
            if found is not UNKNOWN:
                _storable(source, node.args[0], found, f"the result of {ast.unparse(node.args[0])}")


def _arguments(source: Source, types: Types, call: ast.Call) -> None:
    """The arguments of a call of a procedure have to fit its parameters, as far as can be told by their number."""
    procedure = types.known(call.args[0])
    function = getattr(procedure, "function", procedure)
    spread = any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords)
    if spread or not inspect.isfunction(function):
        return
    signature = inspect.signature(function)
    named = {str(keyword.arg): None for keyword in call.keywords if keyword.arg not in CALL_OPTIONS}
    try:
        signature.bind(*call.args, **named)  # the procedure itself stands where its context will
    except TypeError as error:
        own = ", ".join(list(signature.parameters)[1:])
        text = f"call({ast.unparse(call.args[0])}, ...): {error}"
        source.refuse(call, text, f"after its context it takes ({own})")


def _storable(source: Source, node: ast.expr, annotation: Any, what: str) -> None:
    try:
        codec_for(annotation)
    except Unstorable as error:
        source.refuse(node, f"{what} cannot be stored: {error}", "use Structs of plain values")


def _foreign(source: Source, types: Types, node: ast.Await) -> None:
    text = ast.unparse(node.value)
    found = types.known(node.value)
    if isinstance(found, type):
        source.refuse(node.value, f"await {text}: a class is not a wait", f"write await signal({text})")
    if isinstance(node.value, ast.Call):
        function = types.known(node.value.func)
        if function is not None and getattr(function, "__module__", "").startswith("asyncio"):
            source.refuse(
                node.value,
                f"await {text}: asyncio's waits cannot be stored",
                "use sleep(...), gather(...), select(...) or call(procedure) of workflow_module",
            )
        arguments = ", ".join(ast.unparse(arg) for arg in node.value.args[1:])
        if hasattr(function, "encode_init"):
            source.refuse(
                node.value,
                f"await {text}: a workflow is not called",
                f"write await spawn({ast.unparse(node.value.func)}, {arguments or 'None'})",
            )
        if slips.is_procedure(types, node.value.func):
            source.refuse(
                node.value,
                f"await {text}: a procedure is not called by the workflow itself",
                f"write await {slips.called_later(node.value)}",
            )
        if get_origin(types.of(node.value)) is not None and "Coroutine" in str(types.of(node.value)):
            source.refuse(
                node.value,
                f"await {text}: a plain coroutine cannot be stored",
                f"decorate {ast.unparse(node.value.func)} with @subroutine, or make it a procedure",
            )
    source.refuse(
        node.value,
        f"await {text}: this is not known to be a wait of workflow_module",
        "await timer, sleep, signal, select, call, spawn, gather, wait_all, a handle or a @subroutine; "
        "annotate the variable or the function's result if it is one",
    )


def _arms(source: Source, types: Types, call: ast.Call) -> None:
    name = awaitables.builder_of(types, call)
    for arm in call.args:
        if isinstance(arm, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)):
            source.refuse(
                arm,
                f"{name} takes its waits as arguments, not in a collection",
                f"write {name}(a, b), or {name}(*[...])" if name == "gather" else f"write {name}(a, b)",
            )
        kind = awaitables.builder_of(types, arm)
        if kind in ("subroutine", "select", "wait_all", "continue_as_new"):
            source.refuse(
                arm, f"{kind} cannot be an argument of {name}", "make it a workflow of its own and spawn(...) it"
            )
        found: Any = types.of(arm)
        known = types.known(arm)
        if kind is None and not isinstance(arm, ast.Starred) and not isinstance(known, type) and found is not UNKNOWN:
            classes = [get_origin(member) or member for member in members(found)]
            if not all(isinstance(cls, type) and issubclass(cls, (Arm, type)) for cls in classes):
                source.refuse(arm, f"{ast.unparse(arm)} is not a wait", "write timer(...), signal(...), spawn(...)...")


def _subroutine(source: Source, call: ast.Call) -> None:
    own = source.node.args.args[0].arg if source.node.args.args else None
    first = call.args[0] if call.args else None
    if not (isinstance(first, ast.Name) and first.id == own):
        source.refuse(
            call,
            f"a subroutine's first argument is {own or 'ctx'}, the step's context",
            f"write {ast.unparse(call.func)}({own or 'ctx'}, ...)",
        )
