"""Makes blocks, waits, hidden variables and jumps; the lowering passes are written with these.

A `Builder` knows where the lowering stands: the current block, the handler of exceptions, the exceptions being
handled, the loops and `finally` blocks around, and the structural path that labels are made from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import awaitables
from .inference import Types
from .ir import CAUGHT, PREFIX, VALUE, Block, End, Finish, Goto, Jump, Point, Program, Suspend, Variable
from .labels import Labels
from .source import Source


@dataclass(slots=True)
class LoopScope:
    break_to: int
    continue_to: int


@dataclass(slots=True)
class CleanupScope:
    """The body of `except ... as name`: leaving it deletes the name."""

    name: str
    error: str
    rebound: bool
    handler: int | None
    handling: tuple[str, ...]


@dataclass(slots=True)
class FinallyScope:
    """The part of a `try` whose `finally` is still to run. `how` and `result` carry what follows it."""

    entry: int
    how: Variable
    result: Variable
    used: set[str] = field(default_factory=set)


Scope = LoopScope | CleanupScope | FinallyScope


class Builder:
    def __init__(self, source: Source, types: Types, result_type: Any) -> None:
        self.source = source
        self.types = types
        self.result_type = result_type
        self.blocks: dict[int, Block] = {}
        self.points: list[Point] = []
        self.hidden: dict[str, Variable] = {}
        self.scopes: list[Scope] = []
        self.handler: int | None = None
        self.handling: tuple[str, ...] = ()
        self.labels = Labels(source)
        self.current = self.new_block(source.node)

    # blocks

    def new_block(self, node: ast.AST, *, outer: CleanupScope | None = None) -> Block:
        """A block of the present region, or of the region around a handler."""
        handler, handling = (outer.handler, outer.handling) if outer else (self.handler, self.handling)
        block = Block(len(self.blocks), handler, handling, node)
        self.blocks[block.id] = block
        return block

    def emit(self, *statements: ast.stmt) -> None:
        self.current.statements.extend(statements)

    def finish(self, end: End, then: Block | None = None) -> None:
        """End the current block; go on in `then`, or in a fresh block that nothing reaches."""
        if self.current.end is None:
            self.current.end = end
        self.current = then if then is not None else self.new_block(self.current.node)

    def jump(self, target: Block, then: Block | None = None) -> None:
        self.finish(Jump(target.id), then)

    @contextmanager
    def region(self, handler: int | None, handling: tuple[str, ...] | None = None) -> Iterator[None]:
        """Blocks made inside send their exceptions to `handler`."""
        before = self.handler, self.handling
        self.handler = handler
        if handling is not None:
            self.handling = handling
        try:
            yield
        finally:
            self.handler, self.handling = before

    @contextmanager
    def scope(self, scope: Scope) -> Iterator[None]:
        self.scopes.append(scope)
        try:
            yield
        finally:
            self.scopes.pop()

    # variables

    def variable(self, what: str, type: Any, node: ast.AST, path: ast.expr | None = None) -> Variable:
        """A hidden variable; `what` describes it, for its name in stored states and for errors."""
        identifier = f"{PREFIX}{len(self.hidden)}"
        found = Variable(identifier, "", type, node, what, path)
        self.hidden[identifier] = found
        self.types.variables[identifier] = type
        self.labels.variable(found)
        return found

    def store(self, variable: Variable, value: ast.expr, node: ast.AST) -> None:
        self.emit(assign(variable.identifier, value, node))

    # waits

    def wait(self, node: ast.Await, operand: ast.expr) -> ast.expr:
        """Suspend on `operand`; gives the expression for the value it was resumed with."""
        kind = awaitables.kind_of(self.types, node.value)
        assert kind is not None, "refused before"
        if kind == "continue_as_new":
            self.emit(located(ast.Expr(operand), node))
            return located(ast.Constant(None), node)  # type: ignore[no-any-return]
        resume = self.new_block(node)
        point = Point("", kind, node, resume.id)
        for scope in self.scopes:
            if isinstance(scope, CleanupScope) and not scope.rebound:
                point.aliases[scope.name] = name_of(scope.error, node)
        self.labels.point(point, awaitables.describe(self.types, node.value), awaitables.explicit_name(node.value))
        resume.point = point
        self.points.append(point)
        self.finish(Suspend(operand, point), resume)
        return name_of(VALUE, node)

    # jumps

    def leave(self, kind: str, node: ast.stmt, value: ast.expr | None = None) -> list[ast.stmt]:
        """Statements that do `return value`, `break` or `continue` from here, through the scopes around."""
        return self._leave(kind, node, value, len(self.scopes))

    def _leave(self, kind: str, node: ast.AST, value: ast.expr | None, depth: int) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        enclosing = [s for s in self.scopes[:depth] if isinstance(s, FinallyScope)]
        if kind == "return":
            value = value or located(ast.Constant(None), node)
            if not enclosing:
                return [located(ast.Return(finished(value, node)), node)]
            if not (isinstance(value, ast.Name) and value.id == enclosing[-1].result.identifier):
                statements.append(assign(enclosing[-1].result.identifier, value, node))
        for index in range(depth - 1, -1, -1):
            scope = self.scopes[index]
            if isinstance(scope, LoopScope):
                if kind != "return":
                    return [*statements, Goto(scope.break_to if kind == "break" else scope.continue_to, node)]
            elif isinstance(scope, FinallyScope):
                scope.used.add(kind)
                statements.append(assign(scope.how.identifier, located(ast.Constant(kind), node), node))
                return [*statements, Goto(scope.entry, node)]
            else:  # the name is deleted after native `finally` blocks on the way out, so in a block of its own
                exit_block = self.new_block(node, outer=scope)
                result = name_of(enclosing[-1].result.identifier, node) if enclosing else None
                rest = self._leave(kind, node, result if kind == "return" else None, index)
                exit_block.statements = [*delete_name(scope.name, node), *rest]
                exit_block.end = Jump(exit_block.id)
                return [*statements, Goto(exit_block.id, node)]
        raise AssertionError(f"{kind} outside of a loop")

    def program(self) -> Program:
        """The finished program: what cannot be reached is gone, labels are given."""
        if self.current.end is None:
            self.current.end = Finish(located(ast.Constant(None), self.source.node))
        self.labels.assign()
        return Program(self.blocks, self.points, self.hidden)


# small syntax


def located(node: Any, at: ast.AST) -> Any:
    """The node with the source position of `at`, and so for what is new below it."""
    ast.copy_location(node, at)
    for child in ast.iter_child_nodes(node):
        if "lineno" not in child.__dict__:
            located(child, at)
    return node


def name_of(identifier: str, at: ast.AST) -> ast.Name:
    return located(ast.Name(identifier, ast.Load()), at)  # type: ignore[no-any-return]


def assign(identifier: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    target = located(ast.Name(identifier, ast.Store()), at)
    return located(ast.Assign([target], value), at)  # type: ignore[no-any-return]


def delete_name(name: str, at: ast.AST) -> list[ast.stmt]:
    """What Python does with an exception variable at the end of its handler."""
    none = located(ast.Constant(None), at)
    target = located(ast.Name(name, ast.Del()), at)
    return [assign(name, none, at), located(ast.Delete([target]), at)]


def finished(value: ast.expr, at: ast.AST) -> ast.expr:
    """What the compiled function returns for a result."""
    return located(ast.Tuple([ast.Constant(None), value], ast.Load()), at)  # type: ignore[no-any-return]


def caught(at: ast.AST) -> ast.Name:
    return name_of(CAUGHT, at)
