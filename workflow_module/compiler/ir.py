"""The intermediate form: basic blocks of ordinary statements, ended by a jump, a branch, a wait or a return.

Every block knows where an exception in it goes, and which exceptions are being handled while it runs.
Statements inside a block have no waits; they may contain `Goto`, which leaves the block.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import Any

from .names import SCOPES, noted

PREFIX = "_wf_"
VALUE = PREFIX + "value"
CAUGHT = PREFIX + "caught"


def gotos(node: ast.stmt) -> list[Goto]:
    """The jumps inside a statement."""
    return [part for part in _parts(node) if isinstance(part, Goto)]


@noted
def _parts(node: ast.AST) -> tuple[ast.AST, ...]:
    """The statement and the statements below it."""
    found: list[ast.AST] = [node]
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        if not isinstance(node, SCOPES):
            for part in getattr(node, name, []):
                found += _parts(part)
    return tuple(found)


class Goto(ast.Pass):
    """A statement that leaves its block for another one."""

    def __init__(self, target: int = -1, at: ast.AST | None = None) -> None:
        super().__init__()
        self.target = target
        if at is not None:
            ast.copy_location(self, at)


@dataclass(slots=True)
class Variable:
    """A hidden variable of the compiler: its identifier in the code and its name in stored states.

    With a `path`, it is never stored: it is that path over other variables, read again after a wait.
    """

    identifier: str
    stored_name: str
    type: Any
    node: ast.AST
    what: str = ""
    path: ast.expr | None = None


@dataclass(slots=True)
class Point:
    """A suspension point. `stored` pairs variables with whether they are surely bound here."""

    label: str
    kind: str
    node: ast.Await
    resume: int
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    stored: list[tuple[str, bool]] = field(default_factory=list)
    pinned: list[tuple[str, ast.expr]] = field(default_factory=list)

    @property
    def line(self) -> int:
        return self.node.lineno


@dataclass(slots=True)
class Jump:
    target: int


@dataclass(slots=True)
class Branch:
    test: ast.expr
    then: int
    otherwise: int


@dataclass(slots=True)
class Suspend:
    wait: ast.expr
    point: Point


@dataclass(slots=True)
class Finish:
    """Return from the workflow; `value` has no waits."""

    value: ast.expr


@dataclass(slots=True)
class Propagate:
    """Hand the exception in `CAUGHT` to the outer handler, or out of the workflow."""


End = Jump | Branch | Suspend | Finish | Propagate


@dataclass(slots=True)
class Block:
    """`handler` is the block that exceptions go to (None: out of the workflow), `handling` the variables
    of the exceptions being handled, outermost first.
    """

    id: int
    handler: int | None
    handling: tuple[str, ...]
    node: ast.AST
    statements: list[ast.stmt] = field(default_factory=list)
    end: End | None = None
    point: Point | None = None  # the wait after which this block goes on

    def successors(self) -> list[int]:
        """Blocks that may run next without an exception, the one after a wait excluded."""
        targets = [part.target for statement in self.statements for part in gotos(statement)]
        end = self.end
        if isinstance(end, Jump):
            targets.append(end.target)
        elif isinstance(end, Branch):
            targets += [end.then, end.otherwise]
        elif isinstance(end, Propagate) and self.handler is not None:
            targets.append(self.handler)
        return targets


@dataclass(slots=True)
class Program:
    """A whole function in the intermediate form. Block 0 is where it starts."""

    blocks: dict[int, Block]
    points: list[Point]
    hidden: dict[str, Variable]

    def dump(self) -> str:
        """A listing for people who debug the compiler."""
        lines: list[str] = []
        for block in self.blocks.values():
            notes = f" handler={block.handler}" if block.handler is not None else ""
            notes += f" handling={','.join(block.handling)}" if block.handling else ""
            notes += f" after {block.point.label!r}" if block.point else ""
            lines.append(f"block {block.id}:{notes}")
            for statement in block.statements:
                lines += ["    " + line for line in text_of(statement).splitlines()]
            lines.append("    " + _end_text(block.end))
        for point in self.points:
            stored = ", ".join(name if sure else f"{name}?" for name, sure in point.stored)
            pinned = ", ".join(f"{name}={ast.unparse(path)}" for name, path in point.pinned)
            lines.append(f"point {point.label!r} line {point.line}: stores [{stored}] reads again [{pinned}]")
        return "\n".join(lines)


class _Readable(ast.NodeTransformer):
    def visit_Goto(self, node: Goto) -> ast.stmt:
        return ast.Expr(ast.Name(f"goto_{node.target}", ast.Load()))


def text_of(node: ast.AST) -> str:
    """Source text of a node that may contain `Goto`."""
    return ast.unparse(ast.fix_missing_locations(_Readable().visit(copy.deepcopy(node))))


def _end_text(end: End | None) -> str:
    if isinstance(end, Jump):
        return f"jump {end.target}"
    if isinstance(end, Branch):
        return f"if {ast.unparse(end.test)} jump {end.then} else {end.otherwise}"
    if isinstance(end, Suspend):
        return f"wait {ast.unparse(end.wait)} as {end.point.label!r} then {end.point.resume}"
    if isinstance(end, Finish):
        return f"return {ast.unparse(end.value)}"
    return "propagate" if isinstance(end, Propagate) else "unfinished"
