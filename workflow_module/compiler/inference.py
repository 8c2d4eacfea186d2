"""Types of expressions, from annotations and from what the expressions are.

`Types.of(node)` answers with an ordinary annotation, or `UNKNOWN`. It never runs user code: it looks names up
in the module, reads annotations, and knows the builtins (see `builtin_types`).
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import types as python_types
import typing
from collections.abc import Callable
from typing import Any, get_args, get_origin

import msgspec

from workflow_module import language
from workflow_module.waits import Handle

from . import builtin_types, operator_types
from .awaitables import await_type
from .names import bound_names
from .typeops import COROUTINE, DICT, TUPLE, UNKNOWN, join, members, without_none

HANDLE: Any = Handle
_ABSENT = object()


class Types:
    """Knows the types of local variables (`variables`) and can look up everything else."""

    def __init__(self, names: dict[str, Any], local_names: frozenset[str]) -> None:
        self.names = names
        self.local_names = local_names
        self.variables: dict[str, Any] = {}
        self.late: Callable[[str], Any] = lambda name: None

    def copy(self) -> Types:
        """For a nested scope: what is bound there does not change the workflow's variables."""
        inner = Types(self.names, self.local_names)
        inner.variables = dict(self.variables)
        inner.late = self.late
        return inner

    def resolve(self, node: ast.expr) -> Any:
        """The object that a global name or attribute of a module or class stands for, or `_ABSENT`."""
        if isinstance(node, ast.Name):
            if node.id in self.local_names or node.id in self.variables:
                return _ABSENT
            if node.id in self.names:
                return self.names[node.id]
            late = self.late(node.id)
            if late is not None:
                return late
            return getattr(builtins, node.id, _ABSENT)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if isinstance(owner, (python_types.ModuleType, type)):
                return _static_attribute(owner, node.attr)
        return _ABSENT

    def known(self, node: ast.expr) -> Any | None:
        """`resolve`, with None for what is not known."""
        found = self.resolve(node)
        return None if found is _ABSENT else found

    def annotation(self, node: ast.expr) -> Any:
        """The type that an annotation in the code means, or `UNKNOWN`."""
        try:
            text = (
                ast.unparse(node)
                if not (isinstance(node, ast.Constant) and isinstance(node.value, str))
                else node.value
            )
            found = eval(text, self.names)  # as typing.get_type_hints does
        except Exception:
            return UNKNOWN
        if isinstance(found, str):
            return UNKNOWN
        return type(None) if found is None else found

    def of(self, node: ast.expr) -> Any:
        """The type of an expression."""
        method = getattr(self, "_" + type(node).__name__, None)
        return method(node) if method is not None else UNKNOWN

    def _Constant(self, node: ast.Constant) -> Any:
        return type(node.value)

    def _Name(self, node: ast.Name) -> Any:
        if node.id in self.variables:
            return self.variables[node.id]
        declared = self.names.get("__annotations__", {}).get(node.id, UNKNOWN)
        if isinstance(declared, str):  # in a module with `from __future__ import annotations`
            declared = self.annotation(ast.Constant(declared))
        if declared not in (UNKNOWN, typing.Final, typing.TypeAlias) and node.id not in self.local_names:
            args = get_args(declared)
            return args[0] if get_origin(declared) is typing.Final and args else declared
        found = self.resolve(node)
        return UNKNOWN if found is _ABSENT else _type_of_object(found)

    def _JoinedStr(self, node: ast.JoinedStr) -> Any:
        return str

    def _NamedExpr(self, node: ast.NamedExpr) -> Any:
        return self.of(node.value)

    def _IfExp(self, node: ast.IfExp) -> Any:
        return join([self.of(node.body), self.of(node.orelse)])

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        parts = [self.of(value) for value in node.values]
        if isinstance(node.op, ast.Or):
            parts[:-1] = [without_none(part) for part in parts[:-1]]
        return join(parts)

    def _Compare(self, node: ast.Compare) -> Any:
        return bool

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return bool
        operand = self.of(node.operand)
        return int if operand is bool else operand

    def _BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.of(node.left), self.of(node.right)
        power = node.right.value if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) else None
        if type(power) is int and power >= 0 and left in (int, bool):
            return int
        return operator_types.binary(type(node.op).__name__, left, right)

    def _Tuple(self, node: ast.Tuple) -> Any:
        if any(isinstance(item, ast.Starred) for item in node.elts):
            inside = self._items(node.elts)
            return UNKNOWN if inside is UNKNOWN else TUPLE[inside, ...]
        parts = tuple(self.of(item) for item in node.elts)
        if any(part is UNKNOWN for part in parts):
            return UNKNOWN
        return TUPLE[parts] if parts else TUPLE[()]

    def _List(self, node: ast.List) -> Any:
        return builtin_types.of_items(list, self._items(node.elts))

    def _Set(self, node: ast.Set) -> Any:
        return builtin_types.of_items(set, self._items(node.elts))

    def _items(self, items: list[ast.expr]) -> Any:
        parts = [self.element(self.of(i.value)) if isinstance(i, ast.Starred) else self.of(i) for i in items]
        return join(parts) if parts else UNKNOWN

    def _Dict(self, node: ast.Dict) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                args = get_args(self.of(value))
                if len(args) != 2:
                    return UNKNOWN
                keys.append(args[0])
                values.append(args[1])
            else:
                keys.append(self.of(key))
                values.append(self.of(value))
        if not keys or UNKNOWN in keys or UNKNOWN in values:
            return UNKNOWN
        return DICT[join(keys), join(values)]

    def _comprehension(self, node: Any, *parts: ast.expr) -> list[Any]:
        inner = self.copy()
        for generator in node.generators:
            found = inner.element(inner.of(generator.iter))
            for name in bound_names(generator.target):
                inner.variables.pop(name, None)
            inner.bind(generator.target, found, inner.variables)
        return [inner.of(part) for part in parts]

    def _ListComp(self, node: ast.ListComp) -> Any:
        return builtin_types.of_items(list, self._comprehension(node, node.elt)[0])

    def _SetComp(self, node: ast.SetComp) -> Any:
        return builtin_types.of_items(set, self._comprehension(node, node.elt)[0])

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return builtin_types.iterator_of(self._comprehension(node, node.elt)[0])

    def _DictComp(self, node: ast.DictComp) -> Any:
        key, value = self._comprehension(node, node.key, node.value)
        return UNKNOWN if UNKNOWN in (key, value) else DICT[key, value]

    def _Lambda(self, node: ast.Lambda) -> Any:
        return python_types.FunctionType

    def _Await(self, node: ast.Await) -> Any:
        return await_type(self, node.value)

    def _Attribute(self, node: ast.Attribute) -> Any:
        found = self.resolve(node)
        if found is not _ABSENT and not isinstance(found, property):
            return _type_of_object(found)
        return join([attribute_type(owner, node.attr) for owner in members(without_none(self.of(node.value)))])

    def _Subscript(self, node: ast.Subscript) -> Any:
        owners = members(without_none(self.of(node.value)))
        return join([builtin_types.subscript(owner, node.slice, self) for owner in owners])

    def _Call(self, node: ast.Call) -> Any:
        function = self.resolve(node.func)
        if function is not _ABSENT:
            special = builtin_types.call(function, node, self)
            if special is not UNKNOWN:
                return special
            if isinstance(function, type):
                return _instance(function)
            if function is language.start and node.args:
                return HANDLE[getattr(self.known(node.args[0]), "result_type", Any)]
            owner = getattr(function, "__self__", None)
            if isinstance(function, (python_types.BuiltinMethodType, python_types.MethodType)) and owner is not None:
                return builtin_types.method(type(owner), function.__name__, node, self)
            return return_type(function)
        if isinstance(node.func, ast.Lambda):
            inner = self.copy()
            for arg, given in zip(node.func.args.args, node.args, strict=False):
                inner.variables[arg.arg] = self.of(given)
            return inner.of(node.func.body)
        if isinstance(node.func, ast.Attribute):
            owners = members(without_none(self.of(node.func.value)))
            return join([builtin_types.method(owner, node.func.attr, node, self) for owner in owners])
        return UNKNOWN

    def element(self, iterable: Any) -> Any:
        """The type of the items that a loop over this type yields."""
        return join([builtin_types.element(part) for part in members(without_none(iterable))])

    def bind(self, target: ast.expr, value: Any, into: dict[str, Any]) -> None:
        """Record the types of the names in an assignment target."""
        if isinstance(target, ast.Name):
            into[target.id] = join([into[target.id], value]) if target.id in into else value
        elif isinstance(target, (ast.Tuple, ast.List)):
            args = get_args(value)
            fixed = get_origin(value) is tuple and len(args) == len(target.elts) and Ellipsis not in args
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    self.bind(part.value, builtin_types.of_items(list, self.element(value)), into)
                else:
                    self.bind(part, args[index] if fixed else self.element(value), into)


def _static_attribute(owner: Any, name: str) -> Any:
    """An attribute of a module or class, without running properties of a class."""
    if isinstance(owner, type) and not isinstance(owner, enum.EnumMeta):
        found = inspect.getattr_static(owner, name, _ABSENT)
        bound = (classmethod, staticmethod, python_types.ClassMethodDescriptorType)
        return getattr(owner, name) if isinstance(found, bound) else found
    return getattr(owner, name, _ABSENT)


def _instance(cls: type) -> Any:
    if cls in (list, dict, set, frozenset, tuple) or cls.__flags__ & inspect.TPFLAGS_IS_ABSTRACT:
        return UNKNOWN
    return cls


def _type_of_object(found: Any) -> Any:
    """The type of a module-level object; of containers only when they are empty of surprises."""
    if isinstance(found, (type, python_types.ModuleType)):
        return type(found)
    if type(found) in (list, dict, set, frozenset, tuple):
        return builtin_types.of_object(found)
    return type(found)


def hints_of(found: Any) -> dict[str, Any]:
    """`typing.get_type_hints`, empty when they cannot be resolved."""
    try:
        return typing.get_type_hints(found)
    except Exception:
        return {}


def return_type(function: Any) -> Any:
    """What calling this function gives, by its annotation."""
    if hasattr(function, "result_type"):  # defined further down
        return function.result_type
    function = getattr(function, "__func__", function)
    if not isinstance(function, python_types.FunctionType) and not hasattr(function, "__wrapped__"):
        call = type(function).__dict__.get("__call__")
        function = call if isinstance(call, python_types.FunctionType) else function
    found = hints_of(function).get("return", UNKNOWN)
    if inspect.iscoroutinefunction(function):
        return COROUTINE[Any, Any, found] if found is not UNKNOWN else UNKNOWN
    return UNKNOWN if has_variables(found) else found


def has_variables(annotation: Any) -> bool:
    """Whether an annotation still has type variables in it."""
    if isinstance(annotation, typing.TypeVar):
        return True
    return any(has_variables(arg) for arg in get_args(annotation))


def attribute_type(owner: Any, name: str) -> Any:
    """The type of an attribute of a value of type `owner`."""
    cls = get_origin(owner) or owner
    if not isinstance(cls, type):
        return UNKNOWN
    if issubclass(cls, enum.Enum) and name in ("value", "name"):
        values = [member.value for member in cls]
        return str if name == "name" else join([type(value) for value in values])
    if issubclass(cls, msgspec.Struct):
        for field in _struct_fields(owner):
            if field.name == name:
                return UNKNOWN if has_variables(field.type) else field.type
    found = inspect.getattr_static(cls, name, None)
    if isinstance(found, property):
        return return_type(found.fget) if found.fget else UNKNOWN
    hint = hints_of(cls).get(name, UNKNOWN)
    if hint is not UNKNOWN:
        return hint
    return builtin_types.attribute(cls, name)


def _struct_fields(owner: Any) -> tuple[Any, ...]:
    try:
        return msgspec.structs.fields(owner)
    except Exception:
        return ()
