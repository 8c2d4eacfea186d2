"""Structs and tagged unions of Structs.

A Struct may contain itself where that can end: in a list, an option or a union. The types are then a graph with
cycles, and values may nest no deeper than `NESTING_MAX`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

import msgspec

from gamedb.columns.base import ColumnType, Compound, Described, exact_function, weight_function
from gamedb.columns.graph import has_float
from gamedb.errors import ColumnError

NESTING_MAX: Final = 64
"""How many values of types that contain themselves may lie one inside the other."""


class _Nesting(threading.local):
    depth = 0


_nesting = _Nesting()


class ProductType(Compound):
    """A frozen msgspec Struct (a `Row` as the parameter of a scheduled reducer included)."""

    recursive = False
    """Whether the Struct contains itself, in whatever lies between."""

    def __init__(self, cls: type[msgspec.Struct], fields: dict[str, ColumnType], required: set[str]) -> None:
        self.name = cls.__name__
        self.cls = cls
        self.fields = fields
        self.required = required

    def coerce(self, value: Any, path: str) -> Any:
        return self._nested(self._coerce, value, path)

    def _nested(self, work: Callable[[Any, str], Any], value: Any, path: str) -> Any:
        """Do `work`, unless values of types that contain themselves lie too deep in each other."""
        if not self.recursive:
            return work(value, path)
        depth = _nesting.depth
        if depth >= NESTING_MAX:
            raise self._too_deep(path)
        _nesting.depth = depth + 1
        try:
            return work(value, path)
        except RecursionError:  # few levels, but each of many lists in lists
            raise self._too_deep(path) from None
        finally:
            _nesting.depth = depth

    def _too_deep(self, path: str) -> ColumnError:
        place = path if len(path) <= 60 else f"{path[:57]}..."
        return ColumnError(
            f"{place}: {self.name} is nested too deep (at most {NESTING_MAX} levels); "
            "keep such values flat, as rows that refer to each other"
        )

    def _coerce(self, value: Any, path: str) -> Any:
        if type(value) is not self.cls:
            self.refuse(value, path)
        changes = {}
        for name, kind in self.fields.items():
            before = getattr(value, name)
            after = kind.coerce(before, f"{path}.{name}" if path else name)
            if after is not before:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        if not self.recursive:
            return self._weight_fields(var, scope)
        alias = f"_weight{len(scope)}"
        scope[alias] = self._weight_value
        return f"{alias}({var})"

    def _weight_value(self, value: Any) -> int:
        return self._weight_function(value)

    @cached_property
    def _weight_function(self) -> Callable[[Any], int]:
        scope: dict[str, Any] = {}
        function: Callable[[Any], int] = eval(f"lambda v: {self._weight_fields('v', scope)}", scope)  # of field names
        return function

    def _weight_fields(self, var: str, scope: dict[str, Any]) -> str:
        fields = [kind.weight(f"{var}.{name}", scope) for name, kind in self.fields.items()]
        varying = [weight for weight in fields if not weight.isdecimal()]
        fixed = 2 + sum(len(name) + 4 for name in self.fields) + sum(int(w) for w in fields if w.isdecimal())
        return f"({' + '.join([str(fixed), *varying])})" if varying else str(fixed)

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        if not self.recursive:
            return self._exact_fields(var, scope)
        if not has_float(self):
            return var
        alias = f"_exact{len(scope)}"
        scope[alias] = self._exact_value
        return f"{alias}({var})"

    def _exact_value(self, value: Any) -> Any:
        return self._exact_function(value)

    @cached_property
    def _exact_function(self) -> Callable[[Any], Any]:
        scope: dict[str, Any] = {}
        function: Callable[[Any], Any] = eval(f"lambda v: {self._exact_fields('v', scope)}", scope)  # of field names
        return function

    def _exact_fields(self, var: str, scope: dict[str, Any]) -> str:
        fields = [kind.exact(f"{var}.{name}", scope) for name, kind in self.fields.items()]
        if fields == [f"{var}.{name}" for name in self.fields]:
            return var
        return f"({', '.join(fields)},)"

    def to_json(self, value: Any) -> Any:
        return self._nested(self._to_json, value, self.name)

    def _to_json(self, value: Any, _path: str) -> Any:
        return {name: kind.to_json(getattr(value, name)) for name, kind in self.fields.items()}

    def from_json(self, value: Any, path: str) -> Any:
        return self._nested(self._from_json, value, path)

    def _from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            self.refuse(value, path)
        for key in value:
            if key not in self.fields:
                raise ColumnError(f"{path}: {self.name} has no field {key!r} (it has {', '.join(self.fields)})")
        missing = [name for name in self.fields if name in self.required and name not in value]
        if missing:
            raise ColumnError(f"{path}: {self.name} needs the field {missing[0]!r}")
        fields = {
            name: self.fields[name].from_json(item, f"{path}.{name}" if path else name) for name, item in value.items()
        }
        try:
            made = self.cls(**fields)
        except Exception as error:  # its own __post_init__, say
            raise ColumnError(f"{path}: {self.name} cannot be made of this: {error!r}") from error
        return self._coerce(made, path)

    def describe(self, described: Described | None = None) -> Any:
        """As all types; one that contains itself is `recursive`, and `again` with its number where it recurs."""
        if not self.recursive:
            return {"product": [[name, kind.describe(described)] for name, kind in self.fields.items()]}
        if described is None:
            described = {}
        if self in described:
            return {"again": described[self]}
        described[self] = len(described)
        return {"recursive": [[name, kind.describe(described)] for name, kind in self.fields.items()]}

    def parts(self) -> Iterable[ColumnType]:
        return self.fields.values()


def _always(number: int) -> Callable[[Any], int]:
    return lambda _value: number


class SumType(Compound):
    """A tagged union of frozen Structs."""

    def __init__(self, variants: dict[str, ProductType], tag_field: str) -> None:
        self.name = " | ".join(variant.name for variant in variants.values())
        self.variants = variants
        self.tag_field = tag_field
        self._by_class = {variant.cls: (tag, variant) for tag, variant in variants.items()}

    def coerce(self, value: Any, path: str) -> Any:
        entry = self._by_class.get(type(value))
        if entry is None:
            self.refuse(value, path)
        return entry[1].coerce(value, path)

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        weights = {
            variant.cls: (len(tag), weight_function(variant) or _always(int(variant.weight("v", {}))))
            for tag, variant in self.variants.items()
        }

        def weight(value: Any) -> int:
            tag_length, function = weights[type(value)]
            return tag_length + len(self.tag_field) + function(value)

        alias = f"_weight{len(scope)}"
        scope[alias] = weight
        return f"{alias}({var})"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        variants = {v.cls: exact_function(v) for v in self.variants.values()}
        if not any(variants.values()):
            return var

        def exact(value: Any) -> Any:
            function = variants[type(value)]
            return (type(value), value if function is None else function(value))

        alias = f"_exact{len(scope)}"
        scope[alias] = exact
        return f"{alias}({var})"

    def to_json(self, value: Any) -> Any:
        tag, variant = self._by_class[type(value)]
        return {self.tag_field: tag, **variant.to_json(value)}

    def from_json(self, value: Any, path: str) -> Any:
        tag = value.get(self.tag_field) if isinstance(value, dict) else None
        variant = self.variants.get(tag) if isinstance(tag, str) else None
        if variant is None:
            self.refuse(value, path, f": {self.tag_field!r} must be one of {', '.join(self.variants)}")
        return variant.from_json({k: v for k, v in value.items() if k != self.tag_field}, path)

    def describe(self, described: Described | None = None) -> Any:
        described = {} if described is None else described  # one numbering for all variants
        named = "" if self.tag_field == "type" else f"{self.tag_field}="  # a stored value names its variant under it
        return {"sum": [[f"{named}{tag}", variant.describe(described)] for tag, variant in self.variants.items()]}

    def parts(self) -> Iterable[ColumnType]:
        return self.variants.values()
