"""From a function to its syntax tree with the file's own line numbers, and errors that point into that file.

The only place of the compiler that reads source text.
"""

from __future__ import annotations

import ast
import linecache
import types
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn


class CompileError(Exception):
    """A workflow that cannot be compiled: where, why, and what to write instead.

    `filename`, `line` and `column` (both from 1), `problem` and `remedy` are also in the text.
    """

    def __init__(self, filename: str, line: int, column: int, width: int, problem: str, remedy: str) -> None:
        self.filename, self.line, self.column = filename, line, column
        self.problem, self.remedy = problem, remedy
        text = linecache.getline(filename, line).rstrip("\n")
        shown = text.lstrip()
        indent = len(text) - len(shown)
        marks = " " * (column - 1 - indent) + "^" * max(1, min(width, len(text) - column + 1))
        super().__init__(f"{problem}\n  {filename}:{line}:{column}\n    {shown}\n    {marks}\n  instead: {remedy}")


@dataclass(slots=True)
class Source:
    """A function to compile: its node, its file, and the names it sees."""

    filename: str
    module: ast.Module
    node: ast.AsyncFunctionDef
    function: types.FunctionType
    names: dict[str, Any]  # the module's globals, live
    locals: frozenset[str]
    name: str = field(default="")

    def refuse(self, node: ast.AST, problem: str, remedy: str) -> NoReturn:
        """Raise `CompileError` at `node`."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        same_line = getattr(node, "end_lineno", line) == line
        text = linecache.getline(self.filename, line)
        column = len(text.encode()[:column].decode(errors="replace"))
        width = (end - column) if end is not None and same_line else max(1, len(text.rstrip()) - column)
        raise CompileError(self.filename, line, column + 1, width, problem, remedy)


@lru_cache(maxsize=256)
def _parse(filename: str, text: str) -> ast.Module:
    return ast.parse(text, filename)


def source_of(function: Any) -> Source:
    """Find the source of an `async def`. Raises `CompileError` when it is not one, or has no source."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"@workflow and @subroutine decorate an async def, not {function!r}")
    code = function.__code__
    filename, name = code.co_filename, function.__name__
    line = code.co_firstlineno
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, function.__globals__))
    if not text:
        raise CompileError(
            filename,
            line,
            1,
            1,
            f"the source of {name} cannot be read",
            "define workflows in a file, as module-level functions",
        )
    module = _parse(filename, text)
    node = _find(module, name, line)
    if not isinstance(node, ast.AsyncFunctionDef):
        at, column = (line, 0) if node is None else (node.lineno, node.col_offset)
        raise CompileError(
            filename, at, column + 1, 3, f"{name} is not an async def", f"write async def {name}(ctx, ...)"
        )
    local_names = frozenset(code.co_varnames) | frozenset(code.co_cellvars)
    source = Source(filename, module, node, function, function.__globals__, local_names, name)
    if code.co_freevars:
        source.refuse(
            node,
            f"{name} is a closure: it uses {', '.join(code.co_freevars)} of the function around it",
            "make it a module-level function, and pass what it needs in init or as arguments",
        )
    return source


def _find(module: ast.Module, name: str, line: int) -> ast.AsyncFunctionDef | ast.FunctionDef | None:
    for node in ast.walk(module):
        if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef)) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == line:
                return node
    return None
