"""`workflows.ts`: what clients know of the installed workflows, for `gamedb generate --lang typescript`.

For each workflow an object with its names, and the types of the JSON in its rows and in calls of the engine's
reducers. Nothing of it needs the engine; no workflow is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gamedb import Generation, SchemaError

from .definition import WorkflowDefinition
from .json_types import JsonTypes, _key, _literal

_PARTS = ("Init", "Result", "View", "Signals", "Timers")


def add_workflows(generation: Generation, definitions: Iterable[WorkflowDefinition[Any, Any]]) -> None:
    """Add `workflows.ts` to what is generated; `SchemaError` for names that collide."""
    if generation.language == "typescript":
        generation.add("workflows.ts", workflows_ts(definitions))


def workflows_ts(definitions: Iterable[WorkflowDefinition[Any, Any]]) -> str:
    """The text of `workflows.ts`."""
    names: dict[str, WorkflowDefinition[Any, Any]] = {}
    for definition in sorted(definitions, key=lambda definition: definition.name):
        name = _identifier(definition.name)
        other = names.setdefault(name, definition)
        if other is not definition:
            raise SchemaError(
                f"workflows {other.name!r} and {definition.name!r} would both be written {name!r}; "
                "give one of them another @workflow(name=...)"
            )
    types = JsonTypes({f"{_pascal(name)}{part}" for name in names for part in _PARTS} | {"Workflows"})
    for name, definition in names.items():
        for part, annotation in (("Init", definition.init_type), ("Result", definition.result_type)):
            if getattr(annotation, "__name__", "") == f"{_pascal(name)}{part}":
                types.name(annotation, f"{_pascal(name)}{part}")
    bodies = [_workflow(name, definition, types) for name, definition in names.items()]
    entries = "".join(
        f"  {_key(definition.name)}: {{\n"
        + "".join(f"    {part.lower()}: {_pascal(name)}{part};\n" for part in _PARTS)
        + "  };\n"
        for name, definition in names.items()
    )
    parts = [
        "/* eslint-disable */\n/* tslint:disable */\n"
        "// In JSON durations are ISO 8601 text, times RFC 3339, bytes base64; JSON.parse rounds beyond 2^53.\n",
        types.declarations(),
        *bodies,
        "/** The types of each workflow, by its name in the database. */\n",
        f"export interface Workflows {{\n{entries}}}\n",
    ]
    return "\n".join(part for part in parts[:-2] if part) + "\n" + "".join(parts[-2:])


def _workflow(name: str, definition: WorkflowDefinition[Any, Any], types: JsonTypes) -> str:
    prefix = _pascal(name)
    signals = {signal: types.given(cls) for signal, cls in sorted(definition.signals.items())}
    timers = _timers(definition)
    listed = "".join(f"  {_key(signal)}: {text};\n" for signal, text in signals.items())
    lines = [
        _alias(f"{prefix}Init", types.given(definition.init_type)),
        _alias(f"{prefix}Result", types.of(definition.result_type)),
        f"export type {prefix}View = {_view(definition, types)};\n",
        f"export type {prefix}Signals = {{\n{listed}}};\n" if listed else f"export type {prefix}Signals = {{}};\n",
        f"export type {prefix}Timers = {' | '.join(map(_literal, sorted(timers.values()))) or 'never'};\n",
        f"{_comment(definition)}export const {name} = {{\n  type: {_literal(definition.name)},\n",
        f"  signals: {_object((signal, signal) for signal in signals)},\n",
        f"  timers: {_object(sorted(timers.items()))},\n}} as const;\n",
    ]
    return "".join(lines)


def _alias(name: str, text: str) -> str:
    return f"export type {name} = {text};\n" if text != name else ""


def _comment(definition: WorkflowDefinition[Any, Any]) -> str:
    line = (definition.__doc__ or "").strip().partition("\n")[0].replace("*/", "* /")
    return f"/** {line} */\n" if line else ""


def _view(definition: WorkflowDefinition[Any, Any], types: JsonTypes) -> str:
    """`init` and the variables of `state_data`; those that some state may lack are optional."""
    points = list(definition.code.points.values())
    found: dict[str, Any] = {}
    sure: dict[str, int] = {}
    for point in points:
        for stored, surely in point.stored:
            if not stored.name.startswith("$"):
                found.setdefault(stored.name, stored.type)
                sure[stored.name] = sure.get(stored.name, 0) + surely
    lines = [f"  init: {types.of(definition.init_type)};\n"]
    for variable in sorted(found):
        optional = "" if sure[variable] == len(points) else "?"
        lines.append(f"  {_key(variable)}{optional}: {types.of(found[variable])};\n")
    return f"{{\n{''.join(lines)}}}"


def _timers(definition: WorkflowDefinition[Any, Any]) -> dict[str, str]:
    """The values of timers by member name; by class and member where members of two classes have one name."""
    members = [member.name for member in definition.timers.values()]
    return {
        member.name if members.count(member.name) == 1 else f"{type(member).__name__}_{member.name}": member.value
        for member in definition.timers.values()
    }


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    listed = ", ".join(f"{_key(key)}: {_literal(value)}" for key, value in pairs)
    return f"{{ {listed} }}" if listed else "{}"


def _identifier(name: str) -> str:
    """A workflow's name as a constant: `boss_fight` to `bossFight`."""
    words = [word for word in re.split(r"[^0-9A-Za-z\x80-\U0010ffff]+", name) if word]
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    joined = joined[:1].lower() + joined[1:]
    if not joined.isidentifier():
        raise SchemaError(
            f"workflow {name!r} would be written {joined!r}, which is no name there; give it @workflow(name=...)"
        )
    return f"{joined}_" if joined in _RESERVED else joined


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]


_RESERVED = frozenset(
    {
        *("await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do"),
        *("else", "enum", "export", "extends", "false", "finally", "for", "function", "if", "implements", "import"),
        *("in", "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public"),
        *("return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while"),
        *("with", "yield"),
    }
)
