"""The code of conditions: one Python expression for a row, or for a pair of joined rows.

Column names are checked identifiers, and literals are never a part of the source: they are its arguments, so queries
that differ only in them share their code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from gamedb.query.conditions import TRUE, All, Any_, Condition, Constant, Exists, Test

Predicate = Callable[..., bool]
"""`predicate(row)`, or `predicate(row, joined row)`."""
ExistsMaker = Callable[[Exists], Callable[[Any], bool]]

EXPRESSION_KEPT_MAX: Final = 2_000
"""Characters of code that is kept for queries with other literals."""

_PYTHON: Final = {"=": "==", "<>": "!="}


def compiled(condition: Condition, exists: ExistsMaker | None = None) -> Predicate | None:
    """The code of a bound condition; `None` when it always holds."""
    if condition == TRUE:
        return None
    constants: list[Any] = []
    expression = _expression(condition, constants, exists)
    factory = _kept_factory if len(expression) <= EXPRESSION_KEPT_MAX else _factory
    return factory(expression, len(constants))(*constants)


def _factory(expression: str, count: int) -> Callable[..., Predicate]:
    names = ", ".join(f"c{n}" for n in range(count))
    factory: Callable[..., Predicate] = eval(f"lambda {names}: lambda r0, r1=None: {expression}")
    return factory  # made of checked identifiers; the literals are its arguments


_kept_factory: Final = lru_cache(maxsize=512)(_factory)


def _expression(condition: Condition, constants: list[Any], exists: ExistsMaker | None) -> str:
    if isinstance(condition, All | Any_):
        if not condition.parts:
            return "True" if isinstance(condition, All) else "False"
        word = " and " if isinstance(condition, All) else " or "
        return f"({word.join([_expression(part, constants, exists) for part in condition.parts])})"
    if isinstance(condition, Exists):
        assert exists is not None
        constants.append(exists(condition))
        return f"c{len(constants) - 1}(r{condition.side})"
    assert not isinstance(condition, Constant)
    left = f"r{condition.side}.{condition.column}"
    guards = [left] if condition.optional and condition.operator != "=" else []
    if isinstance(condition, Test):
        constants.append(condition.value)
        right = f"c{len(constants) - 1}"
    else:
        right = f"r{condition.other_side}.{condition.other}"
        if condition.optional:
            guards = [left, right]
    operator = condition.operator
    test = f"{left} {_PYTHON.get(operator.lstrip('!'), operator.lstrip('!'))} {right}"
    if operator.startswith("!"):
        test = f"not {test}"
    if guards:
        return f"({' and '.join([*(f'{guard} is not None' for guard in guards), test])})"
    return f"({test})" if operator.startswith("!") else test
