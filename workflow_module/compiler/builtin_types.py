"""What Python's own types do, for inference: methods, indexing, iteration, builtin calls."""

from __future__ import annotations

import ast
import collections.abc as abc
import datetime as dt
import math
import random
import time
import typing
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

from .typeops import DICT, ITERABLE, ITERATOR, TUPLE, UNKNOWN, join, strip

if TYPE_CHECKING:
    from .inference import Types

_LISTS = (list, abc.Iterator, abc.Iterable, abc.Sequence, abc.Collection, set, frozenset)


def of_items(container: Any, item: Any) -> Any:
    """`container[item]`, or `UNKNOWN`."""
    return UNKNOWN if item is UNKNOWN else container[item]


def iterator_of(item: Any) -> Any:
    """The type of an iterator over `item`."""
    return UNKNOWN if item is UNKNOWN else ITERATOR[item]


def of_object(found: Any) -> Any:
    """The type of a module-level container, from what is in it now."""
    if isinstance(found, dict):
        if not found:
            return UNKNOWN
        return DICT[join([of_object(k) for k in found]), join([of_object(v) for v in found.values()])]
    if isinstance(found, tuple):
        parts = tuple(of_object(part) for part in found)
        return UNKNOWN if UNKNOWN in parts else TUPLE[parts] if parts else TUPLE[()]
    if isinstance(found, (list, set, frozenset)):
        return of_items(type(found), join([of_object(part) for part in found])) if found else UNKNOWN
    return type(found)


def element(iterable: Any) -> Any:
    """The type of the items of a type."""
    iterable = strip(iterable)
    origin, args = get_origin(iterable), get_args(iterable)
    if iterable is str:
        return str
    if iterable in (bytes, range):
        return int
    if origin is tuple:
        if Ellipsis in args:
            return args[0]
        return join(list(args)) if args else UNKNOWN
    if origin is dict or (origin in _LISTS and args):
        return args[0]
    return _iteration_hint(iterable)


def _iteration_hint(iterable: Any) -> Any:
    from .inference import return_type

    function = getattr(get_origin(iterable) or iterable, "__iter__", None)
    found = return_type(function) if function is not None else UNKNOWN
    return get_args(found)[0] if get_args(found) else UNKNOWN


def subscript(owner: Any, key: ast.expr, types: Types) -> Any:
    """The type of `owner[key]`."""
    from .inference import return_type

    owner = strip(owner)
    origin, args = get_origin(owner), get_args(owner)
    if owner is str or origin is list:
        return owner if isinstance(key, ast.Slice) or owner is str else args[0]
    if owner is bytes:
        return bytes if isinstance(key, ast.Slice) else int
    if owner is range:
        return range if isinstance(key, ast.Slice) else int
    if origin is dict:
        return args[1]
    if origin is tuple:
        index = _constant_index(key)
        if isinstance(key, ast.Slice):
            inside = element(owner)
            return UNKNOWN if inside is UNKNOWN else TUPLE[inside, ...]
        if Ellipsis not in args and index is not None and -len(args) <= index < len(args):
            return args[index]
        return element(owner)
    function = getattr(origin or owner, "__getitem__", None)
    return return_type(function) if function is not None else UNKNOWN


def _constant_index(key: ast.expr) -> int | None:
    try:
        found = ast.literal_eval(key)
    except (ValueError, TypeError):
        return None
    return found if type(found) is int else None


_FIXED: dict[Any, Any] = {
    len: int, repr: str, ascii: str, format: str, chr: str, ord: int, hash: int, id: int, any: bool, all: bool,
    isinstance: bool, issubclass: bool, callable: bool, hasattr: bool, bool: bool, int: int, str: str,
    float: float, bytes: bytes, range: range, bin: str, hex: str, oct: str, print: type(None), input: str,
    time.time: float, time.monotonic: float,
}  # fmt: skip


_MATH: dict[str, Any] = {
    **dict.fromkeys(("floor", "ceil", "trunc", "gcd", "lcm", "comb", "perm", "factorial", "isqrt"), int),
    **dict.fromkeys(("isfinite", "isinf", "isnan", "isclose"), bool),
    "prod": UNKNOWN, "frexp": UNKNOWN, "modf": UNKNOWN,
}  # fmt: skip


def call(function: Any, node: ast.Call, types: Types) -> Any:
    """The type of a call of a builtin, or `UNKNOWN` when it is not one that is known here."""
    try:
        if function in _FIXED:
            return _FIXED[function]
    except TypeError:  # unhashable
        return UNKNOWN
    owner = getattr(function, "__self__", None)
    if owner is math:
        return _MATH.get(function.__name__, float)
    if owner in (dt.datetime, dt.date):  # now, today, fromisoformat, ...
        return owner
    args = [types.of(arg) for arg in node.args if not isinstance(arg, ast.Starred)]
    first = args[0] if args else UNKNOWN
    inside = types.element(first) if args else UNKNOWN
    if function in (list, sorted):
        return of_items(list, inside)
    if function in (set, frozenset):
        return of_items(function, inside)
    if function is tuple:
        return (TUPLE[inside, ...] if inside is not UNKNOWN else UNKNOWN) if args else TUPLE[()]
    if function is dict:
        return _dict_call(node, first, inside)
    if function in (min, max):
        found = inside if len(args) == 1 else join(args)
        default = [types.of(keyword.value) for keyword in node.keywords if keyword.arg == "default"]
        return join([found, *default])
    if function is sum:
        return join([int if inside is bool else inside, *(args[1:] or [int])])
    if function in (abs, round):
        return _arithmetic(function, args)
    if function in (reversed, iter, filter):
        return iterator_of(inside if function is not filter else types.element(args[1]) if len(args) > 1 else UNKNOWN)
    if function is next:
        return join([inside, *args[1:]])
    if function is enumerate:
        return UNKNOWN if inside is UNKNOWN else ITERATOR[TUPLE[int, inside]]
    if function is zip:
        parts = tuple(types.element(arg) for arg in args)
        return UNKNOWN if UNKNOWN in parts or not parts else ITERATOR[TUPLE[parts]]
    if function in (msgspec.structs.replace,):
        return first
    return UNKNOWN


def _dict_call(node: ast.Call, first: Any, inside: Any) -> Any:
    if get_origin(first) is dict and not node.keywords:
        return first
    args = get_args(inside)
    if get_origin(inside) is tuple and len(args) == 2 and Ellipsis not in args:
        return DICT[args[0], args[1]]
    return UNKNOWN


def _arithmetic(function: Any, args: list[Any]) -> Any:
    if not args:
        return UNKNOWN
    if function is abs:
        return int if args[0] is bool else args[0]
    return int if len(args) == 1 else args[0]  # round


def _all(names: str, found: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), found)


_STR: dict[str, Any] = {
    **_all(
        "upper lower title strip lstrip rstrip replace format join capitalize casefold center ljust rjust zfill "
        "removeprefix removesuffix swapcase expandtabs translate format_map",
        str,
    ),
    **_all("startswith endswith isdigit isalpha isalnum isspace islower isupper isidentifier isnumeric", bool),
    **_all("find rfind index rindex count", int),
    "split": list[str], "rsplit": list[str], "splitlines": list[str], "encode": bytes,
    "partition": TUPLE[str, str, str], "rpartition": TUPLE[str, str, str],
}  # fmt: skip
_RANDOM: dict[str, Any] = {
    "random": float, "uniform": float, "gauss": float, "triangular": float, "normalvariate": float,
    "randint": int, "randrange": int, "getrandbits": int, "shuffle": type(None), "randbytes": bytes,
    "expovariate": float, "betavariate": float,
}  # fmt: skip
_DATETIME: dict[str, Any] = {
    "isoformat": str, "strftime": str, "total_seconds": float, "timestamp": float, "weekday": int,
    "astimezone": dt.datetime, "date": dt.date, "time": dt.time, "toordinal": int,
}  # fmt: skip


def method(owner: Any, name: str, node: ast.Call, types: Types) -> Any:
    """The type of `value.name(...)` for a value of type `owner`."""
    from .inference import hints_of, return_type

    owner = strip(owner)
    origin, args = get_origin(owner), get_args(owner)
    if owner is str:
        return _STR.get(name, UNKNOWN)
    if owner is bytes:
        return (
            str if name in ("decode", "hex") else _STR.get(name, UNKNOWN) if _STR.get(name) in (int, bool) else UNKNOWN
        )
    if owner is int:
        return {"bit_length": int, "bit_count": int, "conjugate": int}.get(name, UNKNOWN)
    if owner is float:
        return bool if name == "is_integer" else UNKNOWN
    if origin is list:
        return {"pop": args[0], "copy": owner, "index": int, "count": int}.get(name, _NONE.get(name, UNKNOWN))
    if origin in (set, frozenset):
        return {"pop": args[0], "copy": owner, "union": owner, "intersection": owner, "difference": owner}.get(
            name, _NONE.get(name, bool if name.startswith("is") else UNKNOWN)
        )
    if origin is dict:
        return _dict_method(owner, args, name, node, types)
    if origin is tuple:
        return int if name in ("index", "count") else UNKNOWN
    if owner in (dt.datetime, dt.date, dt.timedelta, dt.time):
        return owner if name == "replace" else _DATETIME.get(name, UNKNOWN)
    if isinstance(owner, type) and issubclass(owner, random.Random):
        if name == "choice":
            return types.element(types.of(node.args[0])) if node.args else UNKNOWN
        if name in ("sample", "choices"):
            return of_items(list, types.element(types.of(node.args[0]))) if node.args else UNKNOWN
        return _RANDOM.get(name, UNKNOWN)
    function = getattr(origin or owner, name, None)
    if function is None:
        return UNKNOWN
    if hints_of(function).get("return") is typing.Self:
        return owner
    return return_type(function)


_NONE = _all("append extend insert remove clear sort reverse add discard update", type(None))


def _dict_method(owner: Any, args: tuple[Any, ...], name: str, node: ast.Call, types: Types) -> Any:
    key, value = args
    if name in ("get", "pop", "setdefault"):
        if len(node.args) > 1:
            return value if name == "setdefault" else join([value, types.of(node.args[1])])
        return join([value, type(None)]) if name == "get" else value
    found = {
        "keys": ITERABLE[key],
        "values": ITERABLE[value],
        "items": ITERABLE[TUPLE[key, value]],
        "copy": owner,
        "popitem": TUPLE[key, value],
    }
    return found.get(name, _NONE.get(name, UNKNOWN))


def attribute(cls: type, name: str) -> Any:
    """The type of a data attribute of a builtin class."""
    if issubclass(cls, (dt.datetime, dt.date, dt.time)):
        return {"tzinfo": join([dt.tzinfo, type(None)])}.get(name, int)
    if issubclass(cls, dt.timedelta):
        return int
    if issubclass(cls, range) and name in ("start", "stop", "step"):
        return int
    return UNKNOWN
