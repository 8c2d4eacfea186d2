"""Options and lists: types around one other type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, SupportsIndex

from gamedb.columns.base import ColumnType, Compound, Described, exact_function


class FrozenList(list[Any]):
    """The form in which lists stand in rows: an ordinary `list` to read, and an error to change in place."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(
            "a list in a row or an argument cannot be changed in place; "
            "make a new one: row.replace(items=[*row.items, item])"
        )

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # list sets it to None
        return hash(tuple(self))

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Callable[..., Any], tuple[list[Any]]]:
        return FrozenList, (list(self),)


class OptionType(ColumnType):
    def __init__(self, inner: ColumnType) -> None:
        self.name = f"{inner.name} | None"
        self.inner = inner
        self.orderable = inner.orderable  # type: ignore[misc]  # an option is what its inner type is
        self.keyable = inner.keyable  # type: ignore[misc]

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        return f"({var} is None or {self.inner.fast(var, scope)})"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        inner = self.inner.weight(var, scope)
        return inner if inner.isdecimal() else f"(4 if {var} is None else {inner})"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        inner = self.inner.exact(var, scope)
        return var if inner == var else f"(None if {var} is None else {inner})"

    def coerce(self, value: Any, path: str) -> Any:
        return None if value is None else self.inner.coerce(value, path)

    def to_json(self, value: Any) -> Any:
        return None if value is None else self.inner.to_json(value)

    def from_json(self, value: Any, path: str) -> Any:
        return None if value is None else self.inner.from_json(value, path)

    def describe(self, described: Described | None = None) -> Any:
        return {"option": self.inner.describe(described)}

    def parts(self) -> Iterable[ColumnType]:
        return (self.inner,)


class ListType(Compound):
    def __init__(self, item: ColumnType) -> None:
        self.name = f"list[{item.name}]"
        self.item = item

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_FrozenList"] = type, FrozenList
        return f"(_type({var}) is _FrozenList and {super().fast(var, scope)})"

    def weight(self, var: str, scope: dict[str, Any]) -> str:
        scope["_len"], scope["_sum"], scope["_map"] = len, sum, map
        item = self.item.weight("_x", scope)
        if item.isdecimal():
            return f"(2 + {int(item) + 2} * _len({var}))"
        if item == "_len(_x)":
            return f"(2 + 2 * _len({var}) + _sum(_map(_len, {var})))"
        return f"(2 + _sum([2 + {item} for _x in {var}]))"

    def exact(self, var: str, scope: dict[str, Any]) -> str:
        item = exact_function(self.item)
        if item is None:
            return var
        alias = f"_exact{len(scope)}"
        scope["_tuple"], scope["_map"], scope[alias] = tuple, map, item
        return f"_tuple(_map({alias}, {var}))"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            self.refuse(value, path)
        coerce = self.item.coerce
        items = [coerce(item, f"{path}[{i}]") for i, item in enumerate(value)]
        if type(value) is FrozenList and all(map(lambda a, b: a is b, items, value)):
            return value
        return FrozenList(items)

    def to_json(self, value: Any) -> Any:
        return [self.item.to_json(item) for item in value]

    def from_json(self, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            self.refuse(value, path)
        return FrozenList(self.item.from_json(item, f"{path}[{i}]") for i, item in enumerate(value))

    def describe(self, described: Described | None = None) -> Any:
        return {"list": self.item.describe(described)}

    def parts(self) -> Iterable[ColumnType]:
        return (self.item,)
