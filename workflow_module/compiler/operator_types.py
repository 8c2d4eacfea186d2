"""Types of `left operator right`, for inference."""

from __future__ import annotations

import datetime as dt
import typing
from typing import Any, get_args, get_origin

from .builtin_types import element, of_items
from .typeops import DICT, TUPLE, UNKNOWN, join, members, without_none

NUMBERS = (bool, int, float)
_TIMES: dict[tuple[str, Any, Any], Any] = {
    ("Add", dt.datetime, dt.timedelta): dt.datetime,
    ("Add", dt.timedelta, dt.datetime): dt.datetime,
    ("Sub", dt.datetime, dt.timedelta): dt.datetime,
    ("Sub", dt.datetime, dt.datetime): dt.timedelta,
    ("Add", dt.date, dt.timedelta): dt.date,
    ("Sub", dt.date, dt.timedelta): dt.date,
    ("Sub", dt.date, dt.date): dt.timedelta,
    ("Add", dt.timedelta, dt.timedelta): dt.timedelta,
    ("Sub", dt.timedelta, dt.timedelta): dt.timedelta,
    ("Div", dt.timedelta, dt.timedelta): float,
    ("FloorDiv", dt.timedelta, dt.timedelta): int,
    ("Mod", dt.timedelta, dt.timedelta): dt.timedelta,
}


def binary(operator: str, left: Any, right: Any) -> Any:
    """The type of `left operator right`."""
    results = [_binary(operator, a, b) for a in members(without_none(left)) for b in members(without_none(right))]
    if len(results) > 1:  # a union's impossible pairs raise; they have no result
        results = [result for result in results if result is not UNKNOWN] or [UNKNOWN]
    return join(results)


def _binary(operator: str, left: Any, right: Any) -> Any:
    if left in NUMBERS and right in NUMBERS:
        return _numbers(operator, left, right)
    if (operator, left, right) in _TIMES:
        return _TIMES[operator, left, right]
    if dt.timedelta in (left, right) and (left in NUMBERS or right in NUMBERS):
        return dt.timedelta if operator in ("Mult", "Div", "FloorDiv") else UNKNOWN
    if operator == "Mod" and left in (str, bytes):
        return left
    if operator == "Add" and left in (str, bytes) and left is right:
        return left
    if operator == "Mult" and (left in NUMBERS or right in NUMBERS):
        other = right if left in NUMBERS else left
        if other in (str, bytes) or get_origin(other) is list:
            return other
        if get_origin(other) is tuple:
            inside = element(other)
            return UNKNOWN if inside is UNKNOWN else TUPLE[inside, ...]
    origins = (get_origin(left), get_origin(right))
    if operator == "Add" and origins == (list, list):
        return of_items(list, join([element(left), element(right)]))
    if operator == "Add" and origins == (tuple, tuple):
        return _joined_tuples(left, right)
    if (
        operator in ("BitOr", "BitAnd", "Sub", "BitXor")
        and origins[0] in (set, frozenset)
        and origins[1] in (set, frozenset)
    ):
        return of_items(
            origins[0], join([element(left), element(right)]) if operator in ("BitOr", "BitXor") else element(left)
        )
    if operator == "BitOr" and origins == (dict, dict):
        (k1, v1), (k2, v2) = get_args(left), get_args(right)
        return DICT[join([k1, k2]), join([v1, v2])]
    return _overloaded(operator, left, right)


def _joined_tuples(left: Any, right: Any) -> Any:
    a, b = get_args(left), get_args(right)
    if Ellipsis in a or Ellipsis in b:
        inside = join([element(left), element(right)])
        return UNKNOWN if inside is UNKNOWN else TUPLE[inside, ...]
    return TUPLE[(*a, *b)] if a or b else TUPLE[()]


def _overloaded(operator: str, left: Any, right: Any) -> Any:
    from .inference import return_type

    method = {
        "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod",
        "BitOr": "or", "BitAnd": "and", "BitXor": "xor", "Pow": "pow", "MatMult": "matmul",
    }.get(operator)  # fmt: skip
    reflected = (right, "__r")
    for owner, prefix in (reflected,) if left in NUMBERS else ((left, "__"), reflected):
        function = getattr(get_origin(owner) or owner, f"{prefix}{method}__", None)
        if function is not None:
            found = return_type(function)
            return owner if found is typing.Self else found
    return UNKNOWN


def _numbers(operator: str, left: Any, right: Any) -> Any:
    if operator in ("BitAnd", "BitOr", "BitXor"):
        return UNKNOWN if float in (left, right) else bool if left is right is bool else int
    if operator in ("LShift", "RShift"):
        return int
    if operator == "Div":
        return float
    if operator == "Pow":
        return join([int, float]) if float not in (left, right) else float
    return float if float in (left, right) else int
