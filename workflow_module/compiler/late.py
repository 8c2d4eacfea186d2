"""Definitions further down in the author's module, which do not exist yet when a workflow is decorated.

Recursion and mutual recursion need them. Only their kind and their result's annotation are read.
"""

from __future__ import annotations

import ast
from typing import Any

from .awaitables import Awaitable
from .inference import Types
from .source import Source
from .typeops import UNKNOWN


class Late:
    """A function, workflow or procedure defined further down."""

    def __init__(self, name: str, result_type: Any) -> None:
        self.name = name
        self.result_type = result_type


class LateSubroutine(Late, Awaitable):
    """A `@subroutine` defined further down, or the one being compiled."""


def late_definitions(source: Source, types: Types) -> Any:
    """A function from a name to a `Late`, or None when the module does not define it."""
    later = {
        node.name: node for node in source.module.body if isinstance(node, (ast.AsyncFunctionDef, ast.FunctionDef))
    }

    def look_up(name: str) -> Late | None:
        node = later.get(name)
        if node is None or name in source.names:
            return None
        result = types.annotation(node.returns) if node.returns is not None else UNKNOWN
        decorators = {ast.unparse(part).partition("(")[0].rpartition(".")[2] for part in node.decorator_list}
        return LateSubroutine(name, result) if "subroutine" in decorators else Late(name, result)

    return look_up
