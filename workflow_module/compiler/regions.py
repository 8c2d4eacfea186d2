"""Lowers `try`: handlers and `finally` as blocks, with what is pending in variables.

Python itself matches the `except` clauses. A `finally` is one set of blocks; a variable says what follows it
(an exception, a return, a break, a continue, or what comes after the statement).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .builder import Builder, CleanupScope, FinallyScope, assign, caught, delete_name, located, name_of
from .ir import Block, Branch, Goto, Propagate
from .names import bound_names

Body = Callable[[Builder, list[ast.stmt]], None]


def lower_try(b: Builder, node: ast.Try, body: Body) -> None:
    """A `try` with waits anywhere in it."""
    if node.finalbody:
        _lower_finally(b, node, body)
    else:
        _lower_except(b, node, body)


def _lower_except(b: Builder, node: ast.Try, body: Body) -> None:
    landing, after = b.new_block(node.handlers[0]), b.new_block(node)
    inside, otherwise = b.new_block(node.body[0]), b.new_block(node)
    inside.handler = landing.id
    b.jump(inside, inside)
    with b.region(landing.id), b.labels.inside("try"):
        body(b, node.body)
    b.jump(otherwise, otherwise)
    with b.labels.inside("else of try"):
        body(b, node.orelse)
    b.jump(after, landing)
    error = b.variable("the exception being handled", BaseException, node)
    b.store(error, caught(node), node.handlers[0])
    entries = _dispatch(b, node, error.identifier)
    for handler, entry in zip(node.handlers, entries, strict=True):
        b.current = entry
        with b.labels.inside(f"except {ast.unparse(handler.type)}" if handler.type else "except"):
            _handler(b, handler, error.identifier, body)
        b.jump(after)
    b.current = after


def _dispatch(b: Builder, node: ast.Try, error: str) -> list[Block]:
    """Choose the handler by raising the exception once more under the author's own clauses."""
    clauses: list[ast.ExceptHandler] = []
    entries: list[Block] = []
    restore = _restore_traceback(error, node)
    for handler in node.handlers:
        with b.region(b.handler, (*b.handling, error)):
            entry = b.new_block(handler.body[0])
        entries.append(entry)
        clauses.append(located(ast.ExceptHandler(handler.type, None, [*restore, Goto(entry.id, handler)]), handler))
    unmatched = b.new_block(node)
    if node.handlers[-1].type is not None:
        base = ast.Name("_wf_BaseException", ast.Load())
        clauses.append(located(ast.ExceptHandler(base, None, [*restore, Goto(unmatched.id, node)]), node))
    b.emit(_remember_traceback(error, node))
    b.emit(located(ast.Try([ast.Raise(name_of(error, node), None)], clauses, [], []), node))
    b.jump(unmatched, unmatched)
    b.finish(Propagate())
    return entries


def _remember_traceback(error: str, node: ast.AST) -> ast.stmt:
    return assign(
        "_wf_traceback", located(ast.Attribute(name_of(error, node), "__traceback__", ast.Load()), node), node
    )


def _restore_traceback(error: str, node: ast.AST) -> list[ast.stmt]:
    place = located(ast.Attribute(name_of(error, node), "__traceback__", ast.Store()), node)
    return [located(ast.Assign([place], name_of("_wf_traceback", node)), node)]


def _handler(b: Builder, handler: ast.ExceptHandler, error: str, body: Body) -> None:
    handling = (*b.handling, error)
    if handler.name is None:
        with b.region(b.handler, handling):
            body(b, handler.body)
        return
    rebound = handler.name in set().union(*(bound_names(statement) for statement in handler.body))
    scope = CleanupScope(handler.name, error, rebound, b.handler, b.handling)
    cleanup = b.new_block(handler)
    b.emit(assign(handler.name, name_of(error, handler), handler))
    with b.region(cleanup.id, handling):
        inside = b.new_block(handler.body[0])
        b.jump(inside, inside)
        with b.scope(scope):
            body(b, handler.body)
    done = b.new_block(handler)
    b.jump(done, cleanup)
    b.emit(*delete_name(handler.name, handler))
    b.finish(Propagate(), done)
    b.emit(*delete_name(handler.name, handler))


def _lower_finally(b: Builder, node: ast.Try, body: Body) -> None:
    how = b.variable("what follows a finally", str, node)
    error = b.variable("the exception pending in a finally", BaseException, node)
    result = b.variable("the value being returned", b.result_type, node)
    landing, entry, after = b.new_block(node), b.new_block(node.finalbody[0]), b.new_block(node)
    scope = FinallyScope(entry.id, how, result)
    inside = b.new_block(node.body[0])
    inside.handler = landing.id
    b.jump(inside, inside)
    with b.region(landing.id), b.scope(scope):
        if node.handlers:
            body(b, [located(ast.Try(node.body, node.handlers, node.orelse, []), node)])
        else:
            with b.labels.inside("try"):
                body(b, node.body)
        b.store(how, located(ast.Constant("end"), node), node)
    b.jump(entry, landing)
    b.store(error, caught(node), node)
    b.store(how, located(ast.Constant("raise"), node), node)
    b.jump(entry, entry)
    chained = b.new_block(node)
    with b.region(chained.id):
        final = b.new_block(node.finalbody[0])
        b.jump(final, final)
        with b.labels.inside("finally"):
            body(b, node.finalbody)
    _after_finally(b, node, scope, error.identifier, after)
    b.current = chained
    _chain(b, node, how.identifier, error.identifier)
    b.current = after


def _is(how: str, kind: str, node: ast.AST) -> ast.expr:
    test = ast.Compare(name_of(how, node), [ast.Eq()], [ast.Constant(kind)])
    return located(test, node)  # type: ignore[no-any-return]


def _after_finally(b: Builder, node: ast.Try, scope: FinallyScope, error: str, after: Block) -> None:
    """What the body left pending goes on."""
    for kind in ("raise", *sorted(scope.used)):
        chosen, following = b.new_block(node), b.new_block(node)
        b.finish(Branch(_is(scope.how.identifier, kind, node), chosen.id, following.id), chosen)
        if kind == "raise":
            b.emit(assign("_wf_caught", name_of(error, node), node))
            b.finish(Propagate(), following)
        else:
            marker = located(ast.Pass(), node)
            b.emit(*b.leave(kind, marker, name_of(scope.result.identifier, node) if kind == "return" else None))
            b.finish(Propagate(), following)
    b.jump(after)


def _chain(b: Builder, node: ast.Try, how: str, error: str) -> None:
    """An exception in the `finally` itself has the pending one as its context."""
    call = ast.Call(ast.Name("_wf_chain", ast.Load()), [caught(node), name_of(error, node)], [])
    b.emit(located(ast.If(_is(how, "raise", node), [ast.Expr(call)], []), node))
    b.finish(Propagate())
