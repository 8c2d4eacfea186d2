"""Lowers expressions with waits: what Python evaluates before a wait is evaluated before it, once.

`value(b, node)` emits the waits of an expression and gives an expression without waits for its value. Operands
to the left of a wait are kept in hidden variables of their type, or read again where that is the same thing:
constants, module-level functions and classes, local variables, and paths over them (which are checked to be the
same object at the wait). The order is CPython's.
"""

from __future__ import annotations

import ast
import enum
import types as python_types
from collections.abc import Set
from typing import Any

from workflow_module.codec import Unstorable, codec_for

from . import awaitables
from .builder import Builder, assign, located, name_of
from .ir import PREFIX, Branch
from .names import bound_names, has_wait
from .typeops import UNKNOWN

_LEFT = PREFIX + "left"
_STATIC = (type, python_types.ModuleType, python_types.FunctionType, python_types.BuiltinFunctionType, enum.Enum)


def value(b: Builder, node: ast.expr) -> ast.expr:
    """The expression without waits; they have been emitted before it."""
    if not has_wait(node):
        return node
    return _LOWERINGS[type(node)](b, node)  # type: ignore[no-any-return]


def operands(b: Builder, nodes: list[ast.expr], also_later: bool = False) -> list[ast.expr]:
    """Expressions evaluated in order: those before the last wait are kept over it.

    With `also_later`, a wait follows after the last of them.
    """
    last = len(nodes) if also_later else max(index for index, node in enumerate(nodes) if has_wait(node))
    result = []
    for index, node in enumerate(nodes):
        lowered = value(b, node)
        if index < last:
            later = set().union(*(bound_names(following) for following in nodes[index + 1 :]))
            lowered = keep(b, lowered, node, later)
        result.append(lowered)
    return result


def keep(b: Builder, lowered: ast.expr, node: ast.expr, later: Set[str]) -> ast.expr:
    """An expression that gives, after the coming wait, what `lowered` gives now.

    `node` is the author's expression, `later` the names that are bound before it is used.
    """
    if isinstance(lowered, ast.Constant) or (isinstance(lowered, ast.Lambda) and not _has_defaults(lowered)):
        return lowered
    if isinstance(lowered, ast.Starred):
        snapshot = located(ast.List([ast.Starred(lowered.value, ast.Load())], ast.Load()), node)
        kept = _kept_in_variable(b, snapshot, node, b.types.of(snapshot))
        return located(ast.Starred(kept, ast.Load()), node)  # type: ignore[no-any-return]
    if isinstance(lowered, ast.Slice):
        pairs = zip(slice_parts(lowered), slice_parts(node), strict=True)
        parts = [keep(b, part, original, later) for part, original in pairs]
        return rebuild_slice(lowered, parts)
    if isinstance(lowered, ast.Name) and lowered.id not in later and _is_variable(b, lowered.id):
        if lowered.id not in b.hidden:
            b.emit(_check(lowered))
        return lowered
    if isinstance(b.types.known(lowered), (*_STATIC, awaitables.Awaitable)) or _is_definition(b, lowered):
        b.emit(_check(lowered))
        return lowered
    return _kept(b, lowered, node, later)


def _kept(b: Builder, lowered: ast.expr, node: ast.expr, later: Set[str]) -> ast.expr:
    found = b.types.of(node)
    root = root_of(lowered)
    if root is None or root.startswith(PREFIX) or (isinstance(lowered, ast.Name) and _is_variable(b, root)):
        return _kept_in_variable(b, lowered, node, found)
    if is_immutable(found):
        return _kept_in_variable(b, lowered, node, found)
    if root == b.source.node.args.args[0].arg or not _is_variable(b, root):
        b.emit(_check(lowered))  # a path over ctx belongs to the step, one over the module to the module
        return lowered
    names = {part.id for part in ast.walk(lowered) if isinstance(part, ast.Name)}
    if names & later:
        b.source.refuse(
            node,
            f"{ast.unparse(node)} is needed after a wait, and {', '.join(sorted(names & later))} is assigned "
            f"before that",
            "assign it to a variable with a type annotation first, or split the expression",
        )
    pin = b.variable(f"{ast.unparse(node)} before a wait", found, node, path=lowered)
    b.store(pin, lowered, node)
    return name_of(pin.identifier, node)


def is_immutable(found: Any) -> bool:
    """Whether values of this type can be stored, and sharing one does not show."""
    try:
        return found is not UNKNOWN and codec_for(found).walk is None
    except Unstorable:
        return False


def _kept_in_variable(b: Builder, lowered: ast.expr, node: ast.expr, type: Any) -> ast.expr:
    kept = b.variable(f"the value of {ast.unparse(node)}", type, node)
    b.store(kept, lowered, node)
    return name_of(kept.identifier, node)


def _check(lowered: ast.expr) -> ast.stmt:
    """Read it now, as Python would, so that it raises now if it raises."""
    return located(ast.Expr(lowered), lowered)  # type: ignore[no-any-return]


def _is_variable(b: Builder, name: str) -> bool:
    return name in b.source.locals or name in b.hidden


def _is_definition(b: Builder, lowered: ast.expr) -> bool:
    """Whether this is a module-level object that has no state: a workflow, a procedure, a late definition."""
    found = b.types.known(lowered)
    return found is not None and (hasattr(found, "result_type") or callable(found))


def _has_defaults(node: ast.Lambda) -> bool:
    return bool(node.args.defaults or node.args.kw_defaults)


def root_of(node: ast.expr) -> str | None:
    """The name at the start of a path: attributes, and subscripts with constants, names and paths."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and _is_key(node.slice)):
            node = node.value
        else:
            return None
    return node.id


def _is_key(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        or root_of(node) is not None
        or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))
    )


# one lowering for each kind of expression


def _await(b: Builder, node: ast.Await) -> ast.expr:
    return b.wait(node, value(b, node.value))


def _bool_op(b: Builder, node: ast.BoolOp) -> ast.expr:
    result = b.variable(f"the value of {ast.unparse(node)}", b.types.of(node), node)
    after = b.new_block(node)
    for part in node.values:
        b.store(result, value(b, part), part)
        if part is node.values[-1]:
            b.jump(after, after)
            break
        following = b.new_block(part)
        test = name_of(result.identifier, part)
        goes_on, done = (following, after) if isinstance(node.op, ast.And) else (after, following)
        b.finish(Branch(test, goes_on.id, done.id), following)
    return name_of(result.identifier, node)


def _if_exp(b: Builder, node: ast.IfExp) -> ast.expr:
    result = b.variable(f"the value of {ast.unparse(node)}", b.types.of(node), node)
    then, otherwise, after = b.new_block(node.body), b.new_block(node.orelse), b.new_block(node)
    b.finish(Branch(value(b, node.test), then.id, otherwise.id), then)
    b.store(result, value(b, node.body), node.body)
    b.jump(after, otherwise)
    b.store(result, value(b, node.orelse), node.orelse)
    b.jump(after, after)
    return name_of(result.identifier, node)


def _compare(b: Builder, node: ast.Compare) -> ast.expr:
    if len(node.ops) == 1:
        left, right = operands(b, [node.left, node.comparators[0]])
        return located(ast.Compare(left, node.ops, [right]), node)  # type: ignore[no-any-return]
    result = b.variable(f"the value of {ast.unparse(node)}", bool, node)
    after = b.new_block(node)
    left, left_node = value(b, node.left), node.left
    for index, (operator, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
        is_last = index == len(node.ops) - 1
        if has_wait(comparator):
            left = keep(b, left, left_node, bound_names(comparator))
        right = value(b, comparator)
        if not is_last:
            # the left side is evaluated before the right one, also where no wait is between them
            b.emit(assign(_LEFT, left, left_node))
            left = name_of(_LEFT, left_node)
            middle = b.variable(f"the value of {ast.unparse(comparator)}", b.types.of(comparator), comparator)
            b.store(middle, right, comparator)
            right = name_of(middle.identifier, comparator)
        b.store(result, located(ast.Compare(left, [operator], [right]), comparator), comparator)
        if not is_last:
            following = b.new_block(comparator)
            b.finish(Branch(name_of(result.identifier, comparator), following.id, after.id), following)
        left, left_node = right, comparator
    b.jump(after, after)
    return name_of(result.identifier, node)


def _named(b: Builder, node: ast.NamedExpr) -> ast.expr:
    b.emit(assign(node.target.id, value(b, node.value), node))
    return name_of(node.target.id, node)


def _binary(b: Builder, node: ast.BinOp) -> ast.expr:
    left, right = operands(b, [node.left, node.right])
    return located(ast.BinOp(left, node.op, right), node)  # type: ignore[no-any-return]


def _unary(b: Builder, node: ast.UnaryOp) -> ast.expr:
    return located(ast.UnaryOp(node.op, value(b, node.operand)), node)  # type: ignore[no-any-return]


def _attribute(b: Builder, node: ast.Attribute) -> ast.expr:
    return located(ast.Attribute(value(b, node.value), node.attr, node.ctx), node)  # type: ignore[no-any-return]


def _starred(b: Builder, node: ast.Starred) -> ast.expr:
    return located(ast.Starred(value(b, node.value), node.ctx), node)  # type: ignore[no-any-return]


def slice_parts(node: ast.expr) -> list[ast.expr]:
    """The expressions in an index, in the order Python evaluates them."""
    if isinstance(node, ast.Slice):
        return [part for part in (node.lower, node.upper, node.step) if part is not None]
    return [node]


def rebuild_slice(node: ast.expr, parts: list[ast.expr]) -> ast.expr:
    if not isinstance(node, ast.Slice):
        return parts[0]
    left = iter(parts)
    lower, upper, step = (next(left) if part is not None else None for part in (node.lower, node.upper, node.step))
    return located(ast.Slice(lower, upper, step), node)  # type: ignore[no-any-return]


def _subscript(b: Builder, node: ast.Subscript) -> ast.expr:
    owner, *parts = operands(b, [node.value, *slice_parts(node.slice)])
    return located(ast.Subscript(owner, rebuild_slice(node.slice, parts), node.ctx), node)  # type: ignore[no-any-return]


def _slice(b: Builder, node: ast.Slice) -> ast.expr:
    return rebuild_slice(node, operands(b, slice_parts(node)))


def _items(b: Builder, node: Any) -> ast.expr:
    items = operands(b, node.elts)
    made = type(node)(items) if isinstance(node, ast.Set) else type(node)(items, ast.Load())
    return located(made, node)  # type: ignore[no-any-return]


def _dict(b: Builder, node: ast.Dict) -> ast.expr:
    if node.keys == [None]:  # a copy made here
        return _copied(value(b, node.values[0]))
    flat: list[ast.expr] = []
    for key, item in zip(node.keys, node.values, strict=True):
        flat += [_copied(item)] if key is None else [key, item]
    lowered = iter(operands(b, flat))
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for key in node.keys:
        keys.append(None if key is None else next(lowered))
        values.append(next(lowered))
    return located(ast.Dict(keys, values), node)  # type: ignore[no-any-return]


def _copied(node: ast.expr) -> ast.expr:
    """`**node` takes what is in it now."""
    return located(ast.Dict([None], [node]), node)  # type: ignore[no-any-return]


def _call(b: Builder, node: ast.Call) -> ast.expr:
    function = node.func
    arguments = [*node.args, *(_copied(k.value) if k.arg is None else k.value for k in node.keywords)]
    if isinstance(function, ast.Attribute) and not has_wait(ast.Tuple(arguments)):
        owner = value(b, function.value)
        lowered_function = located(ast.Attribute(owner, function.attr, ast.Load()), function)
        lowered = arguments
    elif isinstance(function, ast.Attribute) and b.types.known(function) is None:
        owner, *lowered = _method_operands(b, function, arguments)
        lowered_function = located(ast.Attribute(owner, function.attr, ast.Load()), function)
    else:
        lowered_function, *lowered = operands(b, [function, *arguments])
    args, rest = lowered[: len(node.args)], lowered[len(node.args) :]
    keywords = [
        located(ast.keyword(keyword.arg, part), keyword) for keyword, part in zip(node.keywords, rest, strict=True)
    ]
    return located(ast.Call(lowered_function, args, keywords), node)  # type: ignore[no-any-return]


def _method_operands(b: Builder, function: ast.Attribute, arguments: list[ast.expr]) -> list[ast.expr]:
    """The object of a method call is kept, and the method looked up on it once more after the wait."""
    later = set().union(*(bound_names(argument) for argument in arguments))
    owner = keep(b, value(b, function.value), function.value, later)
    b.emit(_check(located(ast.Attribute(owner, function.attr, ast.Load()), function)))
    return [owner, *operands(b, arguments)]


def _joined_str(b: Builder, node: ast.JoinedStr) -> ast.expr:
    last = max(index for index, part in enumerate(node.values) if has_wait(part))
    pieces: list[ast.expr] = []
    for index, part in enumerate(node.values):
        piece = _formatted(b, part) if isinstance(part, ast.FormattedValue) and has_wait(part) else part
        if index < last and isinstance(piece, ast.FormattedValue):
            text = b.variable(f"the text of {ast.unparse(part)}", str, part)
            b.store(text, located(ast.JoinedStr([piece]), part), part)
            piece = located(ast.FormattedValue(name_of(text.identifier, part), -1, None), part)
        pieces.append(piece)
    return located(ast.JoinedStr(pieces), node)  # type: ignore[no-any-return]


def _formatted(b: Builder, node: ast.FormattedValue) -> ast.FormattedValue:
    if node.format_spec is None:
        return located(ast.FormattedValue(value(b, node.value), node.conversion, None), node)  # type: ignore[no-any-return]
    if not has_wait(node.format_spec):
        return located(ast.FormattedValue(value(b, node.value), node.conversion, node.format_spec), node)  # type: ignore[no-any-return]
    inner, spec = operands(b, [node.value, node.format_spec])
    return located(ast.FormattedValue(inner, node.conversion, spec), node)  # type: ignore[no-any-return]


def _comprehension(b: Builder, node: Any) -> ast.expr:
    """Its first iterable is evaluated here; waits further inside have been refused."""
    first = node.generators[0]
    lowered = located(ast.comprehension(first.target, value(b, first.iter), first.ifs, first.is_async), first.iter)
    generators = [lowered, *node.generators[1:]]
    if isinstance(node, ast.DictComp):
        return located(ast.DictComp(node.key, node.value, generators), node)  # type: ignore[no-any-return]
    return located(type(node)(node.elt, generators), node)  # type: ignore[no-any-return]


_LOWERINGS: dict[type, Any] = {
    ast.Await: _await,
    ast.BoolOp: _bool_op,
    ast.IfExp: _if_exp,
    ast.Compare: _compare,
    ast.NamedExpr: _named,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Attribute: _attribute,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Tuple: _items,
    ast.List: _items,
    ast.Set: _items,
    ast.Dict: _dict,
    ast.Call: _call,
    ast.JoinedStr: _joined_str,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}
