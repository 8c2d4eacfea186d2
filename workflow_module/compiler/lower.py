"""Lowers statements: what has no wait in it stays as it is, the rest becomes blocks.

Statements without waits are kept whole, with `return`, `break` and `continue` replaced where they leave into
lowered code. Loops over things, `try` and `match` have rooms of their own.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Set
from typing import Any

from .builder import Builder, LoopScope, assign, located, name_of
from .expressions import keep, operands, rebuild_slice, slice_parts, value
from .ir import Branch
from .loops import lower_for
from .matching import lower_match
from .names import any_wait, bound_names, forget, has_wait
from .regions import lower_try
from .typeops import UNKNOWN


def body(b: Builder, statements: list[ast.stmt]) -> None:
    """Lower statements in order."""
    for statement in statements:
        if has_wait(statement):
            _LOWERINGS[type(statement)](b, statement)
        else:
            b.emit(*leaving(b, [statement]))


def leaving(b: Builder, statements: list[ast.stmt], loop_depth: int = 0) -> list[ast.stmt]:
    """Statements without waits, with the jumps out of them made explicit."""
    result: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, ast.Return):
            result += b.leave("return", statement, statement.value)
        elif isinstance(statement, (ast.Break, ast.Continue)):
            kind = "break" if isinstance(statement, ast.Break) else "continue"
            result += [statement] if loop_depth else b.leave(kind, statement)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not _has_jump(statement):
            result.append(statement)
        else:
            result.append(_inner(b, statement, loop_depth))
    return result


def _has_jump(statement: ast.stmt) -> bool:
    return any(isinstance(part, (ast.Return, ast.Break, ast.Continue)) for part in ast.walk(statement))


def _inner(b: Builder, statement: ast.stmt, loop_depth: int) -> ast.stmt:
    found: Any = copy.copy(statement)
    forget(found)
    is_loop = isinstance(statement, (ast.For, ast.While))
    for name in ("body", "orelse", "finalbody"):
        if hasattr(found, name):
            inside = loop_depth + 1 if is_loop and name == "body" else loop_depth
            setattr(found, name, leaving(b, getattr(found, name), inside))
    for name in ("handlers", "cases"):
        parts = []
        for part in getattr(found, name, []):
            part = copy.copy(part)
            forget(part)
            part.body = leaving(b, part.body, loop_depth)
            parts.append(part)
        if parts:
            setattr(found, name, parts)
    return found  # type: ignore[no-any-return]


# simple statements


def _expression(b: Builder, node: ast.Expr) -> None:
    lowered = value(b, node.value)
    if not isinstance(lowered, (ast.Name, ast.Constant)):
        b.emit(located(ast.Expr(lowered), node))


def _return(b: Builder, node: ast.Return) -> None:
    assert node.value is not None
    b.emit(*b.leave("return", node, value(b, node.value)))


def _assign(b: Builder, node: ast.Assign) -> None:
    lowered = value(b, node.value)
    if len(node.targets) == 1 and not has_wait(node.targets[0]):
        b.emit(located(ast.Assign(node.targets, lowered), node))
        return
    for index, target in enumerate(node.targets):
        following = node.targets[index:]
        if any_wait(following):
            later = set().union(*(bound_names(part) for part in following))
            lowered = keep(b, lowered, node.value, later)
        elif not isinstance(lowered, (ast.Name, ast.Constant)):
            spare = b.variable(f"the value of {ast.unparse(node.value)}", b.types.of(node.value), node.value)
            b.store(spare, lowered, node.value)
            lowered = name_of(spare.identifier, node.value)
        assign_to(b, target, lowered, node)


def assign_to(b: Builder, target: ast.expr, lowered: ast.expr, node: ast.AST) -> None:
    """Assign to a target that may wait; `lowered` has been kept if so."""
    if isinstance(target, ast.Starred):
        assign_to(b, target.value, lowered, node)
    elif not has_wait(target):
        b.emit(located(ast.Assign([target], lowered), node))
    elif isinstance(target, ast.Attribute):
        owner = value(b, target.value)
        made: ast.expr = located(ast.Attribute(owner, target.attr, ast.Store()), target)
        b.emit(located(ast.Assign([made], lowered), node))
    elif isinstance(target, ast.Subscript):
        owner, *parts = operands(b, [target.value, *slice_parts(target.slice)])
        made = located(ast.Subscript(owner, rebuild_slice(target.slice, parts), ast.Store()), target)
        b.emit(located(ast.Assign([made], lowered), node))
    else:
        assert isinstance(target, (ast.Tuple, ast.List))
        _unpack(b, target, lowered, node)


def _unpack(b: Builder, target: ast.Tuple | ast.List, lowered: ast.expr, node: ast.AST) -> None:
    """All is unpacked first, then each part is assigned in order."""
    types: dict[str, Any] = {}
    names: list[ast.expr] = []
    for index, part in enumerate(target.elts):
        name: ast.expr = ast.Name(f"_wf_part{index}", ast.Store())
        names.append(ast.Starred(name, ast.Store()) if isinstance(part, ast.Starred) else name)
    b.types.bind(ast.Tuple(names, ast.Store()), b.types.of(lowered), types)
    parts = []
    for index, part in enumerate(target.elts):
        found = types.get(f"_wf_part{index}", UNKNOWN)
        parts.append(b.variable(f"part {index + 1} for {ast.unparse(target)}", found, part))
    for name, variable in zip(names, parts, strict=True):
        inner = name.value if isinstance(name, ast.Starred) else name
        assert isinstance(inner, ast.Name)
        inner.id = variable.identifier
    pattern = located(ast.Tuple(names, ast.Store()), target)
    b.emit(located(ast.Assign([pattern], lowered), node))
    for part, variable in zip(target.elts, parts, strict=True):
        assign_to(b, part, name_of(variable.identifier, part), node)


def _annotated(b: Builder, node: ast.AnnAssign) -> None:
    assert node.value is not None
    assign_to(b, node.target, keep_for(b, node.target, value(b, node.value), node.value), node)


def keep_for(b: Builder, target: ast.expr, lowered: ast.expr, node: ast.expr) -> ast.expr:
    """The value of an assignment, kept if the target waits."""
    return keep(b, lowered, node, bound_names(target)) if has_wait(target) else lowered


def _augmented(b: Builder, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        read: ast.expr = located(ast.Name(target.id, ast.Load()), target)
        place: ast.expr = target
    elif isinstance(target, ast.Attribute):
        (owner,) = operands(b, [target.value], also_later=True)
        read = located(ast.Attribute(owner, target.attr, ast.Load()), target)
        place = located(ast.Attribute(owner, target.attr, ast.Store()), target)
    else:
        owner, *parts = operands(b, [target.value, *slice_parts(target.slice)], also_later=True)
        index = rebuild_slice(target.slice, parts)
        read = located(ast.Subscript(owner, index, ast.Load()), target)
        place = located(ast.Subscript(owner, index, ast.Store()), target)
    if not has_wait(node.value):
        later: Set[str] = set()
    else:
        later = bound_names(node.value)
        read = keep(b, read, located(_as_load(target), target), later)
    operand = value(b, node.value)
    if isinstance(target, ast.Name) and isinstance(read, ast.Name) and read.id == target.id:
        b.emit(located(ast.AugAssign(target, node.op, operand), node))
        return
    result = read.id if isinstance(read, ast.Name) and read.id in b.hidden else "_wf_result"
    if not (isinstance(read, ast.Name) and read.id == result):
        b.emit(assign(result, read, node))
    b.emit(located(ast.AugAssign(located(ast.Name(result, ast.Store()), node), node.op, operand), node))
    b.emit(located(ast.Assign([place], name_of(result, node)), node))


def _as_load(target: ast.expr) -> ast.expr:
    found = copy.copy(target)
    forget(found)
    found.ctx = ast.Load()  # type: ignore[attr-defined]
    return found


def _delete(b: Builder, node: ast.Delete) -> None:
    for target in node.targets:
        if not has_wait(target):
            made = target
        elif isinstance(target, ast.Attribute):
            made = located(ast.Attribute(value(b, target.value), target.attr, ast.Del()), target)
        elif isinstance(target, ast.Subscript):
            owner, *parts = operands(b, [target.value, *slice_parts(target.slice)])
            made = located(ast.Subscript(owner, rebuild_slice(target.slice, parts), ast.Del()), target)
        else:
            assert isinstance(target, (ast.Tuple, ast.List))
            _delete(b, located(ast.Delete(target.elts), node))
            continue
        b.emit(located(ast.Delete([made]), node))


def _raise(b: Builder, node: ast.Raise) -> None:
    assert node.exc is not None
    parts = operands(b, [part for part in (node.exc, node.cause) if part is not None])
    b.emit(located(ast.Raise(parts[0], parts[1] if len(parts) > 1 else None), node))


def _assert(b: Builder, node: ast.Assert) -> None:
    failed, after = b.new_block(node), b.new_block(node)
    b.finish(Branch(value(b, node.test), after.id, failed.id), failed)
    arguments = [value(b, node.msg)] if node.msg is not None else []
    error = ast.Call(ast.Name("AssertionError", ast.Load()), arguments, [])
    b.emit(located(ast.Raise(error, None), node))
    b.finish(Branch(located(ast.Constant(True), node), after.id, after.id), after)


# branches and loops


def _if(b: Builder, node: ast.If) -> None:
    then, otherwise, after = b.new_block(node.body[0]), b.new_block(node), b.new_block(node)
    b.finish(Branch(value(b, node.test), then.id, otherwise.id), then)
    with b.labels.inside(f"if {ast.unparse(node.test)}"):
        body(b, node.body)
    b.jump(after, otherwise)
    with b.labels.inside(f"else of {ast.unparse(node.test)}"):
        body(b, node.orelse)
    b.jump(after, after)


def _while(b: Builder, node: ast.While) -> None:
    top, inside, after = b.new_block(node), b.new_block(node.body[0]), b.new_block(node)
    otherwise = b.new_block(node.orelse[0]) if node.orelse else after
    b.jump(top, top)
    with b.labels.inside(f"while {ast.unparse(node.test)}"):
        if isinstance(node.test, ast.Constant) and node.test.value:
            b.jump(inside, inside)
        else:
            b.finish(Branch(value(b, node.test), inside.id, otherwise.id), inside)
        with b.scope(LoopScope(after.id, top.id)):
            body(b, node.body)
    b.jump(top, otherwise)
    if node.orelse:
        with b.labels.inside(f"else of while {ast.unparse(node.test)}"):
            body(b, node.orelse)
        b.jump(after, after)


def _with(b: Builder, node: ast.With) -> None:
    """Only the first context expression waits; the rest was refused."""
    first = node.items[0]
    entered = located(ast.withitem(value(b, first.context_expr), first.optional_vars), first.context_expr)
    body(b, [located(ast.With([entered, *node.items[1:]], node.body), node)])


def _for(b: Builder, node: ast.For) -> None:
    lower_for(b, node, body)


def _try(b: Builder, node: ast.Try) -> None:
    lower_try(b, node, body)


def _match(b: Builder, node: ast.Match) -> None:
    lower_match(b, node, body, leaving)


_LOWERINGS: dict[type, Any] = {
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.With: _with,
    ast.Try: _try,
    ast.Match: _match,
}
