"""Tidies blocks after lowering: drops what cannot be reached and joins what always runs in one go."""

from __future__ import annotations

import ast
from collections import Counter

from .ir import Block, Branch, Goto, Jump, Program, Suspend, gotos


def simplify(program: Program) -> Program:
    """The same program with fewer blocks."""
    _shorten_jumps(program)
    _drop_unreachable(program)
    _join(program)
    return program


def _shorten_jumps(program: Program) -> None:
    def final(target: int) -> int:
        seen = {target}
        while True:
            block = program.blocks[target]
            if block.statements or not isinstance(block.end, Jump) or block.point or block.end.target in seen:
                return target
            target = block.end.target
            seen.add(target)

    for block in program.blocks.values():
        end = block.end
        if isinstance(end, Jump):
            end.target = final(end.target)
        elif isinstance(end, Branch):
            end.then, end.otherwise = final(end.then), final(end.otherwise)
        for statement in block.statements:
            for part in gotos(statement):
                part.target = final(part.target)


def _reached_from(block: Block) -> list[int]:
    found = block.successors()
    if isinstance(block.end, Suspend):
        found.append(block.end.point.resume)
    if block.handler is not None:
        found.append(block.handler)
    return found


def _drop_unreachable(program: Program) -> None:
    for block in program.blocks.values():
        for index, statement in enumerate(block.statements):
            if isinstance(statement, (Goto, ast.Return, ast.Raise)):
                del block.statements[index + 1 :]
                if isinstance(statement, Goto):
                    block.statements.pop()
                    block.end = Jump(statement.target)
                else:
                    block.end = Jump(block.id)  # never taken
                break
    start = next(iter(program.blocks))
    waiting, reached = [start], {start}
    while waiting:
        for target in _reached_from(program.blocks[waiting.pop()]):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    program.blocks = {key: block for key, block in program.blocks.items() if key in reached}
    alive = {block.point.resume for block in program.blocks.values() if block.point}
    program.points = [point for point in program.points if point.resume in alive]


def _join(program: Program) -> None:
    references = Counter(target for block in program.blocks.values() for target in _reached_from(block))
    for block in list(program.blocks.values()):
        if block.id not in program.blocks:
            continue
        while isinstance(block.end, Jump) and block.end.target != block.id:
            following = program.blocks[block.end.target]
            same_region = (following.handler, following.handling) == (block.handler, block.handling)
            if references[following.id] != 1 or not same_region or following.point:
                break
            block.statements += following.statements
            block.end = following.end
            del program.blocks[following.id]
