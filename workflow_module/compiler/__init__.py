"""From an `async def` to a step function, a state Struct and a table of suspension points.

`compile_function` runs the passes, each in a room of its own: `source` finds the syntax tree, `refuse` says what
cannot be compiled, `variables` and `inference` find types, `lower` (with `expressions`, `loops`, `regions`,
`matching`) makes blocks, `simplify` joins them, `flow` and `storage` decide what is stored, `emit` writes Python.
Values in, values out: nothing here runs a workflow, or knows an engine.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workflow_module.codec import Codec

from . import emit, late, refuse, slips, storage
from .builder import Builder
from .inference import Types
from .ir import Program
from .lower import body
from .simplify import simplify
from .source import CompileError, Source, source_of
from .storage import Layout, Stored
from .typeops import DICT, TUPLE, UNKNOWN
from .variables import declared_types, infer_variables

__all__ = ["Code", "CompileError", "compile_function"]


@dataclass(slots=True)
class CodePoint:
    """A suspension point of compiled code. `stored` says of each variable whether it is surely bound."""

    label: str
    kind: str
    line: int
    entry: int
    stored: list[tuple[Stored, bool]]


@dataclass(slots=True)
class Code:
    """A compiled function. `run(ctx, state, entry, value, error)` is one step; see `emit`."""

    source: Source
    types: Types
    program: Program
    layout: Layout
    points: dict[str, CodePoint]
    run: Callable[..., Any]
    text: str
    init_type: Any
    init_codec: Codec | None
    result_type: Any
    defaults: dict[str, Any]


def compile_function(function: Any, *, takes_init: bool, name: str | None = None) -> Code:
    """Compile a workflow (`takes_init`) or a subroutine. Raises `CompileError`."""
    try:
        return _compiled(function, takes_init, name)
    except CompileError as error:  # its text says where in the author's file; the compiler's own frames do not help
        raise error.with_traceback(None) from None


def _compiled(function: Any, takes_init: bool, name: str | None) -> Code:
    source = source_of(function)
    refuse.refuse_syntax(source, takes_init)
    types = Types(source.names, source.locals)
    types.late = late.late_definitions(source, types)
    parameters = _parameters(source, types, takes_init)
    result_type = _result(source, types)
    if takes_init:
        storage.check_result(source, result_type)
    declared = declared_types(source, types)
    infer_variables(source, types, {**declared, **parameters})
    refuse.refuse_awaits(source, types)
    slips.refuse_slips(source, types)
    builder = Builder(source, types, result_type)
    body(builder, source.node.body)
    program = simplify(builder.program())
    first = source.node.args.args[0].arg
    init = source.node.args.args[1].arg if takes_init and len(source.node.args.args) > 1 else None
    fixed = {first, init} if init else {first}
    binding = storage.plan(source, types, program, set(declared), {name for name in fixed if name})
    codec = storage.init_codec(source, parameters.get(init) if init else None) if takes_init else None
    layout = storage.layout(source, types, program, name or source.name, codec)
    emitter = emit.Emitter(source, program, binding.surely, init or emit.NO_INIT if takes_init else None)
    written = emitter.function()
    run = emit.compile_step(source, written, layout.state)
    points = {
        point.label: CodePoint(
            point.label,
            point.kind,
            point.line,
            emitter.numbers[point.resume],
            [(layout.variables[name], surely) for name, surely in point.stored],
        )
        for point in program.points
    }
    init_type = parameters[init] if init else type(None)
    text = ast.unparse(written)
    return Code(source, types, program, layout, points, run, text, init_type, codec, result_type, _defaults(source))


def _parameters(source: Source, types: Types, takes_init: bool) -> dict[str, Any]:
    """Types of the parameters after ctx."""
    arguments = source.node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if not arguments.args or arguments.posonlyargs:
        source.refuse(
            source.node, f"{source.name} has no ctx", f"write async def {source.name}(ctx: WorkflowContext, ...)"
        )
    if takes_init and (len(named) > 2 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs):
        source.refuse(
            named[2] if len(named) > 2 else source.node,
            "a workflow takes ctx and one init",
            "put everything it needs into one Struct",
        )
    found: dict[str, Any] = {}
    for arg in named[1:]:
        annotation = types.annotation(arg.annotation) if arg.annotation is not None else UNKNOWN
        if annotation is UNKNOWN:
            source.refuse(arg, f"the parameter {arg.arg} has no type", f"annotate it: {arg.arg}: SomeStruct")
        found[arg.arg] = annotation
    first = arguments.args[0]
    found[first.arg] = types.annotation(first.annotation) if first.annotation is not None else UNKNOWN
    if arguments.vararg is not None:
        item = types.annotation(arguments.vararg.annotation) if arguments.vararg.annotation else UNKNOWN
        found[arguments.vararg.arg] = UNKNOWN if item is UNKNOWN else TUPLE[item, ...]
    if arguments.kwarg is not None:
        item = types.annotation(arguments.kwarg.annotation) if arguments.kwarg.annotation else UNKNOWN
        found[arguments.kwarg.arg] = UNKNOWN if item is UNKNOWN else DICT[str, item]
    return found


def _result(source: Source, types: Types) -> Any:
    if source.node.returns is None:
        source.refuse(source.node, f"{source.name} does not say what it returns", "add -> None, or the result's type")
    found = types.annotation(source.node.returns)
    if found is UNKNOWN:
        source.refuse(
            source.node.returns,
            f"the annotation {ast.unparse(source.node.returns)} cannot be evaluated here",
            "import or define the type in the module, above the workflow",
        )
    return found


def _defaults(source: Source) -> dict[str, Any]:
    """Variables that the body first gives a constant: what an older state lacks begins with that."""
    found: dict[str, Any] = {}
    bound: set[str] = set()
    for statement in source.node.body:
        if isinstance(statement, ast.AnnAssign):
            targets: list[ast.expr] = [statement.target] if statement.value is not None else []
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        else:
            targets = []
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id not in bound:
            value = getattr(statement, "value", None)
            if isinstance(value, ast.Constant):
                found[targets[0].id] = value.value
        bound |= {
            part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
    return found
