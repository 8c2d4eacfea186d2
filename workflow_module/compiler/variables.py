"""Types of the workflow's variables: what is annotated, and what follows from all their assignments."""

from __future__ import annotations

import ast
import collections.abc as abc
import types as python_types
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from . import builtin_types, operator_types
from .inference import Types, attribute_type
from .names import COMPREHENSIONS, own_nodes
from .source import Source
from .typeops import UNKNOWN, join, members

_ROUNDS_MAX = 12
_BINDING = (
    ast.Assign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.ExceptHandler,
    ast.Match, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, *COMPREHENSIONS,
)  # fmt: skip
_SELF_PATTERN = (bool, bytes, bytearray, dict, float, frozenset, int, list, set, str, tuple)


def declared_types(source: Source, types: Types) -> dict[str, Any]:
    """Annotated variables of the body, with their types. Refuses annotations that cannot be evaluated."""
    found: dict[str, Any] = {}
    for node in own_nodes_of(source):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = types.annotation(node.annotation)
            if annotation is UNKNOWN:
                source.refuse(
                    node.annotation,
                    f"the annotation {ast.unparse(node.annotation)} of {node.target.id} cannot be evaluated here",
                    "import or define the type in the module, above the workflow",
                )
            found.setdefault(node.target.id, annotation)
    return found


def own_nodes_of(source: Source) -> list[ast.AST]:
    """All nodes of the body that run in the workflow's own scope."""
    return [node for statement in source.node.body for node in own_nodes(statement)]


def infer_variables(source: Source, types: Types, declared: dict[str, Any]) -> None:
    """Fill `types.variables`: first from what is known, then take back what rests on something unknown."""
    nodes = [node for node in own_nodes_of(source) if isinstance(node, _BINDING)]
    types.variables = dict(declared)
    for _ in range(_ROUNDS_MAX):
        found = {name: _known(parts) for name, parts in _contributions(nodes, types).items()}
        merged = {name: part for name, part in found.items() if part is not UNKNOWN} | declared
        if merged == types.variables:
            break
        types.variables = merged
    while True:
        contributions = _contributions(nodes, types)
        lost = {
            name
            for name, parts in contributions.items()
            if name not in declared
            and types.variables.get(name, UNKNOWN) is not UNKNOWN
            and join(parts) != types.variables[name]
        }
        for name in contributions:
            types.variables.setdefault(name, UNKNOWN)
        if not lost:
            return
        for name in lost:
            types.variables[name] = UNKNOWN


def _known(parts: list[Any]) -> Any:
    known = [part for part in parts if part is not UNKNOWN and part is not Any]
    return join(known) if known else UNKNOWN


class _Collector(dict[str, Any]):
    """Takes the bindings of `Types.bind`, and keeps every contribution."""

    def __init__(self, into: dict[str, list[Any]]) -> None:
        super().__init__()
        self.into = into

    def __contains__(self, name: object) -> bool:
        return False

    def __setitem__(self, name: str, value: Any) -> None:
        self.into.setdefault(name, []).append(value)


def _contributions(nodes: Sequence[ast.AST], types: Types) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    into = _Collector(result)
    for node in nodes:
        if isinstance(node, ast.Assign):
            found = types.of(node.value)
            for target in node.targets:
                types.bind(target, found, into)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            operands = types.variables.get(node.target.id, UNKNOWN), types.of(node.value)
            into[node.target.id] = operator_types.binary(type(node.op).__name__, *operands)
        elif isinstance(node, ast.NamedExpr):
            types.bind(node.target, types.of(node.value), into)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            types.bind(node.target, types.element(types.of(node.iter)), into)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    types.bind(item.optional_vars, _entered(types, item.context_expr), into)
        elif isinstance(node, ast.ExceptHandler) and node.name and node.type:
            into[node.name] = _handled(types, node.type)
        elif isinstance(node, ast.Match):
            subject = types.of(node.subject)
            for case in node.cases:
                _bind_pattern(types, case.pattern, subject, into)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            into[node.name] = python_types.FunctionType
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                into[(alias.asname or alias.name).partition(".")[0]] = UNKNOWN
        elif isinstance(node, COMPREHENSIONS):
            for part in ast.walk(node):
                if isinstance(part, ast.NamedExpr):
                    into[part.target.id] = UNKNOWN
    return result


def _entered(types: Types, context: ast.expr) -> Any:
    from .inference import return_type

    owner = types.of(context)
    function = getattr(get_origin(owner) or owner, "__enter__", None)
    return return_type(function) if function is not None else UNKNOWN


def _handled(types: Types, node: ast.expr) -> Any:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    found = [types.known(part) for part in parts]
    flat: list[Any] = []
    for part in found:
        flat += list(part) if isinstance(part, tuple) else [part]
    if all(isinstance(part, type) and issubclass(part, BaseException) for part in flat):
        return join(flat)
    return BaseException


def _narrowed(types: Types, pattern: ast.pattern, subject: Any) -> Any:
    if isinstance(pattern, ast.MatchClass):
        cls = types.known(pattern.cls)
        for member in members(subject):
            if (get_origin(member) or member) is cls:
                return member
        return cls if isinstance(cls, type) else UNKNOWN
    if isinstance(pattern, ast.MatchValue):
        return types.of(pattern.value)
    if isinstance(pattern, ast.MatchSingleton):
        return type(pattern.value)
    if isinstance(pattern, ast.MatchOr):
        return join([_narrowed(types, part, subject) for part in pattern.patterns])
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _narrowed(types, pattern.pattern, subject)
    return subject


def _bind_pattern(types: Types, pattern: ast.pattern, subject: Any, into: dict[str, Any]) -> None:
    if isinstance(pattern, ast.MatchAs):
        if pattern.name is not None:
            into[pattern.name] = _narrowed(types, pattern.pattern, subject) if pattern.pattern else subject
        if pattern.pattern is not None:
            _bind_pattern(types, pattern.pattern, subject, into)
    elif isinstance(pattern, ast.MatchOr):
        for part in pattern.patterns:
            _bind_pattern(types, part, subject, into)
    elif isinstance(pattern, ast.MatchSequence):
        _bind_sequence(types, pattern, subject, into)
    elif isinstance(pattern, ast.MatchMapping):
        mapping = next((part for part in members(subject) if get_origin(part) in (dict, abc.Mapping)), UNKNOWN)
        for part in pattern.patterns:
            _bind_pattern(types, part, get_args(mapping)[1] if get_args(mapping) else UNKNOWN, into)
        if pattern.rest:
            into[pattern.rest] = mapping
    elif isinstance(pattern, ast.MatchClass):
        narrowed = _narrowed(types, pattern, subject)
        names = getattr(get_origin(narrowed) or narrowed, "__match_args__", ())
        for index, part in enumerate(pattern.patterns):
            if narrowed in _SELF_PATTERN:
                _bind_pattern(types, part, narrowed, into)
            else:
                found = attribute_type(narrowed, names[index]) if index < len(names) else UNKNOWN
                _bind_pattern(types, part, found, into)
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            _bind_pattern(types, part, attribute_type(narrowed, name), into)


def _bind_sequence(types: Types, pattern: ast.MatchSequence, subject: Any, into: dict[str, Any]) -> None:
    fitting = [part for part in members(subject) if get_origin(part) in (list, tuple)]
    found = join(fitting) if fitting else UNKNOWN
    args = get_args(found)
    fixed = get_origin(found) is tuple and Ellipsis not in args and len(args) == len(pattern.patterns)
    for index, part in enumerate(pattern.patterns):
        if isinstance(part, ast.MatchStar):
            if part.name:
                into[part.name] = builtin_types.of_items(list, types.element(found))
        else:
            _bind_pattern(types, part, args[index] if fixed else types.element(found), into)
