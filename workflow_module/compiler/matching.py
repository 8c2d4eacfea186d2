"""Lowers `match`: Python itself matches the patterns, the bodies become blocks.

A guard that waits splits the statement: the cases after it are matched when it turned out false.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .builder import Builder, located
from .expressions import keep, value
from .ir import Branch, Goto
from .names import any_wait, has_wait

Body = Callable[[Builder, list[ast.stmt]], None]
Leaving = Callable[[Builder, list[ast.stmt]], list[ast.stmt]]


def lower_match(b: Builder, node: ast.Match, body: Body, leaving: Leaving) -> None:
    """A `match` with waits in its subject, guards or bodies."""
    subject = value(b, node.subject)
    text = f"match {ast.unparse(node.subject)}"
    if any(case.guard is not None and has_wait(case.guard) for case in node.cases):
        bound = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        subject = keep(b, subject, node.subject, bound | _captures(node))
    after = b.new_block(node)
    cases = list(node.cases)
    while cases:
        cases = _match_until_waiting_guard(b, node, subject, cases, after.id, body, leaving, text)
    b.jump(after, after)


def _captures(node: ast.Match) -> set[str]:
    return {
        name
        for part in ast.walk(node)
        for name in (getattr(part, "name", None), getattr(part, "rest", None))
        if isinstance(name, str)
    }


def _match_until_waiting_guard(
    b: Builder,
    node: ast.Match,
    subject: ast.expr,
    cases: list[ast.match_case],
    after: int,
    body: Body,
    leaving: Leaving,
    text: str,
) -> list[ast.match_case]:
    """Lower the cases up to the first whose guard waits; gives the cases that are left."""
    made: list[ast.match_case] = []
    bodies: list[tuple[ast.match_case, int]] = []
    rest: list[ast.match_case] = []
    guarded: tuple[ast.match_case, int] | None = None
    for index, case in enumerate(cases):
        if case.guard is not None and has_wait(case.guard):
            block = b.new_block(case.guard)
            guarded = (case, block.id)
            made.append(ast.match_case(case.pattern, None, [Goto(block.id, case.guard)]))
            rest = cases[index + 1 :]
            break
        if any_wait(case.body):
            block = b.new_block(case.body[0])
            bodies.append((case, block.id))
            made.append(ast.match_case(case.pattern, case.guard, [Goto(block.id, case.body[0])]))
        else:
            statements = leaving(b, case.body)
            if not isinstance(statements[-1], (Goto, ast.Return, ast.Raise)):
                statements.append(Goto(after, case.body[-1]))
            made.append(ast.match_case(case.pattern, case.guard, statements))
    b.emit(located(ast.Match(subject, made), node))
    following = b.new_block(node)
    b.jump(following, following)
    for case, entry in bodies:
        _case_body(b, case, entry, after, body, text)
    if guarded is not None:
        case, entry = guarded
        inside = b.new_block(case.body[0])
        b.current = b.blocks[entry]
        assert case.guard is not None
        with b.labels.inside(f"{text}: case {ast.unparse(case.pattern)} if"):
            b.finish(Branch(value(b, case.guard), inside.id, following.id), inside)
        _case_body(b, case, inside.id, after, body, text)
    b.current = following
    return rest


def _case_body(b: Builder, case: ast.match_case, entry: int, after: int, body: Body, text: str) -> None:
    b.current = b.blocks[entry]
    with b.labels.inside(f"{text}: case {ast.unparse(case.pattern)}"):
        body(b, case.body)
    b.jump(b.blocks[after])
