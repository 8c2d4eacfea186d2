"""Writes the program as one Python function, with the author's file and line numbers.

`step(ctx, _wf_frame, _wf_next, _wf_value, _wf_error)` runs from block `_wf_next` to the next wait or the end.
It returns `(state, wait)` at a wait and `(None, result)` at the end; exceptions of the workflow propagate.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from . import runtime
from .builder import assign, located, name_of
from .ir import CAUGHT, PREFIX, VALUE, Block, Branch, Finish, Goto, Jump, Point, Program, Propagate, Suspend, gotos
from .names import bound_names, forget, reads
from .source import Source
from .storage import LABEL

AT, NEXT, ERROR, FRAME = PREFIX + "at", PREFIX + "next", PREFIX + "error", PREFIX + "frame"
NO_INIT = ""
STEP = PREFIX + "step"
LEAVE, AGAIN, TRACEBACK = PREFIX + "leave", PREFIX + "again", PREFIX + "traceback"


class Emitter:
    """Writes one function. `init` is the name of a workflow's input; a workflow without one has `NO_INIT`."""

    def __init__(self, source: Source, program: Program, surely: dict[int, frozenset[str]], init: str | None) -> None:
        self.source, self.program, self.surely = source, program, surely
        self.is_workflow = init is not None
        self.init = None if init == NO_INIT else init
        self.numbers = {block: index for index, block in enumerate(program.blocks)}
        self.has_handlers = any(block.handler is not None for block in program.blocks.values())

    def function(self) -> ast.FunctionDef:
        """The step function."""
        node = self.source.node
        first = self.source.node.args.args[0].arg
        names = [first, FRAME, NEXT, VALUE, ERROR]
        body: list[ast.stmt] = []
        if self.init is not None:
            body.append(assign(self.init, self._field(FRAME, PREFIX + "init", node), node))
        if self.has_handlers:
            body.append(assign(AGAIN, located(ast.Constant(None), node), node))
        blocks = list(self.program.blocks.values())
        inner: list[ast.stmt] = [assign(AT, name_of(NEXT, node), node), *self._choose(blocks)]
        if self.has_handlers:
            inner = [self._guarded(inner)]
        body.append(located(ast.While(ast.Constant(True), inner, []), node))
        body += self._still_local()
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        made = _definition(STEP, arguments, body)  # the author's name stays global: recursion
        return located(made, node)  # type: ignore[no-any-return]

    def _still_local(self) -> list[ast.stmt]:
        """Assignments that never run, for variables whose own have gone with unreachable code."""
        node = self.source.node
        bound, read = set(self._arguments()), set[str]()
        for block in self.program.blocks.values():
            for statement in block.statements:
                bound |= bound_names(statement)
                read |= reads(statement)
            end = block.end
            if isinstance(end, (Branch, Finish, Suspend)):
                read |= reads(
                    end.test if isinstance(end, Branch) else end.value if isinstance(end, Finish) else end.wait
                )
        lost = sorted((read & self.source.locals) - bound)
        none = located(ast.Constant(None), node)
        never = [assign(name, none, node) for name in lost]
        return [located(ast.If(ast.Constant(False), never, []), node)] if never else []

    def _arguments(self) -> list[str]:
        first = self.source.node.args.args[0].arg
        return [first, FRAME, NEXT, VALUE, ERROR, *([self.init] if self.init else [])]

    def _guarded(self, inner: list[ast.stmt]) -> ast.stmt:
        """Exceptions go to the handler of the block that they come from."""
        handlers = tuple(
            -1 if block.handler is None else self.numbers[block.handler] for block in self.program.blocks.values()
        )
        text = (
            f"if {AGAIN} is not None:\n    _wf_raised.__traceback__ = {AGAIN}\n"
            f"{NEXT} = {handlers!r}[{AT}]\nif {NEXT} < 0:\n    raise\n{CAUGHT} = _wf_raised\n"
        )
        handling = [located(statement, self.source.node) for statement in ast.parse(text).body]
        for statement in handling:
            for part in ast.walk(statement):
                ast.copy_location(part, self.source.node)
        clause = ast.ExceptHandler(name_of("_wf_BaseException", self.source.node), "_wf_raised", handling)
        return located(ast.Try(inner, [clause], [], []), self.source.node)  # type: ignore[no-any-return]

    def _choose(self, blocks: list[Block]) -> list[ast.stmt]:
        """A decision tree over the block numbers."""
        if len(blocks) == 1:
            return self._block(blocks[0])
        middle = len(blocks) // 2
        at = self.source.node
        number = ast.Constant(self.numbers[blocks[middle].id])
        test = ast.Compare(name_of(AT, at), [ast.Lt()], [number])
        return [located(ast.If(test, self._choose(blocks[:middle]), self._choose(blocks[middle:])), at)]

    # blocks

    def _block(self, block: Block) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        inside: list[ast.stmt] = []
        if block.point is not None:
            before += self._loads(block.point)
            text = f"if {ERROR} is not None:\n    raise {ERROR}"
            raising = ast.parse(text).body[0]
            for part in ast.walk(raising):
                ast.copy_location(part, block.point.node)
            inside.append(raising)
        elif block.id == next(iter(self.program.blocks)):
            before += self._parameters()
        inside += self._place(self._needed(block), in_loop=False)
        inside += self._end(block)
        for error in reversed(block.handling):
            inside = self._handling(error, inside, block.node)
        return [*before, *inside]

    def _needed(self, block: Block) -> list[ast.stmt]:
        """Without the reads whose only point was to raise, where the variable is bound."""
        bound = set(self.surely[block.id])
        result = []
        for statement in block.statements:
            read = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(read, ast.Name) and (read.id in bound or read.id not in self.source.locals):
                continue
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                bound.add(statement.targets[0].id)
            elif not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign)):
                bound = set()
            result.append(statement)
        return result

    def _parameters(self) -> list[ast.stmt]:
        arguments = self.source.node.args
        if self.is_workflow:
            return []
        rest = [*arguments.args[1:], *arguments.kwonlyargs]
        rest += [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
        return [assign(arg.arg, self._field(FRAME, arg.arg, arg), arg) for arg in rest]

    def _handling(self, error: str, inside: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
        """Run statements as the body of an `except` for this exception, as Python would have it."""
        remember = assign(TRACEBACK, located(ast.Attribute(name_of(error, at), "__traceback__", ast.Load()), at), at)
        place = located(ast.Attribute(name_of(error, at), "__traceback__", ast.Store()), at)
        restore = located(ast.Assign([place], name_of(TRACEBACK, at)), at)
        clause = ast.ExceptHandler(name_of("_wf_BaseException", at), None, [restore, *inside])
        return [remember, located(ast.Try([ast.Raise(name_of(error, at), None)], [clause], [], []), at)]

    def _place(self, statements: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        """Write every `Goto` as an assignment and a jump to the top."""
        result: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, Goto):
                result.append(assign(NEXT, located(ast.Constant(self.numbers[statement.target]), statement), statement))
                if in_loop:
                    result.append(assign(LEAVE, located(ast.Constant(True), statement), statement))
                result.append(located(ast.Break() if in_loop else ast.Continue(), statement))
            elif not gotos(statement):
                result.append(statement)
            else:
                result += self._place_inside(statement, in_loop)
        return result

    def _place_inside(self, statement: ast.stmt, in_loop: bool) -> list[ast.stmt]:
        made: Any = copy.copy(statement)
        forget(made)
        loop = isinstance(statement, (ast.For, ast.While)) and any(gotos(inner) for inner in statement.body)
        for name in ("body", "orelse", "finalbody"):
            if hasattr(made, name):
                setattr(made, name, self._place(getattr(made, name), in_loop or (loop and name == "body")))
        for name in ("handlers", "cases"):
            if hasattr(made, name):
                parts = [copy.copy(part) for part in getattr(made, name)]
                for part in parts:
                    forget(part)
                    part.body = self._place(part.body, in_loop)
                setattr(made, name, parts)
        if not loop:
            return [made]
        out = located(ast.Break() if in_loop else ast.Continue(), statement)
        return [
            assign(LEAVE, located(ast.Constant(False), statement), statement),
            made,
            located(ast.If(name_of(LEAVE, statement), [out], []), statement),
        ]

    # ends

    def _next(self, target: int, at: ast.AST) -> ast.stmt:
        return assign(NEXT, located(ast.Constant(self.numbers[target]), at), at)

    def _end(self, block: Block) -> list[ast.stmt]:
        end = block.end
        at: ast.AST = block.statements[-1] if block.statements else block.node
        if isinstance(end, Jump):
            leaves = block.statements and isinstance(block.statements[-1], (ast.Return, ast.Raise))
            return [] if leaves else [self._next(end.target, at)]
        if isinstance(end, Branch):
            at = end.test
            return [located(ast.If(end.test, [self._next(end.then, at)], [self._next(end.otherwise, at)]), at)]
        if isinstance(end, Finish):
            result = ast.Tuple([ast.Constant(None), end.value], ast.Load())
            return [located(ast.Return(result), end.value)]
        if isinstance(end, Propagate):
            return self._propagate(block)
        assert isinstance(end, Suspend)
        return self._suspend(end.wait, end.point)

    def _propagate(self, block: Block) -> list[ast.stmt]:
        if block.handler is not None:
            return [self._next(block.handler, block.node)]
        at = block.node
        keep = located(ast.Attribute(name_of(CAUGHT, at), "__traceback__", ast.Load()), at)
        return [assign(AGAIN, keep, at), located(ast.Raise(name_of(CAUGHT, at), None), at)]

    def _field(self, owner: str, name: str, at: ast.AST) -> ast.expr:
        return located(ast.Attribute(name_of(owner, at), name, ast.Load()), at)  # type: ignore[no-any-return]

    def _loads(self, point: Point) -> list[ast.stmt]:
        at = point.node
        result: list[ast.stmt] = []
        for name, surely in point.stored:
            load = assign(name, self._field(FRAME, name, at), at)
            if not surely:
                test = ast.Compare(self._field(FRAME, name, at), [ast.IsNot()], [name_of("_wf_UNSET", at)])
                load = located(ast.If(test, [load], []), at)
            result.append(load)
        return result + [assign(name, _moved(path, at), at) for name, path in point.pinned]

    def _suspend(self, wait: ast.expr, point: Point) -> list[ast.stmt]:
        at = point.node
        result = [assign("_wf_wait", wait, at)]
        for name, path in point.pinned:
            if name in self.program.hidden:
                test = ast.Compare(name_of(name, at), [ast.IsNot()], [_moved(path, at)])
                text = located(ast.Constant(f"{ast.unparse(path)} in line {at.lineno}"), at)
                call = ast.Call(name_of("_wf_rebound", at), [text], [])
                result.append(located(ast.If(test, [ast.Expr(call)], []), at))
        keywords = []
        for name, surely in point.stored:
            if surely:
                keywords.append(ast.keyword(name, name_of(name, at)))
                continue
            kept = f"{PREFIX}kept_{name}"
            clause = ast.ExceptHandler(name_of("_wf_NameError", at), None, [assign(kept, name_of("_wf_UNSET", at), at)])
            result.append(located(ast.Try([assign(kept, name_of(name, at), at)], [clause], [], []), at))
            keywords.append(ast.keyword(name, name_of(kept, at)))
        keywords.insert(0, ast.keyword(LABEL, ast.Constant(point.label)))
        if self.is_workflow:
            init: ast.expr = ast.Constant(None) if self.init is None else name_of(self.init, at)
            keywords.insert(1, ast.keyword(PREFIX + "init", init))
        state = ast.Call(name_of("_wf_State", at), [], keywords)
        result.append(located(ast.Return(ast.Tuple([state, name_of("_wf_wait", at)], ast.Load())), at))
        return result


def _definition(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    options: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    return ast.FunctionDef(name, arguments, body, [], None, **options)


def _moved(path: ast.expr, at: ast.AST) -> ast.expr:
    """A copy of a path, at another place of the source."""
    found = copy.deepcopy(path)
    for part in ast.walk(found):
        if isinstance(part, ast.expr):
            ast.copy_location(part, at)
    return found


def compile_step(source: Source, function: ast.FunctionDef, state: Any) -> Callable[..., Any]:
    """The step function as code of the author's file, over the author's module."""
    helpers = {**runtime.HELPERS, "_wf_State": state}
    arguments = ast.arguments([], [ast.arg(name) for name in helpers], None, [], [], None, [])
    maker = _definition("_wf_make", arguments, [function, ast.Return(ast.Name(function.name, ast.Load()))])
    ast.copy_location(maker, source.node)
    module = ast.fix_missing_locations(ast.Module([maker], []))
    found: dict[str, Any] = {}
    exec(compile(module, source.filename, "exec", dont_inherit=True), source.names, found)
    step: Any = found["_wf_make"](**helpers)
    step.__name__, step.__qualname__ = source.name, source.function.__qualname__
    step.__code__ = step.__code__.replace(co_name=source.name, co_qualname=source.function.__qualname__)
    return step  # type: ignore[no-any-return]
