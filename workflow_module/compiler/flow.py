"""Which variables are bound and which are still needed at each wait.

Two analyses over the blocks, looking into the ordinary statements inside them: live variables backwards, bound
variables forwards. Together they say what each suspension point stores.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from .ir import CAUGHT, VALUE, Block, Branch, Finish, Goto, Jump, Program, Propagate, Suspend
from .names import bound_names, noted, reads

Names = frozenset[str]
EMPTY: Names = frozenset()


@dataclass(frozen=True, slots=True)
class _Around:
    """What is live where control may go from inside a statement."""

    error: Names
    goto: dict[int, Names]
    finals: tuple[list[ast.stmt], ...] = ()
    loop_break: Names = EMPTY
    loop_continue: Names = EMPTY


def _live(statements: list[ast.stmt], after: Names, around: _Around) -> Names:
    for statement in reversed(statements):
        after = _live_before(statement, after, around) | around.error
    return after


def _through(names: Names, around: _Around) -> Names:
    """What is live before the native `finally` blocks that a jump runs through."""
    for index, final in enumerate(reversed(around.finals)):
        outer = replace(around, finals=around.finals[: len(around.finals) - 1 - index])
        names = _live(final, names, outer)
    return names


def _live_before(node: ast.stmt, after: Names, around: _Around) -> Names:
    if isinstance(node, Goto):
        return _through(around.goto[node.target], around)
    if isinstance(node, ast.Return):
        return _through(EMPTY, around) | (reads(node.value) if node.value else EMPTY)
    if isinstance(node, ast.Raise):
        return frozenset(reads(node)) | around.error
    if isinstance(node, ast.Break):
        return around.loop_break
    if isinstance(node, ast.Continue):
        return around.loop_continue
    if isinstance(node, ast.If):
        return reads(node.test) | _live(node.body, after, around) | _live(node.orelse, after, around)
    if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
        return _live_loop(node, after, around)
    if isinstance(node, ast.Try):
        return _live_try(node, after, around)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        inside = replace(around, error=around.error | after)
        heads = frozenset().union(*(reads(item) for item in node.items))
        return heads | (_live(node.body, after, inside) - _with_targets(node)) | after
    if isinstance(node, ast.Match):
        found = frozenset(reads(node.subject)) | after
        for case in node.cases:
            guard = reads(case.guard) if case.guard else set()
            body = _live(case.body, after, around) | guard
            found |= (body - bound_names(case.pattern)) | reads(case.pattern)
        return found
    if isinstance(node, ast.Delete):  # raises for a name that is not bound
        return after | reads(node) | bound_names(node)
    return (after - _surely_bound(node)) | reads(node)


def _with_targets(node: ast.With | ast.AsyncWith) -> set[str]:
    return set().union(*(_targets(item.optional_vars) for item in node.items if item.optional_vars))


def _targets(node: ast.expr) -> set[str]:
    """Names that an assignment to this target surely binds (a walrus in a subscript may not run)."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Starred):
        return _targets(node.value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return set().union(*(_targets(part) for part in node.elts))
    return set()


def _live_loop(node: ast.While | ast.For | ast.AsyncFor, after: Names, around: _Around) -> Names:
    done = _live(node.orelse, after, around)
    test = frozenset(reads(node.test)) if isinstance(node, ast.While) else EMPTY
    head = done | test
    while True:
        # a jump inside the loop's own body runs through the `finally` blocks inside the loop only
        inside = replace(around, loop_break=after, loop_continue=head)
        body = _live(node.body, head, inside)
        if not isinstance(node, ast.While):
            body = (body - _targets(node.target)) | reads(node.target)
        following = head | body
        if following == head:
            break
        head = following
    return head if isinstance(node, ast.While) else head | reads(node.iter)


def _live_try(node: ast.Try, after: Names, around: _Around) -> Names:
    if not node.finalbody:
        final, failed, inner = after, around.error, around
    else:
        final = _live(node.finalbody, after, around)
        failed = _live(node.finalbody, around.error, around)
        inner = replace(
            around,
            error=failed,
            finals=(*around.finals, node.finalbody),
            loop_break=_live(node.finalbody, around.loop_break, around),
            loop_continue=_live(node.finalbody, around.loop_continue, around),
        )
    handled = failed
    for handler in node.handlers:
        body = _live(handler.body, final, inner) | failed
        handled |= (body - {handler.name}) | (reads(handler.type) if handler.type else set())
    orelse = _live(node.orelse, final, inner)
    return _live(node.body, orelse, replace(inner, error=handled)) | handled


def _surely_bound(node: ast.AST) -> set[str]:
    """Names that a simple statement binds whenever it completes."""
    found: set[str] = set()
    if isinstance(node, ast.Assign):
        for target in node.targets:
            found |= _targets(target)
        if isinstance(node.value, ast.NamedExpr):
            found |= _targets(node.value.target)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        if node.value is not None:
            found |= _targets(node.target)
    elif isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        found |= bound_names(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.NamedExpr):
        found |= _targets(node.value.target)
    return found


def live_at_start(program: Program, always: set[str], needed: dict[str, set[str]]) -> dict[int, Names]:
    """What is live where each block starts.

    `always` is live at every wait; `needed` says which names a hidden variable's path is made of.
    """
    live: dict[int, Names] = dict.fromkeys(program.blocks, EMPTY)
    changed = True
    while changed:
        changed = False
        for block in reversed(program.blocks.values()):
            found = _live_in_block(block, live, always, needed)
            if found != live[block.id]:
                live[block.id] = found
                changed = True
    return live


def _live_in_block(block: Block, live: dict[int, Names], always: set[str], needed: dict[str, set[str]]) -> Names:
    error = live[block.handler] if block.handler is not None else EMPTY
    around = _Around(error - {CAUGHT}, live)
    end = block.end
    after: Names = EMPTY
    if isinstance(end, Jump):
        after = live[end.target]
    elif isinstance(end, Branch):
        after = live[end.then] | live[end.otherwise] | reads(end.test)
    elif isinstance(end, Finish):
        after = frozenset(reads(end.value))
    elif isinstance(end, Propagate):
        after = error | {CAUGHT}
    elif isinstance(end, Suspend):
        kept = live[end.point.resume] | always
        for name in kept & needed.keys():
            kept |= needed[name]
        after = (kept | reads(end.wait)) - {VALUE}
    return _live(block.statements, after, around) | around.error | set(block.handling)


# bound variables


class _Bound:
    """Names surely bound after statements; notes what is bound at each `Goto` inside them."""

    def __init__(self, deleted: set[str]) -> None:
        self.deleted = deleted  # by any statement of the block: native `finally` blocks may run before a jump
        self.at_goto: list[tuple[int, Names]] = []

    def after(self, statements: list[ast.stmt], before: Names | None) -> Names | None:
        """None when the end of the statements is never reached."""
        for statement in statements:
            if before is None:
                return None
            before = self._after(statement, before)
        return before

    def _after(self, node: ast.stmt, before: Names) -> Names | None:
        if isinstance(node, Goto):
            self.at_goto.append((node.target, before - self.deleted))
            return None
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(node, ast.If):
            return _meet([self.after(node.body, before), self.after(node.orelse, before)])
        if isinstance(node, ast.Match):
            parts = [self.after(case.body, before | bound_names(case.pattern)) for case in node.cases]
            return _meet(parts if _is_irrefutable(node.cases[-1]) else [*parts, before - _deleted(node)])
        if isinstance(node, ast.Try):
            return self._after_try(node, before)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)):
            for part in (node.body, getattr(node, "orelse", [])):
                self.after(part, before - _deleted(node))
            return before - _deleted(node)
        if isinstance(node, ast.Delete):
            return before - bound_names(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name):
            return before | {node.value.id}
        return before | _surely_bound(node)

    def _after_try(self, node: ast.Try, before: Names) -> Names | None:
        at_least = before - _deleted(node)
        body = self.after([*node.body, *node.orelse], before)
        for handler in node.handlers:
            self.after(handler.body, at_least)
        if node.handlers:
            body = at_least
        self.after(node.finalbody, at_least)
        return None if body is None else _Bound(set()).after(node.finalbody, body)


def _meet(parts: list[Names | None]) -> Names | None:
    reached = [part for part in parts if part is not None]
    return frozenset.intersection(*reached) if reached else None


def _is_irrefutable(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


@noted
def _deleted(node: ast.AST) -> frozenset[str]:
    parts = list(ast.walk(node))
    found = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)}
    return frozenset(found | {part.name for part in parts if isinstance(part, ast.ExceptHandler) and part.name})


@dataclass(slots=True)
class Binding:
    """Names surely and perhaps bound where a block starts, and where it waits."""

    surely: dict[int, Names]
    perhaps: dict[int, Names]
    surely_at_wait: dict[int, Names]
    perhaps_at_wait: dict[int, Names]


def bound_variables(program: Program, parameters: Names) -> Binding:
    """Forward analysis from the parameters."""
    everything = parameters.union(*(bound_names(s) for b in program.blocks.values() for s in b.statements))
    found = Binding(dict.fromkeys(program.blocks, everything), dict.fromkeys(program.blocks, EMPTY), {}, {})
    start = next(iter(program.blocks))
    found.surely[start] = found.perhaps[start] = parameters
    while sum([_flow(block, found) for block in program.blocks.values()]):
        pass
    return found


def _flow(block: Block, found: Binding) -> bool:
    """Pass on what is bound at the end of a block; tells whether anything changed."""
    before, maybe = found.surely[block.id], found.perhaps[block.id]
    deleted: set[str] = set()
    for statement in block.statements:
        deleted |= _deleted(statement)
        maybe |= bound_names(statement)
    inside = _Bound(deleted)
    after = inside.after(block.statements, before)
    targets = list(inside.at_goto)
    if after is not None:
        jumps = set(block.successors()) - {target for target, _ in inside.at_goto}
        targets += [(target, after) for target in jumps]
        if isinstance(block.end, (Jump, Branch)):
            ends = [block.end.target] if isinstance(block.end, Jump) else [block.end.then, block.end.otherwise]
            targets += [(target, after) for target in ends]
        if isinstance(block.end, Suspend):
            found.surely_at_wait[block.id], found.perhaps_at_wait[block.id] = after, maybe
            targets.append((block.end.point.resume, after))
    if block.handler is not None:
        targets.append((block.handler, before - deleted))
    changed = False
    for target, sure in targets:
        merged = found.surely[target] & sure, found.perhaps[target] | maybe
        if merged != (found.surely[target], found.perhaps[target]):
            found.surely[target], found.perhaps[target] = merged
            changed = True
    return changed
