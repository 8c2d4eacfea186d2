"""Decides what each suspension point stores, checks that it can be, and makes the state Struct.

After this pass every variable that lives across a wait has a codec, or the author has been told its name, the
line of the wait, and what to write instead.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import msgspec

from workflow_module.codec import Codec, Unstorable, codec_for
from workflow_module.codec.base import type_name

from . import flow
from .inference import Types
from .ir import Point, Program, Suspend
from .names import bound_names, own_nodes
from .source import Source
from .typeops import UNKNOWN

LABEL = "_wf_at"


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored variable: its identifier in the code, its name in the state and in errors, its type."""

    identifier: str
    name: str
    type: Any
    codec: Codec


@dataclass(slots=True)
class Layout:
    """`variables` by identifier, and the Struct with a field for each."""

    variables: dict[str, Stored]
    state: Any


def plan(source: Source, types: Types, program: Program, declared: set[str], fixed: set[str]) -> flow.Binding:
    """Fill in `stored` and `pinned` of every point. `fixed` are names that need no storing (ctx, init)."""
    variables = (source.locals | program.hidden.keys()) - fixed
    needed = {name: _names_in(v.path) for name, v in program.hidden.items() if v.path is not None}
    shown = {name for name in declared if _can_be_stored(types, name)}
    live = flow.live_at_start(program, shown, needed)
    binding = flow.bound_variables(program, frozenset(_parameters(source)))
    for block in program.blocks.values():
        if isinstance(block.end, Suspend):
            point = block.end.point
            surely = binding.surely_at_wait.get(block.id, frozenset())
            perhaps = binding.perhaps_at_wait.get(block.id, frozenset()) | set(_parameters(source))
            kept = (live[point.resume] | shown) & variables & perhaps
            for name in kept & needed.keys():
                kept |= needed[name] & variables
            _plan_point(program, point, kept, surely)
    return binding


def _plan_point(program: Program, point: Point, kept: flow.Names, surely: flow.Names) -> None:
    for name in sorted(kept, key=lambda n: (n in program.hidden, len(n) if n in program.hidden else 0, n)):
        hidden = program.hidden.get(name)
        if hidden is not None and hidden.path is not None:
            point.pinned.append((name, hidden.path))
        elif name in point.aliases and name in surely:
            point.pinned.append((name, point.aliases[name]))
        else:
            point.stored.append((name, name in surely))


def _names_in(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _parameters(source: Source) -> list[str]:
    arguments = source.node.args
    parts = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [arg.arg for arg in [*parts, *(a for a in (arguments.vararg, arguments.kwarg) if a)]]


def _can_be_stored(types: Types, name: str) -> bool:
    found = types.variables.get(name, UNKNOWN)
    try:
        return found is not UNKNOWN and codec_for(found) is not None
    except Unstorable:
        return False


def layout(source: Source, types: Types, program: Program, name: str, init: Codec | None) -> Layout:
    """The state Struct, of a workflow with an init or of a subroutine. Raises `CompileError`."""
    variables: dict[str, Stored] = {}
    renames = {LABEL: "$at"}
    fields: list[Any] = [(LABEL, str)]
    if init is not None:
        fields += [("_wf_init", init.stored), ("_wf_version", int, 0), ("_wf_frames", list[msgspec.Raw], [])]
        renames |= {"_wf_init": "init", "_wf_version": "$version", "_wf_frames": "$frames"}
    for point in program.points:
        for identifier, _ in point.stored:
            if identifier not in variables:
                variables[identifier] = _stored(source, types, program, identifier, point)
    for found in variables.values():
        fields.append((found.identifier, found.codec.stored | msgspec.UnsetType, msgspec.UNSET))
        renames[found.identifier] = found.name
    tag_field = "$workflow" if init is not None else "$subroutine"
    state = msgspec.defstruct(
        f"{source.name}_state", fields, rename=renames, tag=name, tag_field=tag_field, omit_defaults=True
    )
    return Layout(variables, state)


def init_codec(source: Source, annotation: Any) -> Codec:
    """How the init is stored. Refuses one that cannot be stored or is not frozen."""
    node: ast.AST = source.node if annotation is None else source.node.args.args[1]
    try:
        codec = codec_for(annotation)
    except Unstorable as error:
        source.refuse(node, f"the init cannot be stored: {error}", "use a Struct of plain values")
    is_struct = isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
    if is_struct and not annotation.__struct_config__.frozen:
        source.refuse(node, f"{annotation.__qualname__} is not frozen", "an init must be: drop frozen=False")
    return codec


def check_result(source: Source, annotation: Any) -> None:
    """Refuse a workflow's result that cannot be stored."""
    try:
        codec_for(annotation)
    except Unstorable as error:
        assert source.node.returns is not None
        source.refuse(source.node.returns, f"the result cannot be stored: {error}", "return a Struct of plain values")


def _stored(source: Source, types: Types, program: Program, identifier: str, point: Point) -> Stored:
    hidden = program.hidden.get(identifier)
    if hidden is not None:
        found, name, shown = hidden.type, hidden.stored_name, hidden.what
        node: ast.AST = hidden.node
    else:
        found = types.variables.get(identifier, UNKNOWN)
        name, shown, node = identifier, f"the variable {identifier}", _first_binding(source, identifier)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        source.refuse(
            node,
            f"{identifier} is imported inside the workflow and used after the wait in line {point.line}",
            "import it at the top of the module",
        )
    if name == "init" and identifier == "init" and not hidden:
        source.refuse(
            node, "the variable init lives across a wait", "init names the workflow's input; use another name"
        )
    if found is UNKNOWN or (hidden is not None and found is Any):
        source.refuse(
            node,
            f"{shown} lives across the wait in line {point.line}, and its type cannot be inferred",
            _remedy(source, types, identifier if hidden is None else None, node),
        )
    try:
        codec = codec_for(found)
    except Unstorable as error:
        source.refuse(
            node,
            f"{shown} lives across the wait in line {point.line}, and {type_name(found)} cannot be stored: {error}",
            "make it again after the wait, or keep plain values of it",
        )
    if codec.walk is not None and hidden is None:
        _refuse_module_objects(source, types, identifier)
    return Stored(identifier, name, found, codec)


def _refuse_module_objects(source: Source, types: Types, identifier: str) -> None:
    """A stored variable would be a copy of the module's mutable object after the wait."""
    for node in (node for statement in source.node.body for node in own_nodes(statement)):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            binds = any(isinstance(target, ast.Name) and target.id == identifier for target in targets)
            if binds and types.known(node.value) is not None:
                text = ast.unparse(node.value)
                source.refuse(
                    node.value,
                    f"{identifier} is the module's own {text}, and would be a copy of it after a wait",
                    f"copy it here, or use {text} itself",
                )


def _remedy(source: Source, types: Types, identifier: str | None, node: ast.AST) -> str:
    if identifier is not None:
        value = _assigned(source, node)
        if isinstance(value, ast.Call) and types.known(value.func) is open:
            return "a file cannot be stored: read it before the wait, or open it again after it"
        example = "list[str] = []" if isinstance(value, ast.List) else "int = ..."
        if isinstance(value, ast.Dict):
            example = "dict[str, int] = {}"
        elif isinstance(value, ast.Call):
            empty: dict[Any, str] = {set: "set[str] = set()", list: "list[str] = []", dict: "dict[str, int] = {}"}
            known = types.known(value.func)
            example = empty.get(known, example) if isinstance(known, type) else example
        return f"annotate it where it is assigned first, for example {identifier}: {example}"
    text = ast.unparse(node) if isinstance(node, ast.expr) else "it"
    return f"assign {text} to a variable with a type annotation first"


def _assigned(source: Source, target: ast.AST) -> ast.expr | None:
    for statement in source.node.body:
        for node in own_nodes(statement):
            if isinstance(node, ast.Assign) and target in node.targets:
                return node.value
    return None


def _first_binding(source: Source, identifier: str) -> ast.AST:
    for statement in source.node.body:
        for node in own_nodes(statement):
            if isinstance(node, ast.Name) and node.id == identifier and isinstance(node.ctx, ast.Store):
                return node
            if getattr(node, "name", None) == identifier:
                return node
            if isinstance(node, (ast.Import, ast.ImportFrom)) and identifier in bound_names(node):
                return node
    for node in ast.walk(source.node.args):
        if isinstance(node, ast.arg) and node.arg == identifier:
            return node
    return source.node
