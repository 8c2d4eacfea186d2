"""Lowers `for` with waits in its body: a count of items replaces the iterator, which could not be stored.

Lists reached by a variable or an attribute path are read again each time, so that what the body appends is
visited; everything else is taken as a list (or kept, when immutable) when the loop starts. `enumerate`, `zip`
and `reversed` are looked through.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_origin

from . import builtin_types
from .builder import Builder, LoopScope, assign, located, name_of
from .expressions import is_immutable, root_of, value
from .ir import Branch
from .names import bound_names, has_wait
from .typeops import UNKNOWN, members, without_none

Body = Callable[[Builder, list[ast.stmt]], None]


@dataclass(slots=True)
class Items:
    """Where a loop takes its items from: `more` and `item` are expressions over the count variable."""

    more: ast.expr
    item: ast.expr
    at_end: ast.stmt | None = None


def lower_for(b: Builder, node: ast.For, body: Body) -> None:
    """A `for` loop with waits in its iterable, target or body."""
    if not has_wait(ast.Module([*node.body, *node.orelse], [])) and not has_wait(node.target):
        _only_iterable_waits(b, node, body)
        return
    text = f"for {ast.unparse(node.target)}"
    with b.labels.inside(text):
        count = b.variable(f"{text}: index", int, node)
        items = _items(b, node.iter, node, count.identifier)
        b.store(count, located(ast.Constant(0), node), node)
        top, inside, after = b.new_block(node), b.new_block(node), b.new_block(node)
        ended = b.new_block(node) if node.orelse or items.at_end else after
        b.jump(top, top)
        b.finish(Branch(items.more, inside.id, ended.id), inside)
        _next_item(b, node, items, count.identifier)
        with b.scope(LoopScope(after.id, top.id)):
            body(b, node.body)
        b.jump(top, ended)
    if ended is after:
        return
    if items.at_end:
        b.emit(items.at_end)
    with b.labels.inside(f"else of {text}"):
        body(b, node.orelse)
    b.jump(after, after)


def _only_iterable_waits(b: Builder, node: ast.For, body: Body) -> None:
    made = located(ast.For(node.target, value(b, node.iter), node.body, node.orelse), node)
    body(b, [made])


def _next_item(b: Builder, node: ast.For, items: Items, count: str) -> None:
    from .lower import assign_to

    item = items.item
    if has_wait(node.target):
        kept = b.variable(f"the item for {ast.unparse(node.target)}", b.types.element(b.types.of(node.iter)), node)
        b.store(kept, item, node)
        item = name_of(kept.identifier, node)
    else:
        b.emit(assign("_wf_item", item, node))
        item = name_of("_wf_item", node)
    plus = ast.BinOp(name_of(count, node), ast.Add(), ast.Constant(1))
    b.emit(assign(count, located(plus, node), node))
    assign_to(b, node.target, item, node)


def _items(b: Builder, iterable: ast.expr, node: ast.For, count: str) -> Items:
    function = b.types.known(iterable.func) if isinstance(iterable, ast.Call) else None
    if isinstance(iterable, ast.Call) and not any(isinstance(arg, ast.Starred) for arg in iterable.args):
        if function is enumerate and 1 <= len(iterable.args) <= 2:
            found = _enumerate(b, iterable, node, count)
            if found is not None:
                return found
        if function is zip and iterable.args and _zip_is_plain(iterable):
            return _zip(b, iterable, node, count)
        if function is reversed and len(iterable.args) == 1 and not iterable.keywords:
            return _reversed(b, iterable.args[0], node, count)
    sequence = _sequence(b, iterable, node)
    return Items(
        located(ast.Compare(name_of(count, node), [ast.Lt()], [_length(sequence, node)]), node),
        located(ast.Subscript(sequence, name_of(count, node), ast.Load()), node),
    )


def _length(sequence: ast.expr, node: ast.AST) -> ast.expr:
    return located(ast.Call(name_of("_wf_len", node), [sequence], []), node)  # type: ignore[no-any-return]


def _sequence(b: Builder, iterable: ast.expr, node: ast.For) -> ast.expr:
    """An expression for something with a length and an index, the same object in every round."""
    found = b.types.of(iterable)
    lowered = value(b, iterable)
    parts = members(without_none(found))
    is_list = found is not UNKNOWN and all(get_origin(part) is list for part in parts)
    is_frozen = found is not UNKNOWN and all(_is_frozen_sequence(part) for part in parts)
    if is_list or is_frozen:
        path = lowered if _is_stable_path(b, lowered, node) else None
        what = f"{ast.unparse(iterable)} of a loop" if path else f"for {ast.unparse(node.target)}: sequence"
        kept = b.variable(what, found, iterable, path=path)
        b.store(kept, located(ast.Call(name_of("_wf_sequence", node), [lowered], []), iterable), iterable)
        return name_of(kept.identifier, iterable)
    item = b.types.element(found)
    if item is UNKNOWN and isinstance(node.target, ast.Name):
        item = b.types.variables.get(node.target.id, UNKNOWN)
    kept = b.variable(f"for {ast.unparse(node.target)}: items", builtin_types.of_items(list, item), iterable)
    b.store(kept, located(ast.Call(name_of("_wf_to_list", node), [lowered], []), iterable), iterable)
    return name_of(kept.identifier, iterable)


def _is_frozen_sequence(found: Any) -> bool:
    return (found in (str, bytes, range) or get_origin(found) is tuple) and is_immutable(found)


def _is_stable_path(b: Builder, lowered: ast.expr, node: ast.For) -> bool:
    """Whether this is a path over variables that the loop does not assign."""
    root = root_of(lowered)
    if root is None or root not in b.source.locals or root == b.source.node.args.args[0].arg:
        return False
    names = {part.id for part in ast.walk(lowered) if isinstance(part, ast.Name)}
    return not names & bound_names(node)


def _enumerate(b: Builder, call: ast.Call, node: ast.For, count: str) -> Items | None:
    start = call.args[1] if len(call.args) > 1 else None
    for keyword in call.keywords:
        if keyword.arg != "start" or start is not None:
            return None
        start = keyword.value
    inner = _items(b, call.args[0], node, count)
    number: ast.expr = name_of(count, node)
    if start is not None:
        first = b.variable(f"for {ast.unparse(node.target)}: start", b.types.of(start), start)
        b.store(first, value(b, start), start)
        number = located(ast.BinOp(name_of(first.identifier, node), ast.Add(), number), node)
    inner.item = located(ast.Tuple([number, inner.item], ast.Load()), node)
    return inner


def _zip_is_plain(call: ast.Call) -> bool:
    return all(k.arg == "strict" and isinstance(k.value, ast.Constant) for k in call.keywords)


def _zip(b: Builder, call: ast.Call, node: ast.For, count: str) -> Items:
    parts = [_items(b, arg, node, count) for arg in call.args]
    more = located(ast.BoolOp(ast.And(), [part.more for part in parts]), node) if len(parts) > 1 else parts[0].more
    item = located(ast.Tuple([part.item for part in parts], ast.Load()), node)
    at_end = None
    if any(isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords):
        checks = [located(ast.Call(name_of("_wf_bool", node), [part.more], []), node) for part in parts]
        at_end = located(ast.Expr(ast.Call(name_of("_wf_strict", node), checks, [])), node)
    return Items(more, item, at_end)


def _reversed(b: Builder, argument: ast.expr, node: ast.For, count: str) -> Items:
    sequence = _sequence(b, argument, node)
    length = b.variable(f"for {ast.unparse(node.target)}: length", int, argument)
    b.store(length, _length(sequence, node), node)
    index = ast.BinOp(
        ast.BinOp(name_of(length.identifier, node), ast.Sub(), ast.Constant(1)), ast.Sub(), name_of(count, node)
    )
    located(index, node)
    more = ast.Compare(ast.Constant(0), [ast.LtE(), ast.Lt()], [index, _length(sequence, node)])
    return Items(located(more, node), located(ast.Subscript(sequence, index, ast.Load()), node))
