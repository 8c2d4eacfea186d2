"""What the packages promise: every public name with its docstring, read from the source by griffe.

For the reference, and for the test that nothing public lacks a docstring. Public is what a package lists in `__all__`
or imports for type checkers alone (names that are slow to import), and in a class what has no underscore in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import griffe

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("gamedb", "gamedb.testing", "gamedb.client", "workflow_module", "workflow_module.testing")
FURTHER: Final = {
    "gamedb.server.limits": ["Limits"],
    "gamedb.server.serve": ["Serving"],
    "gamedb.storage": ["models_for", "Models"],
    "gamedb.storage.adhoc": ["SqlAnswer", "AdHocLimits"],
    "gamedb.testing.clients": ["Answer"],
    "gamedb.testing.decisions": ["Act", "Pass", "Die", "Slow", "Jitter", "Fail"],
    "workflow_module.definition": ["StateView"],
    "workflow_module.history": ["Moment"],
    "workflow_module.testing.events": ["Send", "Fire", "Wait"],
}
"""Public names in rooms that are too slow to import with their package, or that nobody has to name."""
MODULES: Final = (*PACKAGES, *FURTHER)
OPAQUE: Final = frozenset(
    {
        "gamedb.client.events.QuerySet",
        "gamedb.columns.base.ColumnType",
        "gamedb.schema.TableSchema",
        "gamedb.testing.database.SimulatedDatabase",
        "gamedb.transactions.Transaction",
        "workflow_module.decorators.Workflow",
        "workflow_module.language.Child",
        "workflow_module.subroutine.Subroutine",
    }
)
"""What users get, and only pass on: signatures show it, and nothing is told of it."""
INTERNAL: Final = {
    "gamedb.Database": "execute observe on_timing random_for_transaction report_failure run_procedure "
    "run_procedure_async when_durable",
    "gamedb.Module": "resolve",
    "gamedb.ProcedureContext": "functions",
    "gamedb.ReadTable": "data",
    "gamedb.ReducerContext": "functions",
    "gamedb.Subscription": "prepare tables",
    "gamedb.Table": "data delete_key",
    "gamedb.TableChanges": "changes schema",
    "gamedb.client.Changes": "finish put",
    "gamedb.client.ClientTable": "deliver finish",
    "gamedb.client.Subscription": "applied begin finish over query_set",
    "gamedb.server.serve.Serving": "server",
    "gamedb.testing.clients.Answer": "settle",
    "gamedb.testing.Run": "apply begin close finish left waiting",
    "gamedb.testing.Simulation": "act context described disk gate next_connection outside",
    "gamedb.testing.SimulatedClient": "closed died receive returns",
    "workflow_module.Arm": "__await__",
    "workflow_module.Engine": "broadcast_json call_result checked_result definition "
    "definitions expire forget has_code pending procedure procedure_failed procedure_succeeded procedures "
    "retention_of run signal_json start_json timer_fired wake",
    "workflow_module.testing.Fake": "answer",
    "workflow_module.StepContext": "begin silent_seconds",
    "workflow_module.WorkflowContext": "start_child subscribe unsubscribe",
    "workflow_module.WorkflowDefinition": "check_state code decode_init decode_result decode_value dump encode_init "
    "encode_result fits mentions migrated resume start subroutines suspension_points",
}
"""What rooms use of each other's public classes, the server above all: no promise to users, not in the reference."""
_DATA: Final = frozenset({"gamedb.schema.Row", "gamedb.schema.Struct", "msgspec.Struct"})
"""Classes whose fields are their constructor."""


@cache
def _modules() -> griffe.ModulesCollection:
    loader = griffe.GriffeLoader(search_paths=[ROOT])
    for package in ("gamedb", "workflow_module"):
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


@cache
def names(package: str) -> list[str]:
    """The public names of a package, in the order of its `__all__`, and then those for type checkers."""
    if package in FURTHER:
        return FURTHER[package]
    module = _modules()[package]
    listed = [str(name) for name in module.exports or ()]
    later = [
        name
        for name, member in module.members.items()
        if member.is_alias
        and not member.runtime
        and not name.startswith("_")
        and name not in listed
        # `import X as X` is what makes a name of a stub or of such a block public
        and f" as {name}" in module.lines_collection[module.filepath][member.alias_lineno - 1]
    ]
    return listed + later


def find(path: str) -> griffe.Object:
    """What has this path, through imports; `KeyError` when there is no such thing."""
    found: griffe.Object | griffe.Alias = _modules()[path]
    if isinstance(found, griffe.Module) and found.parent is not None and path not in MODULES:
        found = _modules()[found.parent.imports.get(found.name, path)]  # a function may have the name of its module
    return found.final_target if isinstance(found, griffe.Alias) else found


@cache
def published() -> dict[str, str]:
    """Where each public thing is public, by where it is defined: `gamedb.store.views.Table` is `gamedb.Table`."""
    result: dict[str, str] = {}
    for package in MODULES:
        for name in names(package):
            result.setdefault(find(f"{package}.{name}").path, f"{package}.{name}")
    return result


def is_data(cls: griffe.Class) -> bool:
    """Whether the annotated attributes of a class are its fields or columns."""
    return any(str(base.path) in _DATA for base in cls.mro()) or any(str(b) == "msgspec.Struct" for b in cls.bases)


def bases(cls: griffe.Class) -> list[griffe.Class]:
    """The class and those of its bases that have no page of their own, so that what they add is told here."""
    told_elsewhere = {path for base in cls.mro() if base.path in published() for path in (base.path, *_mro(base))}
    return [cls, *(base for base in cls.mro() if base.path not in told_elsewhere)]


def _mro(cls: griffe.Class) -> list[str]:
    return [base.path for base in cls.mro()]


def members(cls: griffe.Class) -> Iterator[griffe.Function | griffe.Attribute]:
    """What is public in a class, in the order of the source; operators only where they have a docstring.

    An attribute of a private base is public when it has a docstring: such a base is a part of the machinery.
    """
    seen = set(INTERNAL.get(published().get(cls.path, ""), "").split())
    for base in bases(cls):
        for name, member in base.members.items():
            if name in seen or not isinstance(member, griffe.Function | griffe.Attribute):
                continue
            operator = name.startswith("__") and name not in ("__init__", "__new__") and member.is_function
            if name.startswith("_") and not (operator and member.docstring):
                continue
            all_of_it = [b.members[name] for b in bases(cls) if name in b.members]
            told = [m for m in all_of_it if isinstance(m, griffe.Function | griffe.Attribute) and m.docstring]
            if base is not cls and member.is_attribute and not told:
                continue
            seen.add(name)
            yield member if member.docstring or not told else told[0]


def has(path: str, member: str) -> bool:
    """Whether a class has such a member, promised or not."""
    cls = find(path)
    return isinstance(cls, griffe.Class) and member in cls.all_members


def docstring(thing: griffe.Object) -> str | None:
    """Its docstring."""
    return thing.docstring.value if thing.docstring else None


def undocumented() -> list[str]:
    """Public names and members without a docstring."""
    missing: list[str] = []
    for package in MODULES:
        if not docstring(find(package)):
            missing.append(package)
        for name in names(package):
            thing = find(f"{package}.{name}")
            if published()[thing.path] != f"{package}.{name}":
                continue
            if not docstring(thing):
                missing.append(f"{package}.{name}")
            if isinstance(thing, griffe.Class):
                missing += [f"{package}.{name}.{member.name}" for member in members(thing) if not docstring(member)]
    return missing


def meaning(name: griffe.ExprName) -> griffe.Object | None:
    """What of ours a name in a signature stands for; `None` for what is not ours, and for type variables."""
    path = name.canonical_path
    if not path.startswith(("gamedb.", "workflow_module.")):
        return None
    try:
        found = find(path)
    except (KeyError, griffe.AliasResolutionError):
        return None
    if found.parent is None or found.parent.is_class or (isinstance(found, griffe.Attribute) and _is_variable(found)):
        return None
    return found


def _is_variable(attribute: griffe.Attribute) -> bool:
    value = attribute.value
    return isinstance(value, griffe.ExprCall) and str(value.function).endswith(("TypeVar", "ParamSpec", "TypeVarTuple"))


def alias_of(attribute: griffe.Attribute) -> griffe.Expr | None:
    """What a public alias stands for; not of `Annotated` ones, whose marks say nothing to people."""
    value = attribute.value
    return value if isinstance(value, griffe.Expr) and not value.canonical_path.endswith("Annotated") else None


def hidden(thing: griffe.Function | griffe.Attribute) -> list[str]:
    """The types in a signature that are ours, and that nobody can find in the reference."""
    annotations = (
        [thing.annotation] if isinstance(thing, griffe.Attribute) else [p.annotation for p in thing.parameters]
    )
    found = [path for annotation in annotations for path in _hidden(annotation)]
    if isinstance(thing, griffe.Function) and thing.name != "__init__":
        found += _hidden(thing.returns)
        found += [path for overload in thing.overloads or () for path in hidden(overload)]
    return found


def _hidden(annotation: griffe.Expr | str | None) -> Iterator[str]:
    for part in annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else ():
        target = meaning(part) if isinstance(part, griffe.ExprName) else None
        if target is None or target.path in published() or target.path in OPAQUE:
            continue
        if isinstance(target, griffe.Attribute):  # an alias: signatures show what it stands for
            yield from _hidden(target.value)
        else:
            yield target.path


def hidden_types() -> list[str]:
    """What public signatures need and no page tells, each as a sentence."""
    found: list[str] = []
    for path, home in published().items():
        thing = find(path)
        if isinstance(thing, griffe.Class):
            found += [f"{home}.{member.name} needs {each}" for member in members(thing) for each in hidden(member)]
        elif isinstance(thing, griffe.Function):
            found += [f"{home} needs {each}" for each in hidden(thing)]
        elif isinstance(thing, griffe.Attribute):
            found += [f"{home} needs {each}" for each in _hidden(alias_of(thing))]
    return [f"{text}, which is not public" for text in dict.fromkeys(found)]
