"""What tools for operators learn about the installed workflows (`Module.on_describe`): the console makes forms of it.

For each workflow its signals with their fields, its init, timers and children, and the source with the places where it
waits. Nothing of it needs the engine; no workflow is run.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Mapping
from typing import Any

from .codec.base import type_name
from .compiler import Code
from .definition import WorkflowDefinition
from .json_shapes import Shape, shape_of


def describe_workflows(
    definitions: Mapping[str, WorkflowDefinition[Any, Any]], *, testing: bool, journal: bool
) -> Shape:
    """All installed workflows by name."""
    return {
        "workflows": {name: _workflow(definition) for name, definition in sorted(definitions.items())},
        "workflows_testing": testing,
        "workflows_journal": journal,
    }


def _workflow(definition: WorkflowDefinition[Any, Any]) -> Shape:
    return {
        "version": definition.version,
        "doc": (definition.__doc__ or "").strip(),
        "module": definition.__module__,
        "init": shape_of(definition.init_type),
        "result": shape_of(definition.result_type),
        "signals": {name: shape_of(cls) for name, cls in sorted(definition.signals.items())},
        "timers": sorted(definition.timers),
        "procedures": sorted(definition.procedures),
        "children": sorted(definition.children),
        "source": _source(definition.code),
        "subroutines": {name: _source(found.code) for name, found in sorted(definition.subroutines.items())},
    }


def _source(code: Code) -> Shape:
    """The text of a function with its decorators, and its suspension points and stored variables."""
    node = code.source.node
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    lines = [linecache.getline(code.source.filename, number).rstrip("\n") for number in range(first, last + 1)]
    points = [{"label": p.label, "line": p.line, "kind": p.kind} for p in code.points.values()]
    stored = [variable for point in code.points.values() for variable, _ in point.stored]
    return {
        "file": os.path.basename(code.source.filename),
        "first_line": first,
        "text": "\n".join(lines) if any(lines) else ast.unparse(node),
        "points": points,
        "variables": {one.name: type_name(one.type) for one in stored if not one.name.startswith("$")},
    }
