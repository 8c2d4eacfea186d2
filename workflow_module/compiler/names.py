"""Which names a piece of syntax reads, binds and deletes, seen from the workflow's own scope.

Nested functions, lambdas and comprehensions are looked into only for the workflow's variables they use.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_NOTES = "_wf_notes"


def noted(function: Callable[[ast.AST], T]) -> Callable[[ast.AST], T]:
    """Remembers on each node what the function found; nodes are not changed once they have been asked about."""
    name = function.__name__

    @wraps(function)
    def remembering(node: ast.AST) -> T:
        notes: dict[str, Any] = node.__dict__.setdefault(_NOTES, {})
        if name not in notes:
            notes[name] = function(node)
        return notes[name]  # type: ignore[no-any-return]

    return remembering


def forget(node: ast.AST) -> None:
    """For a copy that is going to be changed."""
    node.__dict__.pop(_NOTES, None)


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """The node and all below it that run in the workflow's own scope, in source order."""
    found: list[ast.AST] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        found.append(part)
        waiting += reversed(_own_children(part))
    return tuple(found)


def _own_children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, SCOPES):
        return [*_evaluated_here(node)]
    if isinstance(node, COMPREHENSIONS):
        return [node.generators[0].iter]
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.expr_context, ast.operator))]


def _evaluated_here(node: ast.AST) -> list[ast.expr]:
    """What a nested definition evaluates at once: decorators, defaults, bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
    return [*getattr(node, "decorator_list", []), *defaults]


@noted
def has_wait(node: ast.AST) -> bool:
    """Whether an `await` runs as part of this node."""
    return isinstance(node, ast.Await) or any(has_wait(child) for child in _own_children(node))


def any_wait(nodes: Iterable[ast.AST]) -> bool:
    """Whether an `await` runs as part of any of these."""
    return any(has_wait(node) for node in nodes)


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    star = [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *star]


@noted
def reads(node: ast.AST) -> frozenset[str]:
    """The names that this node reads from the workflow's scope, with nested scopes taken out exactly."""
    if isinstance(node, ast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, ast.Load) else frozenset()
    found: set[str] = set()
    if isinstance(node, ast.Lambda):
        found |= reads(node.body) - {arg.arg for arg in _arguments(node.args)}
        for part in _evaluated_here(node):
            found |= reads(part)
        return frozenset(found)
    if isinstance(node, COMPREHENSIONS):
        return _comprehension_reads(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return _definition_reads(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    for child in ast.iter_child_nodes(node):
        found |= reads(child)
    return frozenset(found)


def _comprehension_reads(node: ast.AST) -> frozenset[str]:
    assert isinstance(node, COMPREHENSIONS)
    targets: set[str] = set()
    inner: set[str] = set()
    for generator in node.generators:
        targets |= bound_names(generator.target)
        inner |= reads(generator.target)
        for condition in generator.ifs:
            inner |= reads(condition)
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for part in parts:
        inner |= reads(part)
    for generator in node.generators[1:]:
        inner |= reads(generator.iter)
    return frozenset(inner - targets) | reads(node.generators[0].iter)


def _definition_reads(node: ast.AST) -> frozenset[str]:
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    found: set[str] = set()
    for part in _evaluated_here(node):
        found |= reads(part)
    inner: set[str] = set()
    own: set[str] = set()
    for statement in node.body:
        inner |= reads(statement)
        own |= bound_names(statement)
    if isinstance(node, ast.ClassDef):
        return frozenset(found | inner)
    return frozenset(found | (inner - own - {arg.arg for arg in _arguments(node.args)}))


@noted
def bound_names(node: ast.AST) -> frozenset[str]:
    """Names that this node may bind or delete in the workflow's scope."""
    if isinstance(node, ast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, (ast.Store, ast.Del)) else frozenset()
    found: set[str] = set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.add(node.name)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    elif isinstance(node, COMPREHENSIONS):
        found |= {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
    for child in _own_children(node):
        found |= bound_names(child)
    return frozenset(found)
